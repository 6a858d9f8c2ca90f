"""A recipe is a line of text: a plain call of one public function or method."""

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
        The function's or method's.
    call : str
        An expression over `inputs` and what its family defines.
    family : str
        The module of `families` that has it.
    reason : str
        Why it is not many times faster under `fastops.install`, where it is not.
    varies : str
        Why TensorFlow itself does not give the same twice; empty where it does.
    """

    name: str
    call: str
    family: str
    reason: str = ""
    varies: str = ""

    @property
    def title(self):
        """The call, after the name of what it calls where that cannot be read from it."""
        return self.call if _called(self.call) == self.name else f"{self.name}: {self.call}"


@cache
def of(family):
    """Return the recipes of a family, in the order of its text: see `parse`."""
    return parse(module(family).TEXT, family)


def parse(text, family):
    """Return the recipes of a text.

    A line is a call of a function by its public name. Below a line with the name of a class, or of
    a namespace, and a colon, it may begin with a key in that, and a colon: what it calls, where
    that cannot be read from the call. Two spaces and a comment may follow: the reason, or
    "varies:" and why the values do.
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
    """Return the public name with which a call begins, `None` if it does not begin with one."""
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
    """Return what the calls of a family see: a world's inputs, and what its module has beside them.

    That is what the module defines, and what its function `beside` makes anew of the inputs.
    """
    own = module(family)
    beside = own.beside(SimpleNamespace(**world)) if hasattr(own, "beside") else {}
    libraries = {"copy": copy, "np": np, "tf": tf, "tnp": tnp}
    return {**vars(own), **libraries, **world, **beside}
