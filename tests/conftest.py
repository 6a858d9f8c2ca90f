"""Options and fixtures of all tests."""

import difflib
import subprocess
from pathlib import Path

import pytest
import tensorflow as tf

HERE = Path(__file__).parent


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the tests find into tests/golden instead of comparing with it",
    )


def pytest_collection_modifyitems(items):
    # A library of ops cannot be unloaded: those who look at the whole registry run before it is.
    items.sort(key=lambda item: "custom_op_library" in getattr(item, "fixturenames", ()))


@pytest.fixture
def golden(request):
    """Compare a text with a file in tests/golden, or write it there under --update-golden."""

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
            pytest.fail(f"{diff}\nIf this is meant: pytest {request.path} --update-golden")

    return compare


@pytest.fixture(scope="session")
def custom_op_library(tmp_path_factory):
    """Compile tests/custom_op.cc and return the path of the library."""
    target = tmp_path_factory.mktemp("custom_op") / "custom_op.so"
    subprocess.run(
        [
            "g++",
            *("-shared", "-fPIC", "-O1", "-w", "-DNDEBUG"),
            *tf.sysconfig.get_compile_flags(),
            str(HERE / "custom_op.cc"),
            *("-o", str(target)),
            *tf.sysconfig.get_link_flags(),
        ],
        check=True,
    )
    return target


@pytest.fixture(autouse=True)
def _plans_stay(monkeypatch):
    """Keep the first plan that a function has: a busy machine is no judge of who is faster."""
    from fastops._plans import planned

    monkeypatch.setattr(planned, "SHORT", float("inf"))


@pytest.fixture
def fresh():
    """Begin with empty caches and counters at zero, as the process began."""
    import fastops

    fastops.clear_cache()
    fastops.reset_stats()
