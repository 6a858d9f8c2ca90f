"""One attribute to be replaced, and how such are found."""

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import NamedTuple

from fastops._core.tables import index
from fastops._install import restated, upstream
from fastops._specialize.guards.names import upstream as originally


class Target(NamedTuple):
    """One attribute that holds a callable of TensorFlow's.

    Attributes
    ----------
    layer : str
        One of `fastops._install.targets.LAYERS`.
    name : str
        What users call it, such as ``"tf.Tensor.__add__"``; that of a function, as in
        ``"gen_math_ops.tanh"``, stands for whatever refers to it, here `tf.math.tanh`.
    holder : object
        The module or class whose attribute it is.
    attribute : str
        The attribute.
    make : callable
        Given the original, returns the replacement.
    announce : callable, optional
        Is told what the attribute holds, whenever that changes: who keeps a reference of its own.
    unit : str, optional
        Targets of one unit are replaced together, or none of them is.
    """

    layer: str
    name: str
    holder: object
    attribute: str
    make: Callable
    announce: Callable | None = None
    unit: str | None = None


def everywhere(originals):
    """Yield a target for whatever in TensorFlow or Keras refers to one of some functions.

    Parameters
    ----------
    originals : dict of int to tuple
        By the function's identity: the layer, the name, and what makes its one replacement.
    """
    ones = {original: _One(make) for original, (_, _, make) in originals.items()}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in ("tensorflow", "keras"):
            continue
        if not issubclass(type(module), ModuleType):  # None, say, or a stand-in
            continue
        if originals.keys().isdisjoint(map(id, list(vars(module).values()))):
            continue  # as most are: quicker than to look at the names one by one
        for attribute, value in list(vars(module).items()):
            if (found := originals.get(id(value))) is None:
                continue
            layer, name, _ = found
            yield Target(layer, name, module, attribute, ones[id(value)])


class _One:
    """Makes one replacement of a function, for all that refer to it."""

    __slots__ = ("_made", "_make")

    def __init__(self, make):
        self._make = make
        self._made = None

    def __call__(self, original):
        if self._made is None:
            self._made = self._make(original)
        return self._made


def resolve(name):
    """Return what holds a public name, and the attribute; `LookupError` if nothing does."""
    root, _, path = name.partition(".")
    return upstream.resolve(f"tensorflow.{path}" if root == "tf" else name)


def original_of(holder, attribute):
    """Return what a module or class has as an attribute of its own; `LookupError` if nothing."""
    try:
        return vars(holder)[attribute]
    except KeyError:
        raise upstream.MissingNameError(f"{holder.__name__}.{attribute} is missing") from None


def signature(function):
    """Return the parameters of a function as text, without annotations."""
    found = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


def gen_module(op_name):
    """Return the module of TensorFlow's that holds an op's generated function."""
    return sys.modules.get(f"tensorflow.python.ops.gen_{index.FAMILIES[op_name]}")


def generated(op_name):
    """Return the module of an op's generated function, its name there, and TensorFlow's own.

    The last is None while something else stands in its place.
    """
    module = gen_module(op_name)
    if module is not None:
        for name in _names()[op_name]:
            if (function := vars(module).get(name)) is not None:
                function = originally(function)
                return module, name, function if restated.name_of(function) else None
    raise LookupError(f"{op_name} has no generated function")


@cache
def _names():
    names = defaultdict(list)
    for name, op_name in index.NAMES.items():
        names[op_name].append(name)
    return names
