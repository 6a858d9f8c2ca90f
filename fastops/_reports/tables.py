"""Tables of reports, for terminals and notebooks."""

import html

from rich import box
from rich.table import Table
from rich.text import Text

_TEXTS = frozenset(
    {"op", "path", "reason", "detail", "executor", "function", "public function", "why", "how"}
)
"""The columns that are aligned to the left. The other columns are numbers."""


def as_rich(columns, rows):
    """Return a table for terminals."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in columns:
        wraps = column in ("function", "public function", columns[-1])
        side = "left" if column in _TEXTS else "right"
        table.add_column(column, justify=side, no_wrap=not wraps, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def as_html(columns, rows):
    """Return a table for notebooks."""

    def line(cells, tag):
        aligned = (
            f'<{tag} style="text-align: {"left" if column in _TEXTS else "right"}">'
            f"{html.escape(cell)}</{tag}>"
            for column, cell in zip(columns, cells, strict=True)
        )
        return f"<tr>{''.join(aligned)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(columns, 'th')}</thead><tbody>{body}</tbody></table>"


def in_units(ns):
    """Return nanoseconds as text, in a suitable unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.1f} {unit}"
    return f"{ns} ns"
