"""Print comparisons at the end of a run."""

from rich.console import Console
from rich.table import Table

COLUMNS = ("benchmark", "ns", "spread", "baseline", "times faster", "null", "paths of a call")
TAIL = ("benchmark", "arm", "p50", "p99", "p99.9", "worst")
WIDTH = 160
"""The minimum width. Lines that the terminal wraps are readable, but truncated lines are not."""
UNMEASURED = (
    "Some benchmarks were run once and not measured: pytest-benchmark is disabled, as it is "
    "under pytest-xdist, or pytest-codspeed measures."
)


def show(comparisons, terminal):
    """Write a line for each comparison, and the tails of the distributions.

    Parameters
    ----------
    comparisons : list of dict
        Comparisons as JSON types.
    terminal : object
        pytest's reporter.
    """
    measured = [comparison for comparison in comparisons if comparison["samples"]]
    if measured:
        _print(COLUMNS, map(_line, measured), terminal)
    tails = [(comparison, arm) for comparison in measured for arm in comparison["tail"]]
    if tails:
        terminal.write_line("Nanoseconds of single calls:")
        lines = [
            [comparison["name"], arm, *(f"{comparison['tail'][arm][at]:,}" for at in TAIL[2:])]
            for comparison, arm in tails
        ]
        _print(TAIL, lines, terminal)
    if len(measured) < len(comparisons):
        terminal.write_line(UNMEASURED)


def _print(columns, lines, terminal):
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in (1, 2, 4, 5) else "left")
    for line in lines:
        table.add_row(*line)
    console = Console(width=max(terminal._tw.fullwidth, WIDTH), color_system=None)
    with console.capture() as capture:
        console.print(table)
    terminal.write(capture.get())


def _line(comparison):
    spread = "" if comparison["spread"] is None else f"{comparison['spread']:.1%}"
    paths = ", ".join(f"{count:g} {path}" for path, count in comparison["paths"].items())
    return [
        comparison["name"],
        f"{comparison['median']:,.0f}",
        spread,
        comparison["baseline"],
        _ratio(comparison["ratio"], comparison["interval"]),
        _ratio(comparison["null"], comparison["null_interval"]),
        paths,
    ]


def _ratio(ratio, interval):
    low, high = interval
    return f"{ratio:.2f}" if low is None else f"{ratio:.2f} ({low:.2f} to {high:.2f})"
