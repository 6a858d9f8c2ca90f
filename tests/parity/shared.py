"""Run the parity suite once for all workers of a test run."""

import fcntl
import json
import os
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import asdict

from parity.__main__ import QUICK, tasks
from parity.campaign import WORLDS
from parity.run import Death, Journal, Report, campaign, run


class Found:
    """The findings in the three worlds.

    Attributes
    ----------
    reports : list of parity.run.Report
        A report for each of `WORLDS`.
    findings : dict of str to dict of str to list
        The findings of the checks, by check and op.
    """

    def __init__(self, reports):
        self.reports = reports
        self.findings = defaultdict(lambda: defaultdict(list))
        for report in reports:
            for finding in report.findings:
                self.findings[finding["check"]][finding["op_name"]].append(finding)


class Suite:
    """Runs the suite in batches. A batch runs when the findings of one of its ops are needed.

    The first worker that needs a batch runs it. A worker that has to wait for another one runs
    another batch in the meantime.

    Parameters
    ----------
    folder : Path
        The folder through which workers share their findings.
    batches : list of list of str
        The ops of each batch.
    jobs : int
        How many child processes this worker may use.
    """

    def __init__(self, folder, batches, jobs):
        self._folder, self._batches, self._jobs = folder, batches, jobs
        self._places = {name: i for i, batch in enumerate(batches) for name in batch}
        self._known = {}
        self._campaigns = {}
        self._stack = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stack.close()

    def of(self, op_name):
        """Return the findings about the batch of an op."""
        return self._found(self._places[op_name])

    def all(self):
        """Return the findings about all ops."""
        whole = [Report(world) for world in WORLDS]
        for place in range(len(self._batches)):
            for part, report in zip(self._found(place).reports, whole, strict=True):
                report.findings += part.findings
                for check, by_op in part.searches.items():
                    report.searches.setdefault(check, {}).update(by_op)
                report.problems += part.problems
                report.deaths += part.deaths
        return Found(whole)

    def _found(self, place):
        if place not in self._known:
            while not self._file(place).exists():
                others = [*range(place, len(self._batches)), *range(place)]
                if not any(self._try(other) for other in others):
                    self._try(place, wait=True)
            rows = json.loads(self._file(place).read_text())
            for row in rows:
                row["deaths"] = [Death(**death) for death in row["deaths"]]
            self._known[place] = Found([Report(**row) for row in rows])
        return self._known[place]

    def _file(self, place):
        return self._folder / f"{place}.json"

    def _try(self, place, *, wait=False):
        """Run a batch unless another worker runs it or has done so; return whether it was run."""
        if self._file(place).exists():
            return False
        with self._lock(place, wait) as locked:
            if not locked or self._file(place).exists():
                return False
            batch = self._batches[place]
            rows = [
                asdict(run(self._campaign(world), tasks(world, QUICK, batch, seed=0), Journal()))
                for world in WORLDS
            ]
            written = self._file(place).with_suffix(".part")
            written.write_text(json.dumps(rows))
            os.replace(written, self._file(place))
            return True

    @contextmanager
    def _lock(self, place, wait):
        """Lock a batch; yield whether that succeeded. With `wait`, wait for the lock."""
        with open(self._file(place).with_suffix(".lock"), "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True

    def _campaign(self, world):
        if world not in self._campaigns:
            self._campaigns[world] = self._stack.enter_context(campaign(world, self._jobs))
        return self._campaigns[world]
