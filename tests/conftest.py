"""Options and fixtures of all tests."""

import difflib
import fcntl
import gc
import itertools
import os
import random
import signal
import subprocess
from pathlib import Path

import leftovers
import pytest
import zygote
from _pytest.doctest import DoctestItem

HERE = Path(__file__).parent

WATCH = pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the results into tests/golden instead of comparing with the files there",
    )
    parser.addoption(
        "--order",
        default="given",
        help="order of tests: reversed (the last file first), random or random:SEED",
    )


class Examples:
    """A plugin for examples in documents and docstrings, which are outside of this folder."""

    def pytest_runtest_setup(self, item):
        """Run each file of examples as a reader would, in the state of a new process."""
        if isinstance(item, DoctestItem):
            begin_afresh()


def pytest_configure(config):
    # A shell that starts a program in the background may make it ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Examples())
    if hasattr(config, "workerinput"):
        config.option.order = config.workerinput["order"]
        return
    if config.option.order == "random":
        config.option.order += f":{random.randrange(10**6)}"
    config.stash[WATCH] = leftovers.Watch()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["order"] = node.config.option.order


def pytest_report_header(config):
    return f"order: {config.option.order}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("quick") and item.get_closest_marker("slow"):
            raise pytest.UsageError(f"{item.nodeid} has both marks, quick and slow")
    kind, _, seed = config.option.order.partition(":")
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    files = list(files.values())
    if kind == "reversed":
        files.reverse()
    elif kind == "random":
        chance = random.Random(int(seed))
        for tests in files:
            chance.shuffle(tests)
        chance.shuffle(files)
    items[:] = [item for tests in files for item in tests]


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(collector):
    # Before any test, so that the output of the import is captured.
    if isinstance(collector, pytest.File):
        zygote.import_tensorflow()
    return (yield)


@pytest.fixture(scope="module", autouse=True)
def _frozen():
    """Leave out all that exists by now from garbage collections, of which tests make many.

    Otherwise a collection walks what all earlier modules have made, which takes over a second.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    zygote.end()
    watch = session.config.stash.get(WATCH, None)
    if watch is not None and (left := watch.end()):
        print("\nThe tests leave behind:", *left, sep="\n  ")
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def golden(request):
    """Compare a text with a file in tests/golden. With --update-golden, write the file instead."""

    def compare(name, text):
        path = HERE / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        expected = path.read_text() if path.exists() else ""
        if text != expected:
            diff = "".join(
                difflib.unified_diff(
                    expected.splitlines(keepends=True),
                    text.splitlines(keepends=True),
                    f"tests/golden/{name}",
                    "found",
                )
            )
            pytest.fail(f"{diff}\nIf this is intended: pytest {request.path} --update-golden")

    return compare


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Return a folder that all workers of this run share. The first one to need it fills it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def once(name, make=lambda folder: None):
        folder, made = base / name, base / f"{name}.made"
        with open(base / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                folder.mkdir()
                make(folder)
                made.touch()
        return folder

    return once


@pytest.fixture(scope="session")
def custom_op_library(once):
    """Compile tests/custom_op.cc and return the path of the library."""
    import tensorflow as tf

    def build(folder):
        subprocess.run(
            [
                "g++",
                *("-shared", "-fPIC", "-O1", "-w", "-DNDEBUG"),
                *tf.sysconfig.get_compile_flags(),
                str(HERE / "custom_op.cc"),
                *("-o", str(folder / "custom_op.so")),
                *tf.sysconfig.get_link_flags(),
            ],
            check=True,
        )

    return once("custom_op", build) / "custom_op.so"


@pytest.fixture(autouse=True)
def _plans_stay(monkeypatch):
    """Keep the first plan of each function, since timings on a busy machine are unreliable."""
    from fastops._plans import planned

    monkeypatch.setattr(planned, "TIMED_PLAN_NS", float("inf"))


@pytest.fixture(autouse=True)
def _made_soon():
    """Make recordings and plans after one call, however little time the call took."""
    from fastops._specialize import policy

    before = policy.set_share(0)
    yield
    policy.set_share(before)


@pytest.fixture(autouse=True)
def _config_stays():
    """Fail a test that leaves TensorFlow in another configuration: later tests depend on it."""
    from tensorflow.python.eager import context

    ours = context.context()
    ours.ensure_initialized()
    before = ours.config
    yield
    assert context.context().config == before, "the test leaves TensorFlow in another configuration"


@pytest.fixture
def due_after(monkeypatch):
    """Return a function that sets after how many calls a recording is made, by a fake clock.

    By that clock, all calls that are not replayed take the same time.
    """
    from fastops._install.models.method import methods
    from fastops._specialize import policy

    def due_after(calls):
        for method in methods():
            method.forget()
        policy.set_share(calls - 1.0)
        policy.set_clock(lambda: next(clock))

    clock = itertools.count(1000, 1000)
    for estimate in policy.estimates().values():
        monkeypatch.setattr(estimate, "per_unit", 1.0)
    before = policy.share()
    yield due_after
    policy.set_clock(None)
    policy.set_share(before)


@pytest.fixture
def fresh():
    """Begin with empty caches and counters at zero, as in a new process."""
    begin_afresh()


def begin_afresh():
    import fastops

    fastops.clear_cache()
    fastops.reset_stats()
