"""Run checks in processes that may crash, and continue after crashes.

TensorFlow itself ends the process on some malformed calls. So the checks run in children of a
zygote. A child that dies is replaced within a fraction of a second, and the new child continues
after the call that ended it.
"""

import contextlib
import dataclasses
import mmap
import multiprocessing.connection
import os
import resource
import signal
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import zygote

WORLDS = {
    "onednn": {"TF_ENABLE_ONEDNN_OPTS": "1"},
    "plain": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "deterministic": {"TF_ENABLE_ONEDNN_OPTS": "1"},
}
"""The configurations of TensorFlow, and the environment variables that set them."""


class Task(NamedTuple):
    """A check of one op.

    Attributes
    ----------
    check : str
        The name of the check in `parity.worker.CHECKS`.
    op_name : str
        The op.
    start, stop : int
        The range of the steps of the check, which are combinations of dtypes or numbers of calls. A
        `stop` of `None` means all.
    arm : {"both", "tensorflow", "fastops"}
        Which library makes the calls. Only one makes them when the cause of a crash is determined.
    fatal : tuple of tuple of str
        Sets of mistakes that are known to end the process when they are made in one call.
    """

    check: str
    op_name: str
    start: int = 0
    stop: int | None = None
    arm: str = "both"
    fatal: tuple = ()


@dataclasses.dataclass(frozen=True)
class Crash:
    """The death of a child.

    Attributes
    ----------
    task : Task
        The task of the child.
    step : int
        The combination of dtypes, or the number of the call.
    arm : str
        Which library made the call: "tensorflow" or "fastops".
    call : str
        A description of the call.
    end : str
        The signal, or "hangs".
    message : str
        The last text that the child wrote to its standard error.
    """

    task: Task
    step: int
    arm: str
    call: str
    end: str
    message: str


class Progress:
    """A file in memory into which a child writes what it is about to do.

    The file survives a crash of the child.
    """

    SIZE = 1024

    def __init__(self, path):
        self.path = path
        with open(path, "a+b") as file:
            file.truncate(self.SIZE)
            self._map = mmap.mmap(file.fileno(), self.SIZE)

    def __call__(self, step, call="", arm=""):
        text = f"{step}\n{arm}\n{call}".encode()[: self.SIZE - 1]
        self._map[: len(text) + 1] = text + b"\0"

    def read(self):
        text = bytes(self._map).split(b"\0")[0].decode(errors="replace")
        step, arm, call = [*text.split("\n", 2), "", "", ""][:3]
        return int(step or 0), arm, call


PROGRAM = "from parity.campaign import serve; serve()"

ASLEEP = 2
"""The seconds after which a child whose threads all sleep counts as hanging.

A busy machine does not matter: a thread that is ready to run does not count as sleeping.
"""


def activity(pid):
    """Return the CPU times of the threads of a process; `None` if one of them is ready to run.

    It also returns `None` for a process that has ended, which its connection reports.
    """
    times, threads = [], []
    with contextlib.suppress(OSError):
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    if not threads:
        return None
    for thread in threads:
        with contextlib.suppress(OSError):  # the thread has just ended
            state, *numbers = (thread / "stat").read_text().rpartition(")")[2].split()
            if state != "S":
                return None
            times.append((thread.name, numbers[10], numbers[11]))  # time in user and kernel mode
    return sorted(times)


def serve():
    """Perform the tasks that arrive through the standard input: the main program of a `Child`."""
    from parity import worker

    connection = multiprocessing.connection.Connection(os.dup(0))
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    folder, world, memory = connection.recv()
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    worker.enter(world)
    progress = Progress(folder / "progress")
    with contextlib.suppress(EOFError):
        while True:
            task = connection.recv()
            limit(memory.get(task.check))
            worker.perform(task, progress, connection.send)
            connection.send(None)


def limit(memory):
    """Limit the memory that this process may take beyond its present size; None: no limit."""
    most = resource.RLIM_INFINITY
    if memory is not None:
        with open("/proc/self/statm") as statm:
            most = int(statm.read().split()[0]) * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


class Child:
    """A process that performs tasks, and is started again after a crash."""

    def __init__(self, folder, world, memory):
        self._world, self._memory = world, memory
        self._folder = folder
        folder.mkdir()
        self.progress = Progress(folder / "progress")
        self.task = None
        self.waiting = []
        self._start()

    def _start(self):
        self.connection, theirs = multiprocessing.Pipe()
        source = zygote.of(["parity.worker"], **WORLDS[self._world])
        environment = zygote.environment_of(**WORLDS[self._world])
        with theirs, open(self._folder / "stderr", "wb") as errors:
            streams = [file.fileno() for file in (theirs, errors, errors)]
            self.process = source.start(PROGRAM, environment, *streams)
        self.connection.send((self._folder, self._world, self._memory))
        self.done = set()
        self._begin()

    def _begin(self):
        self._seen = self._active = None
        self._since = self._asleep_since = time.monotonic()

    def give(self, task):
        self.task = task
        self.done.add(task.check)
        self.progress(task.start)
        self._begin()
        with contextlib.suppress(OSError):  # the child has died; the next `receive` reports that
            self.connection.send(task)

    def receive(self):
        """Return the object that the child sent, or a `Crash` if it has died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return self._died()

    def stalls(self, seconds):
        """Tell whether the child makes no progress for that long, or sleeps for `ASLEEP` s."""
        clock = time.monotonic()
        seen, active = self.progress.read(), activity(self.process.pid)
        if seen != self._seen:
            self._seen, self._since = seen, clock
        if active is None or active != self._active:
            self._active, self._asleep_since = active, clock
        return clock - self._since > seconds or clock - self._asleep_since > ASLEEP

    def kill(self):
        """Kill the child, and return the `Crash`."""
        self.process.kill()
        return dataclasses.replace(self._died(), end="hangs")

    def _died(self):
        code = self.process.wait()
        self.connection.close()
        step, arm, call = self.progress.read()
        lines = (self._folder / "stderr").read_text(errors="replace").strip().splitlines()
        if code > 0 and not call:
            raise RuntimeError("a child could not start:\n" + "\n".join(lines[-20:]))
        end = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        telling = [line for line in lines if "Check failed" in line or "terminate" in line]
        crash = Crash(self.task, step, arm, call, end, (telling or lines or [""])[-1][-300:])
        self._start()
        return crash

    def stop(self):
        self.process.kill()  # TensorFlow is slow to exit
        self.process.wait()
        self.connection.close()

    def renew(self):
        """Start a new process, without the memory that earlier tasks have left."""
        self.stop()
        self._start()


class Campaign:
    """Performs tasks in children, one for each processor.

    Parameters
    ----------
    world : str
        One of `WORLDS`.
    jobs : int, optional
        Number of children; by default one for each processor.
    memory : dict of str to int
        By check, the bytes of memory that a child may take for a task; default: no limit.
    patience : callable
        Given a task, returns the seconds without progress after which a child counts as hanging. A
        child that sleeps counts after `ASLEEP` seconds.
    isolated : collection of str
        Checks whose groups of tasks do not share a process, so that the calls of one op cannot
        crash or delay those of another.
    """

    def __init__(self, world, jobs=None, memory=None, patience=lambda task: 120, isolated=()):
        self.world = world
        self._patience = patience
        self._isolated = frozenset(isolated)
        self._home = tempfile.TemporaryDirectory(prefix="parity-")
        home = Path(self._home.name)
        jobs = jobs or len(os.sched_getaffinity(0))
        self._children = [Child(home / str(i), world, memory or {}) for i in range(jobs)]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for child in self._children:
            child.stop()
        self._home.cleanup()

    def perform(self, groups, after_crash):
        """Perform tasks; yield the findings of the checks, each with its task.

        Parameters
        ----------
        groups : iterable of list of Task
            The tasks. One child performs a group, one task after the other.
        after_crash : callable
            Given a `Crash`, returns the task to continue with, or `None`.

        Yields
        ------
        task : Task
            The task.
        found : object
            A finding of its check, a `Crash`, or `None` at the end of the task.
        """
        waiting = iter(groups)
        busy = {}
        for child in self._children:
            self._next(child, waiting, busy)
        while busy:
            ready = multiprocessing.connection.wait(list(busy), timeout=1)
            events = [(child, child.receive()) for child in map(busy.get, ready)]
            events += [
                (child, child.kill())
                for connection, child in list(busy.items())
                if connection not in ready and child.stalls(self._patience(child.task))
            ]
            for child, finding in events:
                task = child.task
                yield task, finding
                if isinstance(finding, Crash):
                    busy = {
                        worker.connection: worker for worker in busy.values() if worker is not child
                    }
                    rest = after_crash(finding)
                    if rest is not None:
                        child.give(rest)
                        busy[child.connection] = child
                        continue
                    yield task, None
                elif finding is not None:
                    continue
                busy.pop(child.connection, None)
                self._next(child, waiting, busy)

    def _next(self, child, waiting, busy):
        if not child.waiting:
            child.waiting = list(next(waiting, ()))
            checks = {task.check for task in child.waiting}
            if checks and child.done and self._isolated & (checks | child.done):
                child.renew()
        if child.waiting:
            child.give(child.waiting.pop(0))
            busy[child.connection] = child
