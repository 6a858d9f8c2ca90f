"""Check that a run of the tests leaves no process, and no file outside its temporary folders."""

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
"""Files that TensorFlow deletes at exit, but not if the process is killed.

Python's bytecode of such files remains in any case, unless Python is set not to write bytecode.
"""


class Watch:
    """Finds the processes that a run leaves, and its files in the folder for temporary files."""

    def __init__(self):
        # A process whose parent ends becomes a child of this process.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._before = set(children())
        # The folders of pytest stay outside of it: pytest keeps some for later inspection.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        self._outside = os.environ.get("TMPDIR")
        self._folder = Path(tempfile.mkdtemp(prefix="fastops-tests-"))
        os.environ["TMPDIR"] = tempfile.tempdir = str(self._folder)

    def end(self, seconds=60):
        """Return the leftover processes and files as lines of text, and remove them.

        Processes have `seconds` to end by themselves.
        """
        tracker = sys.modules.get("multiprocessing.resource_tracker")
        if tracker is not None:  # the tracker belongs to this process and ends with it
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
    """Tell whether TensorFlow leaves a file, or a folder that only has bytecode of such files."""
    if path.name == "__pycache__":
        return all(one.name.startswith(KEPT) for one in path.iterdir())
    return path.name.startswith(KEPT)


def children():
    """Return the command lines of the running children of this process, by process id."""
    commands = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(") ")[2].split()[:2]
            if int(parent) != os.getpid():
                continue
            if state == "Z":
                os.waitpid(int(folder.name), os.WNOHANG)
            else:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                commands[int(folder.name)] = command.decode(errors="replace")
    return commands
