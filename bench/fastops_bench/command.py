"""The command ``python -m fastops bench``: its options, measurements and output."""

import argparse
import difflib
import sys
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fastops_bench import compare, peers, report
from fastops_bench.common import PEERS
from fastops_bench.processes import Process
from fastops_bench.runs import MAIN, PLAIN, Run
from fastops_bench.suites import SUITES

INTERRUPTED = 130
"""The exit status that shells expect after an interrupt."""

EPILOG = """\
examples:
  python -m fastops bench --quick --html report.html    everything, in under three minutes
  python -m fastops bench ladder -k MatMul -k Conv2D    some ops of a suite
  python -m fastops bench --list sizes                  the cases of a suite
  python -m fastops bench --compare before.json after.json

suites:
"""


def parser():
    found = argparse.ArgumentParser(
        prog="python -m fastops bench",
        description="Measure fastops beside TensorFlow and other libraries, on this machine.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG + "".join(f"  {name:<14} {s.title}\n" for name, s in SUITES.items()),
    )
    found.add_argument("suites", nargs="*", metavar="suite", help="the suites to run; default: all")
    found.add_argument(
        *("-k", "--filter"),
        action="append",
        default=[],
        metavar="TEXT",
        help="run only cases whose names contain TEXT, such as an op; may be repeated",
    )
    found.add_argument(
        "--tag", choices=["short", "long", "all"], help="default: all; with --quick: short"
    )
    effort = found.add_mutually_exclusive_group()
    effort.add_argument(
        "--quick", action="store_true", help="run the short cases, with fewer and shorter rounds"
    )
    effort.add_argument("--once", action="store_true", help="run everything once, unmeasured")
    found.add_argument(
        "--peers",
        nargs="?",
        type=Path,
        const=peers.FOLDER,
        metavar="FOLDER",
        help=f"also measure PyTorch, JAX, ONNX Runtime and TensorFlow without fastops, each in its "
        f"environment in FOLDER ({peers.FOLDER}); `python -m fastops_bench.peers` makes them",
    )
    found.add_argument("--html", type=Path, metavar="FILE", help="write a report as one file")
    found.add_argument("--json", type=Path, metavar="FILE", help="save the run")
    found.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("BEFORE", "AFTER"),
        help="measure nothing: compare two saved runs",
    )
    found.add_argument(
        "--show",
        type=Path,
        metavar="RUN",
        help="measure nothing: show a saved run; with --html, write its report",
    )
    found.add_argument("--all", action="store_true", help="print all tables instead of a summary")
    found.add_argument("--list", action="store_true", help="measure nothing: list suites and cases")
    return found


class StoppedError(Exception):
    """A run cannot continue. The message is for the user, the status for the shell."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def main(arguments=None):
    """Run the command; return its exit status."""
    options = parser()
    args = options.parse_args(arguments)
    console, errors = Console(), Console(stderr=True)
    if not console.is_terminal:
        console = Console(width=max(console.width, report.WIDE))
    unknown = [name for name in args.suites if name not in SUITES]
    if unknown:
        near = difflib.get_close_matches(unknown[0], SUITES, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        options.error(f"there is no suite {unknown[0]}{hint}; there are {', '.join(SUITES)}")
    for file in (args.html, args.json):
        if file is not None and not file.absolute().parent.is_dir():
            options.error(f"there is no folder {file.absolute().parent}")
    args.suites = args.suites or list(SUITES)
    args.tag = args.tag or ("short" if args.quick else "all")
    try:
        return _run(args, console, errors)
    except (StoppedError, ValueError) as error:
        errors.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return getattr(error, "status", 2)
    except KeyboardInterrupt:
        errors.print("\ninterrupted: nothing is saved", highlight=False, soft_wrap=True)
        return INTERRUPTED


def _run(args, console, errors):
    if args.compare:
        compare.show(*map(Run.load, args.compare), console)
        return 0
    if args.list:
        _list(args, console)
        return 0
    run = Run.load(args.show) if args.show else measure(args, errors)
    if args.json:
        run.save(args.json)
    report.show(run, console, detailed=args.all)
    if args.html:
        from fastops_bench import page

        args.html.write_text(page.render(run))
        console.print(f"wrote {args.html}", highlight=False, soft_wrap=True)
    lost = report.lost(run) if not args.show and report.has_all_rows(run) else []
    for sentence in lost:
        errors.print(
            f"[bold red]error:[/] {escape(sentence)}; PROMISED in fastops_bench/report.py lists "
            "the names",
            highlight=False,
            soft_wrap=True,
        )
    failures = [failure for process in run.processes.values() for failure in process["failed"]]
    for failure in failures:
        errors.print(
            f"[bold red]failed:[/] {escape(failure['name'])}", highlight=False, soft_wrap=True
        )
        errors.print(
            escape("\n".join(failure["why"].splitlines()[-3:])), highlight=False, soft_wrap=True
        )
    return 1 if failures or lost else 0


def plan(args):
    """Return the processes that the options require."""
    effort = "quick" if args.quick else "once" if args.once else "full"
    settings = {"wanted": args.filter, "tag": args.tag, "effort": effort}
    beside = {} if args.peers is None else {PEERS: str(args.peers.absolute())}
    processes = [Process(MAIN, args.suites, environment=beside, **settings)]
    plain = [name for name in args.suites if SUITES[name].plain]
    if plain and effort != "quick":
        without = {"TF_ENABLE_ONEDNN_OPTS": "0"}
        processes.append(Process(PLAIN, plain, marked="onednn", environment=without, **settings))
    if args.peers is not None:
        if not peers.found(args.peers):
            message = f"no peer is in {args.peers}: `python -m fastops_bench.peers {args.peers}`"
            raise StoppedError(f"{message} makes their environments", 2)
        processes += peers.processes(args.peers, args.suites, **settings)
    return processes


def measure(args, console):
    """Run the processes, with a progress bar; return the `Run`."""
    processes = plan(args)
    begin = time.time()
    run = Run(method={"effort": processes[0].effort, "tag": args.tag, "filter": args.filter})
    columns = [
        TextColumn("{task.description}", style="bold"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}", style="dim"),
    ]
    with Progress(*columns, console=console) as progress:
        for process in processes:
            task = progress.add_task(process.name, total=None, now="collecting")

            def tell(task=task, **what):
                progress.update(task, **what)

            run.processes[process.name] = _follow(process, run, tell)
    run.method["seconds"] = time.time() - begin
    run.method["began"] = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(begin))
    return run


def _follow(process, run, tell):
    content = {"versions": {}, "records": [], "failed": [], "skipped": []}
    done = total = 0
    for event in process.start():
        kind = event["event"]
        if kind == "process":
            content["versions"] = event["versions"]
            run.machine = run.machine or event["machine"]
        elif kind == "names" and process.name == MAIN:
            raise StoppedError(_nothing(process, event["names"]), 2)
        elif kind == "collected":
            total = len(event["tests"])
            tell(total=total)
        elif kind == "begin":
            tell(now=event["name"][:60])
        elif kind in ("done", "failed", "skipped"):
            done += 1
            tell(completed=min(done, total))
            if kind == "done":
                content["records"] += event["records"]
            else:
                content[kind].append({"name": event["name"], "why": event["why"]})
        elif kind == "end":
            _check(process, event, content)
    tell(completed=total, total=total, now="")
    return content


def _check(process, event, content):
    """Raise an error if a process crashed; if tests have failed, add the crash to these instead.

    After a complete run, pytest's status is 0, 1 or 5.
    """
    if event["status"] not in (0, 1, 5) and not content["failed"]:
        raise StoppedError(
            f"the process {process.name} ended with status {event['status']}:\n{event['output']}"
        )
    if event["status"] < 0:
        content["failed"].append({"name": process.name, "why": event["output"]})


def _nothing(process, names):
    """Return the message that nothing matches the filter, with some of the existing names."""
    asked = ", ".join(process.wanted) or f"the tag {process.tag}"
    lines = [f"nothing has {asked} in its name; some of the names of each suite:"]
    suites = {}
    for name in names:
        suites.setdefault(name.partition(": ")[0], []).append(name.partition(": ")[2])
    for suite, own in suites.items():
        more = f", and {len(own) - 6} more" if len(own) > 6 else ""
        lines.append(f"  {suite}: {', '.join(own[:6])}{more}")
    return "\n".join([*lines, "for all names: python -m fastops bench --list"])


def _list(args, console):
    process = plan(args)[0]
    for event in process.start(only_list=True):
        if event["event"] == "names":
            raise StoppedError(_nothing(process, event["names"]), 2)
        if event["event"] == "skipped":
            console.print(f"{event['name']}: skipped, {event['why']}", style="dim", markup=False)
        if event["event"] == "collected":
            for test in event["tests"]:
                console.print(
                    f"{test['tag']:<6} {test['name']}",
                    markup=False,
                    highlight=False,
                    soft_wrap=True,
                )
            counts = Counter(test["tag"] for test in event["tests"])
            tags = ", ".join(f"{count} {tag}" for tag, count in counts.items())
            console.print(f"{len(event['tests'])} in all: {tags}", style="dim")
        if event["event"] == "end":
            _check(process, event, {"failed": []})


if __name__ == "__main__":
    sys.exit(main())
