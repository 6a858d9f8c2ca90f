"""Descriptions of the backend's functions: one op, ops with an addition, or unique to the backend.

The decorators of this module describe a function at its definition. The description becomes part of
the function's docstring, of `describe` and of the table in docs/backend.md.
"""

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from fastops._backend import below

CATEGORIES = {
    "alias": "one op and nothing else: there is no Python frame between the call and its kernel",
    "thicker": "ops, with an addition that TensorFlow's function lacks",
    "unique": "exists in no other module of TensorFlow or Keras 3, or keeps its state here",
}
"""The categories of functions, by name."""


@dataclass(frozen=True)
class Description:
    """The description of a function of the backend.

    Attributes
    ----------
    name : str
        Its name in `fastops.backend`.
    category : str
        One of ``"alias"``, ``"thicker"`` and ``"unique"``.
    op : str or None
        The name of an alias's op in TensorFlow's registry; None for other functions.
    adds : str
        What the function adds to the ops that it runs; empty for an alias.
    tensorflow, keras : str
        The functions of TensorFlow and of `keras.ops` to use instead; empty if there is none.
    differs : str
        How those functions differ.
    """

    name: str
    category: str
    op: str | None
    adds: str
    tensorflow: str
    keras: str
    differs: str


class Catalogue(dict[str, Description]):
    """Descriptions of functions by name. It prints as a table."""

    def __repr__(self) -> str:
        rows = [
            (entry.name, entry.category, entry.op or entry.adds, entry.tensorflow, entry.keras)
            for entry in self.values()
        ]
        rows.insert(0, ("name", "category", "op, or what it adds", "TensorFlow", "Keras 3"))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)


_known: dict[str, Description] = {}

described: dict[str, Callable] = {}
"""The functions that are described, by name."""


def describe(name: str | None = None) -> Description | Catalogue:
    """Describe a function: it is one op, or adds something to ops, or only the backend has it.

    Parameters
    ----------
    name : str, optional
        Its name. By default all functions are described.

    Returns
    -------
    Description or Catalogue
        A catalogue is a dict of descriptions, by name, which prints as a table.

    Raises
    ------
    ValueError
        If the backend has no function of that name.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.describe("exp").op
    'Exp'
    >>> backend.describe("clip").adds
    'None for no bound; bounds that cross'
    """
    if name is None:
        return Catalogue(sorted(_known.items()))
    if name not in _known:
        raise ValueError(f"fastops.backend has no function {name!r}")
    return _known[name]


def _note(function, category, adds, tensorflow, keras, differs, op=None):
    name = function.__name__
    if name in _known:
        raise ValueError(f"{name} is described twice")
    description = Description(name, category, op, adds, tensorflow, keras, differs)
    _known[name] = description
    function.__doc__ = with_notes(inspect.cleandoc(function.__doc__), notes(description))
    described[name] = function
    return function


def notes(description: Description) -> str:
    """Return a description as sentences."""
    parts = {
        "alias": f"An alias of the op {description.op}.",
        "thicker": f"Thicker (it adds to the ops that it runs): {description.adds}.",
        "unique": f"Unique: {description.adds}.",
    }
    text = parts[description.category]
    instead = [f"`{name}`" for name in (description.tensorflow, description.keras) if name]
    if instead:
        text += f" Elsewhere: {', '.join(instead)}"
        text += f" ({description.differs})." if description.differs else "."
    elif description.differs:
        text += f" {description.differs[:1].upper()}{description.differs[1:]}."
    return textwrap.fill(text, 92)


def with_notes(doc: str, text: str) -> str:
    """Insert a text into a docstring, as the first paragraph of the notes."""
    if "\nNotes\n-----\n" in doc:
        return doc.replace("\nNotes\n-----\n", f"\nNotes\n-----\n{text}\n\n", 1)
    follows = re.search(r"\n(Source|Examples)\n-", doc)
    end = len(doc) if follows is None else follows.start()
    return f"{doc[:end].rstrip()}\n\nNotes\n-----\n{text}\n{doc[end:]}"


def alias(
    op: str, params: str, *, tensorflow: str, keras: str = "", differs: str = "", **options
) -> Callable:
    """Decorate a function: replace it by the alias of an op.

    Parameters
    ----------
    op : str
        The op's name in TensorFlow's registry.
    params : str
        The op's parameters, each with the function's parameter if its name differs, as in
        ``"x y=a"``.
    tensorflow, keras, differs : str
        As in `Description`.
    options
        More arguments of `fastops._backend.alias.Alias`.
    """

    def make(function):
        _note(function, "alias", "", tensorflow, keras, differs, op)
        described[function.__name__] = below.primitive(op, function, params, **options)
        return described[function.__name__]

    return make


def thicker(adds: str, *, tensorflow: str = "", keras: str = "", differs: str = "") -> Callable:
    """Describe a function that adds something to ops. The parameters are those of `Description`."""
    return lambda function: _note(function, "thicker", adds, tensorflow, keras, differs)


def unique(adds: str, *, tensorflow: str = "", keras: str = "", differs: str = "") -> Callable:
    """Describe a function that only the backend has. The parameters are those of `Description`."""
    return lambda function: _note(function, "unique", adds, tensorflow, keras, differs)
