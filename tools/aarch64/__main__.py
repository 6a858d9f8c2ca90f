"""``make aarch64``."""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console

from tools import matrix, matrix_page

from . import RESULTS, WORK, FailedError, steps
from .machine import Machine

STEPS = ("tests", "parity", "demo", "weights")


class Record:
    """The results of all runs, in a file."""

    def __init__(self, file):
        self._file = file
        self.content = json.loads(file.read_text()) if file.exists() else {}

    def keep(self, **results):
        self.content |= results
        self._file.parent.mkdir(parents=True, exist_ok=True)
        incomplete = self._file.with_suffix(".incomplete")
        incomplete.write_text(json.dumps(self.content, indent=1, sort_keys=True) + "\n")
        incomplete.replace(self._file)


def run(machine, options, record, say):
    """Run the steps; return whether nothing has failed."""
    machine.prepare()
    machine.build()
    record.keep(versions=machine.describe(), shares=steps.shares())
    good = True
    if "tests" in options.steps:
        results = dict(record.content.get("tests", {}))

        def one(share):
            limits = options.limit, options.test_limit
            return share, steps.tests(machine, share, *limits, say, marker="quick")

        with ThreadPoolExecutor(options.at_once) as pool:
            waiting = [pool.submit(one, share) for share in options.share or steps.shares()]
            for done in as_completed(waiting):
                share, result = done.result()
                results[share] = result
                record.keep(tests=results)
                say(f"{share}: {shown(result)}")
        good &= all(result["complete"] and not result["failed"] for result in results.values())
    if "parity" in options.steps:
        done = {result["share"]: result for result in record.content.get("parity", [])}
        for share in range(min(options.parity_shares, steps.PARITY_SHARES)):
            done[share] = steps.parity(machine, share, options.limit)
            record.keep(parity=[done[number] for number in sorted(done)])
            say(f"parity {share + 1} of {steps.PARITY_SHARES}: {compared(done[share])}")
        good &= not any(map(differs, done.values()))
    if "demo" in options.steps:
        record.keep(demo=steps.demo(machine, options.limit))
        say(f"demo: {record.content['demo']}")
        good &= all(record.content["demo"].values())
    if "weights" in options.steps:
        record.keep(weights=steps.weights(machine, options.limit))
        for task, found in record.content["weights"].items():
            say(f"{task}: {found['same']} of {found['of']} weights are those of the host")
    return good


def shown(result):
    """Return the result of a share of tests as a line."""
    text = f"{steps.told(result)} in {result['seconds']} s"
    return text if result["complete"] else f"{text}, not complete"


def compared(result):
    """Return the result of a share of parity as a line."""
    if failure := result.get("failure"):
        return failure
    return ", ".join(f"{count:,} {name}" for name, count in result.items() if "share" not in name)


def differs(result):
    """Tell whether a share of parity has found a difference, or was stopped."""
    names = ("differences from TensorFlow", "crashes that TensorFlow does not have")
    return "failure" in result or any(result[name] for name in names)


def parser():
    found = argparse.ArgumentParser(
        prog="make aarch64",
        description="Compile fastops for Linux on aarch64, and run its tests there, emulated. A "
        "run that was stopped goes on where it was.",
        epilog="Options are passed so: make aarch64 ARGS='--steps tests --share dispatch'",
    )
    add = found.add_argument
    add("--steps", nargs="*", choices=STEPS, default=STEPS, help="default: all; none: only build")
    add("--share", action="append", help="only the tests of this folder; may be repeated")
    add("--limit", type=float, default=3600, metavar="SECONDS", help="of each share (%(default)g)")
    add("--test-limit", type=float, default=600, metavar="SECONDS", help="of a test (%(default)g)")
    add("--parity-shares", type=int, default=2, help="how many of 40 to run (%(default)s)")
    add("--jobs", type=int, default=2, help="how many compilers run at once (%(default)s)")
    add("--at-once", type=int, default=1, help="how many shares of tests run at once (%(default)s)")
    add("--again", action="store_true", help="forget the outcomes of former runs")
    add("--place", type=Path, default=WORK, metavar="DIR", help="where to work (build/aarch64)")
    add("--write", action="store_true", help="run nothing: write docs/matrix.md")
    return found


def main(argv=None):
    """Run the command; return its exit status."""
    options = parser().parse_args(argv)
    console = Console(highlight=False)
    record = Record(options.place / "results.json")
    machine = Machine(options.place.resolve(), options.jobs, console.print)
    good = True
    if not options.write:
        state = matrix.state()
        if options.again or record.content.get("state") != state:
            machine.forget()
            record.content = {}
        try:
            record.keep(state=state)
            good = run(machine, options, record, console.print)
        except FailedError as failed:
            console.print(str(failed), markup=False)
            return 1
    else:
        record.keep(tests=steps.collected(machine), shares=steps.shares())
    if record.content.get("tests"):
        RESULTS.write_text(json.dumps(record.content, indent=1, sort_keys=True) + "\n")
    matrix_page.write(matrix.recorded(), matrix.RESULTS)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
