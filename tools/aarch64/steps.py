"""The steps of a run: tests and parity in shares, and the demo.

Each share has a limit in seconds. What it has done by then is kept, and the next run continues
there.
"""

import json
import subprocess
import sys
import time
from collections import Counter

from tools import matrix

from . import ROOT, FailedError
from .plugin import aarch64_journal as journal

WORLDS = ("onednn", "plain", "deterministic")
PARITY_SHARES = 40

MOST_ENDS = 5
"""After so many tests that ended the process, a share is given up."""

DEMO = ("examples/digits_online.py", "--epochs=1", "--images=200")
WEIGHTS = "tools/aarch64/weights.py"

OPS = """
import json, sys
from parity import cases
print(json.dumps(cases.op_names()))
"""


def shares():
    """Return the folders of tests that have quick ones."""
    tests = ROOT / "tests"
    quick = {path for path in tests.rglob("test_*.py") if "mark.quick" in path.read_text()}
    return sorted({path.relative_to(tests).parts[0] for path in quick})


def tests(machine, share, limit, test_limit, say, *, marker):
    """Run the tests of a folder that have a marker, and no outcome yet.

    Returns
    -------
    dict
        The numbers of tests by outcome, the tests that did not pass, whether all tests have an
        outcome, and the seconds that all runs of this share took.
    """
    file = machine.folder / "tests" / f"{share}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    log = file.with_suffix(".log")
    kept = Kept(file.with_suffix(".json"), complete=False, seconds=0)
    status = None
    plugin = ("-p", "no:cacheprovider", "-p", "aarch64_journal")
    command = ("-m", "pytest", "-q", *plugin, "-m", marker, f"tests/{share}")
    end = time.monotonic() + limit
    for _ in range(MOST_ENDS):
        begin, before = time.monotonic(), len(journal.outcomes(file))
        if kept.content["complete"] or begin >= end:
            break
        if journal.was_cut_off(file):
            set_aside(log)
        log.unlink(missing_ok=True)
        status = machine.run(
            *(log, end - begin, *command),
            FASTOPS_JOURNAL=str(file),
            FASTOPS_TEST_LIMIT=str(test_limit),
        )
        seconds = round(kept.content["seconds"] + time.monotonic() - begin)
        if status is None:
            journal.forget_start(file)
        # 0, 1 and 5: all tests have an outcome; 5, because they all had one before. But 1 is also
        # the status of a process that was ended because of a test that took too long.
        complete = status in (0, 1, 5) and not journal.was_cut_off(file)
        kept.keep(seconds=seconds, complete=complete)
        if status == 2 or before == len(journal.outcomes(file)):
            break  # the tests cannot be collected, or not even one of them ended in time
        say(f"{share}: {told(outcomes(file))}")
    result = outcomes(file) | kept.content
    if not result["complete"] and status is not None:
        result["failures"].append([f"the run of {share}", matrix.reason(log.read_text())])
    return result


def set_aside(log):
    """Rename the log of a process that a test has ended: it has the stacks of the threads."""
    if log.exists():
        number = len([*log.parent.glob(f"{log.stem}.ended-*.log")]) + 1
        log.rename(log.with_suffix(f".ended-{number}.log"))


def collected(machine):
    """Return by share what all runs up to now have found, also those that were interrupted."""
    found = {}
    for file in sorted((machine.folder / "tests").glob("*.jsonl")):
        journal.forget_start(file)  # of a test during which a run was interrupted
        kept = Kept(file.with_suffix(".json"), complete=False, seconds=0)
        found[file.stem] = outcomes(file) | kept.content
    return found


class Kept:
    """Facts about a share, in a file."""

    def __init__(self, file, **facts):
        self._file = file
        self.content = facts | (json.loads(file.read_text()) if file.exists() else {})

    def keep(self, **facts):
        self.content |= facts
        self._file.write_text(json.dumps(self.content))


def outcomes(file):
    """Return the numbers of tests in a journal by outcome, and those that did not pass."""
    found = journal.outcomes(file)
    counts = Counter(outcome for outcome, _ in found.values())
    failures = [
        [test, message or outcome]
        for test, (outcome, message) in found.items()
        if outcome not in ("passed", "skipped")
    ]
    skips = Counter(message for outcome, message in found.values() if outcome == "skipped")
    return {
        "passed": counts["passed"],
        "skipped": counts["skipped"],
        "failed": len(failures),
        "failures": failures,
        "skips": dict(skips),
    }


def told(result):
    """Return the numbers of a result as text."""
    return ", ".join(f"{result[name]:,} {name}" for name in ("passed", "failed", "skipped"))


def op_names(machine):
    """Return the names of the ops that parity compares."""
    file = machine.folder / "ops.json"
    if not file.exists():
        said = machine.host(
            *("the list of ops", machine.python, "-c", OPS),
            cwd=machine.tree,
            env=machine.environment(),
        )
        file.write_text(said.splitlines()[-1])
    return json.loads(file.read_text())


def parity(machine, share, limit):
    """Compare the ops of a share with TensorFlow's, as `make parity ARGS=--quick` does.

    A share has every `PARITY_SHARES`-th op, so that a few shares are a fair sample.

    Returns
    -------
    dict
        The figures of `make parity`, or how far it came.
    """
    place = machine.folder / "parity"
    place.mkdir(exist_ok=True)
    file, log = place / f"{share:02}.json", place / f"{share:02}.log"
    if not file.exists():
        names = op_names(machine)[share::PARITY_SHARES]
        log.unlink(missing_ok=True)
        # The tasks that were done are in a journal of parity's.
        command = ("-m", "parity", "--quick", "--resume", "--json", file, *names)
        status = machine.run(log, limit, *command)
        if not file.exists():
            stopped = "stopped by the limit" if status is None else matrix.reason(log.read_text())
            return {"share": share, "shares": PARITY_SHARES, "failure": stopped}
    return {"share": share, "shares": PARITY_SHARES} | json.loads(file.read_text())


def demo(machine, limit):
    """Run the demo under emulation; return whether its weights are TensorFlow's."""
    file, log = machine.folder / "demo.json", machine.folder / "demo.log"
    file.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    status = machine.run(log, limit, *DEMO, "--json", file)
    if status is None or not file.exists():
        raise FailedError(f"demo: {'stopped by the limit' if status is None else log.read_text()}")
    return json.loads(file.read_text())["bit_identical"]


def weights(machine, limit):
    """Train the demo's network under emulation and on the host; return how their weights differ."""
    there, log = machine.folder / "weights.json", machine.folder / "weights.log"
    there.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    status = machine.run(log, limit, WEIGHTS, there)
    if status != 0:
        raise FailedError(f"weights: {matrix.reason(log.read_text()) if status else 'stopped'}")
    here = machine.folder / "weights-host.json"
    environment = machine.environment(PYTHONPATH=str(ROOT))
    subprocess.run([sys.executable, ROOT / WEIGHTS, here], cwd=ROOT, env=environment, check=True)
    ours, theirs = (json.loads(file.read_text()) for file in (there, here))
    return {
        task: {
            "same": sum(map(same_bits, ours[task], theirs[task])),
            "of": len(ours[task]),
            "difference": max(
                abs(float.fromhex(left) - float.fromhex(right))
                for left, right in zip(ours[task], theirs[task], strict=True)
            ),
        }
        for task in ours
    }


def same_bits(left, right):
    """Tell whether two numbers in hexadecimal are the same."""
    return left == right
