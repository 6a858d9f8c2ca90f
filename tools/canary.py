"""Test nightly builds of TensorFlow and Keras, and report what their release would cost.

It makes a cell as `tools/matrix.py` does, in ``.venv-matrix/nightly``, with a copy of the checkout,
builds there for any TensorFlow, and runs the quick tests. The report begins with a table: for each
step of *A new TensorFlow* in docs/releasing.md, what has changed since the running versions. Lists
of the changed headers, symbols, ops, mirrored functions and names follow. It is not part of
continuous integration: its report is for a person to read.

Examples
--------
``make canary`` tests the newest nightly builds of both. ``make canary ARGS="--package
tensorflow-cpu==2.22.0rc0"`` tests a candidate with Keras's nightly build. ``--keras required``
takes the Keras that this TensorFlow requires. ``--no-tests`` only reports what has changed.
"""

import argparse
import json
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
from tools.pep517.fastops_build.systems import SUPPORTED  # noqa: E402

NAME = "nightly"

KERAS = "keras-nightly"

DUMP = (
    "import sys; sys.modules['fastops._core.build'] = None\n"
    "from tools import snapshot\n"
    "open(sys.argv[1], 'w').write(snapshot.op_defs())\n"
)

# It runs in the cell, where fastops may not build. So the package is imported without its
# `__init__.py`, and its only compiled module that is needed is replaced: nothing is installed.
LOOK_UP = """
import contextlib, json, sys, types

fastops, names = (types.ModuleType(name) for name in ("fastops", "names"))
fastops.__path__ = ["fastops"]
names.original_of = lambda value: value
sys.modules |= {"fastops": fastops, "fastops._specialize.guards.names": names}
import keras, tensorflow
with contextlib.suppress(ImportError):
    import tf_keras
from fastops._install import upstream

kinds = upstream.table()["kinds"].items()
present = [(name, kind) for name, kind in kinds if name.partition(".")[0] in sys.modules]
found = {name: upstream.objection_to(name, kind) for name, kind in present}
print(json.dumps([found, {"TensorFlow": tensorflow.__version__, "Keras": keras.__version__}]))
"""

STEPS = {
    "build": "1. build",
    "headers": "1. headers that fastops reads",
    "ops": "2. ops",
    "symbols": "3. symbols that the extensions call",
    "private": "3. entries of symbols and layouts",
    "code": "4. mirrored Python: pieces of `install`",
    "names": "4. names that `install` uses",
    "tests": "6. quick tests",
}
"""The rows of the table, by step of docs/releasing.md."""


class Nightly(matrix.Runner):
    """A cell with nightly builds.

    Parameters
    ----------
    package : str
        The requirement of TensorFlow.
    keras : str
        The requirement of Keras, or ``"required"`` for the one that TensorFlow requires.
    """

    def __init__(self, package, keras=KERAS, **options):
        super().__init__(matrix.Cell("{}.{}".format(*sys.version_info), NAME), **options)
        self.package = package
        self.keras = keras

    def prepare(self):
        """Make the environment, or bring it up to date, and build.

        It is made anew for another package: several packages have TensorFlow's modules.
        """
        made, note = self.folder / "venv" / ".made", self.folder / "package"
        name = re.match(r"[\w-]*", self.package)[0]
        if not note.exists() or note.read_text() != name:
            made.unlink(missing_ok=True)
        elif made.exists():
            self.pip("TensorFlow", "--upgrade", *self._requirements())
        self.folder.mkdir(parents=True, exist_ok=True)
        note.write_text(name)
        return super().prepare()

    def call(self, step, *command, check=True):
        """Run a command in the copy, whatever the version of TensorFlow."""
        return super().call(step, "env", "FASTOPS_ANY_TENSORFLOW=1", *command, check=check)

    def _requirements(self):
        return [self.package, *matrix.isolated_requirements()]

    def _tf_keras(self):
        return f"tf_keras=={SUPPORTED['released']()[-1]}.*"

    def _build(self):
        try:
            super()._build()
        finally:
            if self.keras != "required":  # TensorFlow may require `keras`: the same modules
                uninstall = ("pip", "uninstall", "--yes", "--quiet", "keras", "keras-nightly")
                self.call("Keras", self.python, "-m", *uninstall)
                self.pip("Keras", "--upgrade", self.keras)

    def describe(self):
        return {}

    def site(self):
        """Return the folder of installed packages, as the environment's Python reports it."""
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        _, text = self.call("where", self.python, "-c", code)
        return Path(text.split()[-1])

    def names(self):
        """Look up the names that `install` uses.

        Returns
        -------
        dict of str to str
            By name, what is wrong with it, or `None`.
        dict of str to str
            The versions, by package.
        """
        _, text = self.call("names", self.python, "-c", LOOK_UP)
        return json.loads(text.splitlines()[-1])


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
    """Return a summary of the changes of the headers that fastops uses, and lines about them."""
    names, _ = headers(here, includes)
    _, errors = headers(there, includes)
    gone = sorted(name for name in names if not (there / "include" / name).exists())
    other = sorted(
        name
        for name in names - {*gone}
        if (here / "include" / name).read_bytes() != (there / "include" / name).read_bytes()
    )
    own = ("tensorflow/c/", "tensorflow/core/", "tensorflow/python/")
    lines = [*errors, *(f"gone: {name}" for name in gone)]
    lines += [f"other: {name}" for name in other if str(name).startswith(own)]
    summary = f"{len(other)} of {len(names)} have changed, {len(gone)} are missing"
    return summary + (f", {len(errors)} errors" if errors else ""), lines


def moved_symbols(tree, package):
    """Return a summary of the symbols that this TensorFlow does not export, and their names."""
    libraries = [
        package / name for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
    ]
    libraries.append(package / "python" / "lib_pywrap_tensorflow_common.so")
    modules = sorted((tree / "fastops").rglob("*.so"))
    if not modules:
        return "not looked up: there is no build", []
    used = {name for name, kind in cross.symbols(modules, "--dynamic") if kind == "U"}
    exported = {name for library in libraries for name, _ in cross.symbols([library], "--dynamic")}
    lacking = {name.partition("@")[0] for name in used} - {n.partition("@")[0] for n in exported}
    found = [name for name in cross.plain(lacking) if not cross.is_standard(name)]
    found = [name for name in found if not cross.ELSEWHERE.match(name)]
    return f"{len(found)} of {len(used)} are missing", sorted(found)


def private_parts():
    """Return how many entries have to be compared with TensorFlow's sources."""
    files = [building.HELPERS / name for name in ("compat.h", "onednn/symbols.h")]
    counts = [(ROOT / file).read_text().count("// Checked: ") for file in files]
    return f"{sum(counts)} to compare with its sources"


def moved_code(site):
    """Return by package a summary of the mirrored code that has changed, and lines about it."""
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
    found = {}
    for folder, package in restated.PLACES.items():
        if not (Path(site) / folder).is_dir():
            continue
        left_out = restated.missing(package, installed, table)
        pieces = [(layer, *one) for layer, ones in left_out.items() for one in ones.items()]
        count = sum(
            restated.owner(table, piece) == package
            for titles in table["pieces"].values()
            for piece in titles.values()
        )
        changed = len({part for _, _, part in pieces})
        summary = f"{len(pieces)} of {count} are left out"
        summary += f", because of {changed} functions" if pieces else ""
        found[package] = summary, [f"{layer}: {piece}, by {part}" for layer, piece, part in pieces]
    return found


def moved_names(found):
    """Return by package a summary of the names that are not as expected, and lines about them."""
    packages = {}
    for name, why in found.items():
        packages.setdefault(restated.package_of(name), {})[name] = why
    return {
        package: (
            f"{sum(why is not None for why in names.values())} of {len(names)} differ",
            [f"{name}: {why}" for name, why in names.items() if why is not None],
        )
        for package, names in packages.items()
    }


def moved_ops(text):
    """Return a summary of the changes of the ops, given the text of all, and lines about them."""
    old, new = load.parse(load.OPS.read_text()), load.parse(text)
    other = [name for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    came, went = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    lines = [f"came: {name}" for name in came] + [f"went: {name}" for name in went]
    lines += [f"is other: {name}" for name in other]
    summary = f"{len(came)} new, {len(went)} gone, {len(other)} differ, of {len(new)}"
    return summary, lines


def tested(counts):
    """Return a summary of the tests, and lines about those that have failed."""
    total = f"{counts['passed'] + counts['failed']:,}"
    lines = [f"{name}: {message}" for name, message in counts["failures"]]
    return f"{counts['failed']} of {total} failed, {counts['skipped']} were skipped", lines


def report(versions, found):
    """Return the report.

    Parameters
    ----------
    versions : dict of str to str
        The tested versions, by package.
    found : dict
        By key of `STEPS` and package, a summary and lines with the particulars.
    """
    packages = [*versions]
    heads = [f"{package} {version}" for package, version in versions.items()]
    parts = ["## What a release would cost\n\n"]
    parts += [restated.row("step", *heads), restated.row("---", *("---" for _ in heads))]
    for step, title in STEPS.items():
        cells = found.get(step, {})
        texts = (cells[package][0] if package in cells else "" for package in packages)
        parts.append(restated.row(title, *(text.replace("|", "\\|") for text in texts)))
    for step, cells in found.items():
        for package, (_, lines) in cells.items():
            if lines:
                title = STEPS[step].partition(" ")[2]
                parts.append(f"\n## {title[0].upper()}{title[1:]}, {package}\n\n")
                parts += (f"- {line}\n" for line in lines)
    return "".join(parts)


def main(argv=None):
    """Run the command; return its exit status, that of the build and the tests."""
    parser = argparse.ArgumentParser(prog="tools/canary.py", description=__doc__.splitlines()[0])
    parser.add_argument("--package", default="tf-nightly", help="TensorFlow (default: %(default)s)")
    parser.add_argument(
        "--keras", default=KERAS, help="Keras, or `required` (default: %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=matrix.room(1)[1])
    parser.add_argument("--no-tests", action="store_true", help="only report what has changed")
    options = parser.parse_args(argv)
    here = needs.tensorflow().directory
    runner = Nightly(options.package, options.keras, workers=options.workers)
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
    names, versions = runner.names()
    found = {
        "build": {"TensorFlow": (failure or "it builds", [])},
        "headers": {"TensorFlow": moved_headers(here, package, includes)},
        "ops": {"TensorFlow": moved_ops(dump.read_text())},
        "symbols": {"TensorFlow": moved_symbols(runner.tree, package)},
        "private": {"TensorFlow": (private_parts(), [])},
        "code": moved_code(site),
        "names": moved_names(names),
        "tests": {"TensorFlow": ("not run", [])},
    }
    status = int(failure is not None)
    if failure is None and not options.no_tests:
        counts = runner.tests("quick")
        status = int(bool(counts["failed"]))
        found["tests"] = {"TensorFlow": tested(counts), "Keras": ("the same run", [])}
    print(f"\n{report(versions, found)}", end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
