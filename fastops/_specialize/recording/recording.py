"""Turns the notes of a recorded call into the steps of its replay.

Every value has a number. The tensors among the arguments come first, then the handles of variables
that are not arguments, then the outputs of each step. Outputs of ops that depend only on constants
are constants.

A recording assumes that later calls find the same state as the recorded call. Each assumption has a
guard:

===============================  ==================================================================
Assumption                       Guard
===============================  ==================================================================
dtypes, shapes and aliases of    the signature of the call (`_cpp/signature.h`); of variables, the
arguments, Python values         static shape and the data of the handle
values that Python read          a `Check` of the step that makes the value, or of the arguments.
                                 Assignments that came before the read are put after it
                                 (`_Maker.compared_first`). After random ops have drawn, only the
                                 truth of a comparison is compared (`Recording.branches`)
sizes of a step's outputs        `RecordedStep.sizes`. After an effect, when the call cannot be made
                                 again, the sizes of its inputs must decide them (`is_static`);
                                 otherwise the call is not recorded. Sizes are not compared if
                                 values decide them and the step is the last one of a function that
                                 returns only arguments and outputs of ops: they are the sizes of
                                 the result. Some functions are known to read no sizes that values
                                 decide (`replay/functions.py`)
results of `Shape`, `Size`,      the sizes of their inputs, as above. They are not folded if these
`Rank`, folded to constants      are not compared
the same, for all batch sizes    see `any_batch` of `recording`: sizes that depend on the batch size
                                 are not constants, and no code has read them
a constant made in the call      the arguments and values above, from which Python made it. If it
                                 shares memory with a value, it is a copy that Python made without
                                 an op, and the call is not recorded
a constant older than the call   the object that holds it is guarded (`guards/places.py`). The
                                 recording keeps the tensor itself if a tape may watch it, a copy
                                 otherwise
dtype of a handle's resource     the handle itself, or the signature
the table behind a handle        the object that holds the table is guarded: it has the same handle.
                                 What is in the table is read in each call
===============================  ==================================================================
"""

import weakref
from dataclasses import dataclass, field, replace
from operator import itemgetter
from types import MappingProxyType

import tensorflow as tf
from tensorflow.python.eager.context import context
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.resource_variable_ops import _UnreadVariable

from fastops._core.reasons import RefusedError
from fastops._core.tensors import (
    address_of,
    identity_of,
    is_host_tensor,
    is_local_tensor,
    to_keep,
)
from fastops._dispatch import named
from fastops._specialize.cache import Cache
from fastops._specialize.native import prepare
from fastops._specialize.policy import (
    MAX_CONSTANT_BYTES,
    MAX_FUNCTION_OPS,
    MAX_STATIC_STEPS,
    MAX_VALUE_BYTES,
    MAX_WAITING_BYTES,
)
from fastops._specialize.recording.closures import NotClosedError, closure_of
from fastops._specialize.recording.known import SEEDS
from fastops._specialize.recording.known import known as known_of
from fastops._specialize.recording.plain import is_dataclass
from fastops._specialize.recording.recorder import Customized, Ran, Read
from fastops._specialize.signatures import COMPOSITES

_OF_SHAPES = {"Shape", "ShapeN", "Size", "Rank"}
"""Ops whose result depends only on the shapes of their inputs."""

_ACCESSING = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd"}
"""Ops that read variables. Tapes and variable watchers are notified of these reads."""

_READING = {
    *_ACCESSING,
    "LookupTableExportV2",
    "LookupTableFindV2",
    "LookupTableSizeV2",
    "VariableShape",
}
"""Ops that read the resource of a handle."""

_WRITING = {
    "LookupTableInsertV2",
    "LookupTableRemoveV2",
}
"""Ops that change the resource of a handle. An op that fails changes nothing."""

_ASSIGNING = {
    *("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"),
    *("ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate"),
    "RngReadAndSkip",
}
"""Ops that assign to a variable. No public function that is replayed runs them. The last one also
returns the value before: the state of a `tf.random.Generator`."""

_LASTING = _WRITING | _ASSIGNING

_OF_VARIABLES = _ACCESSING | _ASSIGNING

_OF_TABLES = {"LookupTableExportV2", "LookupTableFindV2", "LookupTableSizeV2"}
"""Ops that read a table. The table may be one that the object of the call holds."""

# fmt: off
_SHAPED_BY_SHAPES = {
    "Add", "AddV2", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Cast", "Div", "Equal",
    "Exp", "Floor", "FloorMod", "Greater", "GreaterEqual", "HSVToRGB", "Identity", "Less",
    "LessEqual", "Log", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul", "Neg",
    "NotEqual", "RGBToHSV", "RealDiv", "SelectV2", "Sqrt", "Square", "Sub", "ZerosLike",
}
# fmt: on
"""Some of the ops whose output sizes depend only on the sizes of the inputs."""

_SIZES_IN = {
    **dict.fromkeys(("AllCandidateSampler", "FixedUnigramCandidateSampler"), None),
    **dict.fromkeys(("LogUniformCandidateSampler", "UniformCandidateSampler"), None),
    "Multinomial": 1,
    "RandomShuffle": None,
}
"""The input whose value decides the output sizes of a random op, if it is not the first input. None
if no value decides them."""

_COMPARING = {"Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual"}
"""Ops that make nothing but True and False."""

_HANDLES = (tf.resource, tf.variant)

_OF_VALUES = (bool, int, float, complex, str, bytes, type(None), tf.DType, tf.TensorShape)
"""Immutable classes: a result may hold their instances as they are."""

_OF_ATTRIBUTES = (*_OF_VALUES, EagerTensor)
"""Classes that the attributes of a tensor in a result may have."""


_statics = Cache(MAX_STATIC_STEPS)
"""Results of `has_static_shapes`, by everything that they depend on."""

_inferred = Cache(MAX_STATIC_STEPS)
"""Results of `inferred_sizes`, by everything that they depend on."""


class NotReplayableError(RefusedError):
    """A call cannot be replayed."""


class FixedBatchError(Exception):
    """The recording of a call holds for the batch size of this call only."""


def as_refusal(error):
    """Return an exception of a recording as a `NotReplayableError`."""
    if isinstance(error, NotReplayableError):
        return error
    return NotReplayableError("recording_error", f"{type(error).__name__}: {error}")


@dataclass
class Check:
    """The value that a tensor must have, since Python read it and may have decided by it.

    Attributes
    ----------
    number : int
        The number of the value.
    tensor : EagerTensor
        The recorded value.
    """

    number: int
    tensor: object


@dataclass
class RecordedCustom:
    """A call with a custom gradient, as tapes record it.

    Attributes
    ----------
    name : str
        The name of the function.
    closure : fastops._specialize.recording.closures.Closure
        The gradient function.
    kept, inputs, outputs : list of int or EagerTensor
        The tensors of the closure, and what tapes record: numbers of values, and constants.
    stopped : bool
        Whether tapes must not record it.
    """

    name: str
    closure: object
    kept: list
    inputs: list
    outputs: list
    stopped: bool

    @property
    def all(self):
        """All tensors."""
        return [*self.kept, *self.inputs, *self.outputs]


@dataclass
class RecordedStep:
    """An op to run.

    Attributes
    ----------
    op_name : str
        The name in TensorFlow's registry.
    arguments : dict
        By parameter of the op. An input is the number of a value, a constant (an EagerTensor), or
        a list of these. An attribute is its value.
    inputs : set of str
        The names of the arguments that are inputs.
    outputs : range
        The numbers of the values that the op makes.
    sizes : list of tuple or None
        The sizes that the outputs must have, since Python may have decided by them.
    checks : list of Check
        The checks of the outputs.
    releases : list of int
        The numbers of values that neither a later step nor the result needs.
    stopped : bool
        Whether tapes must not record the op.
    accessed : int or None
        The number of the handle of the variable that the op reads or assigns to.
    static : bool
        Whether the shapes of the inputs decide the shapes of the outputs.
    seed : tuple or None
        For a random op, a tuple with the op seed or None: each call makes two seeds of it. None for
        other ops.
    used : list of int
        The numbers of the values that are inputs.
    customs : list of RecordedCustom
        The calls with a custom gradient to record after the op.
    """

    op_name: str
    arguments: dict = field(default_factory=dict)
    inputs: set = field(default_factory=set)
    outputs: range = range(0)
    sizes: list = field(default_factory=list)
    checks: list = field(default_factory=list)
    releases: list = field(default_factory=list)
    stopped: bool = False
    accessed: int | None = None
    static: bool = True
    seed: tuple | None = None
    used: list = field(default_factory=list)
    customs: list = field(default_factory=list)

    @property
    def needed(self):
        """The numbers of the values that the op, and what is recorded after it, need."""
        more = [item for custom in self.customs for item in custom.all if isinstance(item, int)]
        return [*self.used, *more]

    @property
    def lasts(self):
        """Whether the op has an effect, after which the call cannot be made again."""
        return self.seed is not None or self.op_name in _LASTING

    def flat_inputs(self):
        """Return the inputs in the order of the op: numbers of values, and constants."""
        flat = []
        for name, value in self.arguments.items():
            if name in self.inputs:
                flat.extend(value if isinstance(value, list) else [value])
        return flat


class Number(int):
    """Stands for a tensor in a result: the number of its value."""


@dataclass(frozen=True)
class Constant:
    """Stands for a constant tensor in a result: each call returns a copy in a new buffer."""

    tensor: object


@dataclass(frozen=True)
class Tagged:
    """Stands for a tensor in a result on which TensorFlow has set attributes.

    Attributes
    ----------
    tensor : Number or Constant
        The tensor itself.
    attributes : dict
        The packed attributes, by name.
    """

    tensor: object
    attributes: dict


@dataclass(frozen=True)
class Given:
    """Stands for a composite tensor that is an argument, or is inside one: its number."""

    number: int


@dataclass(frozen=True)
class Unread:
    """Stands for the result of an assignment to a variable that is not an argument of the call.

    Attributes
    ----------
    index : int
        The index of the variable.
    """

    index: int


@dataclass(frozen=True)
class Itself:
    """Stands for a variable that the object of the call holds: each call returns this variable.

    Attributes
    ----------
    reference : weakref
        A reference to the variable, of TensorFlow or of a library.
    """

    reference: object


@dataclass(frozen=True)
class Composite:
    """Stands for a composite tensor, or an instance of a dataclass of a user, in a result.

    Attributes
    ----------
    kind : type
        The class. That of a composite tensor is one of `fastops._specialize.signatures.COMPOSITES`.
    attributes : dict
        The packed attributes.
    """

    kind: type
    attributes: dict


class Placed(int):
    """Stands for an object that is in several places of a result: its index in `Shared.parts`."""


@dataclass(frozen=True)
class Shared:
    """A packed result with objects that are in several places, such as one list twice.

    Attributes
    ----------
    parts : list
        These objects, packed. Each may contain those before it, as `Placed`.
    result : object
        The packed result. Each such object in it is a `Placed`.
    """

    parts: list
    result: object


@dataclass(frozen=True)
class Held:
    """Describes the tensors that a call may use without having them as arguments.

    Attributes
    ----------
    identities : collection of int
        The identities of all objects that the guards of the call compare.
    begin : int
        Tensors that are older than the call have a `tf.Tensor._id` below this number.
    watchable : bool
        Whether tapes may watch the tensors, since a tape was open while the call was recorded.
    tables : dict of int to object
        The lookup tables that the call may read without having them as arguments, by the identity
        of the handle.
    reaches : callable
        Given a set of identities, tells whether the guards compare an object with one of them that
        is alive.
    """

    identities: object
    begin: int
    watchable: bool
    tables: dict
    reaches: object


class RecordedDraws:
    """What random ops have drawn in a recorded call. All are equal: later calls draw anew.

    Attributes
    ----------
    outputs : list of list
        For each random op, in the order of the steps, the tensors that it made.
    """

    def __init__(self):
        self.outputs = []

    def __eq__(self, other):
        return isinstance(other, RecordedDraws)


@dataclass
class Recording:
    """The ops that calls of one signature run.

    Attributes
    ----------
    num_arguments, num_values : int
        The number of values that are arguments, and the number of all values.
    variables : list of tf.Variable
        The variables that are not arguments of the call. Their handles come after the arguments.
    checks : list of Check
        The checks of the arguments.
    steps : list of RecordedStep
        The steps in execution order.
    result : object
        The result, with a `Number`, `Constant`, `Tagged`, `Given`, `Unread`, `Itself` or
        `Composite` instead of each tensor.
    without_tape : bool
        Whether it is replayed only while no tape records: the call has a custom gradient that has
        no `RecordedCustom`, or assignments come later than in the call.
    drawn : RecordedDraws
        What the random ops have drawn.
    branches : tuple of tuple
        The comparisons that Python read after random ops had drawn, in the order of the reads: the
        number of the value, and whether it was true. The call cannot be made again then, so another
        recording must have the ops for the other truth value: see `is_whole`.
    returns_variables : bool
        Whether the result has variables that the object holds: another object must not use it.
    taped : Recording or None
        The recording to replay while a tape records, if it is different. It includes ops whose
        outputs are constants, since the tape adds up gradients in an order that depends on all ops
        it has recorded. It also includes custom gradients.
    """

    num_arguments: int
    num_values: int
    variables: list
    checks: list
    steps: list
    result: object
    without_tape: bool
    drawn: object
    branches: tuple = ()
    returns_variables: bool = False
    taped: object = None

    def values_before(self):
        """Return the values that Python read before random ops drew."""
        late = dict(self.branches)
        checks = [*self.checks, *(check for step in self.steps for check in step.checks)]
        return [
            (check.number, _bytes(check.tensor)) for check in checks if check.number not in late
        ]


def is_whole(branches):
    """Tell whether recordings have all branches that a call may take after random ops have drawn.

    Parameters
    ----------
    branches : list of tuple
        The `Recording.branches` of each.
    """
    if not all(branches):  # a call reads no more comparisons
        return len(branches) == 1
    if len({reads[0][0] for reads in branches}) != 1:
        return False
    return all(
        is_whole([reads[1:] for reads in branches if reads[0][1] is truth])
        for truth in (False, True)
    )


def recording(
    recorder,
    arguments,
    holders,
    result,
    variables=None,
    held=None,
    most_steps=MAX_FUNCTION_OPS,
    frees_sizes=False,
    branches=False,
    any_batch=False,
):
    """Return the `Recording` of a call.

    Parameters
    ----------
    recorder : Recorder
        The recorder of the call.
    arguments : list of EagerTensor
        The tensors among the arguments of the call.
    holders : list of object
        The composite tensors and known objects among the arguments, including nested ones.
    result : object
        The result of the call.
    variables : dict of int to tf.Variable, optional
        The variables that the call may use without having them as arguments, by the identity of the
        handle.
    held : Held, optional
        The tensors that the call may use without having them as arguments. None for a function of
        TensorFlow.
    most_steps : int
        The maximum number of ops.
    frees_sizes : bool, default False
        Whether sizes that values decide are neither compared nor read: no code of the function
        decides by them.
    branches : bool, default False
        Whether Python may read comparisons after random ops have drawn. The caller must then have
        the recordings of all branches (`is_whole`) before it replays one of them.
    any_batch : bool, default False
        Whether the recording is to hold for all first sizes of the arguments. The recorder must
        have noted which sizes were read. A read is harmless if TensorFlow's shape functions infer
        the size without the first sizes of the arguments. All ops are kept, as they raise for some
        sizes.

    Raises
    ------
    NotReplayableError
        If the call cannot be replayed.
    FixedBatchError
        If the recording would not hold for `any_batch`.
    """
    if recorder.failed:
        raise NotReplayableError("interrupted")
    if recorder.said or (recorder.warned and held is None):
        raise NotReplayableError("logs")
    if recorder.builds:
        raise NotReplayableError("builds_graph")
    maker = _Maker(
        recorder,
        arguments,
        holders,
        result,
        variables or {},
        held,
        frees_sizes,
        branches,
        any_batch,
    )
    return maker.run(most_steps)


class _Maker:
    def __init__(
        self,
        recorder,
        arguments,
        holders,
        result,
        variables,
        held,
        frees_sizes,
        may_branch,
        any_batch,
    ):
        self.events, self.sizes_read = recorder.events, recorder.sizes
        self.any_batch = any_batch
        self.held = held
        self.frees_sizes = frees_sizes
        self.may_branch = may_branch
        self.branches = {}  # by number: the truth of comparisons that were read after draws
        self.free = set()  # numbers of values with sizes that are not compared
        self.inferred = {}  # by number: the sizes, None for those that the batch size may change
        self.custom = recorder.custom
        self.result = result
        self.num_arguments = len(arguments)
        self.holders = {id(holder): i for i, holder in enumerate(holders)}
        self.tensors = []  # by number; keeps them alive, so that identities stay unique
        self.numbers = {}
        self.addresses = set()  # addresses of the memory of values
        self.variables = []
        for tensor in arguments:
            self.add(tensor)
        for number, tensor in enumerate(arguments if any_batch else ()):
            if tensor.dtype not in _HANDLES and tensor._shape_tuple():
                self.free.add(number)
                self.inferred[number] = (None, *tensor._shape_tuple()[1:])
        for event in self.events:
            for tensor in event.inputs if isinstance(event, Ran) else ():
                if id(tensor) in variables and id(tensor) not in self.numbers:
                    self.add(tensor)
                    self.variables.append(variables[id(tensor)])
        self.shapes = {}  # by identity: numbers of constants that a tape records
        self.constants = {}  # the same constants, by number
        self.checks = []
        self.steps = []
        self.seeded = []  # seeds that no op has used yet
        self.drawn = RecordedDraws()
        self.lasts = False  # whether an op had an effect: the call cannot be made again
        self.assigned = {}  # by the number of a handle: the number of the value it was assigned
        self.forwarded = {}  # by the number of a variable's value: the number of what was assigned
        self.defers = False  # whether assignments must come after the last value that is compared
        self.returns_variables = False
        self.only_host = len(context().list_logical_devices()) == 1

    def add(self, tensor):
        """Give a tensor a number."""
        self.numbers.setdefault(id(tensor), len(self.tensors))
        self.tensors.append(tensor)
        self.addresses.add(address_of(tensor))

    def run(self, most_steps):
        """Return the recording."""
        last = -1
        if self.held is None and self.is_of_values(self.result):
            last = max(
                (i for i, event in enumerate(self.events) if isinstance(event, Ran)), default=-1
            )
        for i, event in enumerate(self.events):
            if isinstance(event, Ran):
                self.ran(event, i == last)
            elif isinstance(event, Read):
                self.read(event.tensor)
            elif isinstance(event, Customized):
                self.custom = not self.customized(event) or self.custom
            else:
                self.seeded.append(event)
        if self.seeded:
            raise NotReplayableError("unused_seed")
        if self.any_batch:
            self.check_sizes_read()
        result = self.packed_result()
        if not self.defers:
            self.forwarded = {}
        steps = [self.untaped(step) for step in self.steps if not self.is_shape(step)]
        if self.defers:
            steps = self.compared_first(steps)
        steps = steps if self.any_batch else self.asked(steps, result)
        if len(steps) > most_steps:
            raise NotReplayableError("too_many_ops", str(len(steps)))
        recording = self.made(steps, result)
        if self.defers:
            return recording
        result = self.packed_result(self.shapes)
        taped = self.steps
        if not self.any_batch:
            taped = self.asked(taped, result, self.is_recorded)
        if len(taped) != len(steps) or any(step.customs for step in taped):
            recording.taped = self.made(taped, result)
        return recording

    def made(self, steps, result):
        """Return a `Recording` with some of the steps."""
        self.release(steps, result)
        return Recording(
            self.num_arguments,
            len(self.tensors),
            self.variables,
            self.checks,
            steps,
            result,
            self.custom or self.defers,
            self.drawn,
            tuple(self.branches.items()),
            self.returns_variables,
        )

    def ran(self, event, last):
        """Add an op that the call ran."""
        if event.op_name.startswith("_"):
            raise NotReplayableError("private_op", event.op_name)
        record = known_of(event.op_name)
        seed = self.seed_of(event, record)
        step = RecordedStep(event.op_name, stopped=event.stopped, seed=seed)
        if record.missing or record.makes or (seed is None and record.exclusion is not None):
            raise NotReplayableError("op_effects", event.op_name)
        if seed is None and any(event.attrs.get(name) for name in record.bound_by):
            raise NotReplayableError("op_seeded", event.op_name)
        for tensor in (*event.inputs, *event.outputs):
            if type(tensor) is not EagerTensor or not is_local_tensor(tensor):
                raise NotReplayableError("op_elsewhere", event.op_name)
        if event.scope and not self.only_host:
            raise NotReplayableError("op_device_scope", event.op_name)
        known = [self.numbers.get(id(tensor)) for tensor in event.inputs]
        if record.handles and not self.is_known_handle(event.op_name, known[0], event.inputs[0]):
            raise NotReplayableError("op_handle", event.op_name)
        for tensor, number in zip(event.inputs, known, strict=True):
            if number is None:
                self.check_constant(tensor, event.op_name)
        # The signature and `RecordedStep.sizes` guard the sizes, so that shapes are constants.
        fixed = (event.op_name in _OF_SHAPES and self.free.isdisjoint(known)) or (
            all(number is None for number in known)
            and not record.handles
            and not any(self.is_watchable(tensor) for tensor in event.inputs)
        )
        small = fixed and all(_size(tensor) <= MAX_VALUE_BYTES for tensor in event.outputs)
        if small and not record.runs_always:
            if self.is_differentiable(known):
                self.ran_on_tapes(event, known, record)
            return  # the outputs are constants
        for tensor, number in zip(event.inputs, known, strict=True):
            if number is None and _size(tensor) > MAX_CONSTANT_BYTES:
                raise NotReplayableError("large_constant")
        shapes = self.shapes if self.is_differentiable(known) else {}
        values = [
            number
            if number is not None
            else shapes[id(tensor)]
            if id(tensor) in shapes
            else self.kept(tensor)
            for tensor, number in zip(event.inputs, known, strict=True)
        ]
        step.arguments, step.inputs = _arguments(record, values, event.attrs)
        # After an effect the call cannot be made again, so sizes must not differ from then on.
        if seed is not None:
            sizes = _SIZES_IN.get(event.op_name, 0)
            step.static = sizes is None or known[sizes] is None
        elif (self.lasts or self.frees_sizes) and not last:
            step.static = self.is_static(step)
        freed = self.frees_sizes and not step.static
        if freed and any(tensor._tensor_shape is not None for tensor in event.outputs):
            freed = False  # Python has read the shape of an output
        if not (last or step.static or freed):
            raise NotReplayableError("sizes_from_values", event.op_name)
        self.lasts = self.lasts or step.lasts
        step.accessed = known[0] if event.op_name in _OF_VARIABLES else None
        step.used = [item for item in step.flat_inputs() if isinstance(item, int)]
        # After an effect, a replay that fails could not be made again. Traces depend on shapes.
        if self.any_batch and (step.lasts or record.calls):
            raise FixedBatchError
        first = len(self.tensors)
        for tensor in event.outputs:
            self.add(tensor)
        step.outputs = range(first, len(self.tensors))
        if seed is not None:
            self.drawn.outputs.append(event.outputs)
        # The sizes of the last op's outputs are free if values decide them: no code of the function
        # reads them. The value of a variable is an exception: code may have read its rank, and
        # decided that nothing more is to be done.
        free = self.lasts or freed
        free = free or (last and step.accessed is None and not self.is_static(step))
        step.sizes = [None if free else tensor._shape_tuple() for tensor in event.outputs]
        if freed:
            self.free.update(step.outputs)
        if self.any_batch and not self.free.isdisjoint(step.used):
            step.sizes = [None] * len(step.outputs)
            self.free.update(step.outputs)
        self.steps.append(step)
        self.note_assigned(step)

    def infer(self, asked):
        """Infer the sizes of values whose sizes are free, from those of the values before."""
        steps, missing = [], set(asked) - self.inferred.keys()
        for step in reversed(self.steps):
            if not missing.isdisjoint(step.outputs):
                steps.append(step)
                missing |= (self.free - self.inferred.keys()).intersection(step.used)
        for step in reversed(steps):
            self.inferred.update(zip(step.outputs, self.inferred_sizes(step), strict=True))

    def inferred_sizes(self, step):
        """Return the sizes of the outputs of a step, with None for those that may differ.

        Those that values decide may differ, too.
        """
        if step.accessed is not None:
            raise FixedBatchError
        key = self.key_of(step)
        inferred = _inferred.get(key)
        if inferred is None:
            try:
                inferred = [tuple(output.shape.as_list()) for output in self.symbolic(step)]
            except Exception:  # the op cannot be built in a graph, or a rank is unknown
                inferred = False
            inferred = _inferred.add(key, inferred)
        if inferred is False:
            raise FixedBatchError
        return inferred

    def check_sizes_read(self):
        """Check that the code has read no size that the batch size may change."""
        read = []
        for tensor, axes in self.sizes_read.noted:
            number = self.numbers.get(id(tensor))
            if number is None and self.may_share(tensor):
                raise FixedBatchError  # Python has copied a value
            read.append((number, axes))
        natives = {identity_of(tensor): number for number, tensor in enumerate(self.tensors)}
        for identity, axis in self.sizes_read.native:
            if not identity:  # see `note_gradient`
                raise FixedBatchError
            number = natives.get(identity)
            if axis == "elements" and number is not None:
                raise FixedBatchError
            read.append((number, None if axis == "all" else (axis,)))
        read = [(number, axes) for number, axes in read if number in self.free]
        for number, axes in sorted(read, key=itemgetter(0)):  # first those of the arguments
            self.infer([number])
            if self.may_differ(number, axes):
                raise FixedBatchError

    def may_differ(self, number, axes):
        """Tell whether the batch size may change one of these sizes of a value; None: any size."""
        sizes = self.inferred[number]
        return None in (sizes if axes is None else [sizes[axis] for axis in axes])

    def note_assigned(self, step):
        """Note which value a variable has after an assignment, and the reads of this value."""
        if step.lasts:
            self.assigned.pop(step.accessed, None)
        if step.op_name == "AssignVariableOp" and isinstance(step.arguments["value"], int):
            value = step.arguments["value"]
            self.assigned[step.accessed] = self.forwarded.get(value, value)
        elif step.op_name == "ReadVariableOp" and step.accessed in self.assigned:
            value, (number,) = self.assigned[step.accessed], step.outputs
            if self.tensors[value].backing_device == self.tensors[number].backing_device:
                self.forwarded[number] = value

    def customized(self, event):
        """Add a call with a custom gradient. False if it cannot be recorded again."""
        try:
            closure, kept = closure_of(event.backward)
        except NotClosedError:
            return False
        tensors = [*kept, *event.inputs, *event.outputs]
        if any(
            type(tensor) is not EagerTensor or not is_local_tensor(tensor) for tensor in tensors
        ):
            return False
        values = []
        for tensor in tensors:
            number = self.numbers.get(id(tensor), self.shapes.get(id(tensor)))
            if number is None:
                if _size(tensor) > MAX_CONSTANT_BYTES or tensor.dtype in _HANDLES:
                    return False
                if self.may_share(tensor):
                    return False
            values.append(self.kept(tensor) if number is None else number)
        first_input, first_output = len(kept), len(kept) + len(event.inputs)
        kept, inputs = values[:first_input], values[first_input:first_output]
        outputs = values[first_output:]
        if not self.steps or not all(isinstance(output, int) for output in outputs):
            return False
        self.steps[-1].customs.append(
            RecordedCustom(event.name, closure, kept, inputs, outputs, event.stopped)
        )
        return True

    def is_held(self, value):
        """Tell whether the guards compare this object, so that each call finds the same one."""
        return self.held is not None and self.held.reaches({id(value)})

    def check_constant(self, tensor, op_name):
        """Refuse a constant that may differ in another call, as it shares memory with a value."""
        if self.may_share(tensor):
            raise NotReplayableError("copy_by_python", op_name)

    def may_share(self, tensor):
        """Tell whether a constant shares memory with a value."""
        # Scalars may share memory by chance, since TensorFlow caches tensors of Python numbers.
        return tensor._num_elements() > 1 and address_of(tensor) in self.addresses

    def is_watchable(self, tensor):
        """Tell whether a tape may watch a constant, so that ops on it must run."""
        held = self.held
        return (
            held is not None
            and held.watchable
            and tensor._id < held.begin
            and id(tensor) in held.identities
        )

    def kept(self, tensor):
        """Return the tensor that the recording keeps for a constant: itself or a copy."""
        return tensor if self.is_watchable(tensor) else to_keep(tensor)

    def is_of_values(self, result):
        """Tell whether a result consists only of arguments and of outputs of ops."""
        made = {id(tensor) for tensor in self.tensors} | self.holders.keys()
        for event in self.events:
            if isinstance(event, Ran):
                made.update(map(id, event.outputs))
        pending = [result]
        while pending:
            value = pending.pop()
            if id(value) in made:
                continue
            if isinstance(value, list | tuple):
                pending += value
            elif type(value) is dict:
                pending += value.values()
            elif type(value) in COMPOSITES:
                # The static shape of a sparse tensor depends on a value, which is compared.
                attributes = {**vars(value), "_dense_shape_default": None}
                pending += [attribute for attribute in attributes.values() if attribute is not None]
            else:
                return False
        return True

    def is_differentiable(self, numbers):
        """Tell whether a tape may record an op whose inputs are the values with these numbers."""
        dtypes = [self.tensors[number].dtype for number in numbers if number is not None]
        return any(dtype.is_floating or dtype.is_complex or dtype in _HANDLES for dtype in dtypes)

    def ran_on_tapes(self, event, known, record):
        """Add an op that a tape records although its outputs are constants."""
        step = RecordedStep(event.op_name, stopped=event.stopped)
        values = [
            self.kept(tensor) if number is None else number
            for tensor, number in zip(event.inputs, known, strict=True)
        ]
        step.arguments, step.inputs = _arguments(record, values, event.attrs)
        first = len(self.tensors)
        for number, tensor in enumerate(event.outputs, first):
            self.tensors.append(tensor)
            self.shapes[id(tensor)] = number
            self.constants[number] = to_keep(tensor)
        step.outputs = range(first, len(self.tensors))
        step.sizes = [None if self.lasts else tensor._shape_tuple() for tensor in event.outputs]
        step.used = [number for number in known if number is not None]
        self.steps.append(step)

    def is_shape(self, step):
        """Tell whether a step is needed only for tapes."""
        return bool(step.outputs) and step.outputs[0] in self.constants

    def untaped(self, step):
        """Return a step for calls without a tape.

        Constants are in place of the outputs of steps that only tapes need, and assigned values in
        place of the values that were read from the variables.
        """
        if self.constants.keys().isdisjoint(step.used) and self.forwarded.keys().isdisjoint(
            step.used
        ):
            return replace(step, customs=[])  # a copy, since `releases` will differ
        arguments = {
            name: self.fixed(value) if name in step.inputs else value
            for name, value in step.arguments.items()
        }
        used = [
            self.forwarded.get(number, number)
            for number in step.used
            if number not in self.constants
        ]
        return replace(step, arguments=arguments, used=used, customs=[])

    # This and `one_like` are methods. A recursive function inside of a method would be part of a
    # cycle that keeps all tensors of the call alive until the next garbage collection.
    def fixed(self, value):
        """Return an input with what is in place of the numbers of such values."""
        if isinstance(value, list):
            return [self.fixed(item) for item in value]
        if not isinstance(value, int):
            return value
        return self.constants.get(value, self.forwarded.get(value, value))

    def compared_first(self, steps):
        """Return steps with the assignments after the last value that is compared.

        A replay whose value differs ends before anything has an effect. The steps that are moved
        before the assignments use nothing that these change.
        """
        end = 1 + max(i for i, step in enumerate(steps) if step.checks)
        sooner, later, changed = [], [], set()
        for step in steps[:end]:
            if not step.lasts and changed.isdisjoint(step.used):
                sooner.append(step)
                continue
            if step.checks or (step.lasts and step.op_name not in _ASSIGNING):
                raise NotReplayableError("read_after_effect")
            later.append(step)
            changed.update(step.outputs)
            if step.lasts:
                changed.add(step.accessed)
        made = {number for step in sooner for number in step.outputs}
        waiting = made.intersection(number for step in later for number in step.used)
        if sum(_size(self.tensors[number]) for number in waiting) > MAX_WAITING_BYTES:
            raise NotReplayableError("assigns_large_values")
        return [*sooner, *later, *steps[end:]]

    def is_recorded(self, step):
        """Tell whether a tape may record a step."""
        return step.customs or (not step.stopped and self.is_differentiable(step.used))

    def is_known_handle(self, op_name, number, handle):
        """Tell whether an op is known that accesses the resource of a handle with this number."""
        if number is None:
            return (
                op_name in _OF_TABLES and self.held is not None and id(handle) in self.held.tables
            )
        if op_name in _ASSIGNING:
            index = number - self.num_arguments
            return 0 <= index < len(self.variables)
        return op_name in _READING | _WRITING

    def is_static(self, step):
        """Tell whether the shapes of a step's inputs decide the shapes of its outputs.

        Shapes that are not compared decide nothing.
        """
        if not step.outputs:
            return True
        if self.free.isdisjoint(step.used) and (
            step.op_name in _SHAPED_BY_SHAPES
            or (step.op_name == "GatherV2" and not isinstance(step.arguments["axis"], int))
        ):
            return True
        if step.accessed is not None:
            index = step.accessed - self.num_arguments
            return 0 <= index < len(self.variables) and (
                step.op_name == "ReadVariableOp" and self.variables[index].shape.is_fully_defined()
            )
        key = self.key_of(step)
        static = _statics.get(key)
        if static is None:
            static = _statics.add(key, self.has_static_shapes(step))
        return static

    def key_of(self, step):
        """Return what the shapes of a step's outputs depend on."""
        return (
            step.op_name,
            *(
                (name, self.told(value) if name in step.inputs else repr(value))
                for name, value in step.arguments.items()
            ),
        )

    def told(self, value):
        """Return a key for an input: dtype and shape; for a constant also its value."""
        if isinstance(value, list):
            return tuple([self.told(item) for item in value])
        like, shape, is_constant = self.standing_for(value)
        return _bytes(like) if is_constant else (like.dtype, shape)

    def standing_for(self, value):
        """Return the tensor of an input, its sizes, and whether it is a constant on the host.

        Sizes that are not compared, or may differ, are None.
        """
        free = isinstance(value, int) and value in self.free
        value = self.constants.get(value, value) if isinstance(value, int) else value
        if isinstance(value, int):
            tensor = self.tensors[value]
            shape = tensor._shape_tuple()
            if free:
                shape = self.inferred.get(value, (None,) * len(shape))
            return tensor, shape, False
        return value, value._shape_tuple(), is_host_tensor(value) and value.dtype not in _HANDLES

    def has_static_shapes(self, step):
        """Tell the same as `is_static`, by TensorFlow's shape functions."""
        try:
            made = self.symbolic(step)
        except Exception:  # the op cannot be built in a graph
            return False
        return all(
            output.shape.is_fully_defined() for output in made if isinstance(output, tf.Tensor)
        )

    def symbolic(self, step):
        """Return the symbolic outputs of a step for placeholders of its inputs' shapes."""
        with tf.Graph().as_default():
            arguments = {
                name: self.one_like(value) if name in step.inputs else value
                for name, value in step.arguments.items()
            }
            return tf.nest.flatten(getattr(tf.raw_ops, step.op_name)(**arguments))

    def one_like(self, value):
        """Return a symbolic tensor for an input: a constant, or a placeholder of its shape."""
        if isinstance(value, list):
            return [self.one_like(item) for item in value]
        like, shape, is_constant = self.standing_for(value)
        if is_constant:
            return tf.constant(like.numpy())
        return tf.compat.v1.placeholder(like.dtype, shape)

    def seed_of(self, event, record):
        """Return a tuple with the op seed of an op that uses the next seeds; None for other ops."""
        if not self.seeded or not record.has_seeds:
            return None
        given = [event.attrs.get(name, 0) or 0 for name in SEEDS]
        if given != [seed or 0 for seed in self.seeded[0].seeds]:
            return None
        return (self.seeded.pop(0).op_seed,)

    def read(self, tensor):
        """Add a read of a tensor's value by Python."""
        number = self.numbers.get(id(tensor))
        if number is None:
            return
        if self.any_batch:
            raise FixedBatchError
        number = self.forwarded.get(number, number)
        if number in self.branches:
            return
        late = self.lasts and self.is_late(number)
        if late and not self.is_comparison(number):
            if any(step.seed is not None for step in self.steps):
                raise NotReplayableError("read_after_effect")
            self.defers, late = True, False
        if _size(tensor) > MAX_VALUE_BYTES or tensor.dtype in _HANDLES:
            raise NotReplayableError("large_value")
        if not is_host_tensor(tensor):
            raise NotReplayableError("value_on_device")
        if late:
            self.branches[number] = bool(tensor.numpy())
        check = Check(number, to_keep(tensor))
        for step in self.steps:
            if number in step.outputs:
                step.checks.append(check)
                return
        self.checks.append(check)

    def is_late(self, number):
        """Tell whether a value is compared only when the call cannot be made again."""
        lasting = next(step for step in self.steps if step.lasts)
        return number >= lasting.outputs.start

    def is_comparison(self, number):
        """Tell whether a value may choose among the branches of a call."""
        return (
            self.may_branch
            and self.tensors[number]._shape_tuple() == ()
            and any(step.op_name in _COMPARING for step in self.steps if number in step.outputs)
            and all(step.seed is not None for step in self.steps if step.lasts)
        )

    def packed_result(self, shapes=MappingProxyType({})):
        """Return the result with stand-ins for tensors. `shapes`: numbers of more tensors."""
        self.parts = []
        self.part_of = dict.fromkeys(_repeated(self.result), _UNSEEN)
        result = self.packed(self.result, shapes)
        return Shared(self.parts, result) if self.parts else result

    def packed(self, value, shapes):
        """Return a part of the result with stand-ins for tensors."""
        part = self.part_of.get(id(value), _SINGLE)
        if part is _SINGLE:
            return self.packed_once(value, shapes)
        if part is _UNSEEN:
            self.part_of[id(value)] = _UNFINISHED
            part = self.packed_once(value, shapes)
            if isinstance(part, _MADE_ANEW):
                self.parts.append(part)
                part = Placed(len(self.parts) - 1)
            self.part_of[id(value)] = part
        if part is _UNFINISHED:
            raise NotReplayableError("returns_type", f"a {type(value).__name__} inside itself")
        return part

    def packed_once(self, value, shapes):
        """Return a part of the result with stand-ins for tensors, even if it is in two places."""
        kind = type(value)
        if kind is EagerTensor:
            number = self.numbers.get(id(value), shapes.get(id(value)))
            if number is None and (_size(value) > MAX_VALUE_BYTES or value.dtype in _HANDLES):
                raise NotReplayableError("returns_large_constant")
            if number is None and not self.only_host:  # a copy could be on another device
                raise NotReplayableError("returns_constant")
            if number is None:
                self.check_constant(value, "the result")
                held = self.held
                if held and value._id < held.begin and id(value) in held.identities:
                    raise NotReplayableError("returns_held_tensor")
            tensor = Constant(to_keep(value)) if number is None else Number(number)
            if not vars(value) or (number is not None and number < self.num_arguments):
                return tensor
            if not all(isinstance(attribute, _OF_ATTRIBUTES) for attribute in vars(value).values()):
                raise NotReplayableError("sets_tensor_attributes")
            attributes = vars(value).items()
            return Tagged(tensor, {name: self.packed(item, shapes) for name, item in attributes})
        if kind in _OF_VALUES or isinstance(value, tf.DType):
            return value
        if kind in (list, tuple):
            return kind([self.packed(item, shapes) for item in value])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*[self.packed(item, shapes) for item in value])
        if kind is dict:
            return {name: self.packed(item, shapes) for name, item in value.items()}
        if kind is _UnreadVariable:
            index = self.numbers.get(id(value._handle), -1) - self.num_arguments
            if 0 <= index < len(self.variables):
                return Unread(index)
        if isinstance(value, tf.__internal__.types.Tensor) and self.is_held(value):
            self.returns_variables = True
            return Itself(weakref.ref(value))
        if kind in COMPOSITES and id(value) in self.holders:
            return Given(self.holders[id(value)])
        if kind in COMPOSITES or is_dataclass(kind):
            return Composite(kind, self.packed(vars(value), shapes))
        raise NotReplayableError("returns_type", kind.__name__)

    def asked(self, steps, result, keeps=lambda step: False):
        """Return the steps that are needed: for the result, for an effect, or by `keeps`."""
        asked = set(numbers_in(result))
        kept = []
        for step in reversed(steps):
            runs_always = known_of(step.op_name).runs_always
            asked_for = step.checks or runs_always or not asked.isdisjoint(step.outputs)
            # If values decide its sizes, Python may have decided by the sizes.
            if asked_for or keeps(step) or not self.is_static(step):
                kept.append(step)
                asked.update(step.needed)
        return kept[::-1]

    def release(self, steps, result):
        """Set which values each step releases."""
        given = self.num_arguments + len(self.variables)
        asked = set(numbers_in(result)) | set(range(given))
        for step in reversed(steps):
            here = {*step.needed, *step.outputs} - asked
            step.releases = sorted(here)
            asked |= here


# In `_Maker.part_of`: the object is in one place, in several, or contains itself.
_SINGLE, _UNSEEN, _UNFINISHED = object(), object(), object()
_MADE_ANEW = (Constant, Tagged, Unread, Composite, list, tuple, dict)


def prepare_kernels(recorder, recording):
    """Prepare the kernels of ops that TensorFlow ran in a recorded call.

    Parameters
    ----------
    recorder : Recorder
        The recorder of the call.
    recording : Recording
        The recording of the call.
    """
    asked = {step.op_name for step in recording.steps}
    for event in recorder.events:
        if isinstance(event, Ran) and event.op_name in asked:
            arguments, _ = _arguments(known_of(event.op_name), event.inputs, event.attrs)
            seeds = {name: event.attrs[name] for name in SEEDS if name in event.attrs}
            prepare(named(event.op_name), arguments | seeds)


def _arguments(record, values, attrs):
    """Return the arguments of an op by parameter, and the names of those that are inputs."""
    arguments, index = {}, 0
    for name, number_attr, type_list_attr in record.inputs:
        if number_attr is None and type_list_attr is None:
            if index >= len(values):
                raise NotReplayableError("op_inputs", record.op_def.name)
            arguments[name] = values[index]
            index += 1
            continue
        count = attrs[number_attr] if number_attr else len(attrs[type_list_attr])
        arguments[name] = values[index : index + count]
        index += count
    if index != len(values):
        raise NotReplayableError("op_inputs", record.op_def.name)
    inputs = set(arguments)
    for name, value in attrs.items():
        if name in record.inferred or value is None:
            continue
        if name in SEEDS and record.draws:
            value = 0  # each call puts a new seed here
        parameter, plain, is_list = record.attrs[name]
        if plain is not None:
            value = [plain(item) for item in value] if is_list else plain(value)
        arguments[parameter] = value
    return arguments, inputs


def _bytes(tensor):
    """Return the dtype, shape and elements of a tensor, for comparisons."""
    value = tensor.numpy()
    if tensor.dtype == tf.string:
        elements = value if type(value) is bytes else value.tolist()  # a scalar is no array
    else:
        elements = value.tobytes()
    return tensor.dtype, tensor._shape_tuple(), elements


def _size(tensor):
    # Do not read `tensor.shape`: it caches a TensorShape on tensors that user code also holds.
    return 0 if not tensor.dtype.size else tensor._num_elements() * tensor.dtype.size


def parts_of(*values):
    """Yield the objects in nested lists, tuples, dicts and records, these included.

    An object that is in several places comes as often, but its contents come once.
    """
    opened, left = set(), list(values)
    while left:
        value = left.pop()
        yield value
        if id(value) in opened:
            continue
        opened.add(id(value))
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)
        elif type(value) in COMPOSITES or is_dataclass(type(value)):
            left.extend(vars(value).values())


def _repeated(result):
    """Return the identities of the objects that are in several places of a result."""
    seen, repeated = set(), set()
    for value in parts_of(result):
        (repeated if id(value) in seen else seen).add(id(value))
    return repeated


def numbers_in(packed):
    """Yield the numbers in a packed result."""
    if isinstance(packed, Number):
        yield int(packed)
    elif isinstance(packed, Shared):
        yield from numbers_in([packed.parts, packed.result])
    elif isinstance(packed, Tagged):
        yield from numbers_in([packed.tensor, packed.attributes])
    elif isinstance(packed, Composite):
        yield from numbers_in(packed.attributes)
    elif isinstance(packed, list | tuple):
        for item in packed:
            yield from numbers_in(item)
    elif type(packed) is dict:
        yield from numbers_in(list(packed.values()))
