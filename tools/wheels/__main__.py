"""``make wheels``."""

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

from . import (
    MACHINES,
    PYTHONS,
    ROOT,
    WORK,
    archive,
    bill,
    checking,
    emulated,
    environments,
    numpy,
    releases,
    trying,
)
from .layout import layout

SOURCES = ("fastops", "bench", "tools")
FILES = ("LICENSE", "THIRD_PARTY_LICENSES.md", "README.md", "pyproject.toml", "setup.py")
IGNORED = shutil.ignore_patterns("*.so", "_build_info.py", "__pycache__", "results")
DIST = ROOT / "dist"


class Progress:
    """Prints lines, each with the time since the start."""

    def __init__(self):
        self._start = time.monotonic()

    def __call__(self, text):
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        print(f"[{minutes:3}:{seconds:02}] {text}", flush=True)


def copy_sources():
    """Update a copy of the sources; compiled files stay."""
    place = WORK / "source"
    place.mkdir(parents=True, exist_ok=True)
    for folder in SOURCES:
        shutil.rmtree(place / folder, ignore_errors=True)
        shutil.copytree(ROOT / folder, place / folder, ignore=IGNORED)
    for file in FILES:
        shutil.copy2(ROOT / file, place / file)
    return place


class Wheel:
    """Makes the wheel of one Python for x86-64.

    Parameters
    ----------
    version
        The version of Python, such as ``3.11``.
    distribution
        The name of TensorFlow on PyPI.
    say
        Called with a line of text for each step.
    """

    machine = "x86_64"

    def __init__(self, version, distribution, say):
        self._version = version
        self._distribution = distribution
        self._say = lambda text: say(f"CPython {version}: {text}")
        self._python = environments.find_python(version)
        self._place = WORK / version
        self._releases = releases(version, self.machine)

    def only(self, chosen):
        """Leave out all releases of TensorFlow except these."""
        self._releases = [release for release in self._releases if release in chosen]

    def make(self):
        """Compile, pack and check; return the path of the wheel."""
        self._source = copy_sources()
        self._builder = environments.builder(self._python, self._version)
        compiled = {release: self._compile(release) for release in self._releases}
        self._say("packing")
        wheel = self._pack(compiled)
        self._say("checking")
        tools = environments.checkers(self._python).parent
        checking.check(wheel, tools, self.machine)
        DIST.mkdir(exist_ok=True)
        made = Path(shutil.copy2(wheel, DIST))
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        self._say(f"dist/{made.name}, {made.stat().st_size / 2**20:.1f} MiB, sha256 {digest}")
        return made

    def attempt(self, wheel, limit):
        """Test the wheel with each TensorFlow."""
        for release in self._releases:
            self._say(f"trying with TensorFlow {release}")
            trying.attempt(wheel, self._tensorflow(release), self._say, limit)

    def clear(self):
        """Remove the environments with TensorFlow, which are large."""
        for folder in self._place.glob("tensorflow*==*/"):
            shutil.rmtree(folder)

    def _tensorflow(self, release):
        requirement = f"{self._distribution}=={release}"
        return environments.tensorflow(self._python, self._version, requirement)

    def _compile(self, release):
        self._say(f"TensorFlow {release}: making an environment")
        interpreter = self._tensorflow(release)
        self._say(f"TensorFlow {release}: compiling")
        result = self._place / f"compiled-{release}.json"
        self._run("compiling", interpreter, result, **self._cross(release))
        compiled = json.loads(result.read_text())
        libraries = [self._source / path for path in compiled["libraries"].values()]
        if missing := checking.missing_symbols(libraries, compiled["exporters"]):
            sys.exit(f"TensorFlow {release} lacks what the extensions ask for: {missing}")
        return compiled

    def _pack(self, compiled):
        files, builds = layout(compiled, self._suffix())
        order, place = self._place / "order.json", self._place / "packed"
        order.write_text(
            json.dumps({"files": files, "builds": builds, "platform": MACHINES[self.machine]})
        )
        shutil.rmtree(place, ignore_errors=True)
        self._run("packing", order, place)
        (wheel,) = place.glob("*.whl")
        contents = archive.read(wheel)
        (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
        name, version = re.match(r"(.+?)-(.+?)\.dist-info/", record).groups()
        known = [build for builds in builds.values() for build in builds]
        target = f"{name}-{version}.dist-info/sboms/{name}.cdx.json"
        archive.write(
            wheel, contents | {target: bill.bill(version, known, contents, numpy(self._version))}
        )
        return wheel

    def _suffix(self):
        return environments.suffix(self._builder)

    def _cross(self, release):
        """Return more environment variables for the compilation."""
        return {}

    def _run(self, module, *arguments, **variables):
        """Run a module of this package in the environment for compiling, among the sources."""
        path = [self._source / "tools", self._source / "tools" / "pep517"]
        path += filter(None, [variables.pop("PYTHONPATH", None)])
        environment = {
            **os.environ,
            **variables,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "FASTOPS_BUILD": "wheel",
            "SOURCE_DATE_EPOCH": "1580601600",
            "PYTHONHASHSEED": "0",
        }
        command = [self._builder, "-m", f"wheels.{module}", *arguments]
        show = module == "compiling"  # compiling takes long, and prints its progress
        environments.run(command, show=show, cwd=self._source, env=environment)


class WheelForAarch64(Wheel):
    """Makes the wheel of one Python for aarch64, by a cross compiler and an emulator."""

    machine = "aarch64"

    def __init__(self, version, distribution, say):
        super().__init__(version, "tensorflow", say)
        self._place = WORK / f"{version}-{self.machine}"

    def _suffix(self):
        return emulated.suffix(self._version)

    def _machine(self, release):
        return emulated.machine(self._place / f"tensorflow=={release}", release, self._say)

    def _tensorflow(self, release):
        made = self._machine(release)
        try:
            made.make()
        except emulated.FailedError as failed:
            sys.exit(str(failed))
        return made.python

    def _cross(self, release):
        return self._machine(release).cross()


def main():
    parser = argparse.ArgumentParser(
        prog="make wheels",
        description="Make the wheels of fastops in dist/, one for each Python, and try each with "
        "every TensorFlow that it is for. A run that was stopped goes on where it was.",
        epilog="Options are passed so: make wheels ARGS='--python 3.11 --keep'",
    )
    parser.add_argument(
        "--python",
        action="append",
        choices=PYTHONS,
        metavar="X.Y",
        help=f"one of {', '.join(PYTHONS)}, found on the path or among pyenv's; all by default",
    )
    parser.add_argument(
        "--distribution",
        default="tensorflow-cpu",
        choices=("tensorflow-cpu", "tensorflow"),
        help="which of TensorFlow's wheels to compile for and to try with, %(default)s by default: "
        "of either the bytes that are made are the same",
    )
    parser.add_argument(
        "--machine",
        choices=MACHINES,
        default="x86_64",
        help="the processor (default: %(default)s); aarch64 is compiled for by a cross compiler, "
        f"and tried under emulation, for CPython {emulated.PYTHON} only",
    )
    parser.add_argument(
        "--release",
        action="append",
        help="only these releases of TensorFlow, for a trial: such a wheel is not complete",
    )
    parser.add_argument("--no-trying", action="store_true", help="make and check the wheels only")
    parser.add_argument(
        "--keep", action="store_true", help="keep the environments with TensorFlow, 1.3 GB each"
    )
    parser.add_argument(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="the time limit of pip and the first call together, in seconds (default: "
        f"{trying.SLOWEST}; under emulation {emulated.SLOWEST})",
    )
    arguments = parser.parse_args()
    say = Progress()
    others = arguments.machine == "aarch64"
    kind, slowest = (WheelForAarch64, emulated.SLOWEST) if others else (Wheel, trying.SLOWEST)
    pythons = (emulated.PYTHON,) if others else PYTHONS
    if missing := {*(arguments.python or ())} - {*pythons}:
        parser.error(f"no emulated CPython {', '.join(sorted(missing))} is at hand")
    for version in arguments.python or pythons:
        wheel = kind(version, arguments.distribution, say)
        if arguments.release:
            wheel.only(arguments.release)
        made = wheel.make()
        if not arguments.no_trying:
            wheel.attempt(made, arguments.limit or slowest)
        if not arguments.keep:
            wheel.clear()
    say("done")


if __name__ == "__main__":
    main()
