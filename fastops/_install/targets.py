"""All patch points of `fastops.install`, layer by layer.

`targets` lists each attribute of TensorFlow and Keras that is to be replaced, with the callable
that makes the replacement.
"""

import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import NamedTuple

from fastops._install import restated, upstream
from fastops._install.target import Target, everywhere, original_of

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
"""By name, a description of each layer, from the lowest to the highest."""

_REPEATED = frozenset({"dispatch", "functions", "replayed"})
"""Layers that mirror no code of TensorFlow: their ops follow from OpDefs or from recordings."""

RECORDINGS = "models"
"""The key in `restated.table` of the Keras code that recordings rely on without observing it."""


class Group(NamedTuple):
    """Targets that need the same modules, and are found or left out together.

    Attributes
    ----------
    layer : str
        The layer of its targets, or of most of them.
    title : str
        The name of the group in `doctor`.
    parts : str
        The modules that it needs, below `fastops._install`.
    find : callable
        Given these modules, yields the targets. For functions that are replaced wherever they are
        referred to, it returns the argument of `everywhere` instead.
    together : bool
        Whether all targets must be replaced, or none.
    """

    layer: str
    title: str
    parts: str
    find: Callable
    together: bool = False


def _tape_targets(tapes):
    kind = upstream.look_up("tensorflow.python.eager.backprop.GradientTape")
    for name, make in (("gradient", tapes.Gradient), ("watch", tapes.watch)):
        yield Target("gradients", f"tf.GradientTape.{name}", kind, name, make)


def _variable_targets(variables):
    kind = upstream.look_up("tensorflow.python.ops.resource_variable_ops.ResourceVariable")
    for name, make in variables.METHODS.items():
        title = f"tf.Variable.{name}"
        with upstream.contained("variables", title):
            holder = next((base for base in kind.__mro__ if name in vars(base)), kind)
            yield Target("variables", title, holder, name, make)


def _construction_targets(construction):
    kind = type(upstream.look_up("tensorflow.Variable"))
    yield Target("variables", "tf.Variable", kind, "__call__", construction.construct)


def _iteration_targets(iteration):
    for name, holder, attribute, make in iteration.METHODS:
        yield Target("operators", name, holder, attribute, make)


def _optional(traced, optionals, original):
    return staticmethod(traced.Method(original.__func__, optionals.from_value))


def _optional_targets(optionals, traced):
    kind = upstream.look_up("tensorflow.python.data.ops.optional_ops.Optional")
    made = vars(kind).get("from_value")
    if type(made) is staticmethod and type(made.__func__) is FunctionType:
        title = "tf.experimental.Optional.from_value"
        yield Target("helpers", title, kind, "from_value", partial(_optional, traced, optionals))


def _optional_method_targets(optionals, traced):
    kind = upstream.look_up("tensorflow.python.data.ops.optional_ops._OptionalImpl")
    for name, answer in optionals.METHODS.items():
        make = partial(traced.Method, answer=answer)
        yield Target("traced", f"tf.experimental.Optional.{name}", kind, name, make)


def _traced_targets(traced, planner):
    name = "tensorflow.python.eager.polymorphic_function.polymorphic_function.Function"

    def make(original):
        return traced.FunctionCall(original, planner.PlansBeside)

    yield Target("traced", "tf.function.__call__", upstream.look_up(name), "__call__", make)


def _call(name):
    """Return a function that takes a module, and calls its function with this name."""

    def find(module):
        return getattr(module, name)()

    return find


FUNCTIONS = (
    Group("functions", "generated functions", "calls", _call("functions")),
    Group("replayed", "functions", "replay.targets", _call("functions")),
    Group("public", "functions", "public.targets", _call("functions")),
    Group("helpers", "functions", "helpers.targets", _call("functions")),
    Group("keras", "functions", "keras.targets", _call("functions")),
)
"""Groups of functions that are replaced wherever TensorFlow or Keras refer to them."""

OPERATORS = (
    Group("operators", "operators of tensors and variables", "calls", _call("operators")),
    Group("operators", "methods of tensors", "public.targets", _call("methods")),
)

METHODS = (
    Group("gradients", "gradients of ops", "gradients.targets", _call("targets"), True),
    Group("gradients", "methods of tapes", "tapes", _tape_targets, True),
    Group("variables", "methods of variables", "variables", _variable_targets),
    Group("variables", "the making of variables", "construction", _construction_targets),
    Group("operators", "iteration over tensors", "iteration", _iteration_targets, True),
    Group("helpers", "methods", "helpers.targets", _call("methods")),
    Group("helpers", "optional values", "optionals traced", _optional_targets),
)

HIGHEST = (
    Group("keras", "methods", "keras.targets", _call("methods")),
    Group("models", "calls of Keras's objects", "models.targets", _call("of_keras")),
    Group("models", "steps of tf_keras's optimizers", "models.targets", _call("of_tf_keras")),
    Group("traced", "tf.function", "traced planner", _traced_targets),
    Group("traced", "optional values", "optionals traced", _optional_method_targets, True),
)

LOWEST = Group("dispatch", "TFE_Py_FastPathExecute", "calls", _call("dispatch"))
REPLAYED = Group("replayed", "methods", "replay.targets", _call("methods"))

PARTS = "calls construction iteration optionals planner tapes traced variables"
"""Modules that are imported together with this one."""


def _modules(group):
    """Return the modules of a group; `None` if one of them cannot be used here."""
    found = []
    for part in group.parts.split():
        module = upstream.load(part)
        if module is None:
            upstream.leave_out(group.layer, group.title, upstream.objection(part))
            return None
        found.append(module)
    return found


def _targets_of(*groups):
    """Yield the targets that exist, of each group."""
    for group in groups:
        modules = _modules(group)
        if modules is None:
            continue
        found = []
        with upstream.contained(group.layer, group.title):
            found = list(group.find(*modules))
        for target in found:
            yield target._replace(unit=group.title) if group.together else target


def _functions():
    """Return the argument of `everywhere`, for the groups of `FUNCTIONS`."""
    originals = {}
    for group in FUNCTIONS:
        modules = _modules(group)
        if modules is not None:
            with upstream.contained(group.layer, group.title):
                originals |= group.find(*modules)
    return originals


def operator_targets():
    """Yield a target for each operator, and for other methods of tensors and variables."""
    yield from _targets_of(*OPERATORS)


def method_targets():
    """Yield a target for each item of `METHODS`, such as methods of tapes and variables."""
    yield from _targets_of(*METHODS)


def candidates():
    """Yield each `Target` that exists in the running TensorFlow and Keras, unchecked."""
    yield from _targets_of(LOWEST)
    yield from everywhere(_functions())
    yield from operator_targets()
    yield from _targets_of(REPLAYED)
    yield from method_targets()
    yield from _targets_of(*HIGHEST)


def targets():
    """Yield each `Target` to replace.

    A target that mirrors code is left out if the running TensorFlow or Keras has different code.
    """
    upstream.begin()
    for target in candidates():
        try:
            if target.layer not in _REPEATED and _objection(target) is not None:
                continue
        except Exception as problem:
            upstream.leave_out(target.layer, target.name, upstream.said(problem))
            continue
        yield target


def _objection(target):
    """Return why the code that a target mirrors differs from the running code; None if not."""
    if is_recorded_of_keras(target):
        return restated.changed(RECORDINGS)
    original = original_of(target.holder, target.attribute)
    return restated.objection(target.layer, target.name, original)


def is_recorded_of_keras(target):
    """Tell whether a target is a recorded method of Keras. Recordings observe most of its code."""
    return target.layer == "models" and target.holder.__module__.startswith("keras.")


def originals():
    """Yield the layer and name of each piece that mirrors code, and the name of that code."""
    upstream.begin()
    for target in candidates():
        if is_recorded_of_keras(target):
            yield target.layer, target.name, RECORDINGS
        elif target.layer not in _REPEATED:
            original = vars(target.holder)[target.attribute]
            yield target.layer, target.name, restated.name_of(original)
    rules = upstream.load("gradients.targets")
    yield from rules.originals() if rules is not None else ()


def in_force():
    """Tell which of the pieces that mirror code `install` would put in force.

    Call it while fastops is not installed.

    Returns
    -------
    dict of str to dict
        By layer and name, for packages that are imported: why a piece is left out, or `None` if it
        would be in force.
    """
    found = {(target.layer, target.name) for target in targets()}
    rules = upstream.load("gradients.targets")
    if rules is not None:
        found |= rules.in_force()
    return {
        layer: {
            title: None if (layer, title) in found else _why(layer, title, piece)
            for title, piece in pieces.items()
            if restated.package_of(piece) in sys.modules
        }
        for layer, pieces in restated.table()["pieces"].items()
    }


def _why(layer, title, piece):
    """Return why a piece is left out."""
    changed = restated.changed(piece)
    if changed is not None and not changed.endswith("cannot be read"):
        return changed
    missing = upstream.left_out().get((layer, title))
    return missing or changed or "it is missing, or something else has replaced it"


def left_out():
    """Return why other pieces are left out because of missing names, by layer and name.

    Call it after `in_force`, which covers the pieces that mirror code.
    """
    told = restated.table()["pieces"]
    return {
        (layer, title): why
        for (layer, title), why in upstream.left_out().items()
        if title not in told.get(layer, ())
    }


upstream.load_all("", f"{PARTS} gradients.targets helpers.targets keras.targets models.targets")
upstream.load_all("", "public.targets replay.targets")
