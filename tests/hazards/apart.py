"""Tests that run in processes of their own, and what is logged there.

Their context can be another, and what hangs or crashes takes no other test with it.
"""

import atexit
import faulthandler
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context

SECONDS = 60  # what a test, or the end of a process, may take; whatever hangs shows where, and ends


class Process:
    """A process that runs one test after another, and is replaced once a test has failed.

    It imports the test's module, with TensorFlow, and calls `prepare` before anything else.
    """

    def __init__(self, prepare=None):
        self._prepare = prepare
        self._pool = None

    def run(self, test):
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, get_context("spawn"), _begin, [self._prepare])
        try:
            self._pool.submit(_run, test).result()
        except BaseException:
            self._pool.shutdown()
            self._pool = None
            raise

    def end(self):
        if self._pool is not None:
            children = active_children()
            self._pool.shutdown()
            assert not any(child.exitcode for child in children), "a process ended badly"


def within(fixture):
    """Make the body of a test run in the `Process` that a fixture gives."""

    def decorate(body):
        def test(request):
            request.getfixturevalue(fixture).run(test)

        # No __wrapped__: pytest would look for fixtures there.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(test, name, getattr(body, name))
        test.body = body
        return test

    return decorate


@contextmanager
def logged_lines():
    """Collect the lines that TensorFlow logs meanwhile, without times and places."""
    lines = []
    with tempfile.TemporaryFile() as target:
        kept = os.dup(2)
        os.dup2(target.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        target.seek(0)
        text = target.read().decode()
    lines += [line.partition("] ")[2] for line in text.splitlines() if "] " in line]


def _begin(prepare):
    atexit.register(faulthandler.dump_traceback_later, SECONDS, exit=True)
    if prepare is not None:
        prepare()


def _run(test):
    import fastops

    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        fastops.clear_cache()
        fastops.reset_stats()
        test.body()
    finally:
        faulthandler.cancel_dump_traceback_later()
