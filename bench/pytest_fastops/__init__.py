"""A pytest plugin for benchmarks, for tests that no op falls back, and for tests under install.

pytest loads it if fastops is installed, and ``-p no:fastops`` turns it off. It is a separate
package, so that tests that do not use it import neither fastops nor TensorFlow.
"""

import argparse
import json
import platform
import re
from pathlib import Path

import pytest

DEFAULTS = {"baseline": "stock", "rounds": 31, "block": 2e-3, "tail": 0}
PROPERTY = "fastops"
"""The key of a test's figures, which are passed on between processes."""


def pytest_addoption(parser):
    group = parser.getgroup("fastops", "ops beside a baseline")
    group.addoption(
        *("--fastops-min-ratio",),
        type=float,
        metavar="RATIO",
        help="fail each op_benchmark whose ratio is certainly less than this",
    )
    group.addoption(
        "--fastops-fail-on-fallback",
        action="store_true",
        help="fail each op_benchmark in which an op leaves the direct path",
    )
    group.addoption(
        *("--fastops-json",),
        type=Path,
        metavar="PATH",
        help="write what was measured to a file",
    )
    group.addoption(
        "--fastops-install",
        action="store_true",
        help="run all tests with fastops.install() active, as FASTOPS_INSTALL=1 does",
    )
    group.addoption(
        *("--fastops-verify",),
        nargs="?",
        const="raise",
        type=_mode,
        metavar="MODE",
        help="run the tests under fastops.install, where calls are made in TensorFlow's way, too, "
        "and compared: raise (default) or warn where they differ, warn:10 for one call in ten",
    )


def _mode(text):
    """Return a mode of verification unchecked, since checking it would import TensorFlow."""
    if not re.fullmatch(r"(0|1|raise|warn)(:[1-9][0-9]*)?", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no mode: put --fastops-verify after the tests, or write "
            "--fastops-verify=raise before them"
        )
    return text


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Begin before conftests and test modules, which may keep references to replaced functions."""
    from pytest_fastops import installing

    installing.begin(early_config)


def pytest_report_header(config):
    from pytest_fastops import installing

    return installing.header(config)


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "op_benchmark(baseline='stock', rounds=31, block=0.002, tail=0, group=None): how "
        "op_benchmark measures: beside what, how many blocks of how many seconds, how many calls "
        "one by one for the tail, in which group of pytest-benchmark's.",
    )
    config.pluginmanager.register(Figures(config), "fastops-figures")
    if hasattr(config, "stash"):
        from pytest_fastops import installing

        installing.begin(config)  # if a conftest has named the plugin in pytest_plugins
    mode = config.getoption("--fastops-verify")
    if mode is not None:
        from pytest_fastops.verification import Verification

        config.pluginmanager.register(Verification(mode), "fastops-verification")


class Figures:
    """Collects the figures of tests, and prints them at the end.

    Parameters
    ----------
    config : pytest.Config
    """

    def __init__(self, config):
        self.config = config
        self.found = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.found += [value for name, value in report.user_properties if name == PROPERTY]

    def pytest_sessionfinish(self):
        path = self.config.getoption("--fastops-json")
        if path is not None and not hasattr(self.config, "workerinput"):
            content = {"machine": platform.processor() or platform.machine()}
            content["comparisons"] = self.found
            path.write_text(json.dumps(content, indent=1))

    def pytest_terminal_summary(self, terminalreporter):
        if self.found:
            from pytest_fastops.report import show

            terminalreporter.section("fastops: times faster than the baseline")
            show(self.found, terminalreporter)


@pytest.fixture
def op_benchmark(request):
    """Compare a callable or an op with a baseline.

    Returns
    -------
    OpBenchmark
        Call it once, with the callable and its arguments.

    Examples
    --------
    .. code-block:: python

        def test_add(op_benchmark):
            x = tf.constant([1.0, 2.0])
            assert op_benchmark(fastops.ops.add_v2, x=x, y=x).ratio > 5
    """
    from pytest_fastops.fixtures import OpBenchmark

    marker = request.node.get_closest_marker("op_benchmark")
    given = dict(marker.kwargs) if marker else {}
    group = given.pop("group", None)
    unknown = given.keys() - DEFAULTS.keys()
    if unknown or (marker and marker.args):
        what = ", ".join(sorted(unknown)) or "arguments without a name"
        pytest.fail(f"the marker op_benchmark does not take {what}", pytrace=False)
    if not any(map(request.config.pluginmanager.hasplugin, ("benchmark", "codspeed"))):
        pytest.fail("op_benchmark needs pytest-benchmark or pytest-codspeed", pytrace=False)
    benchmark = request.getfixturevalue("benchmark")
    if group is not None:
        benchmark.group = group
    return OpBenchmark(request, benchmark, DEFAULTS | given)


@pytest.fixture
def no_fallback():
    """Fail the test if an op leaves the direct path in it; name the op and the reason.

    TensorFlow always makes the first call of an op with arguments of new dtypes. This call does not
    count.
    """
    from pytest_fastops.fixtures import NoFallback

    return NoFallback()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    result = yield
    watch = pyfuncitem.funcargs.get("no_fallback")
    if watch is not None:
        watch.check()
    return result
