"""Checks that the names of TensorFlow, Keras and tf_keras that `fastops.install` uses exist.

The versions of Keras and tf_keras are not pinned, and other code may patch their modules. So each
module of `install`, and of the packages below that it uses, is a *part*, whose names are looked up
before it is imported or used.
`upstream.json` lists for each part its names, with the expected kinds of objects, and the parts
that it imports; tools/upstream.py writes it from the sources. If a name is missing, has another
kind, or cannot be read, the targets that need it are left out. `left_out` returns the reasons.
"""

import importlib
import json
import sys
from functools import cache
from pathlib import Path
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)

from fastops._core.reasons import RefusedError, text_of
from fastops._install.moved import running_name
from fastops._specialize.guards.names import original_of

TABLE = Path(__file__).with_name("upstream.json")
"""Written by tools/upstream.py."""

PACKAGES = frozenset({"keras", "tensorflow", "tf_keras"})

_FUNCTIONS = frozenset(
    {
        BuiltinFunctionType,
        FunctionType,
        MethodDescriptorType,
        MethodType,
        WrapperDescriptorType,
    }
)

_left_out: dict[tuple[str, str], str] = {}  # by layer and name, the reason
_objections: dict[str, str | None] = {}  # by part, the reason; `begin` clears it
_faulty: dict[str, str] = {}  # parts whose import has failed, which must not be tried again


class MissingNameError(RefusedError, LookupError):
    """A name is missing, or has an unexpected value. Users see the message only as a reason."""


@cache
def table():
    """Return the contents of `upstream.json`."""
    return json.loads(TABLE.read_text())


def begin():
    """Start a new look at all names: forget earlier results, and what was left out."""
    look_again()
    _left_out.clear()


def look_again():
    """Look at all names again: more packages are imported now."""
    _objections.clear()


# Names -------------------------------------------------------------------------------------------


def kind_of(value):
    """Return ``"module"``, ``"class"``, ``"function"``, or the name of an object's class.

    A stand-in is of the kind of its original.
    """
    kind = type(original_of(value))  # not `value.__class__`: the attributes of some objects raise
    if issubclass(kind, ModuleType):
        return "module"
    if issubclass(kind, type):
        return "class"
    return "function" if kind in _FUNCTIONS else kind.__name__


def look_up(name):
    """Return the object with a dotted name.

    Parameters
    ----------
    name : str
        The name of an imported module, or of an attribute of a module or class.

    Raises
    ------
    MissingNameError
        If a part of the name is missing or cannot be read. The message tells which.
    """
    path = running_name(name).split(".")
    for n in range(len(path), 0, -1):
        holder = ".".join(path[:n])
        if holder in sys.modules:
            value = sys.modules[holder]
            break
    else:
        raise MissingNameError("package_missing", path[0])
    for part in path[n:]:
        if kind_of(value) not in ("module", "class"):
            raise MissingNameError("name_kind", f"{holder} is {_shown(value)}")
        try:
            value = getattr(value, part)
        except AttributeError:
            raise MissingNameError("name_missing", f"{holder}.{part}") from None
        except Exception as problem:
            detail = f"{holder}.{part} raises {type(problem).__name__}"
            raise MissingNameError("name_raises", detail) from None
        holder = f"{holder}.{part}"
    return value


def resolve(name):
    """Return the holder of a dotted name (a module or class), and the attribute.

    Raises
    ------
    MissingNameError
        If the holder is missing, or is neither a module nor a class.
    """
    path, _, attribute = name.rpartition(".")
    holder = look_up(path)
    if kind_of(holder) not in ("module", "class"):
        raise MissingNameError("name_kind", f"{path} is {_shown(holder)}")
    return holder, attribute


def check(name, expected):
    """Return the object with a name. Raise `MissingNameError` if it is not of the expected kind."""
    value = look_up(name)
    if expected not in ("any", kind_of(value)):
        raise MissingNameError("name_kind", f"{name} is {_shown(value)}")
    return value


def objection_to(name, expected):
    """Return what is wrong with a name; `None` if its object is of the expected kind."""
    try:
        check(name, expected)
    except LookupError as problem:
        return str(problem)
    return None


def _shown(value):
    kind = type(value).__name__
    if value is None:
        return "None"
    if issubclass(type(value), type):
        return "a class"
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


# Parts -------------------------------------------------------------------------------------------


def objection(part):
    """Return why a part cannot be used here.

    Parameters
    ----------
    part : str
        The name of a module, in full or below `fastops._install`.

    Returns
    -------
    str or None
        What is wrong with the first unexpected name, among its own names and those of the parts
        that it imports; `None` if all names are as expected.
    """
    return _objection(_module_of(part))


def _module_of(part):
    """Return the full name of a part."""
    return part if part.startswith("fastops.") else f"fastops._install.{part}"


def _objection(module):
    if module not in _objections:
        _objections[module] = None  # ends the recursion for parts that import each other
        _objections[module] = _find_objection(module)
    return _objections[module]


def _find_objection(module):
    if module in _faulty:
        return _faulty[module]
    known = table()["parts"].get(module)
    if known is None:
        return None
    kinds = table()["kinds"]
    for name in known["names"]:
        if sys.modules.get(name.partition(".")[0]) is None:
            continue  # targets of a package that is not imported are skipped anyway
        reason = objection_to(name, kinds[name])
        if reason is not None:
            return reason
    for needed in known["needs"]:
        reason = _objection(needed)
        if reason is not None:
            return reason
    return None


def load(part):
    """Return the module of a part; `None` if it cannot be used here (see `objection`)."""
    module = _module_of(part)
    if objection(part) is not None:
        return None
    try:
        return importlib.import_module(module)
    except Exception as problem:
        if isinstance(problem, ImportError) and not _is_upstreams(problem):
            raise  # fastops itself is broken, for example an extension module
        _faulty[module] = _objections[module] = said(problem)
        return None


def _is_upstreams(problem):
    return str(problem.name).partition(".")[0] in PACKAGES


def load_for(part, layer, title):
    """Return the module of a part that a target needs.

    If the part cannot be used, return `None` and record that the target is left out.
    """
    module = load(part)
    if module is None:
        leave_out(layer, title, objection(part))
    return module


def find_fault(part, why):
    """Mark a part as unusable, until `begin`."""
    _objections[_module_of(part)] = why


def load_all(package, parts):
    """Import the parts of a package that can be used here. The import registers them.

    Parameters
    ----------
    package : str
        The name of the package, in full or below `fastops._install`.
    parts : str
        The names of the modules in the package, separated by blanks.
    """
    for part in parts.split():
        load(f"{package}.{part}")


def objection_to_registered(package, title):
    """Return why the part that registers a title cannot be used here; `None` if it can.

    `package` is the last component of the name of the part's package.
    """
    for part in _registering().get((package, title), ()):
        reason = _objection(part)
        if reason is not None:
            return reason
    return None


@cache
def _registering():
    """Return by package and title the parts that register this title."""
    parts = {}
    for part, titles in table()["registered"].items():
        package = part.split(".")[-2]
        for title in titles:
            parts.setdefault((package, title), []).append(part)
    return parts


# Targets that are left out -----------------------------------------------------------------------


def leave_out(layer, title, why):
    """Record that a target is left out, and the reason."""
    _left_out.setdefault((layer, title), why)


class contained:  # noqa: N801 - used like a function; `contextmanager` would take longer
    """Catch exceptions in a ``with`` block: its target is left out, and others are not affected."""

    def __init__(self, layer, title):
        self._target = layer, title

    def __enter__(self):
        return self

    def __exit__(self, kind, problem, traceback):
        caught = isinstance(problem, Exception)
        if caught:
            leave_out(*self._target, said(problem))
        return caught


def said(problem):
    """Return the text for an exception because of which a target is left out."""
    if isinstance(problem, MissingNameError):
        return str(problem)
    return text_of("install_error", f"{type(problem).__name__}: {problem}")


def left_out():
    """Return the targets that have been left out since `begin`.

    Returns
    -------
    dict of tuple to str
        By layer and name, the reason.
    """
    return dict(_left_out)
