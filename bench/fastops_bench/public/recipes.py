"""Recipes: lines of text, each with a plain call of one public function or method."""

import copy
import importlib
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace

import numpy as np
import tensorflow as tf
import tensorflow.experimental.numpy as tnp

from . import families

_HEADING = re.compile(r"(tf[\w.]*):")
_LINE = re.compile(r"(?:(?P<key>\w+): )?(?P<call>.*?)(?:  # (?P<note>.*))?")
_CALLED = re.compile(r"(tf|tnp)((?:\.\w+)+)\(")
_PREFIXES = {"tf": "tf", "tnp": "tf.experimental.numpy"}


@dataclass(frozen=True)
class Recipe:
    """How a public function or method is called.

    Attributes
    ----------
    name : str
        The public name of the function or method.
    call : str
        An expression of `inputs` and of names that its family defines.
    family : str
        The module of `families` with the recipe.
    reason : str
        Why the call is not many times faster under `fastops.install`, if it is not.
    varies : str
        Why the result varies in TensorFlow itself; empty if it does not.
    """

    name: str
    call: str
    family: str
    reason: str = ""
    varies: str = ""

    @property
    def title(self):
        """The call; preceded by the name of its function, if the call does not show it."""
        return self.call if _called(self.call) == self.name else f"{self.name}: {self.call}"


@cache
def of(family):
    """Return the recipes of a family, in the order of its text: see `parse`."""
    return parse(module(family).TEXT, family)


def parse(text, family):
    """Return the recipes of a text.

    A line is a call of a function by its public name. If the call does not show what it calls, the
    line begins with the name of the method and a colon, below a line with the name of the class or
    namespace and a colon. Two spaces and a comment may follow the call: the reason for a small
    gain, or "varies:" and the reason why values vary.
    """
    found, heading = [], ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if is_heading := _HEADING.fullmatch(line):
            heading = is_heading[1]
        else:
            found.append(_parse(line, heading, family))
    return found


def _parse(line, heading, family):
    key, call, note = _LINE.fullmatch(line).groups("")
    name = f"{heading}.{key}" if key else _called(call)
    if not name:
        raise ValueError(f"{family}: which function does this call? {line}")
    reason, _, varies = note.partition("varies: ")
    return Recipe(name, call, family, reason.strip(), varies)


def _called(call):
    """Return the public name with which a call begins, or `None`."""
    called = _CALLED.match(call)
    return called and _PREFIXES[called[1]] + called[2]


def module(family):
    return importlib.import_module(f"{families.__name__}.{family}")


def names():
    """Return the names of the families, sorted."""
    return sorted(each.name for each in pkgutil.iter_modules(families.__path__))


def all_recipes():
    return [recipe for family in names() for recipe in of(family)]


def namespace(family, world):
    """Return the namespace for the calls of a family: the inputs, and names of its module.

    These are the names that the module defines, and the new values that its function `beside` makes
    of the inputs.
    """
    own = module(family)
    beside = own.beside(SimpleNamespace(**world)) if hasattr(own, "beside") else {}
    libraries = {"copy": copy, "np": np, "tf": tf, "tnp": tnp}
    return {**vars(own), **libraries, **world, **beside}
