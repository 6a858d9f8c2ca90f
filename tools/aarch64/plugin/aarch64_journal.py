"""A plugin of pytest that stores the outcome of each test as soon as it has one.

An emulated run may be stopped by its limit, or by a test that crashes or hangs. So the outcomes are
kept in a file, ``FASTOPS_JOURNAL``, one line of JSON for each test that begins and for each that
ends. Tests that are in the file are not run again. A test that takes longer than
``FASTOPS_TEST_LIMIT`` seconds ends the process, with the stacks of all threads.
"""

import faulthandler
import json
import os
import sys
from pathlib import Path

import pytest


class Journal:
    """Writes the lines of a run.

    Parameters
    ----------
    file : Path
    limit : float
        The seconds that a test may take.
    """

    def __init__(self, file, limit):
        self._file = file
        self._limit = limit
        self._outcomes = {}
        self._stream = os.fdopen(os.dup(2), "w")  # not pytest's replacement of the stream

    def write(self, **line):
        with self._file.open("a") as out:
            out.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        known = {*outcomes(self._file)}
        done = [item for item in items if item.nodeid in known]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in known]

    def pytest_runtest_logstart(self, nodeid):
        self.write(test=nodeid, begins=True)
        self._outcomes[nodeid] = ("passed", "")
        faulthandler.dump_traceback_later(self._limit, exit=True, file=self._stream)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            lines = [line for line in report.longreprtext.splitlines() if line.startswith("E  ")]
            first = lines[0][1:].strip() if lines else ""
            self._outcomes[report.nodeid] = ("failed", first[:300])
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._outcomes[report.nodeid] = ("skipped", reason.removeprefix("Skipped: ")[:300])

    def pytest_runtest_logfinish(self, nodeid):
        faulthandler.cancel_dump_traceback_later()
        outcome, message = self._outcomes.pop(nodeid)
        self.write(test=nodeid, outcome=outcome, message=message)


def outcomes(file):
    """Return the outcome and a message of each test in a journal, in the order of their starts.

    The outcome of a test that began and did not end is "ended the process".
    """
    found = {}
    for text in file.read_text().splitlines() if file.exists() else ():
        line = json.loads(text)
        if line.get("begins"):
            found[line["test"]] = ("ended the process", "")
        else:
            found[line["test"]] = (line["outcome"], line["message"])
    return found


def was_cut_off(file):
    """Tell whether the last test in a journal began and did not end."""
    lines = file.read_text().splitlines() if file.exists() else []
    return bool(lines) and "begins" in json.loads(lines[-1])


def forget_start(file):
    """Remove the line of a test that began and did not end, because the run was stopped."""
    if was_cut_off(file):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


def pytest_configure(config):
    if file := os.environ.get("FASTOPS_JOURNAL"):
        limit = float(os.environ.get("FASTOPS_TEST_LIMIT", "600"))
        config.pluginmanager.register(Journal(Path(file), limit))
        print(f"the outcomes are stored in {file}", file=sys.stderr)
