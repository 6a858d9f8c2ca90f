"""Test a nightly build of TensorFlow, and report what has changed since the running version.

It makes a cell as `tools/matrix.py` does, in ``.venv-matrix/nightly``, with a copy of the checkout
that accepts this TensorFlow, builds there, and runs the quick tests. It reports which of the
headers that fastops uses have changed or are missing, which symbols are missing, which
reimplemented code has changed, and which ops have changed. It is not part of continuous
integration: its report is for a person to read.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from fastops._install import restated as code  # noqa: E402
from tools import cross, load, matrix, restated  # noqa: E402
from tools.pep517.fastops_build import compile as building  # noqa: E402
from tools.pep517.fastops_build import needs, systems  # noqa: E402

NAME = "nightly"

DUMP = (
    "import sys; sys.modules['fastops._core.build'] = None\n"
    "from tools import snapshot\n"
    "open(sys.argv[1], 'w').write(snapshot.op_defs())\n"
)


class Nightly(matrix.Runner):
    """A cell with a nightly build."""

    def __init__(self, package, **options):
        super().__init__(matrix.Cell("{}.{}".format(*sys.version_info), NAME), **options)
        self.package = package

    def _requirements(self):
        return [self.package, *matrix.isolated_requirements()]

    def copy(self):
        """Make a copy that accepts the nightly build."""
        super().copy()
        file = self.tree / "pyproject.toml"
        text = file.read_text()
        file.write_text(re.sub(r"(tensorflow-cpu>=[\d.]+),<[\d.]+", r"\1,<99.0", text))

    def describe(self):
        return {}

    def site(self):
        """Return the folder of installed packages, as the environment's Python reports it."""
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        _, text = self.call("where", self.python, "-c", code)
        return Path(text.split()[-1])


def headers(package, includes):
    """Return the headers of TensorFlow that fastops uses, as paths below its folder."""
    command = [
        *("g++", "-std=c++17", "-M", "-DINTEL_MKL", "-DNDEBUG", "-D_GLIBCXX_USE_CXX11_ABI=1"),
        *(f"-I{package / 'include'}", *(f"-I{include}" for include in includes)),
        *("-x", "c++", building.HELPERS / building.DEFINITIONS, "-include", "Python.h"),
    ]
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True)
    root = package / "include"
    found = (Path(name) for name in done.stdout.replace("\\\n", " ").split())
    names = {path.relative_to(root) for path in found if path.is_relative_to(root)}
    return names, [line for line in done.stderr.splitlines() if "error" in line]


def moved_headers(here, there, includes):
    """Yield lines about changes of the headers that fastops uses."""
    names, _ = headers(here, includes)
    _, errors = headers(there, includes)
    yield from errors
    gone = sorted(name for name in names if not (there / "include" / name).exists())
    other = sorted(
        name
        for name in names - {*gone}
        if (here / "include" / name).read_bytes() != (there / "include" / name).read_bytes()
    )
    yield f"{len(names)} headers are used, {len(other)} have changed, {len(gone)} are missing"
    yield from (f"gone: {name}" for name in gone)
    own = ("tensorflow/c/", "tensorflow/core/", "tensorflow/python/")
    yield from (f"other: {name}" for name in other if str(name).startswith(own))


def moved_symbols(tree, package):
    """Yield lines about symbols that the extensions call and this TensorFlow does not export."""
    libraries = [
        package / name for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
    ]
    libraries.append(package / "python" / "lib_pywrap_tensorflow_common.so")
    modules = sorted((tree / "fastops").rglob("*.so"))
    if not modules:
        yield "there is no build, so no symbols were looked up"
        return
    used = {name for name, kind in cross.symbols(modules, "--dynamic") if kind == "U"}
    exported = {name for library in libraries for name, _ in cross.symbols([library], "--dynamic")}
    lacking = {name.partition("@")[0] for name in used} - {n.partition("@")[0] for n in exported}
    found = [name for name in cross.plain(lacking) if not cross.is_standard(name)]
    found = [name for name in found if not cross.ELSEWHERE.match(name)]
    yield f"{len(used)} symbols are called, {len(found)} are missing"
    yield from (f"missing: {name}" for name in sorted(found))


def moved_code(site):
    """Yield lines about reimplemented code that has changed."""
    table, installed = code.table(), restated.Installed(site)
    for name in ("digests", "files"):
        table[name] = dict(table[name])
    for name, accepted in table["digests"].items():
        if (module := installed.module(name)) is not None:
            others = code.others(module.source, accepted)
            table["files"][name] = {
                **table["files"].get(name, {}),
                code.fingerprint(module.source): others,
            }
    for folder, package in restated.PLACES.items():
        if not (Path(site) / folder).is_dir():
            continue
        left_out = restated.missing(package, installed, table)
        count = sum(map(len, left_out.values()))
        yield f"{package}: {count} parts are left out"
        for layer, pieces in left_out.items():
            yield from (f"{layer}: {piece}, by {part}" for piece, part in pieces.items())


def moved_ops(text):
    """Yield lines about changes of the ops, given the text of all ops."""
    old, new = load.parse(load.OPS.read_text()), load.parse(text)
    other = [name for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    yield f"{len(new)} ops"
    yield from (f"came: {name}" for name in sorted(new.keys() - old.keys()))
    yield from (f"went: {name}" for name in sorted(old.keys() - new.keys()))
    yield from (f"is other: {name}" for name in other)


def main(argv=None):
    """Run the command; return its exit status, that of the build and the tests."""
    parser = argparse.ArgumentParser(prog="tools/canary.py", description=__doc__.splitlines()[0])
    parser.add_argument("--package", default="tf-nightly-cpu", help="what to install")
    parser.add_argument("--workers", type=int, default=matrix.room(1)[1])
    parser.add_argument("--no-tests", action="store_true", help="only report what has changed")
    options = parser.parse_args(argv)
    here = needs.tensorflow().directory
    runner = Nightly(options.package, workers=options.workers)
    failure = None
    try:
        runner.prepare()
    except matrix.FailedError as failed:
        failure = str(failed)
    site = runner.site()
    package = site / "tensorflow"
    includes = [building.HELPERS / "shim", building.HELPERS, np.get_include()]
    includes += [needs.sysconfig.get_path("include")]
    includes += [here / "include" / place for place in systems.ONEDNN_HEADERS]
    dump = runner.folder / "ops.pbtxt"
    runner.call("ops", runner.python, "-c", DUMP, dump)
    sections = {
        "Headers": moved_headers(here, package, includes),
        "Symbols": moved_symbols(runner.tree, package),
        "Restated code": moved_code(site),
        "Ops": moved_ops(dump.read_text()),
    }
    for title, lines in sections.items():
        print(f"\n## {title}\n")
        for line in lines:
            print(f"- {line}")
    print("\n## Build and tests\n")
    if failure is None and not options.no_tests:
        counts = runner.tests("quick")
        print(
            f"- {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
        )
        for name, message in counts["failures"]:
            print(f"- {name}: {message}")
        return int(bool(counts["failed"]))
    print(f"- {failure or 'it builds'}")
    return int(failure is not None)


if __name__ == "__main__":
    sys.exit(main())
