"""What a run of the tests leaves behind: no process, and no file outside its temporary folders."""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36

KEPT = ("__autograph_generated_file",)
"""What TensorFlow deletes at its exit, and not where the process is killed.

What Python has compiled of such files stays in any case, unless it is told to write no bytecode.
"""


class Watch:
    """Tells what is left of a run: of its processes, and in the folder for temporary files."""

    def __init__(self):
        # Whoever loses its parent becomes a child of this process.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._before = set(children())
        # The folders of pytest stay where they are: it keeps some, to be looked at.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        self._outside = os.environ.get("TMPDIR")
        self._folder = Path(tempfile.mkdtemp(prefix="fastops-tests-"))
        os.environ["TMPDIR"] = tempfile.tempdir = str(self._folder)

    def end(self, seconds=60):
        """Return what is left, as lines of text, and do away with it.

        What is about to end has so many seconds for it.
        """
        tracker = sys.modules.get("multiprocessing.resource_tracker")
        if tracker is not None:  # of this process; it ends with it
            tracker._resource_tracker._stop()
        processes = {}
        for _ in range(10 * seconds):
            processes = {pid: text for pid, text in children().items() if pid not in self._before}
            if not processes:
                break
            time.sleep(0.1)
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        files = [path for path in self._folder.rglob("*") if not is_kept(path)]
        shutil.rmtree(self._folder)
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
        if self._outside is not None:
            os.environ["TMPDIR"] = self._outside
        return [
            *(f"process {pid}: {text}" for pid, text in processes.items()),
            *(f"file {path}" for path in sorted(files)),
        ]


def is_kept(path):
    """Tell whether TensorFlow leaves a file, or a folder that has the bytecode of such alone."""
    if path.name == "__pycache__":
        return all(one.name.startswith(KEPT) for one in path.iterdir())
    return path.name.startswith(KEPT)


def children():
    """Return the children of this process that have not ended, by number: their command lines."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(") ")[2].split()[:2]
            if int(parent) != os.getpid():
                continue
            if state == "Z":
                os.waitpid(int(folder.name), os.WNOHANG)
            else:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = command.decode(errors="replace")
    return found
