# distutils: language = c++
"""Trials: run a new replay on copies of the variables, before it replaces calls.

The result of the replay and the new values of the copies must be equal to those of the recorded
call, bit by bit.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from fastops._core.observer cimport Observer
from fastops._core.threads cimport this_thread
from fastops._cpp.signature cimport Signature
from fastops._specialize.native cimport DONE, Outcome
from fastops._specialize.replay cimport Replay, handles_of
from fastops._tf.eager cimport TFE_Py_TapeSetRestartOnThread, TFE_Py_TapeSetStopOnThread

cdef extern from "definitions.h":
    pass

import tensorflow as _tf
from tensorflow.python.eager import context as _context
from tensorflow.python.ops import gen_resource_variable_ops as _gen_variables
from tensorflow.python.ops.resource_variable_ops import ResourceVariable, _UnreadVariable

from fastops._core.tensors import is_host_tensor
from fastops._specialize.recording.alike import alike
from fastops._specialize.recording.plain import is_dataclass
from fastops._specialize.recording.recording import NotReplayableError
from fastops._specialize.signatures import COMPOSITES


cdef list copies_of(variables):
    cdef list copies = []
    TFE_Py_TapeSetStopOnThread()
    try:
        for variable in variables:
            value = _value_of(variable)
            if type(variable) is ResourceVariable and is_host_tensor(value):
                copies.append(_plain_copy(variable, value))
                continue
            with _tf.device(variable.device):
                copies.append(ResourceVariable(
                    value, trainable=False, dtype=variable.dtype, shape=variable.shape
                ))
    finally:
        TFE_Py_TapeSetRestartOnThread()
    return copies


def private_handle(dtype, shape, value):
    """Return the handle of a new variable with this value, which has no name and no other user."""
    handle = _gen_variables.var_handle_op(
        shape=shape, dtype=dtype, shared_name=_context.anonymous_name(), container=""
    )
    _gen_variables.assign_variable_op(handle, value)
    return handle


cdef object _plain_copy(variable, value):
    """Copy a variable on the host by two ops, without the scopes of TensorFlow's constructor."""
    cdef dict attributes = dict(variable.__dict__)
    copy = ResourceVariable.__new__(ResourceVariable)
    handle = private_handle(variable._dtype, variable._shape, value)
    handle._handle_data = variable._handle._handle_data
    attributes.update(_handle=handle, _trainable=False)
    copy.__dict__ = attributes
    return copy


cdef int try_replay(Replay replay, const Signature& signature, list copies, result,
                    list drawn) except -1:
    cdef PyObject* made = NULL
    cdef Outcome outcome
    cdef tuple variables = tuple(copies)
    cdef Observer trial = Observer()
    trial.records = True  # so that no call in the trial is verified
    TFE_Py_TapeSetStopOnThread()
    trial.put_on(this_thread())
    try:
        outcome = replay.run_with(signature, variables, handles_of(variables), &made, list(drawn))
        if outcome != DONE:
            raise NotReplayableError("trial_failed")
        given = <object>made
        Py_DECREF(given)
        if not _same(given, result):
            raise NotReplayableError("trial_result")
        for copy, variable in zip(variables, replay.variables):
            if not alike(_value_of(variable), _value_of(copy)):
                raise NotReplayableError("trial_variable")
    finally:
        trial.take_off()
        TFE_Py_TapeSetRestartOnThread()
    return 0


cdef object _value_of(variable):
    return _gen_variables.read_variable_op(variable._handle, variable.dtype)


cdef bint _same(left, right) except -1:
    """Whether two results are equal bit by bit.

    `alike` compares the values in the results. This function also compares the attributes of
    tensors, and the contents of composite tensors, of dataclasses and of results of assignments.
    """
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all([_same(a, b) for a, b in zip(left, right)])
    if isinstance(left, dict):
        return list(left) == list(right) and all([_same(left[name], right[name]) for name in left])
    if isinstance(left, _UnreadVariable):
        return alike(_value_of(left), _value_of(right))
    if type(left) in COMPOSITES or is_dataclass(type(left)):
        return _same(vars(left), vars(right))
    if not alike(left, right):
        return False
    if hasattr(left, "_numpy"):
        return _same(vars(left), vars(right))
    return True
