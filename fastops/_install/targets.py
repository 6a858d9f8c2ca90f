"""All targets of `fastops.install`.

`targets` lists each callable of TensorFlow and Keras that is to be replaced, with the attributes
that refer to it and the callable that makes the replacement. `GROUPS` has all groups of targets,
with their ranks. The rank decides if two groups replace the same function or the same attribute.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import groupby, pairwise
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType
from typing import NamedTuple

from fastops._core.reasons import text_of
from fastops._install import restated, upstream
from fastops._install.target import Target, everywhere, original_of

LAYERS = {
    "dispatch": "the call by which every generated function of TensorFlow runs its op",
    "functions": "the generated functions of ops that have kernels here, wherever TensorFlow or "
    "Keras refer to them",
    "operators": "the operators of eager tensors and variables",
    "public": "public functions that are written in Python",
    "replayed": "other public functions: the ops of a call are recorded once, and replayed",
    "gradients": "the functions that tapes and forward accumulators call for each op, and methods "
    "of tapes",
    "variables": "reads and assignments of variables, and the creation of variables",
    "datasets": "iteration over datasets: making iterators, and taking elements",
    "helpers": "helper functions of TensorFlow, which libraries call, too: for nested structures, "
    "modules, the binding of arguments, and checks of types",
    "keras": "functions of Keras 3's backend, calls of layers, and batches of arrays",
    "models": "calls of Keras's own layers, models, losses, metrics and optimizers, and of "
    "tf_keras's own layers, models, losses and optimizers: recorded, and replayed",
    "modules": "calls of users' own subclasses of `tf.Module`, and draws of "
    "`tf.random.Generator`: recorded, and replayed",
    "traced": "calls of functions that `tf.function` has made, and the optional values that "
    "Keras's steps return",
}
"""By name, a description of each layer."""

_REPEATED = frozenset({"dispatch", "functions", "modules", "replayed"})
"""Layers that mirror no code of TensorFlow: their ops follow from OpDefs or from recordings."""

RECORDINGS = {"keras": "models", "tf_keras": "models of tf_keras"}
"""By package, the key in `restated.table` of the code that recordings of calls rely on without
observing it."""


class Group(NamedTuple):
    """Targets that need the same modules, and are found or left out together.

    Attributes
    ----------
    rank : int
        Decides between groups. If several groups claim a function, the one with the highest rank
        replaces it. If several groups have a target for the same attribute, each stand-in lies on
        top of those with lower ranks: it is called first, and they are its originals.
    layer : str
        The layer of its targets, or of most of them.
    title : str
        The name of the group in `doctor`.
    parts : str
        The modules that it needs, below `fastops._install`.
    find : callable
        Given these modules, yields the targets, or returns the claims.
    everywhere : bool
        Whether the group claims functions, which are replaced wherever TensorFlow or Keras refer
        to them (see `fastops._install.target.everywhere`).
    together : bool
        Whether all targets must be replaced, or none.
    package : str, optional
        The package of the targets, ``"keras"`` or ``"tf_keras"``. If a program imports it while
        fastops is installed, they are replaced after that import.
    """

    rank: int
    layer: str
    title: str
    parts: str
    find: Callable
    everywhere: bool = False
    together: bool = False
    package: str | None = None


def _tape_targets(methods):
    kind = upstream.look_up("tensorflow.python.eager.backprop.GradientTape")
    for name, make in methods.METHODS:
        yield Target("gradients", f"tf.GradientTape.{name}", kind, name, make)


def _forward_targets(products):
    module = upstream.look_up("tensorflow.python.eager.forwardprop")
    name = "forwardprop._jvp_dispatch"
    yield Target(
        "gradients", name, module, "_jvp_dispatch", products.make, announce=products.announce
    )


def _variable_targets(variables, slices):
    kind = upstream.look_up("tensorflow.python.ops.resource_variable_ops.ResourceVariable")
    for name, make in {**variables.METHODS, **slices.METHODS}.items():
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


def _iterator_targets(datasets):
    for name, holder, attribute, make in datasets.METHODS:
        yield Target("datasets", name, holder, attribute, make)


def _array_targets(datasets):
    kind = upstream.look_up("tensorflow.python.data.ops.dataset_ops.NumpyIterator")
    name = "tf.data.NumpyIterator.__next__"
    yield Target("datasets", name, kind, "__next__", datasets.advance_arrays)


def _pipeline_targets(pipelines, traced):
    kind = upstream.look_up("tensorflow.python.data.ops.dataset_ops.DatasetV2")
    make = partial(traced.PlainMethod, answer=pipelines.iterate, anywhere=True)
    yield Target("datasets", "tf.data.Dataset.__iter__", kind, "__iter__", make)


def _optional(traced, optionals, original):
    return staticmethod(traced.PlainMethod(original.__func__, optionals.from_value))


def _optional_targets(optionals, traced):
    kind = upstream.look_up("tensorflow.python.data.ops.optional_ops.Optional")
    made = vars(kind).get("from_value")
    if type(made) is staticmethod and type(made.__func__) is FunctionType:
        title = "tf.experimental.Optional.from_value"
        yield Target("helpers", title, kind, "from_value", partial(_optional, traced, optionals))


def _optional_method_targets(optionals, traced):
    kind = upstream.look_up("tensorflow.python.data.ops.optional_ops._OptionalImpl")
    for name, answer in optionals.METHODS.items():
        make = partial(traced.PlainMethod, answer=answer)
        yield Target("traced", f"tf.experimental.Optional.{name}", kind, name, make)


def _traced_targets(traced, planner):
    name = "tensorflow.python.eager.polymorphic_function.polymorphic_function.Function"

    def make(original):
        return traced.FunctionCall(original, planner.PlansBeside)

    yield Target("traced", "tf.function.__call__", upstream.look_up(name), "__call__", make)


def _runtime_targets(traced):
    name = "tensorflow.python.eager.polymorphic_function.atomic_function.AtomicFunction"
    kind = upstream.look_up(name)
    yield Target("traced", "AtomicFunction.call_flat", kind, "call_flat", traced.RuntimeCall)
    name = "tensorflow.python.eager.polymorphic_function.concrete_function.ConcreteFunction"
    kind = upstream.look_up(name)
    yield Target("traced", "ConcreteFunction._call_flat", kind, "_call_flat", traced.trace_call)


def _call(name):
    """Return a function that takes a module, and calls its function with this name."""

    def find(module):
        return getattr(module, name)()

    return find


def in_order(*groups):
    """Return groups by rank, the lowest first. It is an error if two groups have the same rank."""
    ordered = sorted(groups, key=attrgetter("rank"))
    for lower, higher in pairwise(ordered):
        if lower.rank == higher.rank:
            raise ValueError(f"{lower.title!r} and {higher.title!r} have the same rank")
    return tuple(ordered)


GROUPS = in_order(
    # The call that all functions below make
    Group(0, "dispatch", "TFE_Py_FastPathExecute", "calls", _call("dispatch")),
    # Functions
    Group(10, "functions", "generated functions", "calls", _call("functions"), everywhere=True),
    Group(11, "replayed", "functions", "replay.targets", _call("functions"), everywhere=True),
    Group(12, "public", "functions", "public.targets", _call("functions"), everywhere=True),
    Group(13, "helpers", "functions", "helpers.targets", _call("functions"), everywhere=True),
    Group(
        14,
        "keras",
        "functions",
        "keras.targets",
        _call("functions"),
        everywhere=True,
        package="keras",
    ),
    # Operators, and other methods of TensorFlow
    Group(20, "operators", "operators of tensors and variables", "calls", _call("operators")),
    Group(21, "operators", "methods of tensors", "public.targets", _call("methods")),
    Group(22, "replayed", "methods", "replay.targets", _call("methods")),
    Group(
        30, "gradients", "gradients of ops", "gradients.targets", _call("targets"), together=True
    ),
    Group(
        31, "gradients", "methods of tapes", "gradients.tape_methods", _tape_targets, together=True
    ),
    Group(32, "variables", "methods of variables", "variables slices", _variable_targets),
    Group(33, "variables", "the making of variables", "construction", _construction_targets),
    Group(
        34, "operators", "iteration over tensors", "iteration", _iteration_targets, together=True
    ),
    Group(35, "helpers", "methods", "helpers.targets", _call("methods")),
    Group(36, "helpers", "optional values", "optionals traced", _optional_targets),
    Group(37, "datasets", "iterators of datasets", "datasets", _iterator_targets, together=True),
    Group(38, "datasets", "iterators of arrays", "datasets", _array_targets),
    Group(39, "datasets", "iteration over datasets", "pipelines traced", _pipeline_targets),
    # Methods of Keras, and calls of whole functions
    Group(40, "keras", "methods", "keras.targets", _call("methods"), package="keras"),
    Group(
        41,
        "helpers",
        "methods of tf_keras",
        "helpers.targets",
        _call("of_tf_keras"),
        package="tf_keras",
    ),
    Group(
        42,
        "models",
        "calls of Keras's objects",
        "models.targets",
        _call("of_keras"),
        package="keras",
    ),
    Group(
        43,
        "models",
        "calls of tf_keras's objects",
        "models.targets",
        _call("of_tf_keras"),
        package="tf_keras",
    ),
    Group(44, "traced", "tf.function", "traced planner", _traced_targets),
    Group(45, "traced", "functions of the runtime", "traced", _runtime_targets),
    Group(
        46, "traced", "optional values", "optionals traced", _optional_method_targets, together=True
    ),
    Group(47, "gradients", "jacobians of tapes", "gradients.jacobian_methods", _tape_targets),
    Group(48, "gradients", "forward accumulators", "gradients.forward_products", _forward_targets),
    Group(49, "modules", "calls of modules", "models.targets", _call("of_modules"), together=True),
    Group(50, "modules", "draws of generators", "models.targets", _call("of_generators")),
)
"""All groups, the lowest rank first. The ranks of one kind of callables have the same tens."""


def _modules(group):
    """Return the modules of a group; `None` if one of them cannot be used here."""
    modules = []
    for part in group.parts.split():
        module = upstream.load_for(part, group.layer, group.title)
        if module is None:
            return None
        modules.append(module)
    return modules


def _claims(groups):
    """Return the claims of groups, in the form that `everywhere` takes.

    Of the claims on one function, the one of the highest rank counts.
    """
    claims = {}
    for group in groups:  # by rank, so that a later claim takes the place of an earlier one
        modules = _modules(group)
        if modules is not None:
            with upstream.contained(group.layer, group.title):
                claims |= group.find(*modules)
    return claims


def _targets_of_claims(groups):
    """Return the targets of the functions that groups claim."""
    return everywhere(_claims(groups))


def targets_of(groups):
    """Yield the targets that exist, of each group.

    If two targets of a group have the same attribute, the second one is left out.
    """
    for group in groups:
        modules = _modules(group)
        if modules is None:
            continue
        targets = []
        with upstream.contained(group.layer, group.title):
            targets = list(group.find(*modules))
        patched = {}
        for target in targets:
            first = patched.setdefault((id(target.holder), target.attribute), target)
            if first is not target:
                why = text_of("attribute_claimed", first.name)
                upstream.leave_out(target.layer, target.name, why)
                continue
            yield target._replace(unit=group.title) if group.together else target


def candidates(package=None):
    """Yield each `Target` that exists in the running TensorFlow and Keras, unchecked.

    The targets come in the order of the ranks of their groups. With `package`, only the groups of
    this package count.
    """
    chosen = [group for group in GROUPS if package in (None, group.package)]
    for claiming, groups in groupby(chosen, key=attrgetter("everywhere")):
        find = _targets_of_claims if claiming else targets_of
        yield from find(groups)


def targets(package=None):
    """Yield each `Target` to replace; with `package`, those of a package that was just imported.

    A target that mirrors code is left out if the running TensorFlow or Keras has different code.
    """
    if package is None:
        upstream.begin()
    else:
        upstream.look_again()
    for target in candidates(package):
        try:
            if _mirrors_code(target) and _objection(target) is not None:
                continue
        except Exception as problem:
            upstream.leave_out(target.layer, target.name, upstream.said(problem))
            continue
        yield target


def _mirrors_code(target):
    """Tell whether a stand-in reimplements Python code. One of a C function calls that function."""
    if target.layer in _REPEATED:
        return False
    return type(original_of(target.holder, target.attribute)) is not BuiltinFunctionType


def _objection(target):
    """Return why the code that a target mirrors differs from the running code; None if not."""
    if (key := recorded(target)) is not None:
        return restated.changed(key)
    original = original_of(target.holder, target.attribute)
    return restated.objection(target.layer, target.name, original)


def recorded(target):
    """Return the key in `RECORDINGS` of a recorded method; None if a piece mirrors its code.

    Recordings observe most of the code of such a method.
    """
    if target.layer != "models" or target.attribute == "apply_gradients":
        return None
    return RECORDINGS.get(target.holder.__module__.partition(".")[0])


def originals():
    """Yield the layer and name of each piece that mirrors code, and the name of that code."""
    upstream.begin()
    for target in candidates():
        if (key := recorded(target)) is not None:
            yield target.layer, target.name, key
        elif _mirrors_code(target):
            original = vars(target.holder)[target.attribute]
            yield target.layer, target.name, restated.name_of(original)
    rules = upstream.load("gradients.targets")
    yield from rules.originals() if rules is not None else ()


def in_force():
    """Tell which of the pieces that mirror code `install` would activate.

    Call it while fastops is not installed.

    Returns
    -------
    dict of str to dict
        By layer and name, for packages that are imported: why a piece is left out, or `None` if it
        would be active.
    """
    active = {(target.layer, target.name) for target in targets()}
    rules = upstream.load("gradients.targets")
    if rules is not None:
        active |= rules.in_force()
    return {
        layer: {
            title: None if (layer, title) in active else _why(layer, title, piece)
            for title, piece in pieces.items()
            if restated.package_of(piece) in sys.modules
        }
        for layer, pieces in restated.table()["pieces"].items()
    }


def _why(layer, title, piece):
    """Return why a piece is left out."""
    changed = restated.changed(piece)
    if changed is not None and not changed.startswith(text_of("source_missing")):
        return changed
    missing = upstream.left_out().get((layer, title))
    return missing or changed or text_of("original_missing")


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


PACKAGES = frozenset({group.package for group in GROUPS} - {None})
"""The packages that a program may import while fastops is installed."""

# Import the modules now, so that the first `install` is as fast as any other.
for _part in " ".join(group.parts for group in GROUPS).split():
    upstream.load(_part)
