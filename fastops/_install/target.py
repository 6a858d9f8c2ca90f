"""Patch points: attributes of TensorFlow and Keras to replace, and functions that find them."""

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import NamedTuple

from fastops._core.reasons import text_of
from fastops._core.tables import index
from fastops._install import restated, upstream
from fastops._specialize.guards.names import upstream as originally


class Target(NamedTuple):
    """A patch point: an attribute that holds a callable of TensorFlow or Keras.

    Attributes
    ----------
    layer : str
        One of `fastops._install.targets.LAYERS`.
    name : str
        The name for users, such as ``"tf.Tensor.__add__"``. The name of a generated function, such
        as ``"gen_math_ops.tanh"``, covers all references to it, such as `tf.math.tanh`.
    holder : object
        The module or class that has the attribute.
    attribute : str
        The name of the attribute.
    make : callable
        Given the original, returns the replacement.
    announce : callable, optional
        Called with the new value whenever the attribute changes. It updates copies of the
        reference that other code keeps.
    unit : str, optional
        Either all targets of a unit are replaced, or none.
    """

    layer: str
    name: str
    holder: object
    attribute: str
    make: Callable
    announce: Callable | None = None
    unit: str | None = None


def claim(claims, function, layer, name, make):
    """Claim a function: it is to be replaced wherever TensorFlow or Keras refer to it.

    If there is a claim on the function already, the new one is left out.

    Parameters
    ----------
    claims : dict of int to tuple
        The claims of one group, in the form that `everywhere` takes. The new one is added.
    function : callable
        The function.
    layer, name : str
        See `Target`.
    make : callable
        Given the function, returns the replacement.
    """
    earlier = claims.setdefault(id(function), (layer, name, make))
    if earlier[2] is not make:
        upstream.leave_out(layer, name, text_of("function_claimed", earlier[1]))


def everywhere(claims):
    """Yield a target for each module attribute of TensorFlow or Keras that is a claimed function.

    Parameters
    ----------
    claims : dict of int to tuple
        By the identity of the function: the layer, the name, and the callable that makes its
        replacement. All targets of a function share one replacement.
    """
    shared = {function: _SharedReplacement(make) for function, (_, _, make) in claims.items()}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in ("tensorflow", "keras"):
            continue
        if not issubclass(type(module), ModuleType):  # for example None, or a mock
            continue
        if claims.keys().isdisjoint(map(id, list(vars(module).values()))):
            continue  # most modules: this test is faster than the loop below
        for attribute, value in list(vars(module).items()):
            if (claim := claims.get(id(value))) is None:
                continue
            layer, name, _ = claim
            yield Target(layer, name, module, attribute, shared[id(value)])


class _SharedReplacement:
    """Makes the replacement of a function once, for all references to the function."""

    __slots__ = ("_made", "_make")

    def __init__(self, make):
        self._make = make
        self._made = None

    def __call__(self, original):
        if self._made is None:
            self._made = self._make(original)
        return self._made


def resolve(name):
    """Return the holder and the attribute of a public name; `LookupError` if it has no holder."""
    root, _, path = name.partition(".")
    return upstream.resolve(f"tensorflow.{path}" if root == "tf" else name)


def original_of(holder, attribute):
    """Return an attribute that a module or class itself defines. Raise `LookupError` otherwise."""
    try:
        return vars(holder)[attribute]
    except KeyError:
        name = f"{holder.__name__}.{attribute}"
        raise upstream.MissingNameError("name_missing", name) from None


def signature(function):
    """Return the parameters of a function as text, without annotations."""
    full = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in full.parameters.values()]
    return str(full.replace(parameters=parameters, return_annotation=full.empty))


def gen_module(op_name):
    """Return TensorFlow's module with the generated function of an op."""
    return sys.modules.get(f"tensorflow.python.ops.gen_{index.FAMILIES[op_name]}")


def generated(op_name):
    """Return the module of an op's generated function, its name there, and the function itself.

    The function is None if code other than fastops has replaced it.
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
