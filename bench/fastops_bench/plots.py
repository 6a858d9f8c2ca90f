"""Pictures of a run, as SVG: ladders as bars, sweeps as lines, single calls as violins.

Text and axes have the colour of the surrounding text, light or dark. Each arm has its own colour.
"""

import io
import re
from statistics import geometric_mean

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

COLORS = {
    "fastops": "#0c8599",
    "raw_ops": "#e8590c",
    "torch": "#c2255c",
    "numpy": "#5f8f2f",
    "jax": "#7048e8",
    "kernel": "#868e96",
    "tf": "#b08900",
    "fast path": "#d9a066",
}
"""Colours by arm, the same in each picture, with enough contrast on white and on black."""

LIKE = {
    "installed": "fastops",
    "replayed": "fastops",
    "auto": "fastops",
    "plan": "fastops",
    "alias": "fastops",
    "stock": "raw_ops",
    "tensorflow": "raw_ops",
    "signature": "raw_ops",
    "tf_keras": "raw_ops",
    "Keras": "raw_ops",
    "op": "raw_ops",
    "tf.function": "tf",
    "raw_ops, alone": "fast path",
    "tf, alone": "fast path",
    "jax.jit": "jax",
    "onnxruntime": "numpy",
}
"""Arms that share the colour of another arm. If both are drawn, the lines have different styles."""

INK = "#123456"
"""A placeholder for the colour of text and axes, which the page sets."""

STYLE = {
    "svg.hashsalt": "fastops",  # equal figures give equal pictures
    "svg.fonttype": "none",  # write text as text, not as paths
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.grid.axis": "x",
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "grid.color": INK,
    "grid.alpha": 0.15,
}


def color(arm):
    return COLORS.get(LIKE.get(arm, arm), "#868e96")


def logarithmic(axis, low, high):
    """Make an axis logarithmic, with enough room for the labels of ticks."""
    few = high / low < 30
    subs = (1, 2, 5) if few else (1,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_major_formatter(_thousands)
    axis.set_minor_formatter(NullFormatter())


def drawn(draw):
    """Turn a function that fills a figure into a function that returns it as SVG."""

    def make(*args, **kwargs):
        with mpl.rc_context(STYLE):
            figure = Figure(layout="constrained")
            draw(figure, *args, **kwargs)
            text = io.StringIO()
            figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        svg = text.getvalue()
        return svg[svg.index("<svg") :]

    return make


def inline(svg, name):
    """Return a picture for a page, with colours of the page and unique ids."""
    svg = svg.replace(INK, "currentColor")
    svg = re.sub(r'\b(id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r'(<svg [^>]*?)width="[\d.]+pt" height="[\d.]+pt"', r"\1", svg, count=1)


def width(svg):
    """Return the width of a picture in pixels for which its text has the page's text size."""
    return round(float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1]) * 4 / 3)


@drawn
def layers(figure, rows):
    """Draw a bar for each layer: geometric means over the ops that have all layers."""
    wanted = ["floor", "numpy", "kernel", "fastops", "fast path", "raw_ops", "tf"]
    wanted += ["raw_ops, alone", "torch", "jax", "jax.jit"]
    arms = [arm for arm in wanted if any(row.has(arm) for row in rows)]
    shared = [row for row in rows if row.has(*arms)]
    times = [geometric_mean(row.time(arm) for row in shared) for arm in arms] if shared else []
    figure.set_size_inches(7.5, 0.7 + 0.38 * len(arms))
    axes = figure.add_subplot()
    if times:
        bars = axes.barh(arms, times, color=[color(arm) for arm in arms], height=0.7)
        axes.bar_label(bars, [f" {time:,.0f}" for time in times], padding=2)
        axes.set_xscale("log")
        axes.set_xlim(left=min(times) / 1.5, right=max(times) * 2)
        logarithmic(axes.xaxis, min(times), max(times))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"ns per call, geometric mean of {len(shared)} ops (logarithmic)")


@drawn
def ladder(figure, rows):
    """Draw three bars for each op: fastops, TensorFlow, and a peer or NumPy."""
    last = "torch" if any(row.has("torch") for row in rows) else "numpy"
    arms = ["fastops", "raw_ops", last]
    _grouped(figure, [(row.label, row) for row in rows], arms, "ns per call (logarithmic)", 1)


@drawn
def bars(figure, rows):
    """Draw the times of each call with fastops, without, and with PyTorch."""
    candidate, baseline = rows[0].pair
    arms = [candidate, baseline]
    arms += ["torch"] if any(row.has("torch") for row in rows) else []
    _grouped(figure, [(row.label, row) for row in rows], arms, "us per call (logarithmic)", 1e3)


def _grouped(figure, rows, arms, label, divisor):
    height = 0.8 / len(arms)
    figure.set_size_inches(8.5, 1.1 + len(rows) * 0.17 * len(arms))
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    drawn_times = []
    for number, arm in enumerate(arms):
        times = [row.time(arm) / divisor if row.has(arm) else np.nan for _, row in rows]
        place = places + (number - (len(arms) - 1) / 2) * height
        axes.barh(place, times, height=height, color=color(arm), label=arm)
        drawn_times += times
    axes.set_yticks(places, [_short(name) for name, _ in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("log")
    low, high = np.nanmin(drawn_times) / 2, np.nanmax(drawn_times) * 1.2
    axes.set_xlim(low, high)
    logarithmic(axes.xaxis, low, high)
    axes.set_xlabel(label)
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper left", ncols=len(arms))


@drawn
def gains(figure, named, groups=()):
    """Draw a bar for each call: how many times faster it is, smallest gain first."""
    ratios, labels, colors = zip(*named, strict=True)
    figure.set_size_inches(8.5, 1 + 0.2 * len(named))
    axes = figure.add_subplot()
    axes.barh([_short(label) for label in labels], ratios, color=colors, height=0.7)
    axes.set_xscale("log")
    axes.set_xlim(left=min(0.8, min(ratios)), right=max(ratios) * 1.5)
    axes.axvline(1, color=INK, linewidth=0.8)
    logarithmic(axes.xaxis, min(ratios), max(ratios))
    axes.tick_params(axis="y", labelsize=9, length=0)
    axes.margins(y=0.005)
    for place, ratio in enumerate(ratios):
        axes.text(ratio, place, f" {ratio:.1f}", va="center", fontsize=9)
    axes.set_xlabel("times faster than TensorFlow, after fastops.install() (logarithmic)")


@drawn
def glance(figure, unchanged, functions, programs):
    """Draw the gains of groups of calls and the times of programs in one picture.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    unchanged, functions : dict of str to float
        How many times faster than TensorFlow groups of calls are (geometric means): of unchanged
        code, and of functions of fastops.
    programs : dict of str to dict of str to dict of str to float
        By program, by kind of time, and by arm, the nanoseconds of a piece of its work. Arms are
        ``"stock"``, ``"installed"``, and ``"torch"`` if that was measured.
    """
    figure.set_size_inches(8.6, 5)
    figure.get_layout_engine().set(wspace=0.06)
    bars, lines = figure.subplots(1, 2, width_ratios=[1, 1.2])
    _mean_bars(bars, unchanged, functions)
    _program_lines(lines, programs)


def _mean_bars(axes, unchanged, functions):
    place, ticks = 0, {}
    parts = (
        ("code as it is", unchanged, color("installed"), 1),
        ("functions of fastops' own", functions, color("installed"), 0.5),
    )
    for title, ratios, paint, alpha in parts:
        axes.text(1, place + 0.05, title, va="center", fontsize=10, style="italic", alpha=0.75)
        for name, ratio in ratios.items():
            place += 1
            ticks[place] = name
            axes.barh(place, ratio, color=paint, alpha=alpha, height=0.7)
            axes.text(ratio * 1.1, place, f"{ratio:.0f}", va="center", fontweight="bold")
        place += 1.15
    axes.set_xscale("log")
    axes.set_xlim(1, 2.2 * max([*unchanged.values(), *functions.values()]))
    axes.set_ylim(place - 0.5, -0.5)
    axes.xaxis.set_visible(False)
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.tick_params(axis="y", length=0, labelsize=10)
    _heading(axes, "Times faster than TensorFlow", "geometric mean of each group (logarithmic)")


def _program_lines(axes, programs):
    """Draw a line for each time of a program, from its fastest arm to its slowest."""
    arms = {"installed": "fastops", "torch": "PyTorch", "stock": "TensorFlow"}
    place, ticks = 0.0, {}
    for program, told in programs.items():
        axes.text(
            *(0, place),
            program,
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=10.5,
            fontweight="bold",
        )
        for text, times in told.items():
            place += 1
            ticks[place] = text
            ends = _ends(times.values())
            axes.plot(ends, [place, place], color=INK, alpha=0.25, linewidth=2, zorder=1)
            for arm in filter(times.get, arms):
                axes.scatter(times[arm], place, s=64, color=color(arm), zorder=2)
                _write_time(axes, times[arm], place, arm, fastest=times[arm] == ends[0])
        place += 1.1
    every = [time for told in programs.values() for each in told.values() for time in each.values()]
    axes.set_xscale("log")
    axes.set_xlim(min(every) / 1.8, max(every) * 1.8)
    axes.set_ylim(place - 0.4, -0.5)
    axes.xaxis.set_visible(False)
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.tick_params(axis="y", length=0, labelsize=10)
    for arm, name in arms.items():
        axes.scatter([], [], s=64, color=color(arm), label=name)
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(-0.4, 0.01),
        ncols=3,
        handletextpad=0,
        columnspacing=1,
        fontsize=10,
    )
    _heading(axes, "Whole programs", "us for a step or a request (logarithmic)")


def _write_time(axes, time, place, arm, fastest):
    """Write the time of an arm; PyTorch's below the line if it is close to that of fastops."""
    axes.annotate(
        f"{time / 1e3:,.0f}",
        (time, place),
        textcoords="offset points",
        xytext=(0, -7 if arm == "torch" else 6),
        ha="center",
        va="top" if arm == "torch" else "bottom",
        fontsize=9,
        fontweight="bold" if fastest else "normal",
        color=color(arm),
    )


def _heading(axes, title, subtitle):
    axes.set_title(f"{title}\n", fontsize=13, fontweight="bold")
    axes.text(0, 1.02, subtitle, transform=axes.transAxes, fontsize=10, alpha=0.75)


@drawn
def sweep(figure, title, along, series, crossings=()):
    """Draw lines on logarithmic axes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    title, along : str
        The title, and the label of the axis along which values vary.
    series : dict of str to list of (float, float)
        By arm, positions on the axis and nanoseconds.
    crossings : iterable of (str, float)
        Arms, and the positions to mark on their lines.
    """
    figure.set_size_inches(7.5, 4.4)
    axes = figure.add_subplot()
    for arm, points in series.items():
        at, times = zip(*points, strict=True)
        style = "--" if arm in ("kernel", "plan") else "-"
        axes.plot(
            at,
            [time / 1e3 for time in times],
            color=color(arm),
            label=arm,
            linestyle=style,
            marker="o",
            markersize=3.5,
            linewidth=1.8,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for number, (arm, place) in enumerate(crossings):
        axes.axvline(place, color=color(arm), linestyle=":", linewidth=1.4)
        axes.annotate(
            f"{arm}: {place:,.0f}",
            (place, 1),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            xytext=(-4, -12 - 15 * number),
            ha="right",
            color=color(arm),
        )
    if along == "attributes":
        axes.set_xscale("linear")
    else:
        logarithmic(axes.xaxis, *_ends(at for points in series.values() for at, _ in points))
    ends = _ends(time / 1e3 for points in series.values() for _, time in points)
    logarithmic(axes.yaxis, *ends)
    axes.set_xlabel(along)
    axes.set_ylabel("us per call")
    axes.set_title(title)
    axes.grid(visible=True, axis="both")
    figure.legend(loc="outside lower left", ncols=min(4, len(series)))


def _ends(values):
    values = [value for value in values if value]
    return min(values), max(values)


def _thousands(value, _):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


@drawn
def violins(figure, title, single):
    """Draw the distribution of single calls: by arm, their nanoseconds."""
    arms = list(single)
    figure.set_size_inches(7.5, 0.9 + 0.75 * len(arms))
    axes = figure.add_subplot()
    for place, arm in enumerate(arms):
        values = np.log10(single[arm])
        # Leave out the slowest 0.5 %, which would flatten the rest; the table has them.
        values = values[values <= np.quantile(values, 0.995)]
        if np.ptp(values) == 0:
            values = np.append(values, values[0] + 1e-3)
        found = axes.violinplot(
            [values], [place], orientation="horizontal", widths=0.85, showmedians=True
        )
        for body in found["bodies"]:
            body.set(facecolor=color(arm), edgecolor=color(arm), alpha=0.6)
        for part in ("cmedians", "cmins", "cmaxes", "cbars"):
            found[part].set(color=color(arm), linewidth=1.2)
    axes.set_yticks(range(len(arms)), arms)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    low, high = axes.get_xlim()
    ticks = [t for t in _decades(low, high) if low <= t <= high]
    axes.set_xticks(ticks, [f"{10**t:,.0f}" for t in ticks])
    axes.grid(visible=True)
    axes.set_xlabel("ns of single calls (logarithmic)")
    axes.set_title(title)


def _decades(low, high):
    for power in range(int(np.floor(low)), int(np.ceil(high)) + 1):
        yield from (power, power + np.log10(2), power + np.log10(5))


def _short(label):
    return label if len(label) <= 48 else label[:46] + " …"


def alone(svg):
    """Return a picture as a separate file, with fixed colours."""
    head = '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    svg = re.sub(r"(<svg [^>]*>)", lambda match: match[1] + background, svg, count=1)
    return head + svg.replace(INK, "#1d2429")
