# distutils: language = c++
"""The kernels of the ops of a recording: prepared, and run without Python in between."""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libcpp.utility cimport move
from libcpp.vector cimport vector

from fastops._core.entries cimport Entry, Placing
from fastops._core.observer cimport is_measured
from fastops._core.schema cimport FASTOPS_MAX_PARAMS
from fastops._core.tapes cimport (
    keep, may_keep, record_call, record_custom, record_op, recorded_op,
)
from fastops._core.telling cimport raise_failure
from fastops._core.tensors cimport host_tensor, local_tensor
from fastops._cpp.handle cimport Wrap
from fastops._cpp.options cimport Thread, kAuto, kDirect
from fastops._cpp.plan cimport Borrowed, Differs, Made, NativeStep, kKernel, kRead
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.signature cimport Signature
from fastops._cpp.tape cimport RecordedOpNamed
from fastops._cpp.timer cimport Nanoseconds
from fastops._dispatch cimport Op, runtime, tell_watchers
from fastops._specialize.policy cimport LONG_RUN_NS
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass


import weakref

cdef Runtime* _where = runtime()  # the address never changes; `gate` keeps the contents current


@cython.final
cdef class Custom:
    """Records a call with a custom gradient on tapes.

    Parameters
    ----------
    recorded : fastops._specialize.recording.recording.RecordedCustom
        The recorded call.
    """

    def __init__(self, recorded):
        self.name, self.closure, self.stopped = recorded.name, recorded.closure, recorded.stopped
        self.op = RecordedOpNamed(self.name.encode())
        self.num_kept, self.num_inputs = len(recorded.kept), len(recorded.inputs)
        self.num_outputs = len(recorded.outputs)
        self.constants = []
        for item in recorded.all:
            if isinstance(item, int):
                self.tensors.push_back(item)
            else:
                self.constants.append(item)
                self.tensors.push_back(-<int>len(self.constants))

    cdef int record(self, PyObject** values) except -1:
        cdef vector[PyObject*] tensors
        cdef int number
        if self.stopped:
            return 0
        for number in self.tensors:
            if number >= 0:
                tensors.push_back(values[number])
            else:
                tensors.push_back(PyList_GET_ITEM(self.constants, -1 - number))
        record_custom(
            self.op, self.name, self.closure, True, tensors.data(), self.num_kept,
            tensors.data() + self.num_kept, self.num_inputs,
            tensors.data() + self.num_kept + self.num_inputs, self.num_outputs,
        )
        return 0


@cython.final
cdef class _TapedKind:
    """Stands for all recordings of which tapes record the same. Keeps the attributes alive."""

    cdef list attrs
    cdef object __weakref__

    def __init__(self, list attrs):
        self.attrs = attrs


cdef object _kinds = weakref.WeakValueDictionary()  # by what tapes record; attributes by address


@cython.final
cdef class TapeSteps:
    """What tapes record of the runs of a `Native`."""

    def __init__(self, Native native, recording):
        cdef NativeStep* step
        cdef Op op
        cdef Custom custom
        cdef vector[int] slots, kept, inputs, outputs
        cdef vector[int].iterator first
        cdef size_t i
        cdef int number
        self.ops, self.attrs, self.customs = native.ops, native.attrs, native.customs
        self.constants = list(native.constants)
        described, attrs = [], []
        for i in range(native.plan.steps.size()):
            step = &native.plan.steps[i]
            step_attrs = self.attrs[i]
            if step_attrs is not None:
                op = self.ops[i]
                self.steps.AddOp(
                    recorded_op(op), <PyObject*>op.op_name, <PyObject*>step_attrs, step.inputs,
                    step.outputs,
                )
                described.append((
                    op.op_name, id(step_attrs), tuple(step.inputs), tuple(step.outputs)
                ))
                attrs.append(step_attrs)
            if self.customs is None:
                continue
            for custom in <tuple>self.customs[i]:
                if custom.stopped:
                    continue
                slots.clear()
                for number in custom.tensors:
                    if number < 0:
                        self.constants.append(custom.constants[-1 - number])
                        number = native.num_values + <int>len(self.constants) - 1
                    slots.push_back(number)
                first = slots.begin() + custom.num_kept
                kept.assign(slots.begin(), first)
                inputs.assign(first, first + custom.num_inputs)
                outputs.assign(first + custom.num_inputs, slots.end())
                self.steps.AddCustom(
                    custom.op, <PyObject*>custom.name, <PyObject*>custom.closure, kept, inputs,
                    outputs,
                )
                described.append((
                    custom.name, id(custom.closure), tuple(kept), tuple(inputs), tuple(outputs)
                ))
                attrs.append(custom.closure)
        shown = [native.made[i] for i in range(native.made.size()) if native.shown[i]]
        self.steps.shown = shown
        self.steps.first_made = recording.num_arguments + <int>len(recording.variables)
        self.steps.first_constant = native.num_values
        for constant in self.constants:
            self.steps.constants.push_back(<PyObject*>constant)
        self.steps.runtime = _where
        content = tuple(described), tuple(shown), self.steps.first_made, native.num_values
        self.kind = _kinds.get(content)
        if self.kind is None:
            self.kind = _kinds.setdefault(content, _TapedKind(attrs))
        self.steps.kind = <PyObject*>self.kind


cdef list customs_of(steps):
    """Return for each step what tapes record after it; None if there is nothing."""
    customs = [tuple([Custom(custom) for custom in step.customs]) for step in steps]
    return customs if any(customs) else None


@cython.final
cdef class Native:
    """The kernels of one replay, in execution order.

    Parameters
    ----------
    recording : fastops._specialize.recording.recording.Recording
        The recording of the replay.
    ops : tuple of Op
        The op of each step.
    entries : list of Entry or Placing
        The entry or placing by which each step ran.
    variables, handles : tuple
        The variables that are not arguments of the call, and their handles.
    asked : list of int
        The numbers of the values that the result needs.
    onednn : bool
        The oneDNN setting for which the entries were made.
    recorded : bool
        Whether tapes record the steps. Then all values are kept until the end.
    """

    def __init__(self, recording, tuple ops, list entries, tuple variables, tuple handles, asked,
                 bint onednn, bint recorded):
        cdef NativeStep* native
        cdef size_t i
        cdef int index
        cdef dict makers = {}
        self.ops, self.onednn, self.num_values = ops, onednn, recording.num_values
        self.last_ns = LONG_RUN_NS + 1  # unknown before the first run: taken to be long
        constants = []
        first = recording.num_arguments + len(handles)
        self.plan.steps.resize(len(entries))
        self.first_lasting = <int>len(entries)
        accessed = {}
        for i, (how, step) in enumerate(zip(entries, recording.steps)):
            native = &self.plan.steps[i]
            native.number = <int>i
            if type(how) is Placing:
                native.kind = kKernel
                native.placed = (<Placing>how).kernel
                self.waits = True
            else:
                native.kind = kRead if step.op_name == "ReadVariableOp" else kKernel
                native.kernel = (<Entry>how).kernel
            native.outputs = list(step.outputs)
            makers.update((number, (i, index)) for index, number in enumerate(step.outputs))
            releases = [] if recorded else step.releases
            native.releases = releases
            taken = []
            for item in step.flat_inputs():
                if not isinstance(item, int):
                    constants.append(item)
                    item = recording.num_values + len(constants) - 1
                taken.append(item)
            native.inputs = taken
            native.shared = [
                index
                for index, item in enumerate(taken)
                if item not in releases or taken.count(item) > 1
            ]
            for index, sizes in enumerate(step.sizes):
                if sizes is not None:
                    native.Want(index, sizes)
            for check in step.checks:
                native.Check(check.number, _at(host_tensor(<PyObject*>check.tensor))[0])
            if step.accessed is not None:
                accessed[step.accessed] = None
            if step.lasts:
                self.first_lasting = min(self.first_lasting, <int>i)
        self.plan.Resize(recording.num_values + len(constants))
        for index, handle in enumerate(handles, recording.num_arguments):
            self.plan.Hold(index, _at(local_tensor(<PyObject*>handle))[0])
        for index, constant in enumerate(constants, recording.num_values):
            self.plan.Hold(index, _at(local_tensor(<PyObject*>constant))[0])
        self.constants = tuple(constants)
        shown = set(asked)
        if recorded:
            asked = range(first, recording.num_values)
            self.customs = customs_of(recording.steps)
            self.attrs = [
                None if step.stopped else entry_of(how).gradient_attrs
                for how, step in zip(entries, recording.steps)
            ]
        used = {
            item
            for step in recording.steps
            for item in step.flat_inputs()
            if isinstance(item, int)
        }
        self.plan.arguments = [i if i in used else -1 for i in range(recording.num_arguments)]
        self.plan.results = self.made = asked
        self.shown = [number in shown for number in asked]
        if self.waits:
            self.makers = [makers[number] for number in asked]
        elif recorded:
            self.taped = TapeSteps(self, recording)
        self.plan.transient = [
            *(i for i in range(recording.num_arguments) if i in used),
            *range(first, recording.num_values),
        ]
        self.accessed_at = [
            number - recording.num_arguments
            for number in accessed
            if number >= recording.num_arguments
        ]
        self.accessed = tuple([variables[i] for i in self.accessed_at])
        self.given = [number for number in accessed if number < recording.num_arguments]

    cdef bint may_run(self, Thread* thread) except -1:
        return (
            (thread.options.path == kAuto or thread.options.path == kDirect)
            and thread.options.onednn == self.onednn
            and not is_measured(thread)
        )

    cdef Outcome run(self, const Signature& signature, PyObject** values, Thread* thread) except *:
        cdef Borrowed given
        cdef Made made
        cdef const NativeStep* failed = NULL
        cdef Status status
        cdef PyObject* variable
        cdef bint keeps
        cdef int64_t begin
        cdef size_t i
        for i in range(self.plan.arguments.size()):
            given.push_back(signature.leaf(i))
        for i in range(<size_t>PyTuple_GET_SIZE(self.accessed)):
            tell_watchers(<object>PyTuple_GET_ITEM(self.accessed, i))
        for i in range(self.given.size()):
            variable = signature.variable(self.given[i])
            if variable != NULL:
                tell_watchers(<object>variable)
        begin = Nanoseconds()
        status = self.plan.Run(
            given, self.last_ns > LONG_RUN_NS or self.waits, thread.options.threads, False, &made,
            &failed,
        )
        self.last_ns = Nanoseconds() - begin
        if not status.ok():
            if failed == NULL or Differs(status):
                if failed != NULL:
                    self.differed = failed.number
                return DIFFERS
            if failed.number <= self.first_lasting:
                return FAILED
            raise_failure(<Op>PyTuple_GET_ITEM(self.ops, failed.number), status)
        for i in range(<size_t>PyTuple_GET_SIZE(self.ops)):
            (<Op>PyTuple_GET_ITEM(self.ops, i)).calls_direct += 1
        self.runs += 1
        keeps = self.taped is not None and may_keep()
        for i in range(made.size()):
            if self.shown[i] or not keeps:
                self.take(made[i], i, False, values)
        if keeps:
            if record_call(&self.taped.steps, self.taped, values, &made):
                return DONE
            for i in range(made.size()):
                if not self.shown[i]:
                    self.take(made[i], i, True, values)
        if self.attrs is not None:
            try:
                self.record(values)
            except Exception:  # a forward accumulator has raised
                if self.first_lasting < PyTuple_GET_SIZE(self.ops):
                    raise
                return FAILED
        return DONE

    cdef Native rebound(self, tuple variables, tuple handles):
        """Return the same kernels with other variables.

        A variable may be missing: then there is a number in its place, and the kernels cannot run.
        """
        cdef Native other = Native.__new__(Native)
        cdef int slot = <int>self.plan.arguments.size()
        self.plan.CopyTo(&other.plan)
        for handle in handles:
            if handle is None:
                other.plan.Release(slot)
            else:
                other.plan.Hold(slot, _at(local_tensor(<PyObject*>handle))[0])
            slot += 1
        other.ops, other.attrs, other.constants = self.ops, self.attrs, self.constants
        other.customs, other.taped = self.customs, self.taped
        other.num_values, other.given, other.made = self.num_values, self.given, self.made
        other.shown = self.shown
        other.accessed_at = self.accessed_at
        other.accessed = tuple([variables[<int>i] for i in self.accessed_at])
        other.first_lasting, other.onednn = self.first_lasting, self.onednn
        other.waits, other.makers = self.waits, self.makers
        other.last_ns = self.last_ns
        return other

    cdef int take(self, Tensor& tensor, size_t i, bint keeps, PyObject** values) except -1:
        """Move a value into an EagerTensor, or into one that only records keep."""
        cdef PyObject* value = keep(tensor, _where) if keeps else NULL
        if value == NULL:
            wrapped = self.wrapped(tensor, i)
            Py_INCREF(wrapped)
            value = <PyObject*>wrapped
        values[self.made[i]] = value
        return 0

    cdef object wrapped(self, Tensor& tensor, size_t i):
        """Wrap an output of a step in an EagerTensor, as a call of its op would do."""
        cdef NativeStep* step
        if self.waits:
            step = &self.plan.steps[self.makers[i].first]
            if step.placed.get() != NULL:
                return step.placed.get().Wrapped(move(tensor), self.makers[i].second)
        return Wrap(move(tensor), _where.host, _where.context)

    cdef int record(self, PyObject** values) except -1:
        """Record the steps on tapes, as calls of their ops would do."""
        cdef Custom custom
        cdef NativeStep* step
        cdef vector[PyObject*] inputs, outputs
        cdef size_t i, j
        cdef int number
        for i in range(self.plan.steps.size()):
            attrs = <object>PyList_GET_ITEM(self.attrs, i)
            if attrs is not None:
                step = &self.plan.steps[i]
                inputs.clear()
                outputs.clear()
                for j in range(step.inputs.size()):
                    number = step.inputs[j]
                    if number < self.num_values:
                        inputs.push_back(values[number])
                    else:
                        inputs.push_back(PyTuple_GET_ITEM(self.constants, number - self.num_values))
                for number in step.outputs:
                    outputs.push_back(values[number])
                record_op(
                    <Op>PyTuple_GET_ITEM(self.ops, i), attrs, inputs.data(), <int>inputs.size(),
                    outputs.data(), <int>outputs.size(),
                )
            if self.customs is not None:
                for custom in <tuple>PyList_GET_ITEM(self.customs, i):
                    custom.record(values)
        return 0


cdef const Tensor* _at(const Tensor* tensor) except NULL:
    if tensor == NULL:
        raise ValueError("a constant of a recording is not in the memory of this process")
    return tensor


cdef bint are_direct(list entries, steps, bint recorded) except -1:
    for how, step in zip(entries, steps):
        if how is None:
            return False
        if recorded and not step.stopped and entry_of(how).gradient_attrs is None:
            return False
    return len(entries) == len(steps)


cdef Entry entry_of(how):
    return (<Placing>how).entry if type(how) is Placing else <Entry>how


def prepare(Op op, dict arguments):
    """Prepare the kernel for a call that TensorFlow has already run.

    Parameters
    ----------
    op : Op
    arguments : dict
        The arguments by parameter name. Inputs are tensors.
    """
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef vector[PyObject*] given
    cdef tuple names = tuple(arguments)
    if not op.ready:
        op.load()
    for name in names:
        given.push_back(PyDict_GetItem(arguments, name))
    if op.bind(given.data(), <PyObject*>names, slots):
        op.prepare(slots)
