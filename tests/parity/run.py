"""One world: checks ops in children and writes what was found to a file."""

import argparse
import json
import os
from collections import defaultdict
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from parity import malformed
from parity.campaign import WORLDS, Campaign, Crash, Task

SEARCHES = ("malformed", "properties")
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

PATIENCE = {"both": 10, "tensorflow": 5, "fastops": 60}
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
        "nobody": neither, and it was no crash, but a call that took long, or more than `MEMORY`;
        or `SPOILT_CACHE`; or the op is one of `parity.malformed.UNDEFINED`, whose kernels read what
        is not theirs.
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


def run(world, tasks, progress=None):
    """Perform tasks in a world; return a `Report`."""
    report = Report(world)
    crashes = []
    fatal = defaultdict(list)

    def after(crash):
        crashes.append(crash)
        op_name = crash.task.op_name
        if crash.task.check in SEARCHES:
            if crash.call:
                fatal[op_name].append(tuple(crash.call.split("; ")))
            same = [
                other.end
                for other in crashes
                if (other.task.op_name, other.task.check) == (op_name, crash.task.check)
            ]
            if len(same) >= MOST_DEATHS[crash.task.check] or same.count("hangs") >= MOST_HANGS:
                return None
        if crash.task.check == "properties":
            return crash.task._replace(start=crash.step + SEED_STEP)
        rest = crash.task._replace(start=crash.step + 1, fatal=tuple(fatal[op_name]))
        return rest if rest.stop is None or rest.start < rest.stop else None

    def patience(task):
        return PATIENCE[task.arm] if task.check in SEARCHES else 300

    memory = dict.fromkeys(SEARCHES, MEMORY)
    with Campaign(world, memory=memory, patience=patience, isolated=SEARCHES) as campaign:
        for task, found in campaign.perform(tasks, after):
            if found is None:
                if progress:
                    progress(task)
            elif isinstance(found, Crash):
                continue
            elif task.check in SEARCHES:
                sums = report.searches.setdefault(task.check, {}).setdefault(
                    task.op_name, {"tried": 0, "raised": 0, "left_out": 0}
                )
                for name in sums:
                    sums[name] += getattr(found, name)
                report.problems += found.problems
            else:
                report.findings.append(asdict(found))
        report.deaths = judged(campaign, crashes)
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
            for task, found in campaign.perform(tasks.values(), lambda crash: None)
            if isinstance(found, Crash)
        ]
        whose |= {i: arm for i, task in tasks.items() if task in dead}
    for i, crash in enumerate(crashes):
        chance = (
            crash.end == "hangs"
            or any(words in crash.message for words in (*EXHAUSTED, SPOILT_CACHE))
            or crash.task.op_name in malformed.UNDEFINED
        )
        if whose[i] == "unexplained" and chance:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("world", choices=WORLDS)
    parser.add_argument("plan", help="file with the tasks")
    parser.add_argument("report", help="file to write")
    options = parser.parse_args()
    assert all(os.environ[name] == value for name, value in WORLDS[options.world].items())
    with open(options.plan) as file:
        tasks = [Task(*row) for row in json.load(file)]
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.fields[now]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=not console.is_terminal) as bar:
        shown = bar.add_task(options.world, total=len(tasks), now="")
        report = run(
            options.world,
            tasks,
            progress=lambda task: bar.update(shown, advance=1, now=f"{task.check} {task.op_name}"),
        )
    with open(options.report, "w") as file:
        json.dump(asdict(report), file)


if __name__ == "__main__":
    main()
