"""One world: checks ops in children, and finds out whose the crashes are."""

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
"""Checks that trace functions, of which TensorFlow keeps all: a process gets slower with each."""

MEMORY = 2**30
"""Bytes that a call of a search may take: huge sizes are among what it tries."""

EXHAUSTED = ("pthread_create() failed", "std::bad_alloc")
"""The last words of a process that was not given more."""

SPOILT_CACHE = "Check failed: !PyErr_Occurred()"
"""The last words of TensorFlow's cache of scalars.

Its conversion of an integer beyond uint64 succeeds, with an OverflowError left set, and the cache
checks for one whenever the hash of the integer is like that of another. Hashes differ by process.
"""

MOST_DEATHS = {"malformed": 60, "properties": 4}
"""Deaths by one op after which the search for more of them ends."""

MOST_HANGS = 5
"""Likewise: some ops wait for others by design."""

SEED_STEP = 1_000_000
"""From a seed whose example ends the process to the one with which the search goes on."""

PATIENCE = {"both": 5, "tensorflow": 5, "fastops": 60}
"""Seconds that a call of a search may take, by who makes it.

What is merely slow on a busy machine is not to look like a hang of fastops' own.
"""


@dataclass
class Death:
    """A crash, and whose it is.

    Attributes
    ----------
    check, op_name, call, end, message : str
        What died of what.
    number : int
        The combination, call or seed.
    whose : {"tensorflow", "fastops", "unexplained", "nobody"}
        Who crashes when it makes the call alone, in a fresh process. "unexplained": neither.
        "nobody": neither, and it was a call that took long, or `SPOILT_CACHE`; or whoever it was,
        it took more than `MEMORY`, or the op is one of `parity.malformed.UNDEFINED`, whose kernels
        read what is not theirs.
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
        """Whether TensorFlow does not have it."""
        return self.whose in ("fastops", "unexplained")


@dataclass
class Report:
    """What a run found.

    Attributes
    ----------
    world : str
        One of `WORLDS`.
    findings : list of dict
        One for each check, op and combination of dtypes: see `parity.checks.Findings`.
    searches : dict of str to dict of str to int
        By check and op: calls tried, calls that raised, calls left out.
    problems : list of str
        What the searches found wrong.
    deaths : list of Death
        The crashes.
    """

    world: str
    findings: list = field(default_factory=list)
    searches: dict = field(default_factory=dict)
    problems: list = field(default_factory=list)
    deaths: list = field(default_factory=list)


class Journal:
    """What each task has found, in a file that outlives a run that is stopped.

    Parameters
    ----------
    path : path-like
        A file of JSON, a line for each task that has ended; by default, none that lasts.
    resume : bool
        Whether to go on with what is there, or begin anew.
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
        """Keep a record: check, op_name, findings, bags, crashes."""
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
    """Perform tasks in a world, but for those in the journal; return a `Report` of all."""
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
    for task, found in campaign.perform(by_op, after):
        key = task.check, task.op_name
        if found is None:
            record = under_way.pop(key, {"findings": [], "bags": [], "crashes": []})
            journal.write({"check": key[0], "op_name": key[1], **record})
            progress(task)
        elif not isinstance(found, Crash):
            kind = "bags" if task.check in SEARCHES else "findings"
            under_way[key][kind].append(asdict(found))
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
    report.deaths = judged(campaign, [crash for one in records for crash in one["crashes"]])
    return report


def judged(campaign, crashes):
    """Find out whose each crash is: who makes the calls alone, and crashes."""
    whose = dict.fromkeys(range(len(crashes)), "unexplained")
    # Memory that one call spoils may kill a later one, and does not each time: TensorFlow makes all
    # of them, again and again.
    again = [("tensorflow", all_calls)] * 3
    for arm, part in (("tensorflow", last_call), *again, ("fastops", last_call)):
        tasks = {
            i: part(crash)._replace(arm=arm)
            for i, crash in enumerate(crashes)
            if whose[i] == "unexplained" and crash.task.check in SEARCHES
        }
        dead = [
            task
            for task, found in campaign.perform(([t] for t in tasks.values()), lambda crash: None)
            if isinstance(found, Crash) and not _exhausted(found)
        ]
        whose |= {i: arm for i, task in tasks.items() if task in dead}
    for i, crash in enumerate(crashes):
        memory = _exhausted(crash) or crash.task.op_name in malformed.UNDEFINED
        chance = memory or crash.end == "hangs" or SPOILT_CACHE in crash.message
        if (whose[i] == "unexplained" and chance) or (whose[i] == "fastops" and memory):
            whose[i] = "nobody"
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
    """Tell whether a process died of the limit that `MEMORY` is."""
    return any(words in crash.message for words in EXHAUSTED)


def all_calls(crash):
    """Return the task that makes the calls which a child had made when it died."""
    if crash.task.check == "properties":
        return crash.task
    return crash.task._replace(stop=crash.step + 1)


def last_call(crash):
    """Likewise the last of them, even if it is known to be fatal."""
    if crash.task.check == "properties":
        return crash.task
    return crash.task._replace(start=crash.step, stop=crash.step + 1, fatal=())
