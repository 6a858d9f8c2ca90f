"""What `fastops.install` replaces: data, layer by layer.

`targets` lists every attribute of TensorFlow and Keras that holds a callable to be replaced, with
what makes the replacement.
"""

import sys
from functools import cache, partial
from types import FunctionType

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.data.ops import optional_ops
from tensorflow.python.eager import backprop
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework.tensor import Tensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops import _registry
from fastops._core import opdef
from fastops._core.fallback import raw_name
from fastops._core.tables import index, policy
from fastops._install import (
    construction,
    intercept,
    iteration,
    lookups,
    optionals,
    restated,
    tapes,
    traced,
    variables,
)
from fastops._install.dtypes import parse
from fastops._install.gradients import rules
from fastops._install.helpers import targets as helpers
from fastops._install.keras import targets as keras
from fastops._install.models import targets as models
from fastops._install.operators import OPERATORS, WITH_BOOL, WITH_FLOAT, WITH_INT
from fastops._install.public import targets as public
from fastops._install.replay import targets as replay
from fastops._install.target import Target, everywhere, gen_module
from fastops._plans.plans import PlansBeside

LAYERS = {
    "dispatch": "the call by which every generated function of TensorFlow runs its op",
    "functions": "the generated functions of ops that have kernels here, wherever TensorFlow or "
    "Keras refer to them",
    "operators": "the operators of eager tensors and variables",
    "public": "public functions that are written in Python",
    "replayed": "other public functions: what a call runs is recorded once, and replayed",
    "gradients": "what a tape calls for the gradient of each op, and its methods",
    "variables": "reads and assignments of variables, and those that are made again and again",
    "helpers": "functions by which TensorFlow, and libraries on it, take nested structures and "
    "modules apart, bind arguments, and ask what something is",
    "keras": "what Keras 3 does in Python before it reaches an op",
    "models": "calls of Keras's own layers, models, losses, metrics and optimizers, and of "
    "tf_keras's own optimizers: recorded, and replayed",
    "traced": "calls of what `tf.function` has made, and the optional values that Keras's steps "
    "return",
}
"""By name, what is replaced: from the lowest to the highest."""

_REPEATED = frozenset({"dispatch", "functions", "replayed"})
"""Layers that restate no function: what they run follows from OpDefs, or has been recorded."""


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


def _generated(original, op_name, keyword_only):
    return intercept.Generated(original, _registry.op(op_name), keyword_only=keyword_only)


def _generated_functions():
    originals = {}
    for name, op_name in index.NAMES.items():
        if op_name in policy.NEVER:  # which the dispatch call counts
            continue
        module = gen_module(op_name)
        for attribute, keyword_only in ((name, False), (raw_name(op_name), True)):
            original = getattr(module, attribute, None)
            if lookups.is_upstream(original) and id(original) not in originals:
                make = partial(_generated, op_name=op_name, keyword_only=keyword_only)
                shown = f"{module.__name__.rpartition('.')[2]}.{attribute}"
                originals[id(original)] = "functions", shown, make
    return originals


def operator_targets():
    """Yield a target for each operator, and other methods of tensors and variables."""
    for operator in OPERATORS:
        ops = {
            dtype: _registry.op(op_name)
            for names, op_name in operator.ops.items()
            for dtype in parse(names)
        }
        for reflected, name in enumerate(operator.names.split()):
            options = operator.options | {
                "floats": parse(WITH_FLOAT),
                "ints": parse(WITH_INT),
                "bools": parse(WITH_BOOL),
                "reflected": bool(reflected),
            }
            make = partial(intercept.Operator, ops=ops, **options)
            yield Target("operators", f"tf.Tensor.{name}", Tensor, name, make)
            if "compares" not in options:  # those of variables are others
                make = partial(make, of_variables=True)
                yield Target("operators", f"tf.Variable.{name}", tf.Variable, name, make)
    yield from public.methods()


@cache
def _gradient_function(original):
    """Return one replacement for ever: TensorFlow may be inside it while another is announced."""
    return rules.gradient_function(original)


def _gradient_targets():
    rules.choose(partial(restated.objection, "gradients"), lookups.of_function)
    yield Target(
        "gradients",
        "backprop._gradient_function",
        backprop,
        "_gradient_function",
        _gradient_function,
        announce=pywrap_tfe.TFE_Py_RegisterGradientFunction,
    )
    for name, make in (("gradient", tapes.Gradient), ("watch", tapes.watch)):
        yield Target("gradients", f"tf.GradientTape.{name}", backprop.GradientTape, name, make)


def _variable_targets():
    for name, make in variables.METHODS.items():
        holder = next(kind for kind in ResourceVariable.__mro__ if name in vars(kind))
        yield Target("variables", f"tf.Variable.{name}", holder, name, make)
    yield Target("variables", "tf.Variable", type(tf.Variable), "__call__", construction.construct)


def _optional(original):
    return staticmethod(traced.Method(original.__func__, optionals.from_value))


def method_targets():
    """Yield a target for methods of tapes, variables, tensors, and what is below them."""
    yield from _gradient_targets()
    yield from _variable_targets()
    for name, holder, attribute, make in iteration.METHODS:
        yield Target("operators", name, holder, attribute, make)
    yield from helpers.methods()
    made = vars(optional_ops.Optional)["from_value"]
    if type(made) is staticmethod and type(made.__func__) is FunctionType:
        title = "tf.experimental.Optional.from_value"
        yield Target("helpers", title, optional_ops.Optional, "from_value", _optional)


def _traced_targets():
    kind = polymorphic_function.Function

    def make(original):
        return traced.FunctionCall(original, PlansBeside)

    yield Target("traced", "tf.function.__call__", kind, "__call__", make)
    for name, answer in optionals.METHODS.items():
        make_method = partial(traced.Method, answer=answer)
        title = f"tf.experimental.Optional.{name}"
        yield Target("traced", title, optional_ops._OptionalImpl, name, make_method)


def candidates():
    """Yield a `Target` for whatever is there by its name and its parameters."""
    yield from _dispatch_targets()
    yield from everywhere(
        _generated_functions()
        | replay.functions()
        | public.functions()
        | helpers.functions()
        | keras.functions()
    )
    yield from operator_targets()
    yield from replay.methods()
    yield from method_targets()
    yield from keras.methods()
    yield from models.targets()
    yield from _traced_targets()


def targets():
    """Yield every `Target` of the running TensorFlow: what restates code, where it is that code."""
    for target in candidates():
        if _objection(target) is None:
            yield target


def _objection(target):
    if target.layer in _REPEATED:
        return None
    if models.is_recorded_of_keras(target):
        return restated.changed(models.RESTATED)
    original = vars(target.holder)[target.attribute]
    return restated.objection(target.layer, target.name, original)


def originals():
    """Yield layer and name of each piece that restates code, and whose code it is."""
    for target in candidates():
        if models.is_recorded_of_keras(target):
            yield target.layer, target.name, models.RESTATED
        elif target.layer not in _REPEATED:
            original = vars(target.holder)[target.attribute]
            yield target.layer, target.name, restated.name_of(original)
    for op_name, rule in rules.RULES.items():
        yield "gradients", op_name, restated.name_of(rule.registered)


def in_force():
    """Tell which pieces that restate code `install` would put in force, while none is.

    Returns
    -------
    dict of str to dict
        By layer and name, for packages that are imported: why a piece is left out, `None` if it is
        not.
    """
    found = {(target.layer, target.name) for target in targets()}
    found |= {("gradients", name) for name, rule in rules.RULES.items() if rule.restated}
    return {
        layer: {
            title: None
            if (layer, title) in found
            else restated.changed(piece) or "something else is in its place, or nothing"
            for title, piece in pieces.items()
            if restated.package_of(piece) in sys.modules
        }
        for layer, pieces in restated.table()["pieces"].items()
    }
