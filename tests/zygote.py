"""Start processes with TensorFlow imported within milliseconds, by forks.

A `Zygote` is an interpreter that has imported some modules, has no context of TensorFlow, and
waits. It forks for each program, and the child runs the program as ``python -c`` does: in
``__main__``, with its own environment, directory and standard streams, until the interpreter is
finalised. A child ends when the zygote ends, and the zygote ends when the process that started it
ends, for whatever reason.
"""

import atexit
import ctypes
import gc
import importlib
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = Path(__file__).parent

PROGRAM = "exec(__import__('zygote').serve())"
"""The program of a zygote. `serve` only returns in children, with the code of their program."""

READ_LATE = frozenset({"PYTEST_CURRENT_TEST", "TF_CONFIG", "TF_NODE_FILE_WRITER_DIRECTORY"})
"""Environment variables that do not affect imports, so a program may have other values than its
zygote."""

PR_SET_PDEATHSIG = 1


class Zygote:
    """An interpreter that forks once for each program.

    Parameters
    ----------
    modules : iterable of str
        The modules that it imports for its children.
    environment : dict of str to str
        All its environment variables.
    """

    def __init__(self, modules, environment):
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                env=environment,
                stdin=theirs,
                stdout=log,
                stderr=log,
                start_new_session=True,  # the zygote must not get interrupts from the keyboard
            )
            self._control.send(pickle.dumps(tuple(modules)))
            theirs.close()
            if not self._control.recv(1):
                process.wait()
                log.seek(0)
                raise RuntimeError(f"a zygote could not start:\n{log.read().decode()}")
        self._process = process

    def start(self, code, environment, stdin, stdout, stderr):
        """Run a program; return its `Process`. The streams are file descriptors."""
        connection, theirs = socket.socketpair()
        request = pickle.dumps((code, environment, os.getcwd()))
        with theirs:
            socket.send_fds(self._control, [request], [theirs.fileno(), stdin, stdout, stderr])
        return Process(connection)

    def end(self):
        """End the zygote and its running children."""
        self._control.close()
        self._process.wait()


class Process:
    """A child of a zygote.

    Attributes
    ----------
    pid : int
        The process id.
    """

    def __init__(self, connection):
        self._connection = connection
        self._status = None
        self.pid = self._receive(None)

    def wait(self, timeout=None):
        """Wait for the end; return the exit status, which is negative after a signal.

        Raises
        ------
        TimeoutError
            The process still runs after `timeout` seconds.
        """
        if self._status is None:
            self._status = self._receive(timeout)
            self._connection.close()
        return self._status

    def kill(self):
        """End the process at once."""
        if self._status is None:
            self._connection.shutdown(socket.SHUT_WR)

    def _receive(self, timeout):
        self._connection.settimeout(timeout)
        if not (message := self._connection.recv(8)):
            raise RuntimeError("a zygote is dead")
        return int.from_bytes(message, "little", signed=True)


_zygotes = {}
_starting = threading.Lock()


def of(modules=(), **variables):
    """Return the zygote with these modules and with these changes of the environment.

    It is started when it is first needed, and ends with this process.
    """
    environment = environment_of(**variables)
    fixed = [(name, value) for name, value in environment.items() if name not in READ_LATE]
    key = (os.getpid(), *modules, *sorted(fixed))  # forks of this process have their own zygotes
    with _starting:
        if not _zygotes:
            atexit.register(end)
        if key not in _zygotes:
            _zygotes[key] = Zygote(modules, environment)
        return _zygotes[key]


def end():
    """End all zygotes of this process."""
    for (pid, *_), zygote in _zygotes.items():
        if pid == os.getpid():
            zygote.end()
    _zygotes.clear()


def environment_of(**variables):
    """Return an environment in which processes of tests can import fastops and the tests."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **variables,
    }


@contextmanager
def without(*names):
    """Make imports of these modules fail in the `with` block."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules |= dict.fromkeys(absent)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def import_tensorflow():
    """Import TensorFlow and Keras, but not scikit-learn and matplotlib.

    Keras imports them for wrappers and plots that no test needs, which takes half as long again.
    """
    if "tensorflow" not in sys.modules:
        with without("matplotlib", "sklearn"):
            importlib.import_module("tensorflow")


# In the zygote -----------------------------------------------------------------------------------


def serve():
    """Import the modules, then fork for each request; in a child, return the program's code."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    modules = pickle.loads(control.recv(1 << 16))
    import_tensorflow()
    for name in ("fastops", *modules):
        importlib.import_module(name)
    context = sys.modules["tensorflow.python.eager.context"]._context
    assert context is None or context._context_handle is None, "forks with a context hang"
    # Freeze imported objects: a collection at exit would touch them, and so copy their memory.
    gc.freeze()
    sys.stdout.flush()
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    control.send(b"+")
    return _Server(control).serve()


class _Server:
    """The loop that waits for requests, and for the ends of children."""

    def __init__(self, control):
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._fork)
        self._children = {}

    def serve(self):
        while True:
            for key, _ in self._selector.select():
                if (code := key.data(key.fileobj)) is not None:
                    return code

    def _fork(self, control):
        request, descriptors, *_ = socket.recv_fds(control, 1 << 20, 4)
        if not request:
            self._end()
        connection = socket.socket(fileno=descriptors.pop(0))
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            for key in list(self._selector.get_map().values()):
                os.close(key.fd)
            self._selector.close()
            connection.close()
            return _begin(parent, descriptors, *pickle.loads(request))
        for descriptor in descriptors:
            os.close(descriptor)
        self._children[child] = connection
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._kill(child))
        self._selector.register(os.pidfd_open(child), selectors.EVENT_READ, self._reap(child))
        connection.send(_packed(child))
        return None

    def _kill(self, child):
        """Kill a child whose connection is closed, since its result is no longer needed."""
        self._selector.unregister(self._children[child])
        with suppress(ProcessLookupError):  # the process group does not exist yet, or is empty
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)

    def _reap(self, child):
        def reap(descriptor):
            _, status = os.waitpid(child, 0)
            self._selector.unregister(descriptor)
            os.close(descriptor)
            connection = self._children.pop(child)
            with suppress(KeyError):
                self._selector.unregister(connection)
            with connection, suppress(OSError):
                connection.send(_packed(os.waitstatus_to_exitcode(status)))

        return reap

    def _end(self):
        for child in self._children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os._exit(0)


def _packed(number):
    return number.to_bytes(8, "little", signed=True)


def _begin(parent, streams, code, environment, directory):
    """Give this fork the state of a new interpreter; return the code to run."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    return compile(code, "<string>", "exec")
