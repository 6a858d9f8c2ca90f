"""Run the parity suite: compare all ops with TensorFlow, and search for crashes.

It writes docs/coverage.md and docs/crashes.md, and prints the figures.
"""

import argparse
import dataclasses
import json
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import tensorflow as tf
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from parity import cases, coverage, recipes, worker
from parity.campaign import WORLDS, Task
from parity.run import Journal, campaign
from parity.run import run as perform

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
JOURNALS = ROOT / "build" / "parity"


@dataclasses.dataclass(frozen=True)
class Depth:
    """How much is compared.

    Attributes
    ----------
    thorough : bool
        Whether to compare each combination of dtypes, large shapes, and each derivative, or only
        some of them.
    calls, calls_of_others : int
        How many malformed calls to make of each op that may be direct, and of each other op.
    examples : int
        How many examples hypothesis draws for each op.
    """

    thorough: bool
    calls: int
    calls_of_others: int
    examples: int


QUICK = Depth(thorough=False, calls=30, calls_of_others=0, examples=6)
FULL = Depth(thorough=True, calls=2000, calls_of_others=2000, examples=200)

CHECKS = ("gradients", "graphs", "malformed", "properties", "values")


def tasks(world, depth, op_names, seed):
    """Return the tasks in a world, op by op. Malformed calls come last: they may corrupt memory."""
    suffix = worker.THOROUGH if depth.thorough else ""
    called = [name for name in op_names if name in recipes.RECIPES]
    planned = []
    for name in called:
        planned.append(Task("values" + suffix, name))
        if world == "onednn":
            planned.append(Task("graphs" + suffix, name))
            planned.append(Task("gradients" + suffix, name))
            planned.append(Task("properties", name, seed, depth.examples))
            planned.append(Task("malformed", name, 0, depth.calls))
    if world == "onednn" and depth.calls_of_others:
        others = [name for name in cases.other_op_names() if name in op_names]
        planned += [Task("malformed", name, 0, depth.calls_of_others) for name in others]
    return planned


def run(world, planned, journal):
    """Perform the tasks that are not in the journal, and show the progress; return the `Report`."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.fields[now]}"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console, transient=not console.is_terminal)
    with bar, campaign(world) as children:
        left = sum(task not in journal for task in planned)
        shown = bar.add_task(world, total=left, now="")
        return perform(
            children,
            planned,
            journal,
            lambda task: bar.update(shown, advance=1, now=f"{task.check} {task.op_name}"),
        )


def problems(reports):
    """Return all problems of fastops in reports."""
    return [
        problem
        for report in reports
        for problem in (
            *(problem for finding in report.findings for problem in finding["problems"]),
            *report.problems,
            *(
                f"{death.op_name} ({death.check} {death.number}): {death.end}: {death.call}"
                for death in report.deaths
                if death.ours
            ),
        )
    ]


def figures(reports):
    """Return rows of a text and a number that say what was compared."""
    values = [f for report in reports for f in report.findings if f["check"] == "values"]
    searches = [
        (check, sums)
        for report in reports
        for check, by_op in report.searches.items()
        for sums in by_op.values()
    ]
    deaths = [death for report in reports for death in report.deaths]
    return [
        ("ops compared", len({finding["op_name"] for finding in values if finding["paths"]})),
        (
            "ops and dtypes",
            len({(f["op_name"], *item) for f in values for item in f["types"].items()}),
        ),
        ("calls compared", sum(f["cases"] for report in reports for f in report.findings)),
        ("examples drawn by hypothesis", total(searches, "properties", "tried")),
        ("malformed calls tried", total(searches, "malformed", "tried")),
        ("of which raise", total(searches, "malformed", "raised")),
        ("differences from TensorFlow", len(problems(reports))),
        ("crashes that TensorFlow does not have", sum(death.ours for death in deaths)),
        ("crashes of TensorFlow itself", sum(death.whose == "tensorflow" for death in deaths)),
    ]


def total(searches, check, key):
    return sum(sums[key] for name, sums in searches if name == check)


CRASHES = """\
# Where TensorFlow itself ends the process

These malformed calls crash or abort `tf.raw_ops` of TensorFlow {version}, or run for more than ten
seconds, in a fresh process without fastops. There are {count:,} calls, of {ops} ops. fastops does
not protect against them: TensorFlow makes a call that fastops has not seen before.

`make parity` finds these calls and writes this page. Which calls a run finds depends a little on
what is in memory, so no test checks the page. A row lists the mistakes that end in the same way.

| op | mistakes | end | last message |
| --- | --- | --- | --- |
"""

MOST_MISTAKES = 4
"""How many mistakes a row names. For all others, the row has only their number."""


def crashes(reports):
    """Return the text of docs/crashes.md."""
    deaths = [
        death
        for report in reports
        for death in report.deaths
        if death.whose == "tensorflow" and death.check == "malformed"
    ]
    rows = defaultdict(list)
    for death in sorted(deaths, key=lambda death: (death.call.count(";"), death.number)):
        words = last_words(death)
        rows[death.op_name, death.end, re.sub(r"\d+", "", words)].append((death.call, words))
    table = ""
    for (op_name, end, _), calls in sorted(rows.items()):
        mistakes = "<br>".join(call.replace("|", "\\|") for call, _ in calls[:MOST_MISTAKES])
        if len(calls) > MOST_MISTAKES:
            mistakes += f"<br>and {len(calls) - MOST_MISTAKES} more"
        table += f"| {op_name} | {mistakes} | {end} | {calls[0][1]} |\n"
    ops = len({op_name for op_name, *_ in rows})
    return CRASHES.format(version=tf.version.VERSION, count=len(deaths), ops=ops) + table


def last_words(death):
    """Return TensorFlow's message about the check that failed, without time and source position."""
    _, check, words = death.message.partition("Check failed:")
    return f"`{check}{words}`".replace("|", "\\|").replace("\n", " ") if check else ""


def main():
    parser = argparse.ArgumentParser(prog="make parity", description=__doc__)
    parser.add_argument("ops", nargs="*", help="names of ops; default: the whole registry")
    parser.add_argument("--quick", action="store_true", help="check only what the tests check")
    parser.add_argument("--world", choices=WORLDS, action="append", help="only this world")
    parser.add_argument("--check", choices=CHECKS, action="append", help="only this check")
    parser.add_argument("--calls", type=int, help="malformed calls to make of each op")
    parser.add_argument("--examples", type=int, help="examples that hypothesis draws of each op")
    parser.add_argument("--seed", type=int, default=0, help="the seed of hypothesis")
    parser.add_argument(
        "--resume", action="store_true", help="continue a stopped run with the same options"
    )
    parser.add_argument(
        "--forever", action="store_true", help="draw examples with new seeds until stopped"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    options = parser.parse_args()
    console = Console()
    recipes.load()
    depth = QUICK if options.quick else FULL
    given = {"calls": options.calls, "examples": options.examples}
    depth = dataclasses.replace(
        depth, **{name: value for name, value in given.items() if value is not None}
    )
    known = (*cases.op_names(), *cases.other_op_names())
    if unknown := set(options.ops) - set(known):
        parser.error(f"these ops do not run here: {', '.join(sorted(unknown))}")
    if options.forever:
        search_forever(console, options, depth)
    begin = time.perf_counter()
    JOURNALS.mkdir(parents=True, exist_ok=True)
    checks = options.check or CHECKS
    reports = []
    for world in options.world or WORLDS:
        planned = tasks(world, depth, options.ops or known, options.seed)
        planned = [task for task in planned if task.check.removesuffix(worker.THOROUGH) in checks]
        if planned:
            journal = Journal(JOURNALS / f"{world}.jsonl", options.resume)
            reports.append(run(world, planned, journal))
    for problem in problems(reports):
        console.print(problem, markup=False, style="red")
    table = Table("parity with TensorFlow", "", title=f"seed {options.seed}")
    for text, count in figures(reports):
        table.add_row(text, f"{count:,}")
    table.add_row("minutes", f"{(time.perf_counter() - begin) / 60:.1f}")
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps(dict(figures(reports))))
    if not options.ops and not options.world:
        if not options.check:
            (DOCS / "coverage.md").write_text(coverage.render(reports))
        if "malformed" in checks and not options.quick:
            (DOCS / "crashes.md").write_text(crashes(reports))
    sys.exit(bool(problems(reports)))


def search_forever(console, options, depth):
    """Draw examples with one seed after another, and print differences, until interrupted."""
    seed = options.seed or int(time.time())
    op_names = [name for name in options.ops or cases.op_names() if name in recipes.RECIPES]
    while True:
        console.print(f"seed {seed}: make parity ARGS='--forever --seed {seed}'")
        planned = [Task("properties", name, seed, depth.examples) for name in op_names]
        report = run("onednn", planned, Journal())
        for problem in problems([report]):
            console.print(problem, markup=False, style="red")
        seed += 1


if __name__ == "__main__":
    main()
