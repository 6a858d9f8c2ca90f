"""Compare two saved runs, and tell changes from noise.

Times of two runs are not compared, because the machine may have changed. In each run, a call with
fastops was timed in turn with the same call without; the ratios of these two times are compared.
"""

import math
from dataclasses import dataclass
from statistics import geometric_mean, median

from rich import box
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Change:
    """How many times faster a call is than its baseline, in the earlier and the later run.

    Attributes
    ----------
    name : str
    before, after : float
        The ratios: medians over rounds.
    factor : float
        `after` divided by `before`: above 1, the call has become faster.
    low, high : float or None
        The interval of `factor`, from the ends of the 95 % intervals of the two ratios. `None` if
        there are too few rounds.
    noise : float
        The largest factor by which a call differs from itself within a run.
    """

    name: str
    before: float
    after: float
    factor: float
    low: float | None
    high: float | None
    noise: float

    @property
    def verdict(self):
        if self.low is None:
            return "too few rounds"
        if self.low > 1 and self.factor > self.noise:
            return "faster"
        if self.high < 1 and self.factor < 1 / self.noise:
            return "slower"
        return "noise"


def changes(before, after):
    """Yield a `Change` for each call that is in both runs with the same baseline."""
    earlier = {(row.about["group"], row.label): row for row in before.rows()}
    for row in after.rows():
        old = earlier.get((row.about["group"], row.label))
        if old is None or row.pair is None or row.pair != old.pair:
            continue
        candidate, baseline = row.pair
        was, was_low, was_high = old.interval(baseline, candidate)
        now, now_low, now_high = row.interval(baseline, candidate)
        sure = None not in (was_low, now_low)
        nulls = [one.null(arm)[0] for one in (old, row) for arm in row.pair]
        yield Change(
            f"{row.about['group']}: {row.label}",
            was,
            now,
            now / was,
            now_low / was_high if sure else None,
            now_high / was_low if sure else None,
            max(math.exp(abs(math.log(null))) for null in nulls),
        )


def drift(before, after):
    """Return the factor by which calls without fastops take longer in the second run."""
    earlier = {(row.about["group"], row.label): row for row in before.rows()}
    ratios = [
        row.time(row.pair[1]) / old.time(row.pair[1])
        for row in after.rows()
        if row.pair
        and (old := earlier.get((row.about["group"], row.label)))
        and row.pair == old.pair
    ]
    return median(ratios) if ratios else None


def show(before, after, console):
    """Print the changes, the largest first.

    Raises
    ------
    ValueError
        If the runs have nothing in common.
    """
    differing = sorted(changes(before, after), key=lambda change: -abs(math.log(change.factor)))
    if not differing:
        raise ValueError("the runs have no call in common")
    title = "Times faster than the baseline, before and after"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(("call", "before", "after", "change", "95 %", "noise", "")):
        table.add_column(column, justify="right" if 0 < number < 6 else "left")
    styles = {"faster": "green", "slower": "red"}
    for change in differing:
        span = "" if change.low is None else f"{change.low:.2f} to {change.high:.2f}"
        cells = (f"{change.before:.2f}", f"{change.after:.2f}", f"{change.factor:.3f}", span)
        last = (f"{change.noise:.3f}", change.verdict)
        table.add_row(Text(change.name), *cells, *last, style=styles.get(change.verdict, "dim"))
    console.print(table)
    verdicts = [change.verdict for change in differing]
    counts = ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)
    )
    middle = geometric_mean(change.factor for change in differing)
    console.print(
        f"{len(differing)} calls: {counts}; geometric mean of the changes {middle:.3f}. "
        f"Calls without fastops take {drift(before, after):.2f} times as long as before. The "
        "machine causes this, and the changes do not include it. Among many calls, a few differ "
        "by chance. A change is real if a second pair of runs shows it, too.",
        highlight=False,
    )
