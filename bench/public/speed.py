"""docs/speed.md: each call with and without `fastops.install`, slowest first."""

from dataclasses import dataclass
from statistics import median

SLOW, LOST = 5, 0.97

TEXT = """\
# How fast each public call is

Written by `make speed`, from the recipes in `bench/public/`: a plain call of each public function
and method that eager programs make, on small tensors, unchanged, without `fastops.install` and
with it. How is measured says [bench/README.md](../bench/README.md): the two in turn, medians over
rounds. The machine had other work to do meanwhile: ratios carry over, microseconds do not.

{summary}

*Kernels* is the share of the time under `fastops.install` that the ops' kernels take, as
`fastops.profile()` sees it; what it does not see leaves that empty. For a call that is less than
{slow} times faster a reason may stand beside it.

| call | stock, us | installed, us | times faster | kernels, us | reason |
| --- | ---: | ---: | ---: | ---: | --- |
{rows}"""


@dataclass(frozen=True)
class Row:
    """A call, its medians in nanoseconds, and the median of the ratios of its rounds."""

    call: str
    stock: float
    installed: float
    ratio: float
    kernel: float
    reason: str
    differs: bool

    @classmethod
    def of(cls, measured):
        stock, installed = measured.samples["stock"], measured.samples["installed"]
        ratios = [one / other for one, other in zip(stock, installed, strict=True)]
        recipe = measured.recipe
        return cls(
            recipe.call,
            median(stock),
            median(installed),
            median(ratios),
            measured.kernel,
            recipe.reason,
            measured.differs,
        )

    def __str__(self):
        notes = ["**its results differ**"] * self.differs
        notes += [self.reason] * (self.ratio < SLOW and bool(self.reason))
        call = self.call.replace("|", "\\|")
        kernel = f"{self.kernel / 1e3:,.2f}" if self.kernel else ""
        return (
            f"| `{call}` | {self.stock / 1e3:,.2f} | {self.installed / 1e3:,.2f} "
            f"| {self.ratio:.2f} | {kernel} | {'; '.join(notes)} |\n"
        )


def render(rows):
    """Return the page."""
    rows = sorted(rows, key=lambda row: row.ratio)
    ratios = [row.ratio for row in rows]
    slow = sum(ratio < SLOW for ratio in ratios)
    lost = sum(ratio < LOST for ratio in ratios)
    differ = sum(row.differs for row in rows)
    summary = (
        f"{len(rows)} calls: {median(ratios):.1f} times faster in the median; "
        f"{slow} ({slow / len(rows):.1%}) less than {SLOW} times; {lost} below {LOST} of stock"
        + (f"; {differ} with results that differ" if differ else "")
        + "."
    )
    return TEXT.format(summary=summary, slow=SLOW, rows="".join(map(str, rows)))
