"""Start measuring processes, which run `worker`, and read their events."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest_fastops

import fastops_bench
from fastops_bench.common import LIBRARIES


@dataclass
class Process:
    """The measurements of a process.

    Attributes
    ----------
    name : str
        ``"main"``, ``"plain"``, or the name of a peer.
    suites, wanted : list of str
        The suites, and parts of names; what is measured must contain one of them.
    tag : {"short", "long", "all"}
    effort : {"full", "quick", "once"}
    python : str
        The interpreter.
    libraries : str, optional
        The only libraries to measure, separated by commas.
    marked : str, optional
        A pytest marker expression.
    environment : dict of str to str
    """

    name: str
    suites: list[str]
    wanted: list[str] = field(default_factory=list)
    tag: str = "all"
    effort: str = "full"
    python: str = sys.executable
    libraries: str = ""
    marked: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, only_list=False):
        """Start the process; yield its events, and at the end its exit status.

        Yields
        ------
        dict
            An ``"event"`` and its details. The last event is ``"end"``, with the ``"status"`` of
            the process and the last lines of its ``"output"``.
        """
        reading, writing = os.pipe()
        asked = {
            "suites": self.suites,
            "wanted": self.wanted,
            "tag": self.tag,
            "effort": self.effort,
            "marked": self.marked,
            "list": only_list,
            "events": writing,
        }
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryDirectory() as folder:
            child = subprocess.Popen(
                [self.python, "-m", "fastops_bench.worker"],
                env=self._environment(Path(folder)),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
                start_new_session=True,  # interrupts go to this process, which ends the child
                text=True,
            )
            os.close(writing)
            try:
                with open(reading) as events:
                    try:
                        json.dump(asked, child.stdin)
                        child.stdin.close()
                    except BrokenPipeError:
                        pass  # the child has ended, and its output says why
                    yield from map(json.loads, events)
                status = child.wait()
            finally:
                child.kill()
                child.wait()
            output.seek(0)
            yield {"event": "end", "status": status, "output": output.read()[-4000:]}

    def _environment(self, folder):
        """Let a peer's interpreter import the benchmarks, and nothing else of this environment."""
        variables = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        # Waiting threads of NumPy and PyTorch would take time from the next measurement.
        variables |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if self.libraries:
            variables[LIBRARIES] = self.libraries
        if self.python != sys.executable:
            for package in (fastops_bench, pytest_fastops):
                source = Path(package.__file__).resolve().parent
                (folder / source.name).symlink_to(source)
            variables["PYTHONPATH"] = str(folder)
        return os.environ | variables | self.environment
