# distutils: language = c++
"""Recordings of gradient functions, by what they depend on.

Two modules record what TensorFlow's gradient functions run, and replay it: `walks` those of all
records of a walk, `op_gradients` that of one record. A recording is found by a key, which describes
the records, the dtypes and shapes of the tensors that they keep, and how these are connected. Its
arguments are the kept tensors and the gradients that the functions were given.

Gradient functions are replayed only if they are from the modules `_MODULES`, or are custom
gradients of known libraries. These functions keep nothing from call to call, and read no state
except that of the context. If an outer tape records, it records the ops of the replay.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from fastops._core.threads cimport this_thread
from fastops._cpp.options cimport Thread
from fastops._cpp.signature cimport Signature
from fastops._dispatch cimport Op
from fastops._specialize.guards.names cimport Guard, holds as guard_holds
from fastops._specialize.policy cimport MAX_FUNCTION_CASE_FAILURES, MAX_OBJECT_OPS
from fastops._specialize.recording.record cimport Record
from fastops._specialize.replay cimport Replay
from fastops._specialize.specialization cimport Specialization
from fastops._specialize.trial cimport try_replay

cdef extern from "definitions.h":
    pass

from tensorflow.python.framework import ops as _tf_ops

from fastops._core.reasons import text_of as _text_of
from fastops._specialize.recording.recording import (
    as_refusal,
    numbers_in,
    prepare_kernels,
    recording,
)

cdef dict _registrations = _tf_ops._gradient_registry._registry

# fmt: off
cdef frozenset _MODULES = frozenset([
    f"tensorflow.python.ops.{name}"
    for name in (
        "array_grad", "array_ops", "check_ops", "clip_ops", "ctc_ops", "data_flow_grad",
        "image_grad", "linalg_grad", "manip_grad", "math_grad", "math_ops", "nn_grad",
        "random_grad", "resource_variable_ops", "rnn_grad", "signal.fft_ops", "sparse_grad",
    )
])
# fmt: on

cdef object _generated = None  # see `configure`
cdef object _guard_of = None


def configure(generated, guard):
    """Begin to replay gradient functions.

    Parameters
    ----------
    generated : callable
        See the parameter `passed` of `Replay`.
    guard : callable
        Given a list of pairs of a code object and its globals, returns the guard of the code.
    """
    global _generated, _guard_of
    _generated, _guard_of = generated, guard


cdef bint is_configured() noexcept:
    return _generated is not None


@cython.final
cdef class Case:
    """What is known about the calls of gradient functions with one key."""

    cdef bint fits(self) except -1:
        """Whether the gradient functions are those of the first walk."""
        if self.never:
            return False
        for op_name, entry, function in self.registered:
            if (
                PyDict_GetItem(_registrations, op_name) != <PyObject*>entry
                or PyDict_GetItem(<dict>entry, "type") != <PyObject*>function
            ):
                return False
        return True

    cdef int look_up(self, list op_names) except -1:
        cdef dict ops = {}
        self.registered = []
        for attrs, op_name in zip(self.attrs, op_names):
            if type(attrs) is tuple:
                ops[op_name] = None
            else:
                self.custom = True
                # What a user's function reads may change: the guards of walks compare names only.
                self.never = self.never or attrs.of_users
        for op_name in ops:
            entry = _registrations.get(op_name)
            function = None if entry is None else entry["type"]
            if function is None:
                # An op without an entry raises an error. The entry of an op that is registered as
                # not differentiable, such as Shape, has no function.
                self.never = self.never or entry is None
            elif getattr(function, "__module__", None) not in _MODULES:
                self.never = True
            self.registered.append((op_name, entry, function))
        return 0

    def op(self, index, name):
        """Return the `Op` of a step. Each step has one of its own, which remembers its last key."""
        step_op = self.ops.get((index, name))
        if step_op is None:
            step_op = self.ops.setdefault((index, name), Op(name))
        return step_op

    cdef bint is_native(self) except -1:
        """Whether all recordings run as kernels only."""
        cdef Thread* thread = this_thread()
        cdef Replay replay
        for replay in self.known.variants:
            if replay.native is None or not replay.native.may_run(thread):
                return False
        return len(self.known.variants) != 0

    cdef bint learn(self, Record record, const Signature& signature, list arguments,
                    tuple made) except -1:
        """Make a replay of what was recorded; return whether there is one."""
        cdef Specialization known = self.known
        cdef Guard guard
        if not record.started or record.witness is None:
            return False
        if self.custom and record.witness.objection is not None:
            why, detail = record.witness.objection
            known.refuse(_text_of(why), detail)
            return False
        guard = _guard_of([
            (code, namespace) for (code, _), namespace in record.witness.codes.items()
        ])
        if not guard_holds(guard):
            return False
        try:
            recorded = recording(
                record.recorder, arguments, [], made, most_steps=MAX_OBJECT_OPS
            )
            replay = Replay(recorded, self.op, _generated, (), guard)
            prepare_kernels(record.recorder, recorded)
            try_replay(replay, signature, [], made, [])
        except Exception as problem:  # the functions have succeeded: only the recording fails
            refused = as_refusal(problem)
            known.refuse(refused.sentence, refused.detail)
            return False
        self.asked.update(
            number
            for number in (
                *numbers_in(recorded.result), *(check.number for check in recorded.checks)
            )
            if number < recorded.num_arguments
        )
        known.variants.append(replay)
        return True


cdef Case new_case(bytes key, list attrs, list op_names, list kinds):
    cdef Case case = Case.__new__(Case)
    case.known = Specialization(key, MAX_FUNCTION_CASE_FAILURES)
    case.attrs, case.kinds = attrs, kinds
    case.look_up(op_names)
    case.ops, case.asked = {}, set()
    return case
