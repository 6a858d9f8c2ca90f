"""Flame pictures: nested bars show which calls ran inside which, and how long they took."""

import html
from dataclasses import dataclass, field

from fastops._reports.spans import KINDS, tracks
from fastops._reports.tables import in_units

_LEAST = 0.0005
"""The share of the whole below which a bar is not drawn: it would be too narrow to see."""

STYLE = """
.fastops-flame { --ground: #fff; --ink: #1d2330; --faint: #5b6474; --line: #d4d9e2;
  --program: #b9d2f5; --library: #dcd3f7; --dispatch: #ffb86b; --kernel: #8fd694;
  --tensorflow: #f5a3b7; font: 14px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--ground); }
@media (prefers-color-scheme: dark) {
  .fastops-flame { --ground: #14171d; --ink: #e6e9ef; --faint: #9aa4b5; --line: #343b48;
    --program: #2d4f80; --library: #4c3f7d; --dispatch: #8a4f12; --kernel: #23662d;
    --tensorflow: #83304a; } }
.fastops-flame .legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 8px 0; padding: 0;
  list-style: none; }
.fastops-flame .legend li { white-space: nowrap; margin: 0; }
.fastops-flame .legend b { font-weight: 600; font-variant-numeric: tabular-nums; }
.fastops-flame .legend i { display: inline-block; width: 12px; height: 12px; margin-right: 6px;
  border-radius: 2px; vertical-align: -1px; }
.fastops-flame .shares { display: flex; height: 10px; border-radius: 3px; overflow: hidden; }
.fastops-flame .bars { position: relative; overflow: hidden; margin: 4px 0 12px; }
.fastops-flame .bars div { position: absolute; box-sizing: border-box; height: 21px;
  padding: 0 4px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; cursor: default;
  font-size: 12px; line-height: 20px; border-right: 1px solid var(--ground); border-radius: 2px; }
.fastops-flame .bars div:hover, .fastops-flame .bars div:focus { outline: 2px solid var(--ink);
  outline-offset: -2px; }
.fastops-flame .note { color: var(--faint); margin: 4px 0; }
""" + "".join(f".fastops-flame .{kind} {{ background: var(--{kind}); }}\n" for kind in KINDS)


@dataclass
class Bar:
    """One bar for all spans with the same name in the same place.

    Attributes
    ----------
    name, kind : str
        The name and kind of the spans.
    ns, own_ns : int
        The time of the spans, and the part of it that is not in inner bars.
    count : int
        The number of spans.
    about : dict
        The facts about the first span.
    inner : dict of tuple to Bar
        The bars inside, by name, kind and file.
    """

    name: str
    kind: str
    ns: int = 0
    own_ns: int = 0
    count: int = 0
    about: dict = field(default_factory=dict)
    inner: dict = field(default_factory=dict)


def merged(root):
    """Return a span and the spans inside it as bars."""
    top = Bar(root.name, root.kind)
    waiting = [(top, root)]
    while waiting:
        bar, span = waiting.pop()
        took = span.stop - span.start
        bar.ns += took
        bar.own_ns += took - sum(inner.stop - inner.start for inner in span.inner)
        bar.count += 1
        bar.about = bar.about or span.about
        for inner in span.inner:
            key = inner.name, inner.kind, inner.about.get("file")
            waiting.append((bar.inner.setdefault(key, Bar(inner.name, inner.kind)), inner))
    return top


def shares(bar):
    """Return the nanoseconds of each kind, as a dict. Their sum is the time of the bar."""
    sums = dict.fromkeys(KINDS, 0)
    waiting = [bar]
    while waiting:
        current = waiting.pop()
        sums[current.kind] += current.own_ns
        waiting += current.inner.values()
    return sums


def as_html(profile):
    """Return the pictures of a profile, one for each thread, without a style sheet."""
    return "".join(map(_of_track, tracks(profile, corrected=True)))


def _of_track(track):
    top = merged(track.root)
    times = {kind: ns for kind, ns in shares(top).items() if ns}
    whole = max(top.ns, 1)
    legend = "".join(
        f'<li><i class="{kind}"></i>{html.escape(KINDS[kind])} '
        f"<b>{in_units(ns)}</b> ({ns / whole:.1%})</li>"
        for kind, ns in times.items()
    )
    parts = "".join(
        f'<span class="{kind}" style="width:{ns / whole:.3%}"></span>' for kind, ns in times.items()
    )
    bars, depth, hidden = _bars(top, whole)
    text = f'<div class="shares">{parts}</div><ul class="legend">{legend}</ul>'
    text += f'<div class="bars" style="height:{22 * depth}px">{bars}</div>'
    if hidden:
        text += f'<p class="note">{hidden:,} bars are too narrow to be drawn.</p>'
    return text


def _bars(top, whole):
    """Return the bars as HTML, the depth of nesting, and the number of bars that are not drawn."""
    drawn, deepest, hidden = [], 0, 0
    waiting = [(top, 0, 0)]
    while waiting:
        bar, depth, left = waiting.pop()
        if bar.ns < _LEAST * whole and depth:
            hidden += 1 + _number_within(bar)
            continue
        deepest = max(deepest, depth + 1)
        drawn.append(_bar(bar, depth, left / whole, bar.ns / whole))
        for inner in sorted(bar.inner.values(), key=lambda inner: -inner.ns):
            waiting.append((inner, depth + 1, left))
            left += inner.ns
    return "".join(drawn), deepest, hidden


def _number_within(bar):
    return sum(1 + _number_within(inner) for inner in bar.inner.values())


def _bar(bar, depth, left, width):
    times = f" &times;{bar.count:,}" if bar.count > 1 else ""
    name = html.escape(bar.name)
    return (
        f'<div class="{bar.kind}" tabindex="0" title="{_title(bar, width)}" '
        f'style="left:{left:.4%};width:{width:.4%};top:{22 * depth}px">{name}{times}</div>'
    )


def _title(bar, width):
    """Return the tooltip of a bar, one fact a line."""
    lines = [
        bar.name,
        f"{in_units(bar.ns)} ({width:.1%}), {in_units(bar.own_ns)} of it its own",
        f"{KINDS[bar.kind]}, {bar.count:,} calls, {in_units(round(bar.ns / bar.count))} each",
    ]
    about = bar.about
    if "file" in about:
        lines.append(f"{about['file']}:{about['line']}")
    lines += [f"{key}: {about[key]}" for key in ("path", "reason", "module") if key in about]
    return "&#10;".join(html.escape(line) for line in lines)
