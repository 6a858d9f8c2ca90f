"""What `fastops.install` names of TensorFlow, Keras and tf_keras, and whether it is there.

Keras's and tf_keras's versions are not pinned, and anybody may put something else into a module.
So each module of `install` is a *part* whose names are looked up before it is imported or used:
`upstream.json`, which tools/upstream.py writes from the sources, has for each part its names, with
the kind of object that is expected, and the parts that it imports. Where a name is missing, of
another kind, or cannot be read, what rests on it is left out, and `left_out` says so.
"""

import importlib
import json
import sys
from contextlib import contextmanager
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

_left_out: dict[tuple[str, str], str] = {}  # by layer and name: why
_objections: dict[str, str | None] = {}  # by part, since `begin`
_faulty: dict[str, str] = {}  # parts whose import has failed: Python must not try it again


class MissingNameError(LookupError):
    """A name is missing, or stands for something else; no user sees it but as a reason."""


@cache
def table():
    """Return what is known of names and parts."""
    return json.loads(TABLE.read_text())


def begin():
    """Look anew: forget what was found out, and what was left out."""
    _objections.clear()
    _left_out.clear()


# Names -------------------------------------------------------------------------------------------


def kind_of(value):
    """Return ``"module"``, ``"class"``, ``"function"``, or the name of an object's class."""
    kind = type(value)  # an object may raise for whatever it is asked
    if issubclass(kind, ModuleType):
        return "module"
    if issubclass(kind, type):
        return "class"
    return "function" if kind in _FUNCTIONS else kind.__name__


def look_up(name):
    """Return the object that a dotted name stands for.

    Parameters
    ----------
    name : str
        Of a module that is imported, or of what modules and classes have.

    Raises
    ------
    MissingNameError
        If there is none. It says which part of the name is missing, or cannot be read.
    """
    path = name.split(".")
    for n in range(len(path), 0, -1):
        holder = ".".join(path[:n])
        if holder in sys.modules:
            value = sys.modules[holder]
            break
    else:
        raise MissingNameError(f"{path[0]} is not imported")
    for part in path[n:]:
        if kind_of(value) not in ("module", "class"):
            raise MissingNameError(f"{holder} is {_shown(value)}")
        try:
            value = getattr(value, part)
        except AttributeError:
            raise MissingNameError(f"{holder}.{part} is missing") from None
        except Exception as problem:
            raise MissingNameError(f"{holder}.{part} raises {type(problem).__name__}") from None
        holder = f"{holder}.{part}"
    return value


def resolve(name):
    """Return what holds the object of a dotted name, and the attribute.

    Raises
    ------
    MissingNameError
        If the holder is missing, or is neither a module nor a class.
    """
    path, _, attribute = name.rpartition(".")
    holder = look_up(path)
    if kind_of(holder) not in ("module", "class"):
        raise MissingNameError(f"{path} is {_shown(holder)}")
    return holder, attribute


def objection_to(name, expected):
    """Tell what is wrong with a name: `None` if its object is of the expected kind."""
    try:
        value = look_up(name)
    except LookupError as problem:
        return str(problem)
    if expected in ("any", kind_of(value)):
        return None
    return f"{name} is {_shown(value)}"


def _shown(value):
    kind = type(value).__name__
    if value is None:
        return "None"
    if issubclass(type(value), type):
        return "a class"
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


# Parts -------------------------------------------------------------------------------------------


def objection(part):
    """Tell why a part cannot be used here.

    Parameters
    ----------
    part : str
        A module, by its name below `fastops._install`.

    Returns
    -------
    str or None
        The first name that is not as expected, among its own and those of the parts that it
        imports; `None` if all are.
    """
    return _objection(f"fastops._install.{part}")


def _objection(module):
    if module not in _objections:
        _objections[module] = None  # for parts that import one another
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
            continue  # what needs this package is left alone anyway
        found = objection_to(name, kinds[name])
        if found is not None:
            return found
    for one in known["needs"]:
        found = _objection(one)
        if found is not None:
            return found
    return None


def load(part):
    """Return a part's module, `None` if it cannot be used here: `objection` says why."""
    module = f"fastops._install.{part}"
    if objection(part) is not None:
        return None
    try:
        return importlib.import_module(module)
    except Exception as problem:
        if isinstance(problem, ImportError) and not _is_upstreams(problem):
            raise  # an extension of fastops that cannot be loaded
        _faulty[module] = _objections[module] = said(problem)
        return None


def _is_upstreams(problem):
    return str(problem.name).partition(".")[0] in PACKAGES


def find_fault(part, why):
    """Note that a part cannot be used, until the next look."""
    _objections[f"fastops._install.{part}"] = why


def load_all(package, parts):
    """Import parts, which register themselves, but for those that cannot be used here."""
    for part in parts.split():
        load(f"{package}.{part}".removeprefix("."))


def objection_to_registered(package, title):
    """Tell why the part of a package that registers something cannot be used here."""
    for part in _registering().get((package, title), ()):
        found = _objection(part)
        if found is not None:
            return found
    return None


@cache
def _registering():
    """Return by package and title the parts that register it."""
    found = {}
    for part, titles in table()["registered"].items():
        package = part.removeprefix("fastops._install.").partition(".")[0]
        for title in titles:
            found.setdefault((package, title), []).append(part)
    return found


# What is left out --------------------------------------------------------------------------------


def leave_out(layer, title, why):
    """Note what is left out, and why."""
    _left_out.setdefault((layer, title), why)


@contextmanager
def contained(layer, title):
    """Let what raises in a block be left out, and nothing else with it."""
    try:
        yield
    except Exception as problem:
        leave_out(layer, title, said(problem))


def said(problem):
    """Return what an exception says: those of `look_up` speak for themselves."""
    if isinstance(problem, MissingNameError):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"


def left_out():
    """Return what the last look has left out.

    Returns
    -------
    dict of tuple to str
        By layer and name: why.
    """
    return dict(_left_out)
