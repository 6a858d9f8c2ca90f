"""Write docs/speed.md: each call with and without `fastops.install`, smallest gain first."""

from dataclasses import dataclass
from statistics import median

SLOW, LOST = 5, 0.97
MOST = 0.6
"""If kernels take more than this share of a call, they are given as the reason."""

SHOWN = 2
"""The maximum number of named ops that were not direct."""

TEXT = """\
# How fast each public call is

`make figures` writes this page from the recipes in `bench/fastops_bench/public/`. They have a plain
call on small tensors of each public function and method that eager programs call. The page compares
the unchanged calls without `fastops.install` and with it, timed in turn, by medians over rounds.
[bench/README.md](../bench/README.md) describes the method. The machine may have run other work:
ratios carry over to other machines, absolute times do not.

- {with_ops} that run ops: {with_ops_summary}
- {without_ops} that run no op: {without_ops_summary}
{differ}
The columns have these meanings:

- *ops* is the number of ops that TensorFlow runs for a call.
- *kernels* is the time of their kernels under `fastops.install`, as `fastops.profile()` measures
  it. It is empty if the profile does not see the kernels.
- *why* tells for a call that is less than {slow} times faster what limits it, as far as that is
  known: its kernels, what they do, or ops that do not take the direct path.
  [design.md](design.md) and `fastops.REASONS` explain the reasons.

## Calls that run ops

{with_ops_table}
## Calls that run no op

{without_ops_table}"""

HEAD = """\
| call | ops | stock, us | installed, us | times faster | kernels, us | why |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
"""


@dataclass(frozen=True)
class Row:
    """A call, its median times in nanoseconds, and the median of the ratios of its rounds."""

    title: str
    ops: int
    stock: float
    installed: float
    ratio: float
    kernel: float
    detours: tuple[str, ...]
    reason: str
    differs: bool

    @classmethod
    def of(cls, record):
        """Return the row for a record of the suite."""
        stock, installed = record["samples"]["stock"], record["samples"]["installed"]
        ratios = [one / other for one, other in zip(stock, installed, strict=True)]
        return cls(
            record["label"],
            record["ops"],
            median(stock),
            median(installed),
            median(ratios),
            record["kernel"],
            tuple(record["detours"]),
            record["reason"],
            record["differs"],
        )

    def __str__(self):
        times = (f"{nanoseconds / 1e3:,.2f}" for nanoseconds in (self.stock, self.installed))
        kernel = f"{self.kernel / 1e3:,.2f}" if self.kernel else ""
        cells = [f"`{self.title}`", str(self.ops), *times, f"{self.ratio:.2f}", kernel]
        cells.append("; ".join(self._notes()))
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    def _notes(self):
        if self.differs:
            yield "**its results differ**"
        if self.ratio < SLOW:
            if self.kernel > MOST * self.installed:
                yield "its kernels take most of it"
            if self.reason:
                yield self.reason
            yield from self.detours[:SHOWN]
            if len(self.detours) > SHOWN:
                yield f"and {len(self.detours) - SHOWN} more"


def render(rows):
    """Return the page."""
    rows = sorted(rows, key=lambda row: row.ratio)
    with_ops = [row for row in rows if row.ops]
    without_ops = [row for row in rows if not row.ops]
    differ = sum(row.differs for row in rows)
    return TEXT.format(
        with_ops=len(with_ops),
        with_ops_summary=_summary(with_ops),
        with_ops_table=_table(with_ops),
        without_ops=len(without_ops),
        without_ops_summary=_summary(without_ops),
        without_ops_table=_table(without_ops),
        differ=f"- {differ} with results that differ\n" if differ else "",
        slow=SLOW,
    )


def _summary(rows):
    if not rows:
        return "none was measured."
    ratios = [row.ratio for row in rows]
    slow, lost = (sum(ratio < bound for ratio in ratios) for bound in (SLOW, LOST))
    return (
        f"{median(ratios):.1f} times faster in the median, {slow} ({slow / len(rows):.0%}) "
        f"less than {SLOW} times, {lost} below {LOST} of stock."
    )


def _table(rows):
    return HEAD + "".join(map(str, rows)) if rows else ""
