"""Targets: callables of TensorFlow and Keras to replace, and functions that find them."""

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from fastops._core.reasons import text_of
from fastops._core.tables import index
from fastops._install import restated, upstream
from fastops._install.patch_points import referring_to
from fastops._specialize.guards.names import upstream as originally


class Target(NamedTuple):
    """A callable of TensorFlow or Keras to replace, and its patch points: attributes that hold it.

    Attributes
    ----------
    layer : str
        One of `fastops._install.targets.LAYERS`.
    name : str
        The name for users, such as ``"tf.Tensor.__add__"`` or ``"gen_math_ops.tanh"``.
    holder : object
        The module or class of the first patch point.
    attribute : str
        The name of the attribute there.
    make : callable
        Given the original, returns the replacement.
    announce : callable, optional
        Called with the new value whenever the attribute changes. It updates copies of the
        reference that other code keeps.
    unit : str, optional
        Either all targets of a unit are replaced, or none.
    others : sequence
        The other patch points: modules and the names of their attributes, in turn.
    """

    layer: str
    name: str
    holder: object
    attribute: str
    make: Callable
    announce: Callable | None = None
    unit: str | None = None
    others: Sequence = ()

    def points(self):
        """Return the modules or classes and the names of their attributes, in turn."""
        return (self.holder, self.attribute, *self.others)


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
    """Yield a target for each claimed function that a module of TensorFlow or Keras refers to.

    Parameters
    ----------
    claims : dict of int to tuple
        By the identity of the function: the layer, the name, and the callable that makes its
        replacement.
    """
    points = referring_to(claims)
    for function, (layer, name, make) in claims.items():
        if points[function]:
            holder, attribute, *others = points[function]
            yield Target(layer, name, holder, attribute, make, others=others)


def resolve(name):
    """Return the holder and the attribute of a public name; `LookupError` if it has no holder."""
    return upstream.resolve(in_full(name))


def in_full(name):
    """Return a public name with the name of its package, as in ``"tensorflow.math"``."""
    root, dot, path = name.partition(".")
    return f"tensorflow{dot}{path}" if root == "tf" else name


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


def places(function, title, names):
    """Return the position and the name of each named parameter of a function.

    Parameters
    ----------
    function : callable
        The function.
    title : str
        Its name, for errors.
    names : str
        The names, separated by blanks.
    """
    parameters = list(inspect.signature(function).parameters) if names else []
    for name in names.split():
        if name not in parameters:
            raise upstream.MissingNameError("parameter_missing", f"{title}, {name}")
    return tuple((parameters.index(name), name) for name in names.split())


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
