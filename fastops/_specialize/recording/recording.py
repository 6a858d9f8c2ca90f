"""From the notes of a recorded call to the steps of its replay.

Every value has a number. First come the tensors among the arguments, then what each step makes.
What depends on constants alone is a constant.

A recording assumes that later calls find the same as the recorded one. Each assumption has a guard:

===============================  ==================================================================
Assumption                       Guard
===============================  ==================================================================
dtypes, shapes and aliases of    the signature of the call (`_cpp/signature.h`); of variables, the
arguments, Python values         static shape and what the handle says
values that Python looked at     a `Check` of the step that makes the value, or of the arguments
sizes of what a step makes       `Step.sizes`; after an effect, when no call may be made again, the
                                 sizes of its inputs (`is_static`), or the call is not recorded.
                                 Not compared: sizes of the last step of a function that returns
                                 nothing but tensors which ops made, where values decide them:
                                 they are the result's
results of `Shape`, `Size`,      the sizes of their inputs, as above
`Rank`, folded to constants
a constant made in the call      the arguments and values above, from which Python made it. It must
                                 not share memory with a value: then it is a copy made without an op
a constant older than the call   the object that holds it is guarded (`guards/places.py`). The
                                 recording has the tensor itself while a tape may watch it,
                                 a copy otherwise
dtypes of what a handle refers   the handle itself, or the signature
to
===============================  ==================================================================
"""

from dataclasses import dataclass, field, replace
from types import MappingProxyType

import tensorflow as tf
from tensorflow.python.eager.context import context
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.resource_variable_ops import _UnreadVariable

from fastops._core.reasons import RefusedError
from fastops._core.tensors import address_of, is_host_tensor, is_local_tensor, to_keep
from fastops._dispatch import named, prepare
from fastops._specialize.policy import MAX_FUNCTION_OPS, MAX_VALUE_BYTES
from fastops._specialize.recording.known import SEEDS
from fastops._specialize.recording.known import known as known_of
from fastops._specialize.recording.recorder import Ran, Read
from fastops._specialize.signatures import COMPOSITES

_OF_SHAPES = {"Shape", "ShapeN", "Size", "Rank"}
"""Ops whose result the shapes of their inputs determine."""

_ACCESSING = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd"}
"""Ops that read variables, of which tapes and watchers are told."""

_READING = {
    *_ACCESSING,
    "LookupTableExportV2",
    "LookupTableFindV2",
    "LookupTableSizeV2",
    "VariableShape",
}
"""Ops that read what a handle refers to."""

_WRITING = {
    "LookupTableInsertV2",
    "LookupTableRemoveV2",
}
"""Ops that change it, all of it or nothing."""

_ASSIGNING = {"AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"}
"""Ops that assign to a variable, which no public function does that is replayed."""

_LASTING = _WRITING | _ASSIGNING

_OF_VARIABLES = _ACCESSING | _ASSIGNING

# fmt: off
_SHAPED_BY_SHAPES = {
    "Add", "AddV2", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Cast", "Div", "Equal",
    "Exp", "Floor", "FloorMod", "Greater", "GreaterEqual", "HSVToRGB", "Identity", "Less",
    "LessEqual", "Log", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul", "Neg",
    "NotEqual", "RGBToHSV", "RealDiv", "SelectV2", "Sqrt", "Square", "Sub", "ZerosLike",
}
# fmt: on
"""Some of the ops of which no value decides the sizes of what they make."""

_SIZES_IN = {"Multinomial": 1, "RandomShuffle": None}
"""Which input decides the sizes of what a random op makes, where that is not the first."""

_HANDLES = (tf.resource, tf.variant)

_OF_VALUES = (bool, int, float, complex, str, bytes, type(None), tf.DType, tf.TensorShape)
"""Immutable classes: a result may hold their instances as they are."""

_OF_ATTRIBUTES = (*_OF_VALUES, EagerTensor)
"""Classes of what an attribute of a tensor in a result may be."""


MOST_STATICS = 4096
_statics: dict = {}
"""What was found out about steps, by all that it depends on."""


class NotReplayableError(RefusedError):
    """A call cannot be replayed."""


def as_refusal(error):
    """Return an exception of a recording as a `NotReplayableError`."""
    if isinstance(error, NotReplayableError):
        return error
    return NotReplayableError("recording_error", f"{type(error).__name__}: {error}")


@dataclass
class Check:
    """What a value must be, since Python decided by it.

    Attributes
    ----------
    number : int
        The value's.
    tensor : EagerTensor
        What it was.
    """

    number: int
    tensor: object


@dataclass
class Step:
    """An op to run.

    Attributes
    ----------
    op_name : str
        Its name in TensorFlow's registry.
    arguments : dict
        By the op's parameters: of inputs, the number of a value or a constant (an EagerTensor), or
        a list of such; of attributes, the value.
    inputs : set of str
        Which of the arguments are inputs.
    outputs : range
        The numbers of the values that it makes.
    sizes : list of tuple or None
        The sizes that these must have, since Python may have decided by them.
    checks : list of Check
        What must hold after it.
    releases : list of int
        Numbers of values that no later step and not the result needs.
    stopped : bool
        Whether tapes are not to be told of it.
    accessed : int or None
        The number of the handle of the variable that it reads or assigns to.
    static : bool
        Whether the shapes of its inputs decide those of what it makes.
    seed : tuple or None
        Of a random op, the seed that was chosen for it, or None: two are made of it in each call.
    used : list of int
        The numbers of the values that it takes.
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

    @property
    def lasts(self):
        """Whether something of it stays: the call may not be made again."""
        return self.seed is not None or self.op_name in _LASTING

    def flat_inputs(self):
        """Return the inputs in the order of the op's: numbers of values, and constants."""
        flat = []
        for name, value in self.arguments.items():
            if name in self.inputs:
                flat.extend(value if isinstance(value, list) else [value])
        return flat


class Number(int):
    """In the place of a tensor in a result, the number of its value."""


@dataclass(frozen=True)
class Constant:
    """In the place of a tensor in a result: the same in all calls, each time in a new buffer."""

    tensor: object


@dataclass(frozen=True)
class Tagged:
    """In the place of a tensor in a result on which TensorFlow has set attributes.

    Attributes
    ----------
    tensor : Number or Constant
        The tensor itself.
    attributes : dict
        By their names, packed.
    """

    tensor: object
    attributes: dict


@dataclass(frozen=True)
class Given:
    """In the place of a composite tensor that is among the arguments, or in one, its number."""

    number: int


@dataclass(frozen=True)
class Unread:
    """In the place of what an assignment returns: a variable that the call finds by itself.

    Attributes
    ----------
    found : int
        Which of them.
    """

    found: int


@dataclass(frozen=True)
class Composite:
    """In the place of a composite tensor in a result.

    Attributes
    ----------
    kind : type
        Its class, one of `fastops._plans.caller.COMPOSITES`.
    attributes : dict
        What it holds, packed.
    """

    kind: type
    attributes: dict


@dataclass(frozen=True)
class Held:
    """Tensors that a call may find by itself.

    Attributes
    ----------
    identities : collection of int
        Of all objects that the guards of the call have seen.
    begin : int
        What `tf.Tensor._id` of tensors that are older than the call is less than.
    watchable : bool
        Whether tapes may watch them: the call is recorded under one.
    """

    identities: object
    begin: int
    watchable: bool


@dataclass
class Recording:
    """What calls of one signature run.

    Attributes
    ----------
    num_arguments, num_values : int
        How many values are arguments, and how many there are.
    variables : list of tf.Variable
        Those that the call finds by itself. Their handles come after the arguments.
    checks : list of Check
        What must hold of the arguments.
    steps : list of Step
        In their order.
    result : object
        The result, with a `Number`, `Constant`, `Tagged`, `Given`, `Unread` or `Composite` in the
        place of each tensor.
    custom : bool
        Whether tapes are told of it otherwise than of its ops.
    taped : Recording or None
        What to run instead where a tape records, if that is something else: with the ops that a
        tape would miss, since the order in which it adds up gradients depends on all its records.
    """

    num_arguments: int
    num_values: int
    variables: list
    checks: list
    steps: list
    result: object
    custom: bool
    taped: object = None


def recording(
    recorder, arguments, holders, result, variables=None, held=None, most_steps=MAX_FUNCTION_OPS
):
    """Return the `Recording` of a call.

    Parameters
    ----------
    recorder : Recorder
        What noted it.
    arguments : list of EagerTensor
        The tensors among its arguments.
    holders : list of object
        The composites and objects among them, and in each other.
    result : object
        What it returned.
    variables : dict of int to tf.Variable, optional
        By the identity of the handle, those that the call may find by itself.
    held : Held, optional
        The tensors that the call may find by itself. Not given, it is TensorFlow's own function.
    most_steps : int
        How many ops there may be.

    Raises
    ------
    NotReplayableError
        If there is none.
    """
    if recorder.failed:
        raise NotReplayableError("interrupted")
    if recorder.said:
        raise NotReplayableError("logs")
    if recorder.builds:
        raise NotReplayableError("builds_graph")
    return _Maker(recorder, arguments, holders, result, variables or {}, held).run(most_steps)


class _Maker:
    def __init__(self, recorder, arguments, holders, result, variables, held):
        self.events = recorder.events
        self.held = held
        self.custom = recorder.custom
        self.result = result
        self.num_arguments = len(arguments)
        self.holders = {id(holder): i for i, holder in enumerate(holders)}
        self.tensors = []  # by number, so that identities last
        self.numbers = {}
        self.addresses = set()  # of the memory of values
        self.variables = []
        for tensor in arguments:
            self.add(tensor)
        for event in self.events:
            for tensor in event.inputs if isinstance(event, Ran) else ():
                if id(tensor) in variables and id(tensor) not in self.numbers:
                    self.add(tensor)
                    self.variables.append(variables[id(tensor)])
        self.shapes = {}  # numbers of shapes that a tape records, by identity
        self.constants = {}  # these shapes, by number
        self.checks = []
        self.steps = []
        self.seeded = []  # seeds that no op has got yet
        self.lasts = False  # whether something of an op stays: the call may not be made again
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
            last = max((i for i, one in enumerate(self.events) if isinstance(one, Ran)), default=-1)
        for i, event in enumerate(self.events):
            if isinstance(event, Ran):
                self.ran(event, i == last)
            elif isinstance(event, Read):
                self.read(event.tensor)
            else:
                self.seeded.append(event)
        if self.seeded:
            raise NotReplayableError("unused_seed")
        result = self.packed(self.result)
        steps = [self.untaped(one) for one in self.steps if not self.is_shape(one)]
        steps = self.asked(steps, result)
        if len(steps) > most_steps:
            raise NotReplayableError("too_many_ops", str(len(steps)))
        found = self.made(steps, result)
        result = self.packed(self.result, self.shapes)
        taped = self.asked(self.steps, result, self.is_recorded)
        if len(taped) != len(steps):
            found.taped = self.made(taped, result)
        return found

    def made(self, steps, result):
        """Return the recording of some steps."""
        self.release(steps, result)
        return Recording(
            self.num_arguments,
            len(self.tensors),
            self.variables,
            self.checks,
            steps,
            result,
            self.custom,
        )

    def ran(self, event, last):
        """Take up an op."""
        if event.op_name.startswith("_"):
            raise NotReplayableError("private_op", event.op_name)
        record = known_of(event.op_name)
        seed = self.seed_of(event, record)
        step = Step(event.op_name, stopped=event.stopped, seed=seed)
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
        if record.handles and not self.is_known_handle(event.op_name, known[0]):
            raise NotReplayableError("op_handle", event.op_name)
        for tensor, number in zip(event.inputs, known, strict=True):
            if number is None:
                self.check_constant(tensor, event.op_name)
        # Sizes are those of this call: of arguments by the signature, of others as is checked.
        fixed = event.op_name in _OF_SHAPES or (
            all(number is None for number in known)
            and not any(self.is_watchable(tensor) for tensor in event.inputs)
        )
        small = fixed and all(_size(tensor) <= MAX_VALUE_BYTES for tensor in event.outputs)
        if small and not record.runs_always:
            if self.is_differentiable(known):
                self.ran_on_tapes(event, known, record)
            return  # its outputs are constants
        for tensor, number in zip(event.inputs, known, strict=True):
            if number is None and _size(tensor) > 16 * MAX_VALUE_BYTES:
                raise NotReplayableError("large_constant")
        # Once something stays no call is made again, so that nothing may differ from then on.
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
        if seed is not None:
            sizes = _SIZES_IN.get(event.op_name, 0)
            step.static = sizes is None or known[sizes] is None
        elif self.lasts and not last:
            step.static = self.is_static(step)
        if not (last or step.static):
            raise NotReplayableError("sizes_from_values", event.op_name)
        self.lasts = self.lasts or step.lasts
        step.accessed = known[0] if event.op_name in _OF_VARIABLES else None
        step.used = [one for one in step.flat_inputs() if isinstance(one, int)]
        first = len(self.tensors)
        for tensor in event.outputs:
            self.add(tensor)
        step.outputs = range(first, len(self.tensors))
        # No code of such a function looks at the sizes of what its last op makes, if values decide
        # them. By the rank of a variable, say, it may have decided that there is no more to do.
        free = self.lasts or (last and step.accessed is None and not self.is_static(step))
        step.sizes = [None if free else tensor._shape_tuple() for tensor in event.outputs]
        self.steps.append(step)

    def check_constant(self, tensor, op_name):
        """Refuse a constant that may be another tensor in another call."""
        # TensorFlow keeps tensors of Python's numbers: scalars may share their memory by chance.
        if tensor._num_elements() > 1 and address_of(tensor) in self.addresses:
            raise NotReplayableError("copy_by_python", op_name)

    def is_watchable(self, tensor):
        """Tell whether a tape may watch a constant, so that the ops on it have to run."""
        held = self.held
        return (
            held is not None
            and held.watchable
            and tensor._id < held.begin
            and id(tensor) in held.identities
        )

    def kept(self, tensor):
        """Return what a recording keeps of a constant."""
        return tensor if self.is_watchable(tensor) else to_keep(tensor)

    def is_of_values(self, result):
        """Tell whether a result is nothing but arguments and what ops have made."""
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
                # The static shape of a sparse tensor follows from a value, which is compared.
                attributes = {**vars(value), "_dense_shape_default": None}
                pending += [one for one in attributes.values() if one is not None]
            else:
                return False
        return True

    def is_differentiable(self, numbers):
        """Tell whether a tape may record an op that takes the values with some numbers."""
        dtypes = [self.tensors[number].dtype for number in numbers if number is not None]
        return any(one.is_floating or one.is_complex or one in _HANDLES for one in dtypes)

    def ran_on_tapes(self, event, known, record):
        """Take up an op that makes constants, and that a tape records all the same."""
        step = Step(event.op_name, stopped=event.stopped)
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
        """Tell whether a step is there for tapes alone."""
        return bool(step.outputs) and step.outputs[0] in self.constants

    def untaped(self, step):
        """Return a step with constants in the places of what is there for tapes alone."""
        if self.constants.keys().isdisjoint(step.used):
            return replace(step)  # its own, for what is released after it

        def constant(value):
            if isinstance(value, list):
                return [constant(one) for one in value]
            return self.constants.get(value, value) if isinstance(value, int) else value

        arguments = {
            name: constant(value) if name in step.inputs else value
            for name, value in step.arguments.items()
        }
        used = [number for number in step.used if number not in self.constants]
        return replace(step, arguments=arguments, used=used)

    def is_recorded(self, step):
        """Tell whether a tape may record a step."""
        return not step.stopped and self.is_differentiable(step.used)

    def is_known_handle(self, op_name, number):
        """Tell whether an op may ask what the handle with a number refers to."""
        if number is None:
            return False
        if op_name in _ASSIGNING:
            found = number - self.num_arguments
            return 0 <= found < len(self.variables)
        return op_name in _READING | _WRITING

    def is_static(self, step):
        """Tell whether the shapes of a step's inputs decide those of what it makes."""
        if step.op_name in _SHAPED_BY_SHAPES or not step.outputs:
            return True
        if step.op_name == "GatherV2" and not isinstance(step.arguments["axis"], int):
            return True
        if step.accessed is not None:
            found = step.accessed - self.num_arguments
            return 0 <= found < len(self.variables) and (
                step.op_name == "ReadVariableOp" and self.variables[found].shape.is_fully_defined()
            )
        key = (
            step.op_name,
            *(
                (name, self.told(value) if name in step.inputs else repr(value))
                for name, value in step.arguments.items()
            ),
        )
        if key not in _statics:
            if len(_statics) >= MOST_STATICS:
                _statics.clear()
            _statics[key] = self.has_static_shapes(step)
        return _statics[key]

    def told(self, value):
        """Return what TensorFlow is told of an input: dtype and shape, of a constant all of it."""
        if isinstance(value, list):
            return tuple([self.told(one) for one in value])
        like, is_constant = self.standing_for(value)
        return _bytes(like) if is_constant else (like.dtype, like._shape_tuple())

    def standing_for(self, value):
        """Return the tensor for an input, and whether it is a constant on the host."""
        value = self.constants.get(value, value) if isinstance(value, int) else value
        if isinstance(value, int):
            return self.tensors[value], False
        return value, is_host_tensor(value)

    def has_static_shapes(self, step):
        """Ask TensorFlow's shape functions the same."""
        try:
            made = self.symbolic(step)
        except Exception:  # of no op that graphs take alone
            return False
        return all(one.shape.is_fully_defined() for one in made if isinstance(one, tf.Tensor))

    def symbolic(self, step):
        """Return what a step makes of inputs of which only shapes are known."""

        def one_like(value):
            if isinstance(value, list):
                return [one_like(one) for one in value]
            like, is_constant = self.standing_for(value)
            if is_constant:
                return tf.constant(like.numpy())
            return tf.compat.v1.placeholder(like.dtype, like._shape_tuple())

        with tf.Graph().as_default():
            arguments = {
                name: one_like(value) if name in step.inputs else value
                for name, value in step.arguments.items()
            }
            return tf.nest.flatten(getattr(tf.raw_ops, step.op_name)(**arguments))

    def seed_of(self, event, record):
        """Return what the seeds of an op are made of, in a tuple; None for one that has none."""
        if not self.seeded or not record.has_seeds:
            return None
        given = [event.attrs.get(name, 0) or 0 for name in SEEDS]
        if given != [one or 0 for one in self.seeded[0].seeds]:
            return None
        return (self.seeded.pop(0).op_seed,)

    def read(self, tensor):
        """Take up that Python has looked at a value."""
        number = self.numbers.get(id(tensor))
        if number is None:
            return
        if self.lasts:
            raise NotReplayableError("read_after_effect")
        if _size(tensor) > MAX_VALUE_BYTES or tensor.dtype in _HANDLES:
            raise NotReplayableError("large_value")
        if not is_host_tensor(tensor):
            raise NotReplayableError("value_on_device")
        check = Check(number, to_keep(tensor))
        for step in self.steps:
            if number in step.outputs:
                step.checks.append(check)
                return
        self.checks.append(check)

    def packed(self, value, shapes=MappingProxyType({})):
        """Return a result with numbers in the places of tensors, of some shapes as well."""
        kind = type(value)
        if kind is EagerTensor:
            number = self.numbers.get(id(value), shapes.get(id(value)))
            if number is None and (_size(value) > MAX_VALUE_BYTES or value.dtype in _HANDLES):
                raise NotReplayableError("returns_large_constant")
            if number is None and not self.only_host:  # a copy would not tell the same device
                raise NotReplayableError("returns_constant")
            if number is None:
                self.check_constant(value, "the result")
                held = self.held
                if held and value._id < held.begin and id(value) in held.identities:
                    raise NotReplayableError("returns_held_tensor")
            tensor = Constant(to_keep(value)) if number is None else Number(number)
            if not vars(value) or (number is not None and number < self.num_arguments):
                return tensor
            if not all(isinstance(one, _OF_ATTRIBUTES) for one in vars(value).values()):
                raise NotReplayableError("sets_tensor_attributes")
            attributes = vars(value).items()
            return Tagged(tensor, {name: self.packed(one, shapes) for name, one in attributes})
        if kind in _OF_VALUES or isinstance(value, tf.DType):
            return value
        if kind in (list, tuple):
            return kind([self.packed(one, shapes) for one in value])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*[self.packed(one, shapes) for one in value])
        if kind is dict:
            return {name: self.packed(one, shapes) for name, one in value.items()}
        if kind is _UnreadVariable:
            found = self.numbers.get(id(value._handle), -1) - self.num_arguments
            if 0 <= found < len(self.variables):
                return Unread(found)
        if kind in COMPOSITES and id(value) in self.holders:
            return Given(self.holders[id(value)])
        if kind in COMPOSITES:
            return Composite(kind, self.packed(vars(value), shapes))
        raise NotReplayableError("returns_type", kind.__name__)

    def asked(self, steps, result, keeps=lambda step: False):
        """Leave out steps whose results are not used, but for some."""
        asked = set(numbers_in(result))
        kept = []
        for step in reversed(steps):
            runs_always = known_of(step.op_name).runs_always
            asked_for = step.checks or runs_always or not asked.isdisjoint(step.outputs)
            # Python may have decided by its sizes.
            if asked_for or keeps(step) or not self.is_static(step):
                kept.append(step)
                asked.update(step.used)
        return kept[::-1]

    def release(self, steps, result):
        """Say when values may go."""
        given = self.num_arguments + len(self.variables)
        asked = set(numbers_in(result)) | set(range(given))
        for step in reversed(steps):
            here = {*step.used, *step.outputs} - asked
            step.releases = sorted(here)
            asked |= here


def prepare_kernels(recorder, found):
    """Prepare the kernels of ops that TensorFlow has made by itself in a recorded call.

    Parameters
    ----------
    recorder : Recorder
        What noted the call.
    found : Recording
        Of the call.
    """
    asked = {step.op_name for step in found.steps}
    for event in recorder.events:
        if isinstance(event, Ran) and event.op_name in asked:
            arguments, _ = _arguments(known_of(event.op_name), event.inputs, event.attrs)
            seeds = {name: event.attrs[name] for name in SEEDS if name in event.attrs}
            prepare(named(event.op_name), arguments | seeds)


def _arguments(record, values, attrs):
    """Return the arguments of an op by its parameters, and which of them are inputs."""
    arguments, place = {}, 0
    for name, number_attr, type_list_attr in record.inputs:
        if number_attr is None and type_list_attr is None:
            if place >= len(values):
                raise NotReplayableError("op_inputs", record.op_def.name)
            arguments[name] = values[place]
            place += 1
            continue
        count = attrs[number_attr] if number_attr else len(attrs[type_list_attr])
        arguments[name] = values[place : place + count]
        place += count
    if place != len(values):
        raise NotReplayableError("op_inputs", record.op_def.name)
    inputs = set(arguments)
    for name, value in attrs.items():
        if name in record.inferred or value is None:
            continue
        if name in SEEDS and record.draws:
            value = 0  # in its place comes another one in each call
        parameter, plain, is_list = record.attrs[name]
        if plain is not None:
            value = [plain(one) for one in value] if is_list else plain(value)
        arguments[parameter] = value
    return arguments, inputs


def _bytes(tensor):
    """Return what there is to know of a tensor, to be compared."""
    value = tensor.numpy()
    elements = value.tolist() if tensor.dtype == tf.string else value.tobytes()
    return tensor.dtype, tensor._shape_tuple(), elements


def _size(tensor):
    # Whoever asks for a shape leaves one behind, in tensors that others have, too.
    return 0 if not tensor.dtype.size else tensor._num_elements() * tensor.dtype.size


def numbers_in(packed):
    """Yield the numbers in a packed result."""
    if isinstance(packed, Number):
        yield int(packed)
    elif isinstance(packed, Tagged):
        yield from numbers_in([packed.tensor, packed.attributes])
    elif isinstance(packed, Composite):
        yield from numbers_in(packed.attributes)
    elif isinstance(packed, list | tuple):
        for one in packed:
            yield from numbers_in(one)
    elif type(packed) is dict:
        yield from numbers_in(list(packed.values()))
