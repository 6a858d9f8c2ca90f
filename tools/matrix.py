"""Run the tests with every supported pair of Python and TensorFlow, and write docs/matrix.md.

Each cell of the matrix has its own environment and copy of this checkout, in ``.venv-matrix``, so
builds and runs of different cells do not interfere. The result of a cell is stored as JSON after
each of its steps, so a stopped run continues where it was stopped. A failed step is repeated.
``tools/matrix.json`` has the results that docs/matrix.md shows.

Examples
--------
``make matrix`` runs the quick tests in every cell without a result. ``make matrix ARGS="--tests
whole --python 3.12 --again"`` repeats all tests in some cells. ``--python /opt/python/bin/python3``
names an interpreter by its path. ``make matrix ARGS=--write`` writes the page from existing
results.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean, median
from threading import Lock
from typing import NamedTuple

from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools import matrix_page  # noqa: E402
from tools.pep517.fastops_build import needs  # noqa: E402
from tools.pep517.fastops_build.systems import SUPPORTED  # noqa: E402

PLACE = ROOT / ".venv-matrix"
RESULTS = ROOT / "tools" / "matrix.json"

OLDEST_KERAS = "3.8"
"""The oldest Keras that `install` supports. The newest suitable one is installed with
TensorFlow."""

MEMORY_PER_WORKER = 3 << 30
"""The maximum memory of a test process and its children."""

EXTENTS = {"quick": ["-m", "quick"], "whole": []}

LIMIT = 3 * 3600
"""The seconds after which a command counts as hanging."""


class Cell(NamedTuple):
    """A pair of minor versions of Python and TensorFlow, and optionally another Keras."""

    python: str
    tensorflow: str
    keras: str = ""

    def __str__(self):
        return "-".join(filter(None, (self.python, self.tensorflow, self.keras)))

    @property
    def base(self):
        """The cell whose environment this one uses."""
        return self._replace(keras="")


class FailedError(Exception):
    """A step has failed; the message is the reason in one line."""


# Which cells -------------------------------------------------------------------------------------


def pythons():
    """Return the supported minor versions of Python."""
    return [*SUPPORTED["PYTHONS"]]


def tensorflows():
    """Return the supported minor versions of TensorFlow, candidates last."""
    return SUPPORTED["minors"]()


def requirement(package, minor):
    """Return the requirement of a minor version of a package that is released with TensorFlow.

    It is the newest candidate if there is no release. tf_keras has no candidates: the newest
    earlier version runs with those of TensorFlow.
    """
    candidate = SUPPORTED["candidates"]().get(minor)
    if candidate is None:
        return f"{package}=={minor}.*"
    if package == "tf_keras":
        return f"{package}=={SUPPORTED['released']()[-1]}.*"
    return f"{package}=={candidate}"


def cells(chosen_pythons=(), chosen_tensorflows=(), kerases=("",)):
    """Return the cells of some or all versions, the corners of the matrix first."""
    rows, columns = pythons(), tensorflows()
    chosen = [
        Cell(python, tensorflow, keras)
        for keras in kerases
        for python in rows
        for tensorflow in columns
        if python in (chosen_pythons or rows) and tensorflow in (chosen_tensorflows or columns)
    ]
    edges = {rows[0], rows[-1]}, {columns[0], columns[-1]}
    return sorted(
        chosen, key=lambda cell: -(cell.python in edges[0]) - (cell.tensorflow in edges[1])
    )


NAMED: dict = {}
"""By version, the interpreters that were named by their paths."""


def named(text):
    """Return the version that an option names: itself, or that of the interpreter at a path."""
    if os.sep not in text:
        return text
    path = os.path.abspath(text)  # not resolved: a link may lead to a program that acts by its name
    asks = "import platform; print('.'.join(platform.python_version_tuple()[:2]))"
    try:
        done = subprocess.run([path, "-c", asks], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        raise argparse.ArgumentTypeError(f"{text} is no interpreter of Python") from None
    NAMED[done.stdout.strip()] = path
    return done.stdout.strip()


def interpreter(version):
    """Return the path of an interpreter; raise `FailedError` if there is none."""
    if version in NAMED:
        return NAMED[version]
    places = [*sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin")), None]
    for place in places:
        if path := shutil.which(f"python{version}", path=place and str(place)):
            return path
    raise FailedError(f"there is no python{version} here")


# Results of a cell ---------------------------------------------------------------------------


class Record:
    """The result of a cell, stored in its own file."""

    def __init__(self, cell, folder=None):
        self.file = (folder or PLACE / "results") / f"{cell}.json"
        self.content = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.content |= {"cell": list(cell)}

    def keep(self, **results):
        """Add results, and write the file completely or not at all."""
        self.content |= results
        self.file.parent.mkdir(parents=True, exist_ok=True)
        incomplete = self.file.with_suffix(".incomplete")
        incomplete.write_text(json.dumps(self.content, indent=1, sort_keys=True) + "\n")
        incomplete.replace(self.file)

    def has(self, step, extent):
        """Tell whether a step was completed without failures; for tests, the requested ones."""
        result = self.content.get(step)
        if step == "tests" and result:
            enough = result["extent"] in (extent, "whole")
            return enough and not result["failed"]
        return result is not None and "failure" not in self.content


def recorded(folder=None, file=RESULTS):
    """Return the results of cells: the checked-in ones, replaced by newer ones from here."""
    results = {tuple(cell): {"cell": list(cell)} for cell in cells()}
    kept = json.loads(file.read_text()) if file.exists() else []
    here = sorted((folder or PLACE / "results").glob("*.json"))
    for result in (*kept, *(json.loads(path.read_text()) for path in here)):
        results[tuple(result["cell"])] = result
    order = (pythons(), tensorflows())
    known = [result for key, result in results.items() if key[0] in order[0] and key[1] in order[1]]
    return sorted(known, key=lambda result: (result["cell"][2], *_place(result["cell"], order)))


def _place(cell, order):
    return order[0].index(cell[0]), order[1].index(cell[1])


# Steps of a cell -----------------------------------------------------------------------------


class Runner:
    """Makes the environment of a cell, and runs steps in it.

    Parameters
    ----------
    cell : Cell
    workers : int
        The number of test processes and of compilers.
    wheels : Path, optional
        A folder with a wheel of fastops, which is installed instead of a build.
    say : callable
        Called with a text about each step.
    """

    def __init__(self, cell, workers=1, wheels=None, say=print):
        self.cell = cell
        self.folder = PLACE / str(cell.base)
        self.tree = self.folder / "tree"
        self.python = self.folder / "venv" / "bin" / "python"
        self._keras = self.folder / f"keras-{cell.keras}" if cell.keras else None
        self._workers = workers
        self._wheels = wheels
        self._say = say

    def call(self, step, *command, check=True):
        """Run a command in the copy; return its status and its output, which is also in the log."""
        self._say(step)
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"FASTOPS_JOBS": str(self._workers), "COLUMNS": "100"}
        if self._keras is not None and self._keras.is_dir():
            environment["PYTHONPATH"] = str(self._keras)
        environment["PATH"] = f"{self.python.parent}{os.pathsep}{environment['PATH']}"
        log = self.folder / f"{self.cell}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a+") as out:
            out.write(f"\n$ {' '.join(map(str, command))}\n")
            out.flush()
            begin = out.tell()
            try:
                done = subprocess.run(
                    [*map(str, command)],
                    cwd=self.tree if self.tree.is_dir() else self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    timeout=LIMIT,
                )
            except subprocess.TimeoutExpired:
                raise FailedError(f"{step}: takes more than {LIMIT / 3600:g} hours") from None
            out.seek(begin)
            text = out.read()
        if check and done.returncode != 0:
            raise FailedError(f"{step}: {reason(text) or f'exit status {done.returncode}'}")
        return done.returncode, text

    def pip(self, step, *arguments):
        quietly = ("--quiet", "--disable-pip-version-check", "--no-input")
        self.call(step, self.python, "-m", "pip", "install", *quietly, *arguments)

    def prepare(self):
        """Make environment, copy and build, as far as necessary; return the versions."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.copy()
        made = self.folder / "venv" / ".made"
        if not made.exists():
            python = interpreter(self.cell.python)
            self.call("environment", python, "-m", "venv", "--clear", self.python.parents[1])
            self.pip("environment", "--upgrade", "pip>=25.1")
            self.pip("TensorFlow", *self._requirements())
            made.touch()
        (self._install if self._wheels else self._build)()
        if self._keras is not None and not self._keras.is_dir():
            self._add_keras()
        return self.describe()

    def copy(self):
        """Update the copy to the files of this checkout."""
        copy(ROOT, self.tree)

    def _requirements(self):
        return [requirement("tensorflow-cpu", self.cell.tensorflow), *isolated_requirements()]

    def _tf_keras(self):
        return requirement("tf_keras", self.cell.tensorflow)

    def _build(self):
        # Names of built files contain a digest of their sources, so files of other cells can be
        # used.
        abi = f"cpython-{self.cell.python.replace('.', '')}-{platform.machine()}-linux-gnu"
        place = self.tree / "build" / f"release-{abi}"
        place.mkdir(parents=True, exist_ok=True)
        others = ("*/tree/build/*/*.cpp", f"*/tree/build/{place.name}/*.so")
        for made in (path for pattern in others for path in PLACE.glob(pattern)):
            if not (place / made.name).exists():
                shutil.copy2(made, place)
        self.call("build", self.python, "setup.py", "--quiet", "build_ext", "--inplace")
        self._once("dependencies", "--no-build-isolation", "--editable", ".[test]")

    def _install(self):
        """Install a wheel, and put its files into the copy, so that the tests use them."""
        tag = f"cp{self.cell.python.replace('.', '')}"
        wheels = sorted(self._wheels.glob(f"fastops-*{tag}-*.whl"))
        if not wheels:
            raise FailedError(f"wheel: {self._wheels} has none for CPython {self.cell.python}")
        self.pip("wheel", "--no-deps", "--force-reinstall", wheels[-1])
        self._once("dependencies", f"{wheels[-1]}[test]")
        for left in (self.tree / "fastops").rglob("*.so"):
            left.unlink()
        with zipfile.ZipFile(wheels[-1]) as wheel:
            wheel.extractall(self.tree)

    def _once(self, step, *arguments):
        """Install the requirements of the tests, if necessary, without changing TensorFlow."""
        made = self.folder / "venv" / ".test"
        if not made.exists():
            self.pip(step, *self._requirements(), *arguments)
            # The group "reference" is left out: it requires a newer protobuf than older TensorFlow
            # versions support.
            self.pip(step, "--no-deps", self._tf_keras())
            made.touch()

    def _add_keras(self):
        """Install another Keras next to the environment's, if TensorFlow supports it."""
        asks = (
            "from importlib.metadata import requires\n"
            "from packaging.requirements import Requirement\n"
            "asked = map(Requirement, requires('tensorflow-cpu'))\n"
            "names = ('keras', 'keras-nightly')\n"
            "print(*(str(one.specifier) for one in asked if one.name in names))"
        )
        _, text = self.call("Keras", self.python, "-c", asks)
        specifier = text.split()[-1] if text.split() else ""
        lowest = re.fullmatch(r">=(\d+)\.(\d+).*", specifier)
        if lowest and _numbers(self.cell.keras) < [*map(int, lowest.groups())]:
            raise FailedError(f"Keras: TensorFlow {self.cell.tensorflow} asks for keras{specifier}")
        incomplete = self._keras.with_suffix(".incomplete")
        self.pip("Keras", "--no-deps", "--target", incomplete, f"keras=={self.cell.keras}.*")
        incomplete.rename(self._keras)

    def describe(self):
        """Return the installed versions."""
        names = ["tensorflow-cpu", "keras", "keras-nightly", "tf_keras", "numpy"]
        code = (
            "import json, platform\n"
            "from importlib.metadata import PackageNotFoundError, version\n"
            "found = {'python': platform.python_version()}\n"
            f"for name in {names}:\n"
            "    try:\n"
            "        found[name] = version(name)\n"
            "    except PackageNotFoundError:\n"
            "        found[name] = None\n"
            "print(json.dumps(found))"
        )
        _, text = self.call("versions", self.python, "-c", code)
        found = json.loads(text.splitlines()[-1])
        nightly = found.pop("keras-nightly")  # TensorFlow's candidates require it instead of keras
        return found | {"keras": found["keras"] or nightly}

    def tests(self, extent):
        """Run the tests, and return their outcomes."""
        report = self.folder / f"{self.cell}.xml"
        report.unlink(missing_ok=True)
        plain = ("-q", "-p", "no:cacheprovider", f"--junitxml={report}")
        spread = (f"--numprocesses={self._workers}", "--dist=worksteal")
        command = [self.python, "-m", "pytest", *plain, *spread, *EXTENTS[extent]]
        status, text = self.call("tests", *command, check=False)
        if not report.exists():
            raise FailedError(f"tests: {reason(text) or f'exit status {status}'}")
        result = outcomes(report.read_text()) | {"extent": extent}
        if status and not result["failed"]:
            result |= {"failed": 1, "failures": [["the run itself", reason(text)]]}
        return result

    def ladder(self):
        """Measure the ladder, and return its geometric mean."""
        saved = self.folder / "ladder.json"
        command = ("-m", "fastops", "bench", "ladder", "--quick", "--json", saved)
        self.call("ladder", self.python, *command)
        return ladder(json.loads(saved.read_text()))

    def parity(self):
        """Compare every op as the tests do, and return the figures."""
        saved = self.folder / "parity.json"
        saved.unlink(missing_ok=True)
        environment = ("env", "PYTHONPATH=tests", "TF_CPP_MIN_LOG_LEVEL=3")
        command = (self.python, "-m", "parity", "--quick", "--json", saved)
        _, text = self.call("parity", *environment, *command, check=False)
        if not saved.exists():
            raise FailedError(f"parity: {reason(text)}")
        return json.loads(saved.read_text())

    def snapshot(self):
        """Return the ops that differ between this TensorFlow and the snapshot, as text."""
        _, text = self.call("ops", self.python, "tools/gen.py", "--check", check=False)
        return text


def _numbers(version):
    return [*map(int, version.split("."))]


def isolated_requirements():
    """Return the build requirements in pyproject.toml."""
    return re.findall(r'"(.*?)"', re.search(r"requires = \[(.*)\]", needs.PYPROJECT.read_text())[1])


def copy(source, target):
    """Update a copy of a checkout: files that git tracks, and files that it does not ignore.

    Built files in the copy stay.
    """
    listed = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listing = subprocess.run(
        ["git", *listed], cwd=source, check=True, capture_output=True, text=True
    )
    names = {name for name in listing.stdout.split("\0") if name and (source / name).is_file()}
    manifest = target / ".copied"
    before = set(manifest.read_text().split("\0")) if manifest.exists() else set()
    for name in before - names:
        (target / name).unlink(missing_ok=True)
    for name in names:
        here, there = source / name, target / name
        if not there.exists() or there.read_bytes() != here.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(here, there)
    manifest.write_text("\0".join(sorted(names)))


def state():
    """Return git's hash of the folder fastops, and whether it has uncommitted changes."""
    name = ["git", "rev-parse", "--short=10", "HEAD:fastops"]
    listing = subprocess.run(name, cwd=ROOT, check=True, capture_output=True, text=True)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "fastops"], cwd=ROOT)
    return listing.stdout.strip() + ("+" if changed.returncode else "")


def reason(text):
    """Return the line of an output that best explains a failure."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"ERROR|E  |\w*Error\b|fastops ", line)]
    return re.sub(r"^ERROR: ", "", (errors or lines or [""])[-1])[:300]


def outcomes(report):
    """Return how many tests passed, failed and were skipped, from a report in JUnit format."""
    counts = {"passed": 0, "failed": 0, "skipped": 0, "failures": []}
    skips = Counter()
    for test in ElementTree.fromstring(report).iter("testcase"):
        [*bad] = (element for element in test if element.tag in ("failure", "error"))
        skipped = test.find("skipped")
        if bad:
            lines = (bad[0].get("message") or bad[0].text or "").strip().splitlines() or [""]
            name = f"{test.get('classname')}.{test.get('name')}"
            counts["failures"].append([name, lines[0][:200]])
            counts["failed"] += 1
        elif skipped is not None:
            skips[skipped.get("message") or ""] += 1
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts | {"skips": dict(skips.most_common())}


def ladder(run):
    """Return the geometric mean, the minimum and the number of the short rows of a saved run."""
    rows = [
        record["samples"]
        for record in run["processes"]["main"]["records"]
        if record["group"] == "ladder" and record["tag"] == "short" and record.get("samples")
    ]
    ratios = [
        median(row["raw_ops"]) / median(row["fastops"])
        for row in rows
        if {"raw_ops", "fastops"} <= row.keys()
    ]
    if not ratios:
        raise FailedError("ladder: nothing was measured")
    return {
        "mean": round(geometric_mean(ratios), 2),
        "least": round(min(ratios), 2),
        "rows": len(ratios),
    }


# All cells -------------------------------------------------------------------------------------


def run(runner, options, alone):
    """Run the steps of a cell that are not done.

    Parameters
    ----------
    alone : threading.Lock
        A lock that is held during timing.
    """
    record = Record(runner.cell)
    steps = [step for step in options.steps if not record.has(step, options.tests)]
    if not steps and not options.again:
        return record.content
    record.content.pop("failure", None)
    try:
        record.keep(versions=runner.prepare(), wheel=options.wheel is not None)
        tested = {"state": state()}
        for step in options.steps if options.again else steps:
            if step == "tests":
                result = runner.tests(options.tests)
            elif step == "ladder":
                with alone:
                    result = runner.ladder()
            else:
                result = runner.parity()
            record.keep(**{step: result | tested})
    except FailedError as failed:
        record.keep(failure=str(failed))
    return record.content


def room(count):
    """Return how many cells can run at once, and the number of processes of each."""
    cores = len(os.sched_getaffinity(0))
    available = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    affordable = max(1, int(available[1]) * 1024 // MEMORY_PER_WORKER)
    workers = max(1, min(cores, affordable))
    at_once = max(1, min(count, workers // 4))
    return at_once, workers // at_once


def shown(content):
    """Return the result of a cell as one line."""
    if failure := content.get("failure"):
        return failure
    parts = []
    if tests := content.get("tests"):
        parts.append(f"{tests['passed']} passed, {tests['failed']} failed, {tests['extent']}")
    if measured := content.get("ladder"):
        parts.append(f"ladder {measured['mean']}")
    if compared := content.get("parity"):
        parts.append(f"{compared['ops compared']} ops compared")
    return "; ".join(parts)


def good(content):
    """Tell whether nothing in a cell has failed. A missing wheel of TensorFlow is not a failure."""
    failure = content.get("failure", "")
    lacking = "No matching distribution" in failure or "asks for keras" in failure
    return (not failure or lacking) and not content.get("tests", {}).get("failed")


def parser():
    found = argparse.ArgumentParser(prog="tools/matrix.py", description=__doc__.splitlines()[0])
    add = found.add_argument
    add(
        "--python",
        action="append",
        type=named,
        choices=pythons(),
        help="only this version, or the interpreter at this path; may be repeated",
    )
    add("--tensorflow", action="append", choices=tensorflows(), help="only this; may be repeated")
    add("--keras", action="append", choices=["brought", OLDEST_KERAS], help="default: both")
    add("--tests", choices=EXTENTS, default="quick", help="which tests to run (default: quick)")
    add(
        "--steps",
        nargs="+",
        choices=["tests", "ladder", "parity"],
        help="default: tests and ladder",
        default=["tests", "ladder"],
    )
    folder = {"type": lambda path: Path(path).resolve(), "metavar": "DIR"}
    add("--wheel", **folder, help="install wheels from this folder instead of building")
    add("--again", action="store_true", help="also run steps that have a result")
    add("--drop", action="store_true", help="remove the environment of each finished cell")
    add("--at-once", type=int, help="how many cells run at once (default: by cores and memory)")
    add("--workers", type=int, help="test processes of a cell (default: by cores and memory)")
    add("--list", action="store_true", help="run nothing: list the cells and their results")
    add("--write", action="store_true", help="run nothing: write docs/matrix.md")
    return found


def main(argv=None):
    """Run the command; return its exit status."""
    options = parser().parse_args(argv)
    console = Console(highlight=False)
    kerases = [
        "" if keras == "brought" else keras for keras in options.keras or ["brought", OLDEST_KERAS]
    ]
    chosen = cells(options.python or (), options.tensorflow or (), kerases)
    if options.list:
        for cell in chosen:
            console.print(f"{cell!s:<14} {shown(Record(cell).content)}")
        return 0
    if not options.write:
        results = perform(chosen, options, console)
    matrix_page.write(recorded(), RESULTS)
    return 0 if options.write or all(map(good, results)) else 1


def perform(chosen, options, console):
    """Run cells, those with the same environment one after another; return their results."""
    at_once, workers = room(len(chosen))
    at_once = options.at_once or at_once
    workers = options.workers or workers
    alone, printing = Lock(), Lock()

    def say(cell, text):
        with printing:
            console.print(f"{cell!s:<14} {text}")

    def together(base):
        results = []
        for cell in (candidate for candidate in chosen if candidate.base == base):
            runner = Runner(cell, workers, options.wheel, lambda step, cell=cell: say(cell, step))
            results.append(run(runner, options, alone))
            say(cell, shown(results[-1]))
        if options.drop:
            shutil.rmtree(PLACE / str(base), ignore_errors=True)
        return results

    with ThreadPoolExecutor(at_once) as pool:
        groups = pool.map(together, dict.fromkeys(cell.base for cell in chosen))
        return [content for group in groups for content in group]


if __name__ == "__main__":
    sys.exit(main())
