"""Draws what unchanged programs gain from `fastops.install`, from the results of a run."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import report

HERE = Path(__file__).resolve().parent
COLORS = {"programs": "#e37400", "calls": "#1a73e8"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where JSON is")
    parser.add_argument("--picture", type=Path, default=HERE.parent / "docs" / "install.svg")
    args = parser.parse_args()
    groups = report.load(args.results, "main")
    bars = [
        (row.ratio("stock", "installed"), row.label, COLORS[group])
        for group in COLORS
        for row in report.rows(groups, group)
    ]
    if not bars:
        parser.error(f"{args.results} has no results of unchanged programs: run `make bench`")
    draw(sorted(bars), args.picture)


def draw(bars, picture):
    """Draw one bar for each ratio, label and color, and write the picture."""
    # The same picture for the same figures, with text as text.
    plt.rcParams |= {"svg.hashsalt": "fastops", "svg.fonttype": "none"}
    ratios, labels, colors = zip(*bars, strict=True)
    figure, axes = plt.subplots(figsize=(9, 1 + 0.17 * len(bars)), layout="constrained")
    axes.barh(labels, ratios, color=colors, height=0.7)
    axes.set_xscale("log")
    axes.set_xlim(left=min(0.8, ratios[0]))
    axes.axvline(1, color="black", linewidth=0.8)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="y", labelsize=7, length=0)
    axes.margins(y=0.005)
    for place, ratio in enumerate(ratios):
        axes.text(ratio, place, f" {ratio:.1f}", va="center", fontsize=6)
    axes.set_xlabel("times faster than TensorFlow, after fastops.install() (logarithmic)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, metadata={"Date": None})
    print(f"wrote {picture}")


if __name__ == "__main__":
    main()
