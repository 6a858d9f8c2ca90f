"""Run checks in one world, in child processes, and find the causes of crashes."""

import json
import os
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import attrgetter

from parity import malformed
from parity.campaign import Campaign, Crash, Task

SEARCHES = ("malformed", "properties")
TRACING = ("gradients", "gradients thoroughly")
"""Checks that trace functions. TensorFlow keeps all of them, which makes the process slower."""

MEMORY = 2**30
"""The bytes that a call of a search may take. Some calls have huge sizes."""

EXHAUSTED = ("pthread_create() failed", "std::bad_alloc")
"""The last messages of a process that reached the memory limit."""

SPOILT_CACHE = "Check failed: !PyErr_Occurred()"
"""The last message of a process in which TensorFlow's cache of scalars has failed.

TensorFlow's conversion of an integer beyond uint64 succeeds but leaves an OverflowError set. The
cache fails if an exception is set while it compares two integers whose hashes collide. Hashes
differ between processes.
"""

MOST_DEATHS = {"malformed": 60, "properties": 4}
"""The number of crashes of one op after which the search ends."""

MOST_HANGS = 5
"""The number of hangs of one op after which the search ends. Some ops wait for others by design."""

SEED_STEP = 1_000_000
"""The difference between a seed whose example ends the process and the next seed of the search."""

PATIENCE = {"both": 5, "tensorflow": 5, "fastops": 60}
"""The seconds that a call of a search may take, by the library that makes it.

fastops has more, so that a slow call on a busy machine does not count as a hang.
"""


@dataclass
class Death:
    """A crash and its cause.

    Attributes
    ----------
    check, op_name, call, end, message : str
        The check, op and call that crashed, how the process ended, and its last message.
    number : int
        The combination, call or seed.
    whose : {"tensorflow", "fastops", "unexplained", "no cause"}
        The library that crashes when it makes the call alone, in a new process. "unexplained" means
        neither. "no cause" means that the crash does not count: the call took long, or was ended by
        `SPOILT_CACHE`, and neither library crashes alone; or the call took more than `MEMORY`; or
        the op is in `parity.malformed.UNDEFINED`, whose kernels read out of bounds.
    """

    check: str
    op_name: str
    number: int
    call: str
    end: str
    message: str
    whose: str

    @property
    def ours(self):
        """Whether TensorFlow does not have this crash."""
        return self.whose in ("fastops", "unexplained")


@dataclass
class Report:
    """The findings of a run.

    Attributes
    ----------
    world : str
        One of `WORLDS`.
    findings : list of dict
        A finding for each check, op and combination of dtypes: see `parity.checks.Findings`.
    searches : dict of str to dict of str to int
        By check and op, the numbers of calls tried, calls that raised, and calls left out.
    problems : list of str
        The problems that the searches found.
    deaths : list of Death
        The crashes.
    """

    world: str
    findings: list = field(default_factory=list)
    searches: dict = field(default_factory=dict)
    problems: list = field(default_factory=list)
    deaths: list = field(default_factory=list)


class Journal:
    """The findings of each task, in a file that remains if the run is stopped.

    Parameters
    ----------
    path : path-like
        A file with a line of JSON for each finished task; default: a temporary file.
    resume : bool
        Whether to continue with the content of the file, or to start again.
    """

    def __init__(self, path=None, resume=False):
        self.records = {}
        if resume and os.path.exists(path):
            with open(path) as file:
                for line in file:
                    if line.endswith("\n"):
                        self._keep(json.loads(line))
        self._path = path
        if path and not resume:
            open(path, "w").close()

    def _keep(self, record):
        record["crashes"] = [
            Crash(**crash | {"task": task_of(crash["task"])}) for crash in record["crashes"]
        ]
        self.records[record["check"], record["op_name"]] = record

    def __contains__(self, task):
        return (task.check, task.op_name) in self.records

    def write(self, record):
        """Write a record: check, op_name, findings, bags, crashes."""
        if self._path:
            with open(self._path, "a") as file:
                print(json.dumps(record, default=asdict), file=file)
        self.records[record["check"], record["op_name"]] = record


def task_of(row):
    """Return the `Task` of a row of JSON."""
    *rest, fatal = row if len(row) == len(Task._fields) else (*row, ())
    return Task(*rest, tuple(map(tuple, fatal)))


def campaign(world, jobs=None):
    """Return the `Campaign` in which `run` runs; `jobs` is the number of children."""

    def patience(task):
        return PATIENCE[task.arm] if task.check in SEARCHES else 300

    memory = dict.fromkeys(SEARCHES, MEMORY)
    return Campaign(world, jobs, memory, patience, isolated=(*SEARCHES, *TRACING))


def run(campaign, tasks, journal, progress=lambda task: None):
    """Perform the tasks that are not in the journal in a world; return a `Report` of all tasks."""
    under_way = defaultdict(lambda: {"findings": [], "bags": [], "crashes": []})

    def after(crash):
        op_name, check = crash.task.op_name, crash.task.check
        crashes = under_way[check, op_name]["crashes"]
        crashes.append(crash)
        if check in SEARCHES:
            ends = [other.end for other in crashes]
            if len(ends) >= MOST_DEATHS[check] or ends.count("hangs") >= MOST_HANGS:
                return None
        if check == "properties":
            return crash.task._replace(start=crash.step + SEED_STEP)
        fatal = crash.task.fatal
        if check in SEARCHES and crash.call:
            fatal += (tuple(crash.call.split("; ")),)
        rest = crash.task._replace(start=crash.step + 1, fatal=fatal)
        return rest if rest.stop is None or rest.start < rest.stop else None

    left = [task for task in tasks if task not in journal]
    by_op = [list(group) for _, group in groupby(left, attrgetter("op_name"))]
    for task, finding in campaign.perform(by_op, after):
        key = task.check, task.op_name
        if finding is None:
            record = under_way.pop(key, {"findings": [], "bags": [], "crashes": []})
            journal.write({"check": key[0], "op_name": key[1], **record})
            progress(task)
        elif not isinstance(finding, Crash):
            kind = "bags" if task.check in SEARCHES else "findings"
            under_way[key][kind].append(asdict(finding))
    report = Report(campaign.world)
    records = [journal.records[task.check, task.op_name] for task in tasks]
    for record in records:
        report.findings += record["findings"]
        for bag in record["bags"]:
            sums = report.searches.setdefault(record["check"], {}).setdefault(
                record["op_name"], {"tried": 0, "raised": 0, "left_out": 0}
            )
            for name in sums:
                sums[name] += bag[name]
            report.problems += bag["problems"]
    report.deaths = judged(campaign, [crash for record in records for crash in record["crashes"]])
    return report


def judged(campaign, crashes):
    """Find the cause of each crash: the library that crashes when it makes the calls alone."""
    whose = dict.fromkeys(range(len(crashes)), "unexplained")
    # Memory that one call corrupts may crash a later call, but not each time. So TensorFlow makes
    # all calls, several times.
    again = [("tensorflow", all_calls)] * 3
    for arm, part in (("tensorflow", last_call), *again, ("fastops", last_call)):
        tasks = {
            i: part(crash)._replace(arm=arm)
            for i, crash in enumerate(crashes)
            if whose[i] == "unexplained" and crash.task.check in SEARCHES
        }
        dead = [
            task
            for task, finding in campaign.perform(([t] for t in tasks.values()), lambda crash: None)
            if isinstance(finding, Crash) and not _exhausted(finding)
        ]
        whose |= {i: arm for i, task in tasks.items() if task in dead}
    for i, crash in enumerate(crashes):
        memory = _exhausted(crash) or crash.task.op_name in malformed.UNDEFINED
        chance = memory or crash.end == "hangs" or SPOILT_CACHE in crash.message
        if (whose[i] == "unexplained" and chance) or (whose[i] == "fastops" and memory):
            whose[i] = "no cause"
    return [
        Death(
            crash.task.check,
            crash.task.op_name,
            crash.step,
            crash.call,
            crash.end,
            crash.message,
            whose[i],
        )
        for i, crash in enumerate(crashes)
    ]


def _exhausted(crash):
    """Tell whether a process died because of the limit `MEMORY`."""
    return any(words in crash.message for words in EXHAUSTED)


def all_calls(crash):
    """Return the task that repeats the calls a child had made when it died."""
    if crash.task.check == "properties":
        return crash.task
    return crash.task._replace(stop=crash.step + 1)


def last_call(crash):
    """Return the task that repeats the last of these calls, even if it is known to be fatal."""
    if crash.task.check == "properties":
        return crash.task
    return crash.task._replace(start=crash.step, stop=crash.step + 1, fatal=())
