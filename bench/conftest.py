"""The command line of the benchmarks, and the fixture that races arms against each other."""

from importlib import metadata

import pytest
from pytest_fastops.race import Race

PACKAGES = {"fastops", "jax", "numpy", "tensorflow", "tensorflow_cpu", "torch"}


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="try everything, measure nothing well")


def pytest_configure(config):
    config.addinivalue_line("markers", "onednn: the kernel may be oneDNN's")


def pytest_benchmark_update_machine_info(config, machine_info):
    machine_info["packages"] = {
        package.name: package.version
        for package in metadata.distributions()
        if package.name in PACKAGES
    }


@pytest.fixture
def quick(request):
    return request.config.getoption("--quick")


@pytest.fixture
def race(benchmark, quick):
    """Race arms, and leave their samples in the record of pytest-benchmark."""

    def run(group, label, arms, rounds=31, block=2e-3):
        runners = Race(arms, None if quick else block)
        benchmark.group = group
        benchmark.extra_info["label"] = label
        benchmark.pedantic(runners.round, rounds=1 if quick else rounds)
        benchmark.extra_info["samples"] = runners.samples()

    return run
