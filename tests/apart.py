"""Run tests in processes of their own, and collect the lines that TensorFlow logs.

Such a process can have another context of TensorFlow. A test that hangs or crashes there does not
end the other tests.
"""

import atexit
import faulthandler
import inspect
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest
import zygote

PROGRAM = f"import sys; sys.path.append({os.path.dirname(__file__)!r}); import apart; apart.serve()"
# The time limit of a test, and of the end of a process. After it, the process prints its stacks and
# ends.
SECONDS = 60


class Fork:
    """A forked process that sends back what a function returns."""

    SECONDS = 60

    def __init__(self, function):
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            # Python warns that forks are risky; these tests fork on purpose.
            warnings.simplefilter("ignore")
            self._child = os.fork()
        if self._child == 0:
            try:
                signal.alarm(self.SECONDS)
                with open(writing, "wb") as pipe:
                    pipe.write(pickle.dumps(function()))
            finally:
                os._exit(0)
        os.close(writing)
        self._pipe = reading

    def result(self):
        """Return the value that the process sent, or `None` if the process hung or crashed."""
        with open(self._pipe, "rb") as pipe:
            sent = pipe.read()
        os.waitpid(self._child, 0)
        return pickle.loads(sent) if sent else None


class Process:
    """A process that runs one test after another, and is replaced once a test has failed.

    It imports the test's module and calls `prepare` before anything else.

    Parameters
    ----------
    prepare : callable, optional
        A function of the test's module. It may return a dict of values by name, which are passed to
        tests that have parameters of these names.
    variables : str
        Environment variables of the process that differ from those of this process.
    """

    def __init__(self, prepare=None, **variables):
        self._prepare = prepare
        self._variables = variables
        self._process = None

    def run(self, test):
        if self._process is None:
            self._start()
        try:
            self._connection.send(test)
            problem = self._connection.recv()
        except (EOFError, OSError):
            problem = f"the process ended: {self._process.wait()}"
        except BaseException:
            self._stop()
            raise
        if problem:
            self._stop()
            pytest.fail(problem, pytrace=False)

    def end(self):
        if self._process is not None:
            self._connection.close()
            assert self._process.wait() == 0, "a process ended badly"

    def _start(self):
        self._connection, theirs = Pipe()
        with theirs:
            self._process = zygote.of(**self._variables).start(
                PROGRAM,
                zygote.environment_of(**self._variables),
                *(theirs.fileno(), 1, 2),
            )
        self._connection.send(sys.path)
        self._connection.send(self._prepare)

    def _stop(self):
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._process = None


def within(fixture):
    """Make a decorator by which the body of a test runs in the `Process` of a fixture."""

    def decorate(body):
        def test(request):
            request.getfixturevalue(fixture).run(test)

        # Do not set __wrapped__: pytest would take the parameters of the wrapped function for
        # fixtures.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(test, name, getattr(body, name))
        test.body = body
        return test

    return decorate


@contextmanager
def logged_lines():
    """Collect the lines that TensorFlow logs in the `with` block, without times and places."""
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


def serve():
    """Run the tests named on the standard input: the main program of a `Process`."""
    with Connection(os.dup(0)) as connection, open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
        atexit.register(faulthandler.dump_traceback_later, SECONDS, exit=True)
        sys.path[:] = connection.recv()
        prepare = connection.recv()
        given = prepare() if prepare is not None else None
        with suppress(EOFError):
            while True:
                connection.send(_outcome(connection.recv(), given))


def _outcome(test, given):
    """Run a test. Return the traceback if it fails, `None` if it passes."""
    import fastops
    from fastops._specialize import policy

    policy.set_share(0)  # record at once, as the fixtures of conftest.py do
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        fastops.clear_cache()
        fastops.reset_stats()
        test.body(*(given[name] for name in inspect.signature(test.body).parameters))
    except BaseException:
        return traceback.format_exc()
    finally:
        faulthandler.cancel_dump_traceback_later()
    return None
