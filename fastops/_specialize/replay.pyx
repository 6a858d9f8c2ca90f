# distutils: language = c++
"""Replays of recordings.

A replay runs the ops that the recorded call ran. Each is an ordinary call of its op: tapes record
it, profiles count it, and TensorFlow makes it if the direct path cannot. If a tensor value differs
from the value that Python read, or if an op fails, the replay ends before anything has an effect,
and the caller runs the Python code instead.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libcpp.vector cimport vector

from fastops._core cimport draws
from fastops._core.locals cimport unseeded
from fastops._core.measuring cimport ProfileRecorder
from fastops._core.observer cimport is_measured
from fastops._core.preparing cimport flushes
from fastops._core.schema cimport FASTOPS_MAX_PARAMS
from fastops._core.tensors cimport copy_of, has_sizes, host_tensor, local_tensor, same_bytes
from fastops._core.threads cimport this_thread
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.dicts cimport DictVersion
from fastops._cpp.options cimport Thread
from fastops._cpp.python cimport call_object
from fastops._cpp.signature cimport Signature
from fastops._dispatch cimport Op, tell_watchers
from fastops._specialize.guards.names cimport holds as guard_holds
from fastops._specialize.native cimport (
    Custom, DIFFERS, DONE, FAILED, Native, Outcome, are_direct,
)
from fastops._specialize.policy cimport MAX_KERNEL_SEARCHES, MAX_UNSHARED_OPS
from fastops._tf.eager cimport TFE_Py_TapeSetRestartOnThread, TFE_Py_TapeSetStopOnThread
from fastops._tf.eager cimport recording as taped
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

import sys
from dataclasses import replace as _replace


from fastops._specialize.guards.names import upstream as _upstream
from fastops._specialize.recording.recording import (
    Composite,
    Constant,
    Given,
    Itself,
    Number,
    Placed,
    Shared,
    Tagged,
    Unread,
    numbers_in,
)

cdef enum:
    INLINE_VALUES = 64

# Ops whose kernels keep nothing that depends on sizes. An optimizer's step has thousands of them.
# Preparing a kernel for each would take longer than running it.
cdef frozenset _SHARED = frozenset([
    "Add", "AddV2", "AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp", "Cast",
    "Identity", "Maximum", "Minimum", "Mul", "Neg", "Pow", "ReadVariableOp", "RealDiv", "Rsqrt",
    "Sqrt", "Square", "Sub", "ZerosLike",
])

cdef str _NO_TAPE = "no tape records, as a custom gradient may change or assignments come later"
cdef tuple _NO_SEED = (None,)
cdef tuple _NO_SEEDS = (None, None)


# ---------------------------------------------------------------------------------------------
# The replay of one recording
# ---------------------------------------------------------------------------------------------

@cython.final
cdef class ValueCheck:
    """Compares a value with the value that Python read in the recorded call.

    Parameters
    ----------
    check : fastops._specialize.recording.recording.Check
        The number of the value, and the recorded value.
    """

    cdef int number
    cdef object tensor

    def __init__(self, check):
        self.number = check.number
        self.tensor = check.tensor

    cdef bint holds(self, PyObject** values) except -1:
        cdef const Tensor* value = host_tensor(values[self.number])
        cdef const Tensor* wanted = host_tensor(<PyObject*>self.tensor)
        return value != NULL and wanted != NULL and same_bytes(value, wanted)


@cython.final
cdef class ReplayStep:
    """An op to run.

    Parameters
    ----------
    op : Op
        The op. Its cached entry should fit this step, so steps rarely share an op.
    step : fastops._specialize.recording.recording.RecordedStep
        The recorded step.
    function : callable
        TensorFlow's generated function of the op.
    """

    cdef Op op
    cdef object function
    cdef tuple names
    cdef tuple arguments        # None where a value is filled in
    cdef vector[int] positions  # indexes of arguments that are values
    cdef vector[int] numbers    # and the numbers of these values
    cdef list lists             # arguments that are lists with values: index and items
    cdef int first              # the number of the first output's value
    cdef int num_outputs
    cdef tuple sizes
    cdef tuple checks
    cdef tuple customs          # what tapes record after it, of type `Custom`
    cdef vector[int] releases
    cdef bint stopped           # tapes must not record it
    cdef int accessed           # the number of the accessed variable's handle, or -1
    cdef bint lasts             # it has an effect: after it the call must not be made again
    cdef tuple seed             # of a random op; None for other ops
    cdef int seed_positions[2]

    def __init__(self, Op op, step, function):
        self.op = op
        self.function = function
        if step.seed is not None:
            if not op.ready:
                op.load()  # `run` asks it whether draws are made here
            step.arguments.update(seed=0, seed2=0)
            for i, name in enumerate(("seed", "seed2")):
                self.seed_positions[<int>i] = list(step.arguments).index(name)
        self.stopped, self.lasts, self.seed = step.stopped, step.lasts, step.seed
        self.accessed = -1 if step.accessed is None else step.accessed
        self.names = tuple([sys.intern(name) for name in step.arguments])
        arguments, self.lists = [], []
        for position, (name, value) in enumerate(step.arguments.items()):
            if name in step.inputs and isinstance(value, int):
                self.positions.push_back(position)
                self.numbers.push_back(value)
                value = None
            elif name in step.inputs and isinstance(value, list):
                self.lists.append((position, value))
                value = None
            arguments.append(value)
        self.arguments = tuple(arguments)
        self.first, self.num_outputs = step.outputs.start, len(step.outputs)
        self.sizes = tuple(step.sizes)
        self.checks = tuple([ValueCheck(check) for check in step.checks])
        self.customs = tuple([Custom(custom) for custom in step.customs])
        self.releases = step.releases

    cdef Outcome run(self, const Signature& signature, tuple variables, PyObject** values,
                     PyObject** made_of_all) except *:
        """Run the op. `made_of_all`, if it is not null, gets the op's result, a new reference."""
        cdef PyObject* arguments[FASTOPS_MAX_PARAMS]
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(self.arguments)
        cdef int end
        cdef list kept = None
        cdef tuple seeds
        cdef PyObject* callable = <PyObject*>self.op
        for i in range(n):
            arguments[i] = PyTuple_GET_ITEM(self.arguments, i)
        for i in range(<Py_ssize_t>self.positions.size()):
            arguments[self.positions[i]] = values[self.numbers[i]]
        if PyList_GET_SIZE(self.lists) != 0:
            kept = []
            for position, items in self.lists:
                filled = [
                    <object>values[<int>item] if isinstance(item, int) else item for item in items
                ]
                kept.append(filled)
                arguments[<int>position] = <PyObject*>filled
        if self.seed is not None:
            if self.seed == _NO_SEED and unseeded():
                seeds = _NO_SEEDS
            else:
                seeds = draws.seeds_of(self.seed[0])
                if self.seed == _NO_SEED and not (self.op.seeded and draws.live):
                    # The seeds differ in each call: keys would never repeat.
                    callable = <PyObject*>self.function
            for i in range(2):
                arguments[self.seed_positions[i]] = PyTuple_GET_ITEM(seeds, i)
        if self.stopped and taped():
            TFE_Py_TapeSetStopOnThread()
            try:
                self.tell(signature, variables)
                made = call_object(callable, arguments, 0, <PyObject*>self.names)
            finally:
                TFE_Py_TapeSetRestartOnThread()
        else:
            self.tell(signature, variables)
            made = call_object(callable, arguments, 0, <PyObject*>self.names)
        if made_of_all != NULL:
            Py_INCREF(made)
            made_of_all[0] = <PyObject*>made
        end = _spread(<PyObject*>made, values, self.first, self.first + self.num_outputs)
        if end != self.first + self.num_outputs:
            return DIFFERS
        for i in range(self.num_outputs):
            sizes = <object>PyTuple_GET_ITEM(self.sizes, i)
            if sizes is not None and not _has_sizes(values[self.first + i], sizes):
                return DIFFERS
        for i in range(PyTuple_GET_SIZE(self.checks)):
            if not (<ValueCheck>PyTuple_GET_ITEM(self.checks, i)).holds(values):
                return DIFFERS
        if PyTuple_GET_SIZE(self.customs) != 0 and taped():
            for i in range(PyTuple_GET_SIZE(self.customs)):
                (<Custom>PyTuple_GET_ITEM(self.customs, i)).record(values)
        self.release(values)
        return DONE

    cdef list constants(self):
        """Return the op's name, the parameter and the tensor of each constant input."""
        return [
            (self.op.op_name, name, value)
            for name, value in zip(self.names, self.arguments)
            if IsEagerTensor(<PyObject*>value)
        ] + [
            (self.op.op_name, self.names[position], value)
            for position, items in self.lists
            for value in items
            if IsEagerTensor(<PyObject*>value)
        ]

    cdef int take(self, list outputs, PyObject** values) except -1:
        """Take outputs instead of running the op."""
        _spread(<PyObject*>outputs, values, self.first, self.first + self.num_outputs)
        self.release(values)
        return 0

    cdef void release(self, PyObject** values) noexcept:
        """Forget the values that neither a later step nor the result needs."""
        cdef int number
        cdef Py_ssize_t i
        for i in range(<Py_ssize_t>self.releases.size()):
            number = self.releases[i]
            Py_DECREF(<object>values[number])
            values[number] = NULL

    cdef int tell(self, const Signature& signature, tuple variables) except -1:
        cdef PyObject* variable = NULL
        cdef int index = self.accessed - <int>signature.num_leaves()
        if index >= 0:
            variable = PyTuple_GET_ITEM(variables, index)
        elif self.accessed >= 0:
            variable = signature.variable(self.accessed)
        if variable != NULL:
            tell_watchers(<object>variable)
        return 0


cdef bint _has_sizes(PyObject* value, object sizes) noexcept:
    cdef const Tensor* tensor = local_tensor(value)
    return tensor != NULL and has_sizes(tensor, sizes)


cdef int _spread(PyObject* made, PyObject** values, int number, int end) except -1:
    """Store the tensors of an op's result as values; return the number after the last one."""
    cdef Py_ssize_t i
    if IsEagerTensor(made):
        if number < end:
            Py_INCREF(<object>made)
            values[number] = made
        return number + 1
    if isinstance(<object>made, tuple):
        for i in range(PyTuple_GET_SIZE(<object>made)):
            number = _spread(PyTuple_GET_ITEM(<object>made, i), values, number, end)
    elif isinstance(<object>made, list):
        for i in range(PyList_GET_SIZE(<object>made)):
            number = _spread(PyList_GET_ITEM(<object>made, i), values, number, end)
    return number


@cython.final
cdef class Replay:
    """Runs the recorded ops for calls of a signature.

    Parameters
    ----------
    recording : fastops._specialize.recording.recording.Recording
        The recording of one of these calls.
    op : callable
        Returns the `Op` for a step, given the step's index and the op's name.
    passed : callable
        Returns, for an op's name, the module of its generated function, the function's name there,
        and the function. The replay bypasses the function, as long as the module has it.
    settings : sequence of tuple
        Pairs of a module and the name of an attribute that must not change.
    guard : Guard, optional
        The guard of the code that ran.
    """

    def __init__(self, recording, op, passed, settings, guard=None):
        self.guard = guard
        self.made_after = flushes
        self.num_arguments = recording.num_arguments
        self.num_values = recording.num_values
        self.variables = tuple(recording.variables)
        self.handles = handles_of(self.variables)
        self.checks = tuple([ValueCheck(check) for check in recording.checks])
        self.branches, self.values_before = recording.branches, None
        if self.branches:
            self.values_before = recording.values_before()
        self.result = recording.result
        self.single = recording.result if isinstance(recording.result, Number) else -1
        if isinstance(recording.result, (list, tuple)):
            if all([isinstance(item, Number) for item in recording.result]):
                self.flat = recording.result
        self.without_tape = recording.without_tape
        self.recording = recording if _may_be_native(recording) else None
        last = next(reversed(recording.steps), None)
        self.whole = self.flat.size() != 0 and last is not None and (
            list(recording.result) == list(last.outputs)
        )
        self.passed = []
        functions = {}
        for name in dict.fromkeys(step.op_name for step in recording.steps):
            module, attribute, function = passed(name)
            self.passed.append((module.__dict__, attribute, function))
            self.versions.push_back(0)
            functions[name] = function
        firsts = {} if len(recording.steps) > MAX_UNSHARED_OPS else None
        self.steps = tuple([
            ReplayStep(op(_op_index(i, step, firsts), step.op_name), step, functions[step.op_name])
            for i, step in enumerate(recording.steps)
        ])
        self.settings = [
            (module.__dict__, name, getattr(module, name)) for module, name in settings
        ]
        if recording.taped is not None:
            n = len(recording.steps)  # the indexes of its ops come after these
            self.taped = Replay(
                recording.taped, lambda index, name: op(n + index, name), passed, settings
            )

    def op_names(self):
        """Return the names of the ops, in the order in which they run."""
        return [(<ReplayStep>step).op.op_name for step in self.steps]

    def describe(self):
        """Describe what the replay runs and compares.

        Returns
        -------
        dict
            The names of the ``"ops"``; the ``"constants"`` among their inputs, each with the op's
            name, the parameter and a tensor; the number of tensor ``"values"`` that are compared;
            the ``"guards"``, texts by their kind; and the number of runs as kernels only,
            ``"native"``.

        Notes
        -----
        The kinds of guards:

        - ``"names"``: names in modules and classes of libraries, which the code that ran looks up.
        - ``"functions"``: the generated functions of the ops.
        - ``"settings"``: attributes of modules that the function reads.
        - ``"values"``: tensors whose values Python read.
        - ``"sizes"``: outputs of ops whose sizes Python may have read.
        - ``"surroundings"``: what must not surround a call.
        """
        cdef ReplayStep step
        cdef int i
        constants, values, sizes = [], list(self.checks), []
        for step in self.steps:
            values += step.checks
            sizes += [
                self.name_of(step.first + i)
                for i in range(step.num_outputs) if step.sizes[i] is not None
            ]
            constants += step.constants()
        return {
            "ops": self.op_names(),
            "constants": constants,
            "values": len(values),
            "guards": {
                "names": [] if self.guard is None else self.guard.paths(),
                "functions": [
                    f"{namespace.get('__name__')}.{name}" for namespace, name, _ in self.passed
                ],
                "settings": [
                    f"{namespace.get('__name__')}.{name}" for namespace, name, _ in self.settings
                ],
                "values": list(dict.fromkeys(
                    [self.name_of((<ValueCheck>check).number) for check in values]
                )),
                "sizes": sizes,
                "surroundings": [_NO_TAPE] if self.without_tape else [],
            },
            "native": self.native_runs(),
        }

    cdef str name_of(self, int number):
        """Return a name for the value with a number, as text."""
        cdef ReplayStep step
        if number < self.num_arguments:
            return f"tensor {number} of the arguments"
        for i, step in enumerate(self.steps):
            if step.first <= number < step.first + step.num_outputs:
                return f"output {number - step.first} of op {i}, {step.op.op_name}"
        return f"variable {number - self.num_arguments}"

    cdef str change(self):
        if self.made_after != flushes:
            return "the prepared kernels have been dropped"
        if self.without_tape and taped():
            return "a tape records, and the recording is for calls without one"
        path = None if self.guard is None else self.guard.change()
        if path is None and self.taped is not None and taped():
            return self.taped.change()
        if path is None:
            path = self.changed_name()
        return None if path is None else f"{path} has changed"

    cdef str changed_name(self):
        """Return the function of an op, or the setting, that differs from the recorded one."""
        for namespace, name, function in self.passed:
            if _upstream(namespace.get(name)) is not function:
                return f"{namespace.get('__name__')}.{name}"
        for namespace, name, value in self.settings:
            if namespace.get(name) is not value:
                return f"{namespace.get('__name__')}.{name}"
        return None

    cdef str changed_value(self, const Signature& signature):
        cdef vector[PyObject*] values
        cdef ValueCheck check
        cdef ReplayStep step
        cdef int i
        if self.taped is not None and taped():
            return self.taped.changed_value(signature)
        for i in range(self.num_arguments):
            values.push_back(signature.object(i))
        for check in self.checks:
            if not check.holds(values.data()):
                return f"the value of {self.name_of(check.number)} has changed"
        if self.differed >= len(self.steps):
            return "the value or size of an op's output has changed"
        step = self.steps[self.differed]
        names = [self.name_of(check.number) for check in step.checks] + [
            self.name_of(step.first + i)
            for i in range(step.num_outputs) if step.sizes[i] is not None
        ]
        title = " or ".join(dict.fromkeys(names)) or f"op {self.differed}, {step.op.op_name}"
        return f"the value or size of {title}, has changed"

    cdef bint fits(self) except -1:
        """Whether the guards hold: the ops' functions, the settings, and the code that ran."""
        cdef Py_ssize_t i
        cdef PyObject* namespace
        cdef PyObject* function
        cdef PyObject* there
        cdef tuple passed
        if self.made_after != flushes or self.without_tape and taped():
            return False
        if self.guard is not None and not guard_holds(self.guard):
            return False
        if self.taped is not None and taped():
            return self.taped.fits()
        for i in range(<Py_ssize_t>self.versions.size()):
            passed = <tuple>PyList_GET_ITEM(self.passed, i)
            namespace = PyTuple_GET_ITEM(passed, 0)
            if self.versions[i] != 0 and self.versions[i] == DictVersion(namespace):
                continue
            there = PyDict_GetItem(<dict>namespace, <object>PyTuple_GET_ITEM(passed, 1))
            function = PyTuple_GET_ITEM(passed, 2)
            if there != function and (
                there == NULL or _upstream(<object>there) is not <object>function
            ):
                return False
            self.versions[i] = DictVersion(namespace)
        for of, attribute, value in self.settings:
            if PyDict_GetItem(<dict>of, attribute) != <PyObject*>value:
                return False
        return True

    cdef Outcome run(self, const Signature& signature, PyObject** result) except *:
        cdef Thread* thread = this_thread()
        cdef bint recorded = taped()
        # This local reference is needed: another thread may replace the attribute meanwhile.
        cdef Native native = self.recorded if recorded else self.native
        if recorded and self.taped is not None:
            return self.taped.run(signature, result)
        if native is not None:
            if native.may_run(thread):
                return self.run_natively(native, signature, thread, result)
        elif self.runs[recorded] < MAX_KERNEL_SEARCHES and self.recording is not None:
            if not is_measured(thread):
                return self.run_and_look(signature, thread, recorded, result)
        return self.run_with(signature, self.variables, self.handles, result)

    cdef Outcome run_branch(self, const Signature& signature, PyObject** result,
                            list drawn) except *:
        cdef Replay replay = self
        if self.taped is not None and taped():
            replay = self.taped
        return replay.run_with(
            signature, replay.variables, replay.handles, result, drawn, True
        )

    cdef Replay rebound(self, list variables, list taped_variables, bint alone):
        """Return the same replay with other variables, `taped_variables` under a tape.

        If `alone`, the result has no variables: there are numbers in their places, and it cannot
        run. It holds the kernels that its replays share, whichever finds them.
        """
        cdef Replay other
        cdef Native native, recorded
        if not variables and not taped_variables:
            return self
        other = Replay.__new__(Replay)
        other.made_after = self.made_after
        other.num_arguments, other.num_values = self.num_arguments, self.num_values
        other.checks, other.steps = self.checks, self.steps
        other.branches, other.values_before = self.branches, self.values_before
        other.result, other.single = self.result, self.single
        other.flat, other.whole = self.flat, self.whole
        other.without_tape = self.without_tape
        other.passed, other.versions, other.settings = self.passed, self.versions, self.settings
        other.guard = self.guard
        other.variables = tuple(variables)
        other.handles = handles_of(other.variables)
        other.recording = self.recording
        if self.recording is not None and int in map(type, variables):  # keep none alive
            other.recording = _replace(self.recording, variables=variables, taped=None)
        if self.taped is not None:
            other.taped = self.taped.rebound(taped_variables, [], alone)
        other.runs[0], other.runs[1] = self.runs[0], self.runs[1]
        if alone:
            self.shared = other
        else:
            other.shared = self
        # These locals are needed: another thread may replace the attributes meanwhile.
        native, recorded = self.native, self.recorded
        if native is not None:
            other.native = native.rebound(other.variables, other.handles)
        if recorded is not None:
            other.recorded = recorded.rebound(other.variables, other.handles)
        return other

    cdef int share(self) except -1:
        """Let other objects use the kernels that have been found."""
        cdef Replay shared = self.shared
        cdef Native native = self.native, recorded = self.recorded
        if shared is None:
            return 0
        if shared.native is None and native is not None:
            shared.native = native.rebound(shared.variables, shared.handles)
        if shared.recorded is None and recorded is not None:
            shared.recorded = recorded.rebound(shared.variables, shared.handles)
        return 0

    cdef long long native_runs(self):
        """The number of runs as kernels only."""
        cdef Native native = self.native
        cdef long long runs = 0 if native is None else native.runs
        if self.taped is not None:
            runs += self.taped.native_runs()
        return runs if self.recorded is None else runs + self.recorded.runs

    cdef Outcome run_natively(self, Native native, const Signature& signature, Thread* thread,
                              PyObject** result) except *:
        """Run the replay as kernels only."""
        cdef PyObject* inline_values[INLINE_VALUES]
        cdef PyObject** values = inline_values
        cdef vector[PyObject*] many
        cdef Outcome outcome
        cdef Py_ssize_t i, first = self.num_arguments + PyTuple_GET_SIZE(self.handles)
        if self.num_values > INLINE_VALUES:
            many.resize(self.num_values)
            values = many.data()
        for i in range(self.num_arguments):
            values[i] = signature.object(i)
        for i in range(self.num_arguments, first):
            values[i] = PyTuple_GET_ITEM(self.handles, i - self.num_arguments)
        for i in range(first, self.num_values):
            values[i] = NULL
        for i in range(PyTuple_GET_SIZE(self.checks)):
            if not (<ValueCheck>PyTuple_GET_ITEM(self.checks, i)).holds(values):
                return DIFFERS
        try:
            outcome = native.run(signature, values, thread)
            if outcome != DONE:
                self.differed = native.differed
                return outcome
            if self.single >= 0:
                made = <object>values[self.single]
            else:
                made = self.pack(values, signature, self.variables)
            Py_INCREF(made)
            result[0] = <PyObject*>made
            return DONE
        finally:
            for i in range(first, self.num_values):
                Py_XDECREF(values[i])

    cdef Outcome run_and_look(self, const Signature& signature, Thread* thread, bint recorded,
                              PyObject** result) except *:
        """Run the replay op by op, and note the kernels. A new key has no kernel yet."""
        cdef ProfileRecorder calls = ProfileRecorder()
        cdef bint onednn = thread.options.onednn
        cdef Outcome outcome
        cdef Native native
        cdef int collects
        recording = self.recording
        self.runs[recorded] += 1
        if self.shared is not None:
            self.shared.runs[recorded] += 1
        calls.entries = []
        # Avoid collections: the objects that are made here stay alive.
        collects = PyGC_Disable()
        try:
            calls.open()
            try:
                outcome = self.run_with(signature, self.variables, self.handles, result)
            finally:
                calls.close()
            if outcome == DONE and are_direct(calls.entries, recording.steps, recorded):
                first = self.num_arguments + len(self.handles)
                asked = [
                    number for number in dict.fromkeys(numbers_in(self.result)) if number >= first
                ]
                ops = tuple([(<ReplayStep>step).op for step in self.steps])
                native = Native(
                    recording, ops, calls.entries, self.variables, self.handles, asked, onednn,
                    recorded,
                )
                if recorded:
                    self.recorded = native
                else:
                    self.native = native
                self.share()
        finally:
            if collects:
                PyGC_Enable()
        return outcome

    cdef Outcome run_with(self, const Signature& signature, tuple variables, tuple handles,
                          PyObject** result, list drawn=None, bint goes_on=False) except *:
        """Run the replay op by op, with `variables` instead of the recording's variables."""
        cdef PyObject* inline_values[INLINE_VALUES]
        cdef PyObject** values = inline_values
        cdef vector[PyObject*] many
        cdef Outcome outcome = DONE
        cdef bint lasts = goes_on and PyList_GET_SIZE(drawn) != 0
        cdef bint keeps
        cdef ReplayStep step
        cdef PyObject* last = NULL
        cdef Py_ssize_t num_taken = 0
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(self.steps)
        cdef Py_ssize_t first = self.num_arguments + PyTuple_GET_SIZE(handles)
        if self.num_values > INLINE_VALUES:
            many.resize(self.num_values)
            values = many.data()
        for i in range(self.num_arguments):
            values[i] = signature.object(i)
        for i in range(self.num_arguments, first):
            values[i] = PyTuple_GET_ITEM(handles, i - self.num_arguments)
        for i in range(first, self.num_values):
            values[i] = NULL
        try:
            for i in range(PyTuple_GET_SIZE(self.checks)):
                if not (<ValueCheck>PyTuple_GET_ITEM(self.checks, i)).holds(values):
                    return DIFFERS
            for i in range(n):
                step = <ReplayStep>PyTuple_GET_ITEM(self.steps, i)
                if drawn is not None and step.seed is not None:
                    if not goes_on or num_taken < PyList_GET_SIZE(drawn):
                        step.take(<list>drawn[num_taken], values)
                        num_taken += 1
                        continue
                # A random op may have drawn before it fails.
                lasts = lasts or step.seed is not None
                keeps = goes_on and step.seed is not None
                outcome = step.run(
                    signature, variables, values,
                    &last if keeps or self.whole and i == n - 1 else NULL,
                )
                if keeps and last != NULL:
                    drawn.append([<object>last])
                    num_taken += 1
                    if not self.whole or i < n - 1:
                        Py_DECREF(<object>last)
                        last = NULL
                if outcome != DONE:
                    self.differed = <int>i
                    return outcome
                lasts = lasts or step.lasts
            if self.single >= 0:
                made = <object>values[self.single]
            elif last != NULL and type(<object>last) is type(self.result):
                made = <object>last
            else:
                made = self.pack(values, signature, variables)
            Py_INCREF(made)
            result[0] = <PyObject*>made
            return DONE
        except Exception:
            if lasts:  # for example, a call must not draw random numbers twice
                raise
            return FAILED  # the caller runs Python, which raises the error
        finally:
            Py_XDECREF(last)
            for i in range(first, self.num_values):
                if values[i] != NULL:
                    Py_DECREF(<object>values[i])

    cdef object pack(self, PyObject** values, const Signature& signature, tuple variables):
        """Make the result of the values."""
        if self.flat.size() != 0:
            return self.row(values)
        return _filled(self.result, values, signature, variables)

    cdef object row(self, PyObject** values):
        """Make the result of the values, if it is a flat list or tuple of tensors."""
        cdef Py_ssize_t i
        cdef tuple made = PyTuple_New(self.flat.size())
        for i in range(<Py_ssize_t>self.flat.size()):
            tensor = <object>values[self.flat[i]]
            Py_INCREF(tensor)
            PyTuple_SET_ITEM(made, i, tensor)
        kind = type(self.result)
        if kind is tuple:
            return made
        return list(made) if kind is list else _new_tuple(kind, made)


cdef object _op_index(i, step, dict firsts):
    """The index of the first step like this one: steps of simple ops share an op and its kernel."""
    if firsts is None or step.op_name not in _SHARED:
        return i
    attributes = [
        (name, repr(value)) for name, value in step.arguments.items() if name not in step.inputs
    ]
    return firsts.setdefault((step.op_name, *attributes), i)


cdef bint _may_be_native(recording) except -1:
    """Whether a recording may run as kernels only."""
    first = recording.num_arguments + len(recording.variables)
    return len(recording.steps) > 1 and not any([
        step.seed is not None for step in recording.steps
    ]) and not any([
        recording.num_arguments <= number < first for number in numbers_in(recording.result)
    ])


cdef bint are_leaves(list tensors, const Signature& signature) noexcept:
    cdef Py_ssize_t i
    for i in range(len(tensors)):
        if signature.object(i) != PyList_GET_ITEM(tensors, i):
            return False
    return len(tensors) == <Py_ssize_t>signature.num_leaves()


cdef tuple handles_of(tuple variables):
    return tuple([
        None if type(variable) is int else variable._handle for variable in variables
    ])


cdef object _new_tuple = tuple.__new__  # named tuples make their instances by this function


cdef object _filled(packed, PyObject** values, const Signature& signature, tuple variables,
                    list parts=None):
    """Make a result of a packed one: replace the stand-ins by tensors."""
    kind = type(packed)
    if kind is Number:
        return <object>values[<int>packed]
    if kind is Constant:
        tensor = packed.tensor
        return copy_of(host_tensor(<PyObject*>tensor))
    if kind is Tagged:
        made = _filled(packed.tensor, values, signature, variables, parts)
        made.__dict__.update(_filled(packed.attributes, values, signature, variables, parts))
        return made
    if kind is Placed:
        return parts[<int>packed]
    if kind is Shared:
        parts = []
        for part in packed.parts:
            parts.append(_filled(part, values, signature, variables, parts))
        return _filled(packed.result, values, signature, variables, parts)
    if kind is Given:
        return <object>signature.holder(<int>packed.number)
    if kind is Unread:
        return variables[packed.index]._lazy_read(None)
    if kind is Itself:
        return packed.reference()
    if kind is Composite:
        made = packed.kind.__new__(packed.kind)
        made.__dict__.update(_filled(packed.attributes, values, signature, variables, parts))
        return made
    if kind is list:
        return [_filled(item, values, signature, variables, parts) for item in <list>packed]
    if kind is tuple:
        return tuple([
            _filled(item, values, signature, variables, parts) for item in <tuple>packed
        ])
    if kind is dict:
        return {
            name: _filled(item, values, signature, variables, parts)
            for name, item in (<dict>packed).items()
        }
    if isinstance(packed, tuple):
        return _new_tuple(kind, [
            _filled(item, values, signature, variables, parts) for item in packed
        ])
    return packed
