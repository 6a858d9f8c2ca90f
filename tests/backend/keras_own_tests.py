"""Run Keras's own tests of its operations on its TensorFlow backend and on the adapter.

    python tests/backend/keras_own_tests.py                 # the tests in Keras's wheel python
    tests/backend/keras_own_tests.py --keras ROOT    # the tests in a checkout of the same version
    python tests/backend/keras_own_tests.py --only math_test.py core_test.py

The tests run in one process: once unchanged, then several times with the adapter's modules in place
of Keras's. Several passes are needed because a call is recorded when it is made a second time, and
replayed from the third time on. The program prints a line of JSON for each pass, and for each test
with another outcome than in the first pass. Its exit status is 1 if there is such a test.
"""

import argparse
import importlib
import json
import os
import sys
from collections import Counter
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"

FILES = (
    *("ops/core_test.py", "ops/image_test.py", "ops/linalg_test.py", "ops/math_test.py"),
    *("ops/nn_test.py", "ops/numpy_test.py", "ops/ops_test.py", "random/random_test.py"),
)

RESETS = "test_moments_sync_with_distribution_strategy"
"""A test that makes a new context of TensorFlow. After it, all calls would have to be recorded
again."""

MODULES = ("core", "image", "linalg", "math", "nn", "numpy", "random")


class Outcomes:
    """A plugin of pytest that stores the outcome of each test.

    Parameters
    ----------
    last : bool
        Whether this is the last pass: no later pass uses its recordings.
    """

    def __init__(self, last):
        self.last = last
        self.of = {}
        self.why = {}

    def pytest_collection_modifyitems(self, items):
        others = [item for item in items if RESETS in item.name]
        items[:] = [item for item in items if RESETS not in item.name]
        items += others if self.last else []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.rpartition("/")[2]
            self.of[name] = report.outcome
            self.why[name] = str(report.longrepr)[-800:]


def put_in_place():
    """Make Keras's operations call the adapter. Return a function that undoes this, and counts."""
    from keras.src import backend

    adapter = importlib.import_module("fastops.backend.keras")
    own = {name: getattr(adapter, name) for name in MODULES}
    own |= {
        name: value
        for name, value in vars(adapter).items()
        if name in vars(backend) and callable(value) and not isinstance(value, type)
    }
    before = {name: getattr(backend, name) for name in own}
    vars(backend).update(own)
    return lambda: vars(backend).update(before)


def run(files, arguments, last):
    """Run the tests; return their `Outcomes`."""
    import pytest

    outcomes = Outcomes(last)
    options = ["-q", "--no-header", "--no-summary", "--noconftest", "--import-mode=importlib"]
    options += ["-p", "no:cacheprovider", "-p", "no:benchmark", "-c", os.devnull]
    options += ["--continue-on-collection-errors"]
    options += ["--rootdir", os.path.commonpath([Path(file).parent for file in files])]
    before = sys.stdout
    with open(os.devnull, "w") as sys.stdout:
        try:
            pytest.main([*options, *arguments, *map(str, files)], plugins=[outcomes])
        finally:
            sys.stdout = before
    return outcomes


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keras", type=Path, help="a checkout; default: the installed wheel")
    parser.add_argument("--only", nargs="*", help="names of test files")
    parser.add_argument("--times", type=int, default=3, help="passes with the adapter")
    parser.add_argument("-k", default="", help="passed on to pytest's option -k")
    chosen = parser.parse_args(arguments)
    import keras

    root = chosen.keras / "keras" if chosen.keras else Path(keras.__file__).parent
    version = (root / "src" / "version.py").read_text()
    if keras.__version__ not in version:
        parser.error(f"{root} is not the installed version, Keras {keras.__version__}")
    files = [root / "src" / file for file in FILES]
    files = [file for file in files if not chosen.only or file.name in chosen.only]
    if missing := [str(file) for file in files if not file.exists()]:
        parser.error(f"no {', '.join(missing)}")
    options = ["-k", chosen.k] if chosen.k else []

    import fastops

    expected = run(files, options, True)
    print(json.dumps({"pass": "Keras's", **Counter(expected.of.values())}), flush=True)
    undo = put_in_place()
    others = {}
    try:
        for i in range(chosen.times):
            fastops.reset_stats()
            last = i == chosen.times - 1
            latest = run(files, options, last)
            calls = fastops.stats()
            counted = {"direct": calls.direct, "capi": calls.capi, "tensorflow": calls.tensorflow}
            print(json.dumps({"pass": i + 1, **Counter(latest.of.values()), **counted}), flush=True)
            for name in sorted(expected.of.keys() | latest.of.keys()):
                before, now = expected.of.get(name), latest.of.get(name)
                if before != now and (last or RESETS not in name):
                    others[name] = {"before": before, "now": now, "why": latest.why.get(name)}
    finally:
        undo()
    for name, change in others.items():
        print(json.dumps({"test": name, **change}), flush=True)
    return int(bool(others) or not expected.of)


if __name__ == "__main__":
    sys.exit(main())
