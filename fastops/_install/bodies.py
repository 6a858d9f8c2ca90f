"""Functions that programs pass to `tf.vectorized_map`, with the traces of earlier calls.

In each eager call, TensorFlow traces such a function anew. A `Body` is what a trace depends on: the
code of the function and what its cells and defaults hold. So a new lambda of the same code with
equal values is the same body. A trace is used again under these conditions:

- The code of users that ran in the trace is shown to be pure
  (`fastops._specialize.recording.proof`).
- What this code names is unchanged (`fastops._specialize.guards`).
- The structures, dtypes and shapes of the elements are the same.
- All ops are stateless, or only read variables.

Each call passes its own tensors in the places of those that the trace has captured. While
TensorFlow traces, it sees the values of small tensors. These values are compared, except those of
floating elements: the function gets slices of them at an index that the trace does not know.
"""

import sys
import types
from functools import partial
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import op_def_registry
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.parallel_for import control_flow_ops
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._core.garbage import without_collections
from fastops._core.reasons import RefusedError
from fastops._install.lookups import of_codes
from fastops._plans.nodes import CALLS, PYTHON, functions_of
from fastops._plans.repeated import RepeatedTrace
from fastops._specialize.cache import Cache
from fastops._specialize.guards.discovery import guards_of
from fastops._specialize.guards.names import is_stand_in, upstream
from fastops._specialize.guards.places import Places, is_of_users
from fastops._specialize.guards.watch import Watch
from fastops._specialize.learned import CallCounts, Learned
from fastops._specialize.libraries import is_own
from fastops._specialize.policy import (
    MAX_BODIES,
    MAX_BODY_FAILURES,
    MAX_BODY_TRACES,
    MAX_PLAIN_DEPTH,
    MAX_WALK_BYTES,
)
from fastops._specialize.recording.closures import stores_in_cells
from fastops._specialize.recording.proof import Proof

CONSTANT_SIZE = 128
"""The size up to which TensorFlow sees the values of a captured tensor while it traces."""

_ATOMS = frozenset({bool, int, str, bytes, type(None), type(Ellipsis)})
_NUMBERS = frozenset({float, complex})
_OPAQUE = frozenset({tf.resource, tf.variant})
_READING = frozenset(
    {"Placeholder", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"}
)


class OtherError(Exception):
    """A value is of a class that bodies do not have."""


class Body:
    """What a call depends on: the key, and the tensors that it leaves out.

    Parameters
    ----------
    function : types.FunctionType
        The function.
    elems : structure of EagerTensor
        The elements, in lists, tuples and dicts.

    Attributes
    ----------
    key : tuple
        The key of the function and of the structure, dtypes and shapes of the elements.
    tensors : list of EagerTensor
        The tensors that the elements and the cells have, each once.
    free : set of int
        The indices of floating elements that no cell has.
    variables : list of tf.Variable
        The variables in cells.
    kept : list of object
        The objects that the key has by identity.

    Raises
    ------
    OtherError
        If there is a value of another class.
    """

    def __init__(self, function, elems):
        self.tensors, self.variables, self.kept, self.free = [], [], [], set()
        key = self.of(elems, 0)
        self.free.update(
            i
            for i, tensor in enumerate(self.tensors)
            if (tensor.dtype.is_floating or tensor.dtype.is_complex) and tensor.shape[0] > 1
        )
        key = key, self.of(function, 0)
        if type(function) is not types.FunctionType or is_own(_module_of(function)):
            raise OtherError
        specs = tuple([(tensor.dtype, tuple(tensor.shape)) for tensor in self.tensors])
        if any(dtype in _OPAQUE for dtype, _ in specs):
            raise OtherError
        self.key = (key, specs)

    def of(self, value, depth):
        """Return the key of a value."""
        kind = type(value)
        if depth > MAX_PLAIN_DEPTH:
            raise OtherError
        if kind is EagerTensor:
            for i, tensor in enumerate(self.tensors):
                if tensor is value:
                    self.free.discard(i)
                    return EagerTensor, i
            self.tensors.append(value)
            return EagerTensor, len(self.tensors) - 1
        if kind in _ATOMS:
            return kind, value
        if kind in _NUMBERS:
            return kind, repr(value)
        if kind is list or kind is tuple:
            return kind, *[self.of(item, depth + 1) for item in value]
        if kind is dict:
            return kind, *[
                (self.of(name, depth + 1), self.of(item, depth + 1)) for name, item in value.items()
            ]
        if isinstance(value, tf.DType):
            return tf.DType, value
        if kind is types.FunctionType and not is_own(_module_of(value)):
            return self.of_function(value, depth)
        if kind is types.FunctionType or is_stand_in(value) or kind is types.ModuleType:
            self.kept.append(upstream(value))
            return object, id(upstream(value))
        if kind is ResourceVariable:
            self.variables.append(value)
            return ResourceVariable, id(value), id(value._handle)
        raise OtherError

    def of_function(self, function, depth):
        """Return the key of a function of a user."""
        if function.__kwdefaults__ or vars(function):
            raise OtherError
        try:
            cells = [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # an empty cell
            raise OtherError from None
        self.kept.append(function.__globals__)
        parts = self.of(function.__defaults__, depth + 1), self.of(cells, depth + 1)
        return types.FunctionType, function.__code__, id(function.__globals__), *parts


def _module_of(function):
    """Return the name of the module of a function, by its globals; "" for other callables."""
    return str(getattr(function, "__globals__", {}).get("__name__"))


class _TracedFrame:
    """A frame without the variables whose values are not known.

    Parameters
    ----------
    frame : types.FrameType
        The frame of a call that begins.
    """

    def __init__(self, frame):
        self.f_code, self.f_globals, self.f_builtins = (
            frame.f_code,
            frame.f_globals,
            frame.f_builtins,
        )
        free = frame.f_code.co_freevars
        self.f_locals = {
            name: value
            for name, value in frame.f_locals.items()
            if name in free or not _is_symbolic(value)
        }


def _is_symbolic(value):
    """Tell whether a value is a symbolic tensor, or a container of nothing but plain values."""
    kind = type(value)
    if kind is tuple or kind is list:
        return all(_is_symbolic(item) or type(item) in _ATOMS for item in value)
    if kind is dict:
        return all(_is_symbolic(item) or type(item) in _ATOMS for item in value.values())
    return isinstance(value, tf.Tensor) and kind is not EagerTensor


class BodyWitness:
    """Notes the code that a function runs while it is traced, as a profile function.

    Parameters
    ----------
    function : types.FunctionType
        The function.
    caller : types.CodeType
        The code that calls it.

    Attributes
    ----------
    codes : dict of tuple to dict
        The globals of the code that ran, by the code and the identity of the globals.
    proof : Proof
        The proof for the user code.
    objection : str or None
        Why the user code is not shown to be pure.
    calls : int
        How often the function was called.
    """

    def __init__(self, function, caller):
        self.code, self.caller = function.__code__, caller
        self.codes, self.proof, self.objection = {}, Proof(), None
        self.calls, self.frame = 0, None

    def interrupt(self):
        """Object, since other code sees the functions that start."""
        self.objection = "the code sets a profile function"

    def __call__(self, frame, event, argument):
        """Note an event."""
        if self.frame is None:
            if not (
                event == "call" and frame.f_code is self.code and frame.f_back.f_code is self.caller
            ):
                return
            self.frame, self.calls = frame, self.calls + 1
        elif event == "return" and frame is self.frame:
            self.frame = None
            return
        if event != "call":
            return
        namespace, code = frame.f_globals, frame.f_code
        name = str(namespace.get("__name__"))
        self.codes[code, id(namespace)] = namespace
        if self.objection is None and not is_of_library(namespace, name):
            self.objection = self.proof.objection(_TracedFrame(frame))


def is_of_library(namespace, name):
    """Tell whether a dict holds the globals of a library, or of a class of named tuples."""
    if is_of_users(namespace):
        return name.startswith("namedtuple_")
    modules = sys.modules.get(name), sys.modules["_collections_abc"]  # its `__name__` differs
    return any(getattr(module, "__dict__", None) is namespace for module in modules)


class BodyTrace(NamedTuple):
    """A trace that can be used again.

    Attributes
    ----------
    repeated : RepeatedTrace
        The traced function.
    captures : list
        For each captured tensor, its index among the tensors of the body, or the tensor itself.
    constants : list of tuple
        The index of each tensor whose value is compared, with the value.
    guards : tuple of Condition
        What the code names, and its contents.
    kept : tuple
        Objects that are compared by identity.
    """

    repeated: RepeatedTrace
    captures: list
    constants: list
    guards: tuple
    kept: tuple

    def fits(self, tensors):
        """Tell whether a call with these tensors would be traced in the same way."""
        for i, value in self.constants:
            if tensors[i] is not value and not are_same(tensors[i], value):
                return False
        return all(guard.holds() for guard in self.guards)

    def run(self, tensors):
        """Return the results of a call."""
        captured = [tensors[item] if type(item) is int else item for item in self.captures]
        return self.repeated.run(captured)


def are_same(tensor, value):
    """Tell whether two tensors of a dtype other than strings have the same bytes."""
    return tensor.dtype != tf.string and tensor.numpy().tobytes() == value.numpy().tobytes()


class Bodies:
    """The bodies of one function of TensorFlow, with their traces.

    Parameters
    ----------
    title : str
        The name of the function.
    """

    def __init__(self, title):
        self.known, self.counts = Cache(MAX_BODIES), CallCounts(title)

    def forget(self):
        """Forget all bodies."""
        self.known.clear()

    def find(self, body):
        """Return the `BodyTraces` of a body, and the `BodyTrace` that fits or None."""
        known = self.known.get(body.key)
        if known is None:
            return self.known.add(body.key, BodyTraces()), None
        for trace in known.traces:
            if trace.fits(body.tensors):
                known.used += 1
                return known, trace
        return known, None


class BodyTraces:
    """The traces of a body.

    Attributes
    ----------
    trial : dict of None to BodyTrace
        At most one trace, which counts once it has given the bytes of another call.
    """

    def __init__(self):
        self.learned = Learned("body")
        self.trial = {}
        self.traces, self.calls, self.made, self.used = [], 0, 0, 0

    def is_due(self):
        """Tell whether the next call that no trace fits is to be learned from."""
        self.calls += 1
        return (
            self.calls > 1
            and self.learned.reason is None
            and self.made < MAX_BODY_FAILURES * (1 + self.used)
        )

    def refuse(self, why):
        """Leave all calls to TensorFlow, for an exception."""
        if isinstance(why, RefusedError):
            self.learned.leave(why.sentence, why.detail)
        else:
            self.learned.refuse("body_unusable", repr(why))

    def add(self, trace):
        """Add a trace."""
        self.traces = [trace, *self.traces[: MAX_BODY_TRACES - 1]]
        self.learned.learn(True)


OTHER, MISSED = Learned("other arguments"), Learned("a body that no trace fits")
"""Stand for calls that TensorFlow makes, in counts."""

OTHER.refuse("method_argument_type")
_maps = Bodies("tf.vectorized_map")


def code_in(function, name):
    """Return the code of a function that another function defines."""
    return next(
        (
            const
            for const in upstream(function).__code__.co_consts
            if isinstance(const, types.CodeType) and const.co_name == name
        ),
        None,
    )


_LOOP_FN = code_in(control_flow_ops.vectorized_map, "loop_fn")
_TRACED = code_in(control_flow_ops.pfor, "f")


def _closure(code, **values):
    """Return a function of TensorFlow that another function defines."""
    cells = tuple([types.CellType(values[name]) for name in code.co_freevars])
    return types.FunctionType(code, vars(control_flow_ops), code.co_name, None, cells)


def vectorized_map(fn, elems, fallback_to_while_loop, warn):
    """Make a call of `tf.vectorized_map` by an earlier trace, or learn from it.

    Parameters
    ----------
    fn : callable
        The function.
    elems : structure
        The elements.
    fallback_to_while_loop, warn : bool
        See `tf.vectorized_map`.

    Returns
    -------
    tuple or None
        The result as the only item; None if TensorFlow has to make the call.
    """
    try:
        elems = _converted(elems)
        body = Body(fn, elems)
    except OtherError:
        _maps.counts.count(OTHER)
        return None
    body.key = (*body.key, fallback_to_while_loop, warn, ag_ctx.control_status_ctx().status)
    known, trace = _maps.find(body)
    if trace is not None:
        try:
            result = trace.run(body.tensors)
        except tf.errors.OpError:  # another trace has other names in the text of the error
            return None
        _maps.counts.count(known.learned)
        return (result,)
    _maps.counts.count(MISSED if known.learned.is_active else known.learned)
    if not known.is_due() or sys.getprofile() is not None:
        return None
    return (_learn(known, body, fn, elems, fallback_to_while_loop, warn),)


def forget():
    """Forget all traces."""
    _maps.forget()


def _converted(elems):
    """Return the elements as eager tensors, as `tf.vectorized_map` converts them."""
    kind = type(elems)
    if kind is EagerTensor:
        if elems.shape.rank == 0:
            raise OtherError
        return elems
    if kind is list or kind is tuple:
        return kind([_converted(item) for item in elems])
    if kind is dict:
        return {name: _converted(item) for name, item in elems.items()}
    raise OtherError


def _learn(known, body, fn, elems, fallback_to_while_loop, warn):
    """Make a call as TensorFlow does, and keep the trace."""
    flat = tf.nest.flatten(elems)
    loop_fn = _closure(_LOOP_FN, elems=elems, fn=fn)
    traced = _closure(
        _TRACED,
        loop_fn=loop_fn,
        iters=max([tensor.shape[0] for tensor in flat]),
        fallback_to_while_loop=fallback_to_while_loop,
        parallel_iterations=None,
        warn=warn,
    )
    function = polymorphic_function.function(traced)
    witness = BodyWitness(fn, _LOOP_FN)
    known.made += 1
    result = observe(function, witness)
    try:
        known.add(_trace_of(function.get_concrete_function(), witness, body, fn, elems))
    except Exception as why:  # the call has succeeded: only the trace is not kept
        known.refuse(why)
    return result


def observe(call, witness):
    """Call a function, and a witness for each Python function that starts meanwhile.

    No garbage collection runs, since it may call other functions of users. If the code sets another
    profile function, `witness.interrupt` is called.
    """
    with without_collections():
        sys.setprofile(witness)
        try:
            return call()
        finally:
            if sys.getprofile() is witness:
                sys.setprofile(None)
            else:
                witness.interrupt()


def _trace_of(concrete, witness, body, fn, elems):
    """Return the trace of a call that was made."""
    if witness.objection is not None:
        raise RefusedError("foreign_code", witness.objection)
    if witness.calls != 1:
        raise RefusedError("body_unusable", "it was not called once")
    if witness.proof.assigning is not None:
        raise RefusedError("body_unusable", witness.proof.assigning)
    for code, _ in witness.codes:
        if not is_own(str(witness.codes[code, _].get("__name__"))) and stores_in_cells(
            code, code.co_freevars
        ):
            raise RefusedError("body_unusable", "it assigns to outer variables")
    if Body(fn, elems).key != body.key[:2]:
        raise RefusedError("body_unusable", "it changes what it depends on")
    check_ops(concrete)
    held = Places([fn], {})
    functions = list(witness.proof.functions.values())
    pairs = [(code, namespace) for (code, _), namespace in witness.codes.items()]
    names, places = guards_of(witness.codes, held, {}, functions, partial(of_codes, pairs))
    guards = names, Watch(places)
    identities = set(map(id, body.tensors))
    if any(guard.reaches(identities) for guard in guards):
        raise RefusedError("body_unusable", "a global has one of the tensors")
    captures = []
    for tensor in concrete.captured_inputs:
        captures.append(_place_of(tensor, body, guards, places))
    constants = [
        (i, tensor)
        for i, tensor in enumerate(body.tensors)
        if i not in captures
        or (i not in body.free and tensor.shape.num_elements() <= CONSTANT_SIZE)
    ]
    kept = (*body.kept, *body.variables, *functions, witness)
    return BodyTrace(RepeatedTrace(concrete), captures, constants, guards, kept)


def _place_of(tensor, body, guards, places):
    """Return the index of a captured tensor in a body; if it is guarded, the tensor itself."""
    for i, other in enumerate(body.tensors):
        if other is tensor:
            return i
    if any(variable._handle is tensor for variable in body.variables):
        return tensor
    if id(tensor) in places.variables or any(guard.reaches({id(tensor)}) for guard in guards):
        return tensor
    raise RefusedError("body_unusable", "it captures a tensor that it has made")


def check_ops(concrete):
    """Check that no op of a trace has state, apart from variables that are read.

    Its captured tensors, which live as long as the trace, must not be large.
    """
    graph = concrete.graph
    held = [tensor for tensor in concrete.captured_inputs if type(tensor) is EagerTensor]
    if sum(tensor.dtype.size * tensor._num_elements() for tensor in held) > MAX_WALK_BYTES:
        raise RefusedError("body_unusable", "it captures large tensors")
    if graph.deferred_external_captures:
        raise RefusedError("body_unusable", "the trace makes captures later")
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    functions = {function.signature.name for function in definition.library.function}
    for node in nodes:
        if not functions_of(node) - {node.op} <= functions:
            raise RefusedError("body_unusable", "the trace lacks a function")
        if node.op in functions or node.op in CALLS or node.op in _READING:
            continue
        description = op_def_registry.get(node.op)
        if node.op in PYTHON or description is None or description.is_stateful:
            raise RefusedError("body_unusable", f"it runs the op {node.op}")
