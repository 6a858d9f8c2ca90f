"""Convert docstrings from numpydoc to Markdown."""

import inspect
import re
import textwrap
from dataclasses import dataclass
from itertools import pairwise

ENTRIES = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
"""Sections whose items are a line at the margin and an indented text."""

DIRECTIVE = ".. code-block:: python\n"

MARKED = re.compile(r"`[^`]+`|(?<![\w*])\*\w+\*(?![\w*])|\*")
"""Patterns of quoted text, of emphasized text, and of other asterisks."""

RULE = re.compile(r"^-{3,}$")


@dataclass(frozen=True)
class Docstring:
    """A parsed docstring.

    Attributes
    ----------
    summary : str
        The first paragraph.
    text : str
        The paragraphs after it, up to the first section.
    sections : dict of str
        The texts of the sections, by title.
    """

    summary: str
    text: str
    sections: dict[str, str]


def parse(text):
    """Parse a docstring.

    Parameters
    ----------
    text : str or None
        The docstring of an object.

    Returns
    -------
    Docstring
    """
    lines = inspect.cleandoc(text or "").splitlines()
    titles = [
        number
        for number in range(len(lines) - 1)
        if RULE.match(lines[number + 1]) and len(lines[number + 1]) == len(lines[number])
    ]
    bounds = [*titles, len(lines)]
    summary, _, rest = "\n".join(lines[: bounds[0]]).strip().partition("\n\n")
    sections = {
        lines[begin]: "\n".join(lines[begin + 2 : end]).strip("\n")
        for begin, end in pairwise(bounds)
    }
    return Docstring(summary.replace("\n", " "), rest.strip(), sections)


def entries(text):
    """Yield the items of a section, as pairs of the line and the text."""
    for item in re.split(r"\n(?=\S)", text.strip("\n")):
        head, _, body = item.partition("\n")
        # A long head continues in lines with more indentation than a text.
        while (match := re.match(r" {8}(\S.*)(?:\n|$)", body)) and head:
            head, body = f"{head} {match[1]}", body[match.end() :]
        yield head, textwrap.dedent(body).strip()


def markdown(docstring, *, without=()):
    """Return a docstring as Markdown, without headings.

    Parameters
    ----------
    docstring : Docstring
        The docstring.
    without : tuple of str
        Titles of sections that are left out.

    Returns
    -------
    str
    """
    parts = [prose(docstring.summary)]
    if docstring.text:
        parts.append(prose(docstring.text))
    for title, text in docstring.sections.items():
        if title in without or not text.strip():
            continue
        if title == "Examples":
            parts += [f"**{title}**", _examples(text)]
        elif title in ENTRIES:
            parts.append(f"**{title}**")
            several = title not in ("Returns", "Yields")
            parts.append("\n".join(_item(*entry, several) for entry in entries(text)))
        else:
            parts += [f"**{title}**", prose(text)]
    return "\n\n".join(parts) + "\n"


def _examples(text):
    """Return examples; those that are not interactive sessions are in a directive of reST."""
    code = text.strip().removeprefix(DIRECTIVE)
    if code == text.strip():
        return f"```pycon\n{code}\n```"
    return f"```python\n{textwrap.dedent(code).strip()}\n```"


def prose(text):
    """Return running text as Markdown, with reST quotes converted."""
    text = re.sub(r"``(.+?)``", r"`\1`", text.strip(), flags=re.DOTALL)
    return MARKED.sub(lambda match: r"\*" if match[0] == "*" else match[0], text)


def _item(head, body, several):
    """Return one item of a section, whose line may begin with several names."""
    names, colon, kind = head.partition(" : ")
    if several:
        names = ", ".join(f"`{name.strip()}`" for name in names.split(","))
    elif colon or re.fullmatch(r"[\w.]+", names):
        names = f"`{names}`"
    said = prose(re.sub(r"\s*\n\s*", " ", body))
    return f"- {names}" + (f" : {prose(kind)}" if colon else "") + (f"  \n  {said}" if said else "")
