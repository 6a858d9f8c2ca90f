"""Whether functions of TensorFlow, Keras and Python are those whose code is restated.

A stand-in does what the code of its original did, with what that code calls, when the stand-in was
written. `originals.json` knows this code by digests; where any of it is another, or is not there,
the original is left alone. Formatting, comments, docstrings and annotations are no part of it.
"""

import ast
import hashlib
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

TABLE = Path(__file__).with_name("originals.json")
"""Written by tools/restated.py, which says what is in it."""

_PACKAGES = frozenset({"contextlib", "inspect", "keras", "tensorflow", "tf_keras"})

_NO_CODE = {
    *("annotation", "returns", "type_comment", "type_params"),
    *("ctx", "kind", "simple"),  # which follow from the rest
}


@cache
def table():
    """Return what is known of originals."""
    return json.loads(TABLE.read_text())


def objection(layer, title, original):
    """Tell why what an attribute holds is not the original of a piece.

    Parameters
    ----------
    layer, title : str
        The piece, as the table has it.
    original : callable
        A function, or a property, static method or decorated function that has one.

    Returns
    -------
    str or None
        The reason, `None` if there is none.
    """
    expected = table()["pieces"].get(layer, {}).get(title)
    if expected is None:
        return "its original is not known"
    found = name_of(original)
    if found != expected:
        return "something else stands in its place" if found is None else f"it is {found}"
    return changed(expected)


def name_of(original):
    """Return module and name of a function as in ``"package.module:Class.method"``.

    `None` for what is no function of these packages, or has somebody else's around it.
    """
    function = getattr(original, "fget", None) or getattr(original, "__func__", original)
    while type(function) is FunctionType:
        module = str(function.__globals__.get("__name__"))
        if module.partition(".")[0] not in _PACKAGES:
            return None
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            return f"{module}:{function.__qualname__.partition('.<locals>')[0]}"
        function = inner
    return None


def package_of(piece):
    """Return the name of the package whose code a piece restates."""
    return table()["rests_on"][piece][0].partition(":")[0].partition(".")[0]


@cache
def changed(name):
    """Tell what of the code that a piece rests on is not as it was; `None` if all is."""
    for part in table()["rests_on"][name]:
        module, _, definition = part.partition(":")
        others = _others(module)
        if others is None:
            return f"the source of {module} is not there"
        if definition in others:
            return f"the code of {part.replace(':', '.')} is another"
    return None


@cache
def _others(module):
    """Return the originals in a module whose code is another; `None` if it has no source."""
    try:
        source = Path(find_spec(module).origin).read_bytes()
        known = table()["files"][module].get(fingerprint(source))
        return others(source, table()["digests"][module]) if known is None else known
    except (ImportError, AttributeError, TypeError, OSError):  # there is no file
        return None
    except (SyntaxError, ValueError, RecursionError):  # it is no Python
        return None


def others(source, accepted):
    """Return the names of definitions in some source whose digests are none of the accepted."""
    found = digests(source, accepted)
    return [name for name in accepted if found.get(name) not in accepted[name]]


def fingerprint(content):
    """Return a short digest of some bytes."""
    return hashlib.sha256(content).hexdigest()[:12]


def digests(source, names):
    """Return a digest of the code of each definition in some source.

    Parameters
    ----------
    source : bytes
        Of a module.
    names : collection of str
        Of functions and methods, as in ``"Class.method"``.

    Returns
    -------
    dict of str to str
        By name, for those that are there. It is the same in all versions of Python.
    """
    found = {}
    for name, nodes in definitions(ast.parse(source)).items():
        if name in names:
            found[name] = fingerprint(" ".join(_code(nodes)).encode())
    return found


def definitions(tree):
    """Return the functions of a module and of its classes: by name, all of that name."""
    found = {}
    pending = [("", node) for node in reversed(tree.body)]
    while pending:
        prefix, node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            found.setdefault(prefix + node.name, []).append(node)
            continue
        if isinstance(node, ast.ClassDef):
            prefix += f"{node.name}."
        elif not isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            continue
        pending += [(prefix, one) for one in reversed(list(ast.iter_child_nodes(node)))]
    return found


def _code(node):
    """Yield what the code of a node consists of, as texts."""
    if isinstance(node, list):
        yield "["
        for one in node:
            yield from _code(one)
        yield "]"
    elif isinstance(node, ast.AST):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign([node.target], node.value)
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(value, list):
                value = [one for one in value if not _is_text(one)]
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
