"""Checks that functions of TensorFlow, Keras and Python have the code that stand-ins mirror.

A stand-in mirrors the code of its original, and of functions that this code calls, as it was when
the stand-in was written. `originals.json` has digests of this code. If any of it has changed or is
missing, the original is not replaced. Digests ignore formatting, comments, docstrings and
annotations.
"""

import ast
import hashlib
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

from fastops._core.reasons import text_of
from fastops._install.moved import earlier_name, running_name

TABLE = Path(__file__).with_name("originals.json")
"""Written by tools/restated.py, which documents the format."""

MISSING = "none"
"""The digest of a definition that does not exist."""

_PACKAGES = frozenset({"contextlib", "inspect", "keras", "tensorflow", "tf_keras"})

_NO_CODE = {
    *("annotation", "returns", "type_comment", "type_params"),
    *("ctx", "kind", "simple"),  # these follow from the other fields
}


@cache
def table():
    """Return the contents of `originals.json`."""
    return json.loads(TABLE.read_text())


def objection(layer, title, original):
    """Return why the value of an attribute is not the original that a piece mirrors.

    Parameters
    ----------
    layer, title : str
        The layer and the title of the piece in the table.
    original : callable
        A function, or a property, static method or decorated function around one.

    Returns
    -------
    str or None
        The reason; `None` if it is the original.
    """
    expected = table()["pieces"].get(layer, {}).get(title)
    if expected is None:
        return text_of("piece_unknown")
    actual = name_of(original)
    if actual != expected:
        if actual is None:
            return text_of("original_replaced")
        return text_of("original_other", actual)
    return changed(expected)


def name_of(original):
    """Return the module and name of a function, as in ``"package.module:Class.method"``.

    `None` if it is not a function of these packages, or if a function of another package wraps it.
    """
    function = original
    if type(function) is not FunctionType:
        function = getattr(original, "fget", None) or getattr(original, "__func__", original)
    while type(function) is FunctionType:
        module = str(function.__globals__.get("__name__"))
        if module.partition(".")[0] not in _PACKAGES:
            return None
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            return f"{earlier_name(module)}:{function.__qualname__.partition('.<locals>')[0]}"
        function = inner
    return None


def package_of(piece):
    """Return the name of the package whose code a piece mirrors."""
    return table()["rests_on"][piece][0].partition(":")[0].partition(".")[0]


@cache
def changed(name):
    """Return which part of the code that a piece mirrors has changed; `None` if no part has."""
    for part in table()["rests_on"][name]:
        module, _, definition = part.partition(":")
        others = _others(module)
        if others is None:
            return text_of("source_missing", module)
        if definition in others:
            return text_of("code_differs", part.replace(":", "."))
    return None


@cache
def variant(name):
    """Return the variant that the code of a definition is, for a stand-in with several variants.

    Parameters
    ----------
    name : str
        The module and the name of the definition, as in ``"package.module:Class.method"``.

    Returns
    -------
    str or None
        The name of the variant in tools/restated.toml; `None` if the code is that of the first one,
        or is unknown, so that the piece is left out.
    """
    module, _, definition = name.partition(":")
    known = table()["variants"].get(module)
    if known is None:
        return None
    try:
        source = _source(module)
        by_name = known["files"].get(fingerprint(source))
        if by_name is None:
            by_name = variants(source, known["digests"])
        return by_name.get(definition)
    except _UNREADABLE:
        return None


@cache
def _others(module):
    """Return the originals in a module whose code has changed; `None` if it has no source."""
    try:
        source = _source(module)
        known = table()["files"][module].get(fingerprint(source))
        return others(source, table()["digests"][module]) if known is None else known
    except _UNREADABLE:
        return None


_UNREADABLE = (
    *(ImportError, AttributeError, TypeError, OSError),  # there is no source file
    *(SyntaxError, ValueError, RecursionError),  # the file cannot be parsed
)


def _source(module):
    """Return the source of a module, which may have another name in the running version."""
    return Path(find_spec(running_name(module)).origin).read_bytes()


def others(source, accepted):
    """Return the names of definitions in source code whose digests are not accepted."""
    actual = digests(source, accepted)
    return [name for name in accepted if actual[name] not in accepted[name]]


def variants(source, known):
    """Return the variants of definitions in source code, by name.

    `known` has by name the variants by digest.
    """
    actual = digests(source, known)
    return {name: known[name][actual[name]] for name in known if actual[name] in known[name]}


def fingerprint(content):
    """Return a short digest of bytes."""
    return hashlib.sha256(content).hexdigest()[:12]


def digests(source, names):
    """Return a digest of the code of each named definition in source code.

    Parameters
    ----------
    source : bytes
        The source of a module.
    names : collection of str
        Names of functions and methods, as in ``"Class.method"``.

    Returns
    -------
    dict of str to str
        By name, the digest of each definition, or `MISSING`. Digests are the same in all versions
        of Python.
    """
    by_name = dict.fromkeys(names, MISSING)
    for name, nodes in definitions(ast.parse(source)).items():
        if name in names:
            by_name[name] = fingerprint(" ".join(_code(nodes)).encode())
    return by_name


def definitions(tree):
    """Return by name a list of all definitions of a function, in a module and its classes."""
    by_name = {}
    pending = [("", node) for node in reversed(tree.body)]
    while pending:
        prefix, node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            by_name.setdefault(prefix + node.name, []).append(node)
            continue
        if isinstance(node, ast.ClassDef):
            prefix += f"{node.name}."
        elif not isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            continue
        pending += [(prefix, child) for child in reversed(list(ast.iter_child_nodes(node)))]
    return by_name


def _code(node):
    """Yield the parts of a node's code, as strings."""
    if isinstance(node, list):
        yield "["
        for item in node:
            yield from _code(item)
        yield "]"
    elif isinstance(node, ast.AST):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign([node.target], node.value)
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(value, list):
                value = [statement for statement in value if not _is_text(statement)]
            if name not in _NO_CODE and value is not None and value != []:
                yield name
                yield from _code(value)
    else:
        yield repr(node)


def _is_text(node):
    """Tell whether a statement is a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
