"""The state that a call of each kind may change.

It is restored between fastops's call and TensorFlow's. Before a call, `of` returns its `Effects`,
or a text that tells why the call is made only once.
"""

import sys
import weakref
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.ops.iterator_ops import IteratorBase
from tensorflow.python.framework import op_def_registry
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_resource_variable_ops as gen
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable
from tensorflow.python.trackable.base import Trackable

from fastops._core.tables import policy
from fastops._install import intercept, slices, traced, variables
from fastops._install.answer import Answer
from fastops._install.gradients.tape_methods import Gradient
from fastops._install.keras.calls import LayerCall
from fastops._install.models.method import RecordedMethod
from fastops._install.public.lowering import Lowering
from fastops._install.replacement import Replacement
from fastops._install.replay.replayed import Replayed
from fastops._install.verify.comparison import difference, of_arrays
from fastops._plans.nodes import CALLS, HARMLESS, STATEFUL, WAITING
from fastops._specialize.guards.places import Places
from fastops._specialize.libraries import is_keras

LEFT = ""
"""Returned in place of `Effects`: the call falls back to TensorFlow, so nothing is compared."""

_RANDOM = "it draws random numbers, others in each call"
_ITERATOR = "it takes elements of a dataset's iterator"
_CALLBACKS = "it calls functions of its caller"
_OBJECT = "it changes an object that cannot be copied"
_TABLE = "it writes to a table"
_ONCE = "an argument can be read only once"
_LAYER = "the Python of a layer that is not Keras's own may change anything"

_SKIPPED = (
    ("tf.random.*stateless*", None),
    ("tf.random.fold_in", None),
    ("tf.random.split", None),
    ("tf.random.experimental.*", None),
    ("tf.random.*", _RANDOM),
    ("tf.experimental.numpy.random.*", _RANDOM),
    ("tf.image.random_*", _RANDOM),
    ("tf.image.sample_distorted_bounding_box", _RANDOM),
    ("tf.nn.dropout", _RANDOM),
    ("tf.nn.experimental.general_dropout", _RANDOM),
    ("tf.nn.fractional_*_pool", _RANDOM),
    ("tf.lookup.*.insert*", _TABLE),
    ("tf.lookup.*.erase", _TABLE),
    ("tf.lookup.*.remove", _TABLE),
    *((name, _CALLBACKS) for name in ("tf.cond", "tf.case", "tf.switch_case")),
    ("*.map_structure*", _CALLBACKS),
    ("StrategyExtendedV2.update", _CALLBACKS),
    ("custom_gradient._eager_mode_decorator", _CALLBACKS),
    ("script_ops._internal_py_func", _CALLBACKS),
    ("control_flow_ops.vectorized_map", _CALLBACKS),
    ("functional_ops.*", _CALLBACKS),
    ("map_fn.map_fn", _CALLBACKS),
    ("module._flatten_module", "it returns a generator"),
    ("*.__setattr__", _OBJECT),
    ("name_scope_v2.*", _OBJECT),
    ("TensorArray.stack", None),
    ("TensorArray.*", _OBJECT),
    ("_EagerTensorArray.*", _OBJECT),
    ("ShouldUseWrapper.*", _OBJECT),
    ("_TFShouldUseHelper.*", _OBJECT),
    ("tf_decorator.make_decorator", _OBJECT),
    ("tf.GradientTape.watch", _OBJECT),
    ("tf.GradientTape.__*__", _OBJECT),
    ("*.get_tf_dataset", "it returns a dataset"),
    ("tf.experimental.Optional.from_value", "it returns an object of another class"),
)
"""Patterns of names of replacements, with the reason why calls are made only once; `None` if they
are made twice. The first pattern that matches counts."""

_OF_LOSSES = ("_losses",)

_WRITES = STATEFUL - HARMLESS - WAITING - {"PrintV2"}
_READS = HARMLESS | {"LookupTableFindV2", "LookupTableSizeV2", "LookupTableExportV2"}
_OPAQUE = frozenset({tf.resource, tf.variant})


class Effects:
    """The state that a call may change.

    Parameters
    ----------
    handles : iterable of EagerTensor
        Handles of the variables that may change.
    attributes : sequence of tuple
        Objects, each with the names of its attributes that may change (`None` for all). With the
        names `_OF_LOSSES` it is the lists in the attributes that may change.
    names : bool
        Whether Keras may generate names for objects.
    compare : callable, optional
        Compares the results, in place of `difference`.
    arguments : callable, optional
        Returns new positional arguments for each of the two calls. It is given if the arguments can
        be used only once.
    """

    def __init__(self, handles=(), attributes=(), names=False, compare=difference, arguments=None):
        self.handles = list({id(handle): handle for handle in handles}.values())
        self.attributes = attributes
        self.names = names
        self.compare = compare
        self.arguments = arguments

    @property
    def nothing(self):
        """Whether the call changes nothing."""
        return not (self.handles or self.attributes or self.names)

    def state(self):
        """Return a copy of the current state."""
        return (
            [_value_of(handle) for handle in self.handles],
            [_attributes_of(value, names) for value, names in self.attributes],
            _names_given() if self.names else None,
        )

    def put_back(self, state):
        """Restore a state."""
        values, attributes, names = state
        for handle, value in zip(self.handles, values, strict=True):
            now = _value_of(handle)
            if value is None and now is not None:
                gen.destroy_resource_op(handle, ignore_lookup_error=True)
            elif value is not None and (now is None or of_arrays(value, now, "") is not None):
                gen.assign_variable_op(handle, tf.constant(value, _dtype_of(handle)))
        for (value, chosen), held in zip(self.attributes, attributes, strict=True):
            for name in _attributes_of(value, chosen).keys() - held.keys():
                object.__delattr__(value, name)
            for name, attribute in held.items():
                if chosen is _OF_LOSSES:
                    getattr(value, name)[:] = attribute
                else:
                    object.__setattr__(value, name, attribute)
        given = _names()
        if names is not None and given is not None:
            given.clear()
            given.update(names)

    def difference(self, ours, theirs):
        """Return how two states differ; `None` if they do not."""
        for handle, value, wanted in zip(self.handles, ours[0], theirs[0], strict=True):
            where = f"variable {_title(handle)}"
            if value is None or wanted is None:
                if value is not wanted:
                    return f"{where}: only one way leaves a value"
            elif (told := of_arrays(value, wanted, where)) is not None:
                return told
        for (value, _), held, wanted in zip(self.attributes, ours[1], theirs[1], strict=True):
            told = difference(held, wanted, f"attributes of the {type(value).__name__}")
            if told is not None:
                return told
        return difference(ours[2], theirs[2], "names that Keras gives")


def _value_of(handle):
    if not gen.var_is_initialized_op(handle):
        return None
    return np.array(gen.read_variable_op(handle, _dtype_of(handle)).numpy(), copy=True)


def _dtype_of(handle):
    return tf.as_dtype(handle._handle_data.shape_and_type[0].dtype)


def _title(handle):
    data = handle._handle_data.shape_and_type[0]
    sizes = [dim.size for dim in data.shape.dim]
    return f"of {tf.as_dtype(data.dtype).name}{sizes}"


def _attributes_of(value, names):
    if names is _OF_LOSSES:  # Keras changes these lists in place
        return {name: list(getattr(value, name)) for name in names}
    if names is not None:
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    return dict(vars(value))


def _names():
    """Return by kind how many names Keras has generated in this thread.

    `None` before the first one, and if Keras is not imported.
    """
    state = sys.modules.get("keras.src.backend.common.global_state")
    return state and state.get_global_attribute("object_name_uids")


def _names_given():
    return dict(_names() or {})


# ---------------------------------------------------------------------------------------------
# The effects of one call
# ---------------------------------------------------------------------------------------------


def of(replacement, name, args, kwargs):
    """Return the effects of a call of a replacement.

    Parameters
    ----------
    replacement : Replacement
        The replacement.
    name : str
        The name of the patch point.
    args, kwargs : tuple, dict
        The arguments.

    Returns
    -------
    Effects or str
        The effects, or a text that tells why the call is made only once. `LEFT` if the call falls
        back to TensorFlow.
    """
    for value in (*args, *kwargs.values()):
        if _is_iterator(value) and type(replacement) not in _ASKING:
            return _ITERATOR
        if isinstance(value, Iterator) and not (_is_iterator(value) or name.endswith("__next__")):
            return _ONCE
    known = _OF_CLASSES.get(type(replacement))
    if known is not None:
        return known(replacement, name, args, kwargs)
    return "it is not known what it may change"


def _by_name(name):
    for pattern, why in _SKIPPED:
        if fnmatchcase(name, pattern):
            return why
    return None


def _pure(replacement, name, args, kwargs):
    return _by_name(name) or Effects()


def _of_op(op_name, values):
    """Return the effects of an op, from tables and its OpDef."""
    op_def = op_def_registry.get(op_name)
    if op_def is None or op_name.startswith(("_", "Inplace")):
        return f"{op_name} is not known"
    if op_name in policy.UNSEEDED:
        return _RANDOM
    if op_name in _UNDEFINED:
        return Effects(compare=partial(_defined, _UNDEFINED[op_name]))
    if op_name in _READS:
        return Effects()
    if op_name in _WRITES:
        handles = [value for value in tf.nest.flatten(values) if _is_handle(value)]
        handles += [value._handle for value in tf.nest.flatten(values) if _is_variable(value)]
        if not handles or not all(map(_is_of_variable, handles)):
            return f"{op_name} changes what cannot be copied"
        return Effects(handles)
    if op_def.is_stateful:
        return f"{op_name} has a state or effects that cannot be copied"
    if any(arg.is_ref for arg in (*op_def.input_arg, *op_def.output_arg)):
        return f"{op_name} takes references"
    return Effects()


_UNDEFINED = {
    "BlockLSTM": (0, 2, 3, 4, 5),
    "BlockLSTMV2": (0, 2, 3, 4, 5),
    "FusedBatchNorm": (3, 4),
    "FusedBatchNormV2": (3, 4),
    "FusedBatchNormV3": (3, 4, 5),
    "Eig": (1,),
    "SelfAdjointEigV2": (1,),
    "Svd": (1, 2),
}
"""By op, indices of outputs that TensorFlow's kernels may leave uninitialized."""


def _defined(undefined, ours, theirs):
    """Compare results without the outputs that may be uninitialized.

    Outputs of rank two and higher are compared in any case.
    """
    if not isinstance(ours, tuple) or type(ours) is not type(theirs):
        return difference(ours, theirs)
    kept = [
        [value for at, value in enumerate(way) if at not in undefined or len(value.shape) > 1]
        for way in (ours, theirs)
    ]
    return difference(*kept)


def _is_handle(value):
    return isinstance(value, EagerTensor) and value.dtype == tf.resource


def _is_variable(value):
    return isinstance(value, BaseResourceVariable)


def _is_of_variable(handle):
    data = getattr(handle, "_handle_data", None)
    return (
        data is not None
        and data.is_set
        and len(data.shape_and_type) == 1
        and _dtype_of(handle) not in _OPAQUE
    )


def _dispatched(replacement, name, args, kwargs):
    if len(args) < 3 or not isinstance(args[1], str):
        return LEFT
    return _of_op(args[1], args[3:])


def _generated(replacement, name, args, kwargs):
    return _of_op(replacement.op.op_name, (list(args), list(kwargs.values())))


def _variables_in(values):
    """Return the handles of variables among arguments."""
    handles = []
    for value in tf.nest.flatten(values):
        held = getattr(value, "_value", value)  # the variable in a Keras variable
        if _is_variable(held) and isinstance(held._handle, EagerTensor):
            handles.append(held._handle)
    return handles


def _assigned(replacement, name, args, kwargs):
    handles = _variables_in(list(args[:1]))
    if not all(map(_is_of_variable, handles)):
        return "it is a variable of variants"
    return Effects(handles)


def _recorded(replacement, name, args, kwargs):
    if not args or not replacement.describe(args[0])["recorded"]:
        return LEFT
    try:
        held = Places([args[0]], replacement.unasked).variables
    except Exception:  # a call with such an object is not replayed
        return LEFT
    handles = [variable._handle for variable in held.values()]
    handles += _variables_in((list(args[1:]), list(kwargs.values())))
    if not all(map(_is_of_variable, handles)):
        return "it may change something that is not a variable"
    return Effects(handles, _losses_in(args[0]), names="keras" in sys.modules)


def _losses_in(instance):
    """Return the layers in an object of Keras that hold losses, each with the attribute."""
    flatten = getattr(instance, "_flatten_layers", None)
    layers = () if flatten is None else flatten()
    return [(layer, _OF_LOSSES) for layer in layers if _is_changed(vars(layer).get("_losses"))]


def _is_changed(losses):
    """Tell whether calls change the losses of a layer in place, in a list of Python or Keras."""
    return isinstance(losses, list) and not isinstance(losses, Trackable)


def _layer(replacement, name, args, kwargs):
    layer = args[0]
    try:
        if not all(is_keras(type(part)) for part in layer._flatten_layers()):
            return _LAYER
        handles = [variable.value._handle for variable in layer.variables]
    except Exception:
        return _LAYER
    if not all(map(_is_of_variable, handles)):
        return "it may change something that is not a variable"
    return Effects(handles, names=True)


_graphs: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _objection(concrete):
    """Return why a traced function is run only once; `None` if it is run twice."""
    if concrete not in _graphs:
        _graphs[concrete] = _objection_to(concrete.graph.as_graph_def())
    return _graphs[concrete]


def _objection_to(graph):
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    for op_name in sorted({node.op for node in nodes}):
        if op_name in policy.UNSEEDED:
            return _RANDOM
        if op_name in WAITING:  # supported in the function itself: each way gets its own iterator
            if any(
                node.op in WAITING
                for function in graph.library.function
                for node in function.node_def
            ):
                return _ITERATOR
            continue
        if op_name in _READS | _WRITES | CALLS:
            continue
        op_def = op_def_registry.get(op_name)
        if op_def is not None and op_def.is_stateful and op_name not in ("Placeholder", "_Arg"):
            return f"{op_name} has a state or effects that cannot be copied"
    return None


def _function(replacement, name, args, kwargs):
    caller = getattr(args[0], "_fastops_caller", None) if args else None
    known = () if caller is None else caller.known_cases()
    handles = _variables_in((list(args[1:]), list(kwargs.values())))
    concretes = {case.runner.concrete for case in known} - {None}
    if not concretes:
        return LEFT
    arguments, iterators = None, [at for at, value in enumerate(args) if _is_iterator(value)]
    if len(iterators) > 1 or any(map(_is_iterator, kwargs.values())):
        return _ITERATOR
    for concrete in concretes:
        why = _objection(concrete)
        if why is not None:
            return why
        for captured in concrete.captured_inputs:
            if _is_handle(captured) and _is_of_variable(captured):
                handles.append(captured)
    if not all(map(_is_of_variable, handles)):
        return "it may change something that is not a variable"
    takes = {_elements(concrete) for concrete in concretes}
    if takes != {0}:
        if not iterators or len(takes) > 1:
            return _ITERATOR
        arguments = _with_copies(args, iterators[0], takes.pop())
    return Effects(handles, arguments=arguments)


def _of_runtime(replacement, name, args, kwargs):
    if not tf.executing_eagerly():
        return LEFT
    atomic, *tensors = args
    why = _objection(atomic)
    if why is not None:
        return why
    handles = [tensor for tensor in tensors if _is_handle(tensor)]
    if not all(map(_is_of_variable, handles)):
        return "it may change something that is not a variable"
    return Effects(handles)


def _is_iterator(value):
    return isinstance(value, IteratorBase)


def _elements(concrete):
    """Return how many elements a traced function takes from its iterator."""
    return sum(op.type in WAITING for op in concrete.graph.get_operations())


def _with_copies(args, at, count):
    """Take elements from an iterator. Return a function that makes arguments for one call.

    In these arguments, a new iterator over the same elements replaces the original one.
    """
    iterator, taken = args[at], None
    spec = iterator.element_spec
    for _ in range(count):
        try:
            element = tf.data.Dataset.from_tensors(next(iterator))
        except StopIteration:
            break
        taken = element if taken is None else taken.concatenate(element)
    if taken is None:
        taken = tf.data.Dataset.from_tensors(0).take(0)
        taken = taken.map(lambda _: tf.nest.map_structure(_zero_of, spec))

    def arguments():
        same = dataset_ops._VariantDataset(taken._variant_tensor, spec)
        return (*args[:at], iter(same), *args[at + 1 :])

    return arguments


def _zero_of(spec):
    sizes = [size or 1 for size in spec.shape]
    return tf.zeros(sizes, spec.dtype)


def _of_tape(replacement, name, args, kwargs):
    if not args or not isinstance(args[0], tf.GradientTape):
        return LEFT
    return Effects(attributes=[(args[0], ("_tape", "_watched_variables", "_recording"))])


def _answer(replacement, name, args, kwargs):
    why = _by_name(name)
    if why is not None:
        return why
    if name.startswith("tf.GradientTape."):
        return _of_tape(replacement, name, args, kwargs)
    if name == "TensorShape.__init__":
        return Effects(attributes=[(args[0], ("_dims",))])
    if name.endswith("__init__"):
        return Effects(attributes=[(args[0], None)])
    if name.endswith("apply_defaults"):
        return Effects(attributes=[(args[0], ("arguments",))])
    return Effects()


def _plain(replacement, name, args, kwargs):
    why = _by_name(name)
    if why is not None:
        return why
    if name == "backprop._gradient_function":
        return Effects(compare=partial(_same_gradients, _skipped(*args, **kwargs)))
    if name == "ConcreteFunction._call_flat":
        return LEFT  # it may change variables, and tapes would record both calls
    if name == "tf.Variable":
        value = args[1] if len(args) > 1 else kwargs.get("initial_value")
        return _CALLBACKS if callable(value) else Effects(compare=_same_variables)
    if name.endswith("__next__"):
        return Effects(attributes=[(args[0], ("_index",))])
    return Effects()


_OWN = frozenset({"_handle", "_unique_id", "_parent_op", "_initializer_op", "_handle_name"})
"""Attributes in which two variables that are made from the same arguments differ."""


def _skipped(op_name, attrs, num_inputs, inputs, outputs, out_grads, skip_input_indices, *scopes):
    """Return the indices of inputs whose gradients the tape does not use.

    The parameters are those of ``backprop._gradient_function``.
    """
    return frozenset(skip_input_indices or ())


def _same_gradients(skipped, ours, theirs):
    """Compare results of gradient functions: one gradient, or a sequence of gradients.

    Gradients that the tape does not use are left out. TensorFlow's functions compute some of them.
    """
    kept = [list(way) if isinstance(way, list | tuple) else [way] for way in (ours, theirs)]
    if len(kept[0]) == len(kept[1]):
        for way in kept:
            for i in skipped.intersection(range(len(way))):
                way[i] = None
    return difference(*kept)


def _same_variables(ours, theirs):
    if not _is_variable(ours) or type(ours) is not type(theirs):
        return difference(ours, theirs)
    kept = [
        {name: value for name, value in vars(variable).items() if name not in _OWN}
        for variable in (ours, theirs)
    ]
    told = difference(*kept, "attributes of the variable")
    if told is not None or not _is_of_variable(theirs._handle):
        return told
    values = [_value_of(variable._handle) for variable in (ours, theirs)]
    return difference(*values, "value of the variable")


_ASKING = frozenset({Answer, traced.FunctionCall})
"""Classes of replacements that may get an iterator as an argument.

Answers take no elements. The effects of traced functions handle iterators.
"""

_OF_CLASSES = {
    intercept.FastPathExecute: _dispatched,
    intercept.Generated: _generated,
    intercept.Operator: _pure,
    Lowering: _pure,
    Replayed: _pure,
    Answer: _answer,
    RecordedMethod: _recorded,
    LayerCall: _layer,
    traced.FunctionCall: _function,
    traced.PlainMethod: _pure,
    traced.RuntimeCall: _of_runtime,
    Gradient: _of_tape,
    variables.VariableRead: _pure,
    variables.Assign: _assigned,
    slices.VariableSlice: _pure,
    slices.AssignSlice: _assigned,
    Replacement: _plain,
}
