"""Check the properties of a wheel."""

import os
import re
import sys
import tempfile
from pathlib import Path

from . import LARGEST, MACHINES, NOT_BUNDLED, WORK, archive
from .environments import run

NOT_PACKED = (".pyx", ".pyc", ".h", ".cpp")
TOP = "fastops,fastops_bench,pytest_fastops"
ENCLOSED = ("licenses/LICENSE", "licenses/THIRD_PARTY_LICENSES.md", "sboms/fastops.cdx.json")

OF_PYTHON = re.compile(r"_?Py[A-Z_]")

# auditwheel refuses the tags of other processors than its own, although it can read their files.
AUDITWHEEL = """
import platform, sys
platform.machine = lambda: {machine!r}
from auditwheel.main import main
sys.exit(main())
"""


def missing_symbols(libraries, exporters):
    """Return the symbols of libraries that neither TensorFlow's nor the system's libraries define.

    Symbols of the system have a version, which auditwheel checks.

    Parameters
    ----------
    libraries, exporters
        Paths of the modules, and of TensorFlow's libraries.
    """
    exported = set()
    for path in exporters:
        exported.update(name.partition("@")[0] for _, name in _symbols(path, "--defined-only"))
    return sorted(
        {
            name
            for path in libraries
            for kind, name in _symbols(path, "--undefined-only")
            if kind == "U" and "@" not in name and not OF_PYTHON.match(name)
        }
        - exported
    )


def _symbols(path, which):
    for line in run(["nm", "--dynamic", which, path]).splitlines():
        *_, kind, name = line.split()
        yield kind, name


def check(wheel, tools, machine="x86_64"):
    """Check the properties of a wheel; exit if it does not have them.

    Parameters
    ----------
    wheel
        Its path.
    tools
        The folder of the programs that inspect wheels.
    machine
        The processor that it is for.
    """
    size = wheel.stat().st_size
    _require(size <= LARGEST, f"{wheel.name} has {size} bytes, and at most {LARGEST} are promised")
    files = archive.read(wheel)
    for name, content in files.items():
        _require(not name.endswith(NOT_PACKED), f"{name} is in the wheel")
        _require(bytes(WORK) not in content, f"{name} has a path of this machine in it")
    for folder in (
        "licenses/LICENSE",
        "licenses/THIRD_PARTY_LICENSES.md",
        "sboms/fastops.cdx.json",
    ):
        there = any(name.endswith(f".dist-info/{folder}") for name in files)
        _require(there, f"{folder} is not in the wheel")
    run([tools / "twine", "check", "--strict", wheel])
    # The wheel includes the benchmarks and the pytest plugin. Some stubs have equal content.
    run([tools / "check-wheel-contents", "--ignore", "W002,W009", "--toplevel", TOP, wheel])
    with tempfile.TemporaryDirectory() as place:
        # auditwheel checks the versions of symbols, and would add libraries that the extensions
        # need and the system may not have.
        command = [tools / "python", "-c", AUDITWHEEL.format(machine=machine), "repair"]
        command += ["--plat", MACHINES[machine], "--only-plat", "--wheel-dir", place]
        command += [word for name in NOT_BUNDLED for word in ("--exclude", name)]
        run([*command, wheel], env={"PATH": f"{tools}:{os.environ['PATH']}"})
        (repaired,) = Path(place).glob("*.whl")
        _require(repaired.name == wheel.name, f"auditwheel names it {repaired.name}")
        added = {*archive.read(repaired)} - {*files}
        _require(not added, f"auditwheel would add {added}")


def _require(condition, failure):
    if not condition:
        sys.exit(failure)
