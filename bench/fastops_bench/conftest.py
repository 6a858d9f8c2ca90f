"""Fixtures of the suites: they time arms in turn, and store a record of the times."""

import os
from contextlib import ExitStack

import pytest
from pytest_fastops.race import Race

from fastops_bench.common import COMMANDS
from fastops_bench.forks import Forks

RECORD = "fastops_bench"
"""The name of the user property in which a test stores its records."""

QUICK_ROUNDS, QUICK_BLOCK = 7, 5e-4
"""Limits of a quick run. With fewer rounds, a median has no 95 % confidence interval."""


def pytest_addoption(parser):
    parser.addoption("--effort", choices=["full", "quick", "once"], default="full")
    parser.addoption("--wanted", action="append", default=[])


def pytest_configure(config):
    config.addinivalue_line("markers", "onednn: the kernel may be oneDNN's")
    config.addinivalue_line("markers", "covers(*names): more names that a filter may match")
    config.addinivalue_line("markers", "long: not in a quick run")


@pytest.fixture
def effort(request):
    """Return the effort: ``"full"``, ``"quick"``, or ``"once"``, which runs everything once."""
    return request.config.getoption("--effort")


@pytest.fixture
def wanted(request):
    """Return a function that tells whether a name contains one of the filters."""
    parts = [part.lower() for part in request.config.getoption("--wanted")]
    return lambda name: not parts or any(part in name.lower() for part in parts)


@pytest.fixture
def quick(effort):
    return effort != "full"


@pytest.fixture
def record(request):
    """Return a function that stores a record of a test: its group, its label, and figures."""

    def leave(group, label, **figures):
        suite = request.path.stem.removeprefix("bench_")
        tag = "long" if request.node.get_closest_marker("long") else "short"
        about = {"suite": suite, "group": group, "label": label, "tag": tag}
        request.node.user_properties.append((RECORD, about | figures))

    return leave


@pytest.fixture
def times(effort):
    """Return a function from the number of rounds in a full run to that in this run."""

    def capped(full, quick=QUICK_ROUNDS):
        return {"full": full, "quick": min(full, quick), "once": 1}[effort]

    return capped


@pytest.fixture
def race(effort, times, record):
    """Return a function that times arms in turn, and stores their samples.

    There is one sample for each round, in nanoseconds per call.
    """

    def run(group, label, arms, rounds=31, block=2e-3, **figures):
        length = {"full": block, "quick": min(block, QUICK_BLOCK), "once": None}[effort]
        runners = Race(arms, length)
        try:
            for _ in range(times(rounds)):
                runners.round()
        finally:
            runners.close()
        record(group, label, samples=runners.samples(), **figures)

    return run


@pytest.fixture(scope="session")
def forked():
    """Return a function that runs a program in all arms at the same time, as forks: see `forks`.

    The function returns a `forks.Result` by arm.
    """
    arms = {}

    def run(program, folder=None):
        if not arms:
            environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
            for arm, command in COMMANDS.items():
                arms[arm] = Forks(command, environment)
                stack.callback(arms[arm].end)
        for forks in arms.values():
            forks.begin(program, folder)
        results = {arm: forks.result() for arm, forks in arms.items()}
        for result in results.values():
            result.check()
        return results

    with ExitStack() as stack:
        yield run
