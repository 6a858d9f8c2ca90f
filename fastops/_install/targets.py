"""What `fastops.install` replaces: data, layer by layer.

`targets` lists every attribute of TensorFlow and Keras that holds a callable to be replaced, with
what makes the replacement.
"""

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from types import FunctionType
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.data.ops import optional_ops
from tensorflow.python.eager import backprop
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework.tensor import Tensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.util import dispatch

from fastops import _registry
from fastops._core import opdef
from fastops._core.fallback import raw_name
from fastops._core.tables import index
from fastops._install import (
    functions,
    gradients,
    intercept,
    optionals,
    public,
    tapes,
    traced,
    variables,
)
from fastops._install.keras import helpers
from fastops._install.public import COMPLEX, FLOATS, INTS, REAL, SIGNED
from fastops._plans.plans import PlansBeside


class Target(NamedTuple):
    """One attribute that holds a callable of TensorFlow's.

    Attributes
    ----------
    layer : str
        One of `LAYERS`.
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
    """

    layer: str
    name: str
    holder: object
    attribute: str
    make: Callable
    announce: Callable | None = None


LAYERS = {
    "dispatch": "the call by which every generated function of TensorFlow runs its op",
    "functions": "the generated functions, wherever TensorFlow or Keras refer to them",
    "operators": "the operators of eager tensors and variables",
    "public": "public functions that are written in Python",
    "gradients": "what a tape calls for the gradient of each op, and its methods",
    "variables": "reads and assignments of variables",
    "keras": "what Keras 3 does in Python before it reaches an op",
    "traced": "calls of what `tf.function` has made, and the optional values that Keras's steps "
    "return, if `install` is given ``functions=True``",
}
"""By name, what is replaced: from the lowest to the highest."""


@dataclass(frozen=True)
class Operator:
    """How an operator of `tf.Tensor` comes down to one op.

    Attributes
    ----------
    names : str
        The methods, separated by blanks: the plain one, and the reflected one if there is one.
    ops : dict of str to str
        Names of dtypes, separated by blanks, to the op that runs for tensors of these.
    options : dict
        Of `fastops._install.intercept.Operator`.
    """

    names: str
    ops: dict[str, str]
    options: dict = field(default_factory=dict)


WITH_FLOAT = FLOATS
WITH_INT = f"{FLOATS} int32 int64"
"""The dtypes of tensors that a Python float, or int, may accompany."""

_BY_VALUE = {"attrs": {"incompatible_shape_error": False}, "compares": True}

OPERATORS = (
    Operator("__add__ __radd__", {f"{REAL} {COMPLEX}": "AddV2"}),
    Operator("__sub__ __rsub__", {f"{REAL} {COMPLEX}": "Sub"}),
    Operator("__mul__ __rmul__", {f"{REAL} {COMPLEX}": "Mul"}),
    Operator("__truediv__ __rtruediv__", {f"{FLOATS} {COMPLEX}": "RealDiv"}),
    Operator("__floordiv__ __rfloordiv__", {REAL: "FloorDiv"}),
    Operator("__mod__ __rmod__", {f"{FLOATS} int32 int64": "FloorMod"}),
    Operator("__pow__ __rpow__", {f"{FLOATS} {COMPLEX} int32 int64": "Pow"}),
    Operator("__and__", {"bool": "LogicalAnd", INTS: "BitwiseAnd"}),
    Operator("__or__", {"bool": "LogicalOr", INTS: "BitwiseOr"}),
    Operator("__xor__", {INTS: "BitwiseXor"}),
    Operator("__lt__", {REAL: "Less"}),
    Operator("__le__", {REAL: "LessEqual"}),
    Operator("__gt__", {REAL: "Greater"}),
    Operator("__ge__", {REAL: "GreaterEqual"}),
    Operator("__eq__", {f"{REAL} {COMPLEX} bool string": "Equal"}, options=_BY_VALUE),
    Operator("__ne__", {f"{REAL} {COMPLEX} bool string": "NotEqual"}, options=_BY_VALUE),
    Operator("__neg__", {f"{FLOATS} {SIGNED} {COMPLEX}": "Neg"}, options={"arity": 1}),
    Operator("__abs__", {f"{FLOATS} {SIGNED}": "Abs"}, options={"arity": 1}),
    Operator("__invert__", {"bool": "LogicalNot", INTS: "Invert"}, options={"arity": 1}),
)
"""Operators, by what they run for eager tensors; all else is TensorFlow's."""


def _dtypes(names):
    return [tf.as_dtype(name) for name in names.split()]


def _find(op_name):
    """Return the op for the name in a dispatch call, or `None` if it is not public."""
    if op_name.startswith("_") or opdef.registered(op_name) is None:
        return None
    return _registry.op(op_name)


def _dispatch_targets():
    yield Target(
        "dispatch",
        "TFE_Py_FastPathExecute",
        pywrap_tfe,
        "TFE_Py_FastPathExecute",
        lambda original: intercept.FastPathExecute(original, _find),
    )


def _gen_module(op_name):
    return sys.modules.get(f"tensorflow.python.ops.gen_{index.FAMILIES[op_name]}")


def _everywhere(originals):
    """Yield a target for whatever in TensorFlow or Keras refers to one of some functions.

    Parameters
    ----------
    originals : dict of int to tuple
        By the function's identity: the layer, the name, and what makes its one replacement.
    """
    replacements = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in ("tensorflow", "keras"):
            continue
        if originals.keys().isdisjoint(map(id, list(vars(module).values()))):
            continue  # as most are: quicker than to look at the names one by one
        for attribute, value in list(vars(module).items()):
            if (found := originals.get(id(value))) is None:
                continue
            layer, name, make = found

            def one(original, make=make):
                if id(original) not in replacements:
                    replacements[id(original)] = make(original)
                return replacements[id(original)]

            yield Target(layer, name, module, attribute, one)


def _generated_functions():
    originals = {}
    for name, op_name in index.NAMES.items():
        module = _gen_module(op_name)
        for attribute, keyword_only in ((name, False), (raw_name(op_name), True)):
            original = getattr(module, attribute, None)
            if type(original) is FunctionType and id(original) not in originals:

                def make(original, op_name=op_name, keyword_only=keyword_only):
                    return intercept.Generated(
                        original, _registry.op(op_name), keyword_only=keyword_only
                    )

                shown = f"{module.__name__.rpartition('.')[2]}.{attribute}"
                originals[id(original)] = "functions", shown, make
    return originals


def _public_functions():
    return _of_functions("public", public.FUNCTIONS)


def _of_functions(layer, functions):
    originals = {}
    for function in functions:
        holder, attribute = _resolve(function.name)
        original = vars(holder).get(attribute)
        if type(original) is FunctionType and _signature(original) == function.signature:
            originals[id(original)] = layer, function.name, partial(_stand_in, function)
    return originals


def _resolve(name):
    """Return what holds a public name, and the attribute."""
    root, *path, attribute = name.split(".")
    holder = tf if root == "tf" else sys.modules[root]
    for part in path:
        holder = getattr(holder, part)
    return holder, attribute


def _signature(function):
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _stand_in(function, original):
    """Return what replaces a public function."""
    parameters = inspect.signature(original).parameters.values()
    names = tuple(sys.intern(parameter.name) for parameter in parameters)
    made = tuple(function.made.split())
    generated = [_generated(site.op) for site in function.sites]  # before anybody replaces them

    def sites():
        return [
            functions.Site(
                _registry.op(site.op),
                passed_by,
                site.sources(),
                site.constants,
                _dtypes(site.dtypes),
                names + made,
            )
            for site, passed_by in zip(function.sites, generated, strict=True)
        ]

    handlers, inner = [], original
    while inner is not None:
        if (found := dispatch._TYPE_BASED_DISPATCH_SIGNATURES.get(inner)) is not None:
            handlers.append(found)
        inner = getattr(inner, "__wrapped__", None)
    return functions.Function(
        original,
        names=names,
        made=made,
        defaults=tuple(p.default for p in parameters if p.default is not p.empty),
        needs=dict(item.split("=") for item in function.needs.split()),
        sites=sites,
        plan=function.plan,
        handlers=handlers,
    )


def _generated(op_name):
    """Return the module of an op's generated function, its name there, and the function."""
    module = _gen_module(op_name)
    for name in _names()[op_name]:
        if (function := vars(module).get(name)) is not None:
            return module, name, getattr(function, "original", function)
    raise LookupError(f"{op_name} has no generated function")


@cache
def _names():
    names = defaultdict(list)
    for name, op_name in index.NAMES.items():
        names[op_name].append(name)
    return names


def _operator_targets():
    for operator in OPERATORS:
        ops = {
            dtype: _registry.op(op_name)
            for names, op_name in operator.ops.items()
            for dtype in _dtypes(names)
        }
        for reflected, name in enumerate(operator.names.split()):
            options = operator.options | {
                "floats": _dtypes(WITH_FLOAT),
                "ints": _dtypes(WITH_INT),
                "reflected": bool(reflected),
            }
            make = partial(intercept.Operator, ops=ops, **options)
            yield Target("operators", f"tf.Tensor.{name}", Tensor, name, make)
            if "compares" not in options:  # those of variables are others
                make = partial(make, of_variables=True)
                yield Target("operators", f"tf.Variable.{name}", tf.Variable, name, make)
    for function in public.METHODS:
        holder, name = _resolve(function.name)
        original = vars(holder).get(name)
        if type(original) is FunctionType and _signature(original) == function.signature:
            yield Target("operators", function.name, holder, name, partial(_stand_in, function))


RESTATED = "2.21."
"""The version of TensorFlow whose gradient functions and methods the layers below restate."""


@cache
def _gradient_function(original):
    """Return one replacement for ever: TensorFlow may be inside it while another is announced."""
    return gradients.GradientFunction(original)


def _gradient_targets():
    yield Target(
        "gradients",
        "backprop._gradient_function",
        backprop,
        "_gradient_function",
        _gradient_function,
        announce=pywrap_tfe.TFE_Py_RegisterGradientFunction,
    )
    for name, make in (("gradient", tapes.Gradient), ("watch", tapes.Watch)):
        yield Target("gradients", f"tf.GradientTape.{name}", backprop.GradientTape, name, make)


def _variable_targets():
    for name, make in variables.METHODS.items():
        holder = next(kind for kind in ResourceVariable.__mro__ if name in vars(kind))
        yield Target("variables", f"tf.Variable.{name}", holder, name, make)


def _restated_targets():
    if tf.version.VERSION.startswith(RESTATED):
        yield from _gradient_targets()
        yield from _variable_targets()


KERAS_RESTATED = "3.15."
"""The version of Keras whose functions the layer ``"keras"`` restates."""


def _keras_source():
    """Return ``keras.src``, which TensorFlow imports, if it is of that version and runs on it."""
    keras = sys.modules.get("keras")
    if not getattr(keras, "__version__", "").startswith(KERAS_RESTATED):
        return None
    return keras.src if keras.config.backend() == "tensorflow" else None


def _keras_functions():
    """Return what `_everywhere` takes, for the functions of Keras."""
    source = _keras_source()
    if source is None:
        return {}
    functions.attach(source)
    helpers.attach(source)
    originals = _of_functions("keras", public.KERAS)
    for helper in helpers.HELPERS:
        name = f"keras.src.{helper}"
        holder, attribute = _resolve(name)
        original = vars(holder).get(attribute)
        of_optree = getattr(holder, "tree_impl", None) in (None, source.tree.optree_impl)
        if type(original) is FunctionType and of_optree:
            originals[id(original)] = "keras", name, partial(helpers.Helper, name=helper)
    return originals


def _keras_methods():
    if _keras_source() is None:
        return
    for helper in helpers.METHODS:
        name = f"keras.src.{helper}"
        holder, attribute = _resolve(name)
        if type(vars(holder).get(attribute)) is FunctionType:
            make = partial(helpers.Helper, name=helper)
            yield Target("keras", name, holder, attribute, make)


def _traced_targets():
    kind = polymorphic_function.Function

    def make(original):
        return traced.FunctionCall(original, PlansBeside)

    yield Target("traced", "tf.function.__call__", kind, "__call__", make)
    for name, answer in optionals.METHODS.items():
        make_method = partial(traced.Method, answer=answer)
        title = f"tf.experimental.Optional.{name}"
        yield Target("traced", title, optional_ops._OptionalImpl, name, make_method)


def targets():
    """Yield every `Target` of the running TensorFlow."""
    yield from _dispatch_targets()
    yield from _everywhere(_generated_functions() | _public_functions() | _keras_functions())
    yield from _operator_targets()
    yield from _restated_targets()
    yield from _keras_methods()
    yield from _traced_targets()
