"""Processes that begin with TensorFlow imported, within milliseconds: forks of one that has it.

A `Zygote` is an interpreter that has imported some modules, has no context of TensorFlow's, and
waits. For each program it forks, and the child runs it as ``python -c`` does: in ``__main__``, with
its own environment, directory and standard streams, until the interpreter is finalised. The child
does not outlive the zygote, nor the zygote the process that started it, however that ends.
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
"""What a zygote runs: `serve` returns in its children only, with the code of the program."""

READ_LATE = frozenset({"PYTEST_CURRENT_TEST", "TF_CONFIG", "TF_NODE_FILE_WRITER_DIRECTORY"})
"""Variables that mean nothing to an import: a program may have others than its zygote."""

PR_SET_PDEATHSIG = 1


class Zygote:
    """An interpreter that forks once for each program.

    Parameters
    ----------
    modules : iterable of str
        What it imports, and its children find imported.
    environment : dict of str to str
        All its variables.
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
                start_new_session=True,  # an interrupt from the keyboard is not meant for it
            )
            self._control.send(pickle.dumps(tuple(modules)))
            theirs.close()
            if not self._control.recv(1):
                process.wait()
                log.seek(0)
                raise RuntimeError(f"a zygote could not begin:\n{log.read().decode()}")
        self._process = process

    def start(self, code, environment, stdin, stdout, stderr):
        """Run a program; return its `Process`. The streams are file descriptors."""
        connection, theirs = socket.socketpair()
        request = pickle.dumps((code, environment, os.getcwd()))
        with theirs:
            socket.send_fds(self._control, [request], [theirs.fileno(), stdin, stdout, stderr])
        return Process(connection)

    def end(self):
        """End it, and those of its children that still run."""
        self._control.close()
        self._process.wait()


class Process:
    """A child of a zygote.

    Attributes
    ----------
    pid : int
        Its number.
    """

    def __init__(self, connection):
        self._connection = connection
        self._status = None
        self.pid = self._receive(None)

    def wait(self, timeout=None):
        """Return its exit status when it ends, a negative number where a signal ended it.

        Raises
        ------
        TimeoutError
            It still runs after so many seconds.
        """
        if self._status is None:
            self._status = self._receive(timeout)
            self._connection.close()
        return self._status

    def kill(self):
        """End it at once."""
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
    """Return the zygote with these modules, and this process's environment with these variables.

    It is started when it is first asked for, and ends with this process.
    """
    environment = environment_of(**variables)
    fixed = [(name, value) for name, value in environment.items() if name not in READ_LATE]
    key = (os.getpid(), *modules, *sorted(fixed))  # what forks from here has its own
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
    """Return the environment in which what a test starts finds fastops and the tests."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **variables,
    }


@contextmanager
def without(*names):
    """Let imports of these modules fail."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules |= dict.fromkeys(absent)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def import_tensorflow():
    """Import TensorFlow, and Keras with it, which goes without scikit-learn and matplotlib.

    It would import them for wrappers and plots that nobody asks for, and take half as long again.
    """
    if "tensorflow" not in sys.modules:
        with without("matplotlib", "sklearn"):
            importlib.import_module("tensorflow")


# In the zygote -----------------------------------------------------------------------------------


def serve():
    """Import what is asked for, then fork for each request: return the code of its program."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    modules = pickle.loads(control.recv(1 << 16))
    import_tensorflow()
    for name in ("fastops", *modules):
        importlib.import_module(name)
    context = sys.modules["tensorflow.python.eager.context"]._context
    assert context is None or context._context_handle is None, "a fork of its threads would hang"
    gc.freeze()  # what is imported: to collect garbage there would copy all of it, at each exit
    sys.stdout.flush()
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    control.send(b"+")
    return _Server(control).serve()


class _Server:
    """What waits for requests, and for the ends of children."""

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
        """Its connection is closed: nobody wants it."""
        self._selector.unregister(self._children[child])
        with suppress(ProcessLookupError):  # it has no group yet, or a group and no member
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
    """Make this fork what a new interpreter is; return the code to run."""
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
