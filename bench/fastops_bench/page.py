"""The report of a run as a page: a single file without external resources."""

from html import escape

from fastops_bench import plots, report, sweeps
from fastops_bench.suites import SUITES

BARS_AT_MOST = 80
"""The number of rows in a picture; the table has all rows."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2429; --soft: #5c6770; --line: #d9dfe3;
  --page: #ffffff; --band: #f4f6f7; --good: #1b7f3b; --bad: #b3261e; --link: #0b7285; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9eb; --soft: #9aa5ad; --line: #3a444b;
  --page: #15191c; --band: #1e2429; --good: #6fcf8f; --bad: #ff8a80; --link: #66d9e8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .5rem;
  border-top: 1px solid var(--line); }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .2rem .9rem; margin: 1rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; margin: 1rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .75rem 0; }
.wide svg { display: block; height: auto; width: 100%; }
.wide svg text { font-family: system-ui, sans-serif !important; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
td:first-child { white-space: normal; min-width: 10rem; max-width: 28rem; overflow-wrap: anywhere; }
td.text { text-align: left; white-space: normal; min-width: 12rem; }
tbody tr:nth-child(odd) { background: var(--band); }
.PASS { color: var(--good); } .MISS { color: var(--bad); font-weight: 600; }
summary { cursor: pointer; color: var(--link); margin: .5rem 0; }
.note { color: var(--soft); }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .6rem; } }
"""


def render(run):
    """Return the page of a run."""
    tables = report.tables(run)
    named = list(dict.fromkeys(table.suite for table in tables)) + _single_suites(run)
    order = [name for name in SUITES if name in named]
    parts = [f"<h1>fastops, measured</h1>\n{_facts(run)}", _nav(order), _overview(run)]
    for name in order:
        own = [table for table in tables if table.suite == name]
        parts.append(f'<h2 id="{name}">{escape(SUITES[name].title)}</h2>')
        parts += _pictures(run, name)
        parts += [_details(table) for table in own]
    parts.append(_left_out(run))
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n<title>fastops, measured</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _single_suites(run):
    return [record["suite"] for record in run.records() if "single" in record]


def _facts(run):
    items = (f"<dt>{escape(t)}</dt><dd>{escape(text)}</dd>" for t, text in report.describe(run))
    return f"<dl>{''.join(items)}</dl>"


def _nav(suites):
    links = (f'<a href="#{name}">{escape(name)}</a>' for name in suites)
    return f"<nav>{''.join(links)}</nav>"


def _overview(run):
    parts = ["<h2>In all</h2>", _table(report.summary(run))]
    kept = report.promised(run)
    if run.method["effort"] == "full" and kept.lines:
        parts += ["<h2>To hold</h2>", _table(kept)]
    return "\n".join(parts)


def _pictures(run, suite):
    """Yield the pictures of a suite."""
    for number, group in enumerate(run.groups()):
        records = run.records(group=group)
        if records[0]["suite"] != suite:
            continue
        rows, name = run.rows(group), f"{suite}{number}"
        if suite == "ladder":
            rows = [row for row in rows if row.about["tag"] == "short"] or rows
            yield _picture(plots.layers(rows), f"{name}a", "A bar for each layer")
            yield _picture(plots.ladder(rows), f"{name}b", "Three bars for each op")
        elif swept := sweeps.series(rows):
            yield from _sweeps(swept, name)
        elif singles := [record for record in records if "single" in record]:
            for place, record in enumerate(singles):
                svg = plots.violins(record["label"], record["single"])
                yield _picture(svg, f"{name}-{place}", f"Single calls of {record['label']}")
            yield _table(_tails(singles))
        elif pairs := [row for row in rows if row.pair == rows[0].pair and row.pair]:
            yield _picture(plots.bars(pairs[:BARS_AT_MOST]), name, f"Bars: {group}")
            if len(pairs) > BARS_AT_MOST:
                yield f'<p class="note">The first {BARS_AT_MOST} of {len(pairs)}.</p>'


def _sweeps(swept, name):
    pictures = []
    for number, ((of, along), arms) in enumerate(swept.items()):
        crossings = sweeps.crossings(arms) if along == "elements" else {}
        marked = [(arm, place) for arm, place in crossings.items() if place is not None]
        svg = plots.sweep(of, along, arms, marked)
        yield _picture(svg, f"{name}-{number}", f"{of}, along {along}")
        for arm, place in crossings.items():
            where = "not up to the last size" if place is None else f"{place:,.0f}"
            beside = sweeps.dispatch(arms[arm], arms["kernel"])
            pictures.append([of, arm, f"{beside:,.0f}", where])
    if pictures:
        yield (
            "<p>Where dispatch stops mattering: from the dotted line on, what a call takes beside "
            f"its kernel is less than {sweeps.SHARE:.0%} of it.</p>"
        )
        columns = ["op", "by", "beside the kernel, ns", "from so many elements on"]
        yield _table(report.Table("", "", columns, pictures))


def _tails(singles):
    lines = []
    for record in singles:
        for arm, taken in record["single"].items():
            times = sorted(taken)
            at = [
                times[min(len(times) - 1, int(share * len(times)))] for share in (0.5, 0.99, 0.999)
            ]
            lines.append([f"{record['label']}, {arm}", *(f"{time:,}" for time in (*at, times[-1]))])
    return report.Table("", "", ["single calls, ns", "p50", "p99", "p99.9", "worst"], lines)


def _picture(svg, name, title):
    width = plots.width(svg)
    svg = plots.inline(svg, name)
    least = min(width, 560)
    return (
        f'<div class="wide"><div style="min-width: {least}px; max-width: {width}px" role="img" '
        f'aria-label="{escape(title)}">{svg}</div></div>'
    )


def _details(table):
    few = len(table.lines) <= 12
    return (
        f"<details{' open' if few else ''}><summary>{escape(table.title)}: "
        f"{len(table.lines)} rows</summary>{_table(table)}</details>"
    )


def _table(table):
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    lines = "\n".join(f"<tr>{''.join(map(_cell, line))}</tr>" for line in table.lines)
    body = f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="wide"><table>{body}</table></div>'


def _cell(text):
    verdict = text if text in ("PASS", "MISS") else "text" if len(text) > 30 else ""
    kind = f' class="{verdict}"' if verdict else ""
    return f"<td{kind}>{escape(text)}</td>"


def _left_out(run):
    reasons = {}
    for name, process in run.processes.items():
        for kind in ("failed", "skipped"):
            for item in process[kind]:
                why = item["why"].strip().splitlines()[-1] if item["why"].strip() else kind
                reasons.setdefault((name, kind, why), []).append(item["name"])
    if not reasons:
        return ""
    items = "".join(
        f"<li>{escape(name)}: {len(names)} {kind} ({escape(', '.join(names[:5]))}"
        f"{' …' if len(names) > 5 else ''}): {escape(why)}</li>"
        for (name, kind, why), names in reasons.items()
    )
    return f"<h2>Left out</h2><ul>{items}</ul>"
