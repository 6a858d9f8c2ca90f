"""Check ops in this process: ``python -m parity.worker AddV2 MatMul``."""

import argparse
import itertools
import sys
import time
import traceback
import warnings
from collections import Counter

import tensorflow as tf
from tensorflow.python.eager import context

from parity import cases, checks, properties, recipes, search

CHECKS = {
    "values": checks.values,
    "gradients": checks.gradients,
    "graphs": checks.graphs,
}
"""Functions that check an op for one combination of dtypes, by name."""

SEARCHES = {"malformed": search.hunt, "properties": properties.search}
"""Functions that make calls by number, by name."""

THOROUGH = " thoroughly"
"""The suffix of a check's name that means all combinations of dtypes."""

MOST_SHOWN = 6
"""The maximum number of problems of one op that are printed."""


# This runs at import, so that the children of a zygote share the memory.
recipes.load()
cases.op_names()


def enter(world):
    """Apply the settings of a world that environment variables cannot set."""
    assert context.context()._context_handle is None, "forks with a context hang"
    tf.get_logger().setLevel("ERROR")
    warnings.simplefilter("ignore")
    if world == "deterministic":
        tf.config.experimental.enable_op_determinism()
        tf.random.set_seed(1)


def perform(task, progress, report):
    """Perform a `parity.campaign.Task`; report its findings."""
    if task.check in SEARCHES:
        try:
            SEARCHES[task.check](task, progress, report)
        except Exception:
            report(search.Bag(problems=[f"{task.op_name}: {traceback.format_exc()}"]))
        return
    name = task.check.removesuffix(THOROUGH)
    thorough = name != task.check
    combinations = cases.combinations(task.op_name, thorough)
    for step, types in itertools.islice(enumerate(combinations), task.start, task.stop):
        progress(step, " ".join(f"{attr}={dtype.name}" for attr, dtype in types.items()))
        try:
            report(CHECKS[name](task.op_name, types, thorough))
        except Exception:
            finding = checks.begin(name, task.op_name, types)
            finding.problems.append(traceback.format_exc())
            report(finding)


def main():
    from parity.campaign import Task

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="+", help="names of ops")
    parser.add_argument("--check", choices=CHECKS, default="values", help="the checks to run")
    parser.add_argument("--thorough", action="store_true", help="test each combination of dtypes")
    options = parser.parse_args()
    enter("")
    failed = False
    for op_name in options.ops:
        begin = time.perf_counter()
        check = options.check + THOROUGH * options.thorough
        findings = []
        perform(Task(check, op_name), lambda step, call: None, findings.append)
        paths = sum((Counter(finding.paths) for finding in findings), start=Counter())
        cases = sum(finding.cases for finding in findings)
        print(
            f"{op_name}: {len(findings)} combinations, {cases} cases, "
            f"{dict(paths)}, {time.perf_counter() - begin:.1f} s",
            *(f"  {finding.types}: {finding.rejected}" for finding in findings if finding.rejected),
            *[f"  ! {problem}" for finding in findings for problem in finding.problems][
                :MOST_SHOWN
            ],
            sep="\n",
            flush=True,
        )
        failed |= any(finding.problems for finding in findings)
    sys.exit(failed)


if __name__ == "__main__":
    main()
