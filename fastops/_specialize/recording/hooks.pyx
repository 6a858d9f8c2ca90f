# distutils: language = c++
"""Hooks that are patched into TensorFlow while a call is recorded.

=====================================  ============================================================
Hook                                   What it notes
=====================================  ============================================================
`EagerTensor._numpy_internal` and the  a tensor value that Python reads
buffer protocol of EagerTensor
`EagerTensor._shape_tuple`,            the sizes of tensors that Python reads; only in recordings
`EagerTensor._num_elements` and        that may hold for all batch sizes
`_EagerTensorBase.shape`
`execute.execute`                      ops that the fast C path of generated functions declines.
                                       TensorFlow replaces this function, for all threads, when op
                                       callbacks are added or removed
`TFE_Py_FastPathExecute`               reads of variables that are inputs of ops
`random_seed.get_seed`                 the seeds of a random op
`custom_gradient`                      functions with a gradient of their own
`record.record_operation`              the tensors and the gradient function of these
`tf_logging`, `warnings.warn`          messages
=====================================  ============================================================

The hooks are in place only while a call is recorded, one call at a time in the process: see
`fastops._specialize.recording.record`.
"""

from cpython.buffer cimport Py_buffer
from cpython.object cimport PyTypeObject

from fastops._core.classes cimport set_attribute
from fastops._dispatch cimport tell_watchers

from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.eager import execute as _execute
from tensorflow.python.eager import record as _record
from tensorflow.python.framework import op_callbacks as _op_callbacks
from tensorflow.python.framework import random_seed as _random_seed
from tensorflow.python.framework.ops import (
    EagerTensor as _EagerTensor, _EagerTensorBase as _Base,
)
from tensorflow.python.ops import custom_gradient as _custom_gradient
from tensorflow.python.ops import gen_resource_variable_ops as _gen_variables
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable as _Variable
from tensorflow.python.platform import tf_logging as _tf_logging

import sys
import threading
import warnings

from fastops._dispatch import named as _named
from fastops._specialize.guards.names import watches

ctypedef int (*getbuffer_t)(object, Py_buffer*, int) except -1

cdef extern from "Python.h":
    ctypedef struct PyBufferProcs:
        getbuffer_t bf_getbuffer

cdef extern from *:
    """
    static inline PyBufferProcs* BufferOf(PyTypeObject* kind) { return kind->tp_as_buffer; }
    """
    PyBufferProcs* BufferOf(PyTypeObject*)


cdef str _METHOD = "_numpy_internal"
cdef object _method = _EagerTensor.__dict__[_METHOD]
cdef PyBufferProcs* _buffer = BufferOf(<PyTypeObject*>_EagerTensor)
cdef getbuffer_t _getbuffer = _buffer.bf_getbuffer
cdef object _shape_tuple = _EagerTensor.__dict__["_shape_tuple"]
cdef object _num_elements = _EagerTensor.__dict__["_num_elements"]
cdef object _shape = None         # the property that a hook has replaced
cdef bint _shapes = False         # whether TensorFlow's code for that property runs
cdef object _sizes = None         # see `watch_sizes`
cdef object _read = None          # the recorder's callbacks, see `hang`
cdef object _seeded = None
cdef object _said = None
cdef object _customized = None
cdef object _recorded = None
cdef object _thread = None        # the id of the recorded thread; None while there are no hooks
cdef object _execute_before = None
cdef object _quick_way = None
cdef tuple _HANDLES = ("resource", "variant")
cdef frozenset _OTHERS = frozenset([_EagerTensor, bool, int, float, str, bytes, type(None)])
cdef dict _positions = {}         # by op name: see `_tensors_of`
cdef object _get_seed = _random_seed.get_seed
cdef bint _warns = False          # whether a call of `warnings.warn` runs
cdef object _get_logger = None    # these five: the functions that hooks have replaced
cdef object _warn = None
cdef object _show = None
cdef object _customize = None
cdef object _record_operation = None


cdef int _tell(tensor) except -1:
    if _read is not None and threading.get_ident() == _thread:
        _read(tensor)
    return 0


def _numpy_internal(tensor):
    _tell(tensor)
    return _method(tensor)


cdef int _watched_getbuffer(object tensor, Py_buffer* view, int flags) except -1:
    _tell(tensor)
    return _getbuffer(tensor, view, flags)


def _watched_shape_tuple(tensor):
    sizes = _shape_tuple(tensor)
    if _sizes is not None and not _shapes and threading.get_ident() == _thread:
        return _sizes.watched_sizes(tensor, sizes)
    return sizes


def _watched_num_elements(tensor):
    if _sizes is not None and threading.get_ident() == _thread:
        _sizes.note(tensor, None)
    return _num_elements(tensor)


def _get_watched_shape(tensor):
    global _shapes
    if _sizes is None or threading.get_ident() != _thread or type(tensor) is not _EagerTensor:
        return _shape.__get__(tensor)
    _shapes = True
    try:
        shape = _shape.__get__(tensor)  # it keeps the shape, as without a recording
    finally:
        _shapes = False
    return _sizes.watched_shape(tensor, shape)


cdef object _watched_shape = property(_get_watched_shape)


def watch_sizes(sizes):
    """Note the sizes that the recorded thread reads, too. Call it between `hang` and `take_down`.

    Parameters
    ----------
    sizes : fastops._specialize.recording.sizes.SizeReads
        Notes the reads.
    """
    global _sizes, _shape
    _shape = _Base.__dict__["shape"]
    watches(_watched_shape, _shape)
    sizes.start()
    _sizes = sizes
    set_attribute(_EagerTensor, "_shape_tuple", _watched_shape_tuple)
    set_attribute(_EagerTensor, "_num_elements", _watched_num_elements)
    set_attribute(_Base, "shape", _watched_shape)


cdef int _watch_no_sizes() except -1:
    global _sizes
    if _sizes is None:
        return 0
    sizes, _sizes = _sizes, None
    set_attribute(_EagerTensor, "_shape_tuple", _shape_tuple)
    set_attribute(_EagerTensor, "_num_elements", _num_elements)
    if _Base.__dict__["shape"] is _watched_shape:
        set_attribute(_Base, "shape", _shape)
    sizes.stop()
    return 0


def _watched_execute(*args, **kwargs):
    return _execute.execute_with_callbacks(*args, **kwargs)


def _watched_quick_way(*args):
    # args: context, op name, node name, *inputs, *(attribute name, value) pairs
    cdef list given = None
    if threading.get_ident() == _thread:
        try:
            for i in _tensors_of(args[1]):
                if type(args[i]) is not _EagerTensor:
                    if given is None:
                        given = list(args)
                    given[<int>i] = _with_variables_read(given[<int>i])
            if given is not None:
                args = given
        except Exception:  # unknown op or bad argument: TensorFlow raises the error
            pass
    return _quick_way(*args)


cdef tuple _tensors_of(object op_name):
    """Which arguments of `TFE_Py_FastPathExecute` are inputs of an op, other than handles."""
    cdef tuple positions = _positions.get(op_name)
    if positions is None:
        positions = _positions[op_name] = tuple([
            i
            for i, arg in enumerate(_named(op_name).record.op_def.inputs, 3)
            if arg.dtype not in _HANDLES  # a handle input takes a variable without a read
        ])
    return positions


cdef object _with_variables_read(object given):
    if type(given) in _OTHERS:
        return given
    if isinstance(given, _Variable):
        tell_watchers(given)
        return _gen_variables.read_variable_op(given._handle, given._dtype)
    if type(given) is list or type(given) is tuple:
        return type(given)([_with_variables_read(item) for item in given])
    return given


def _watched_get_seed(op_seed):
    if _seeded is None or threading.get_ident() != _thread:
        return _get_seed(op_seed)
    return _seeded(_get_seed, op_seed)


# These compiled functions have no Python frame. So loggers and warnings still report the right
# caller.
def _watched_get_logger():
    if _said is not None and threading.get_ident() == _thread:
        _said()
    return _get_logger()


def _watched_warn(*args, **kwargs):
    global _warns
    if _said is None or threading.get_ident() != _thread:
        return _warn(*args, **kwargs)
    _warns = True
    try:
        return _said(_warn, args, kwargs, sys._getframe())
    finally:
        _warns = False


def _watched_show(message):
    # Code in C, such as NumPy's, does not issue its warnings by `warnings.warn`.
    if _said is not None and threading.get_ident() == _thread and not _warns:
        _said()
    return _show(message)


def _watched_customize(*args, **kwargs):
    if _customized is not None and threading.get_ident() == _thread:
        _customized()
    return _customize(*args, **kwargs)


def _watched_record_operation(*args, **kwargs):
    if _recorded is not None and threading.get_ident() == _thread:
        # The frame of the caller. Other code records functions, and values that graphs capture.
        if sys._getframe().f_code is getattr(_customize, "__code__", None):
            _recorded(*args, **kwargs)
    return _record_operation(*args, **kwargs)


cdef int _listen() except -1:
    global _get_logger, _warn, _show, _customize, _record_operation
    _get_logger, _warn, _show = _tf_logging.get_logger, warnings.warn, warnings._showwarnmsg
    _tf_logging.get_logger, warnings.warn = _watched_get_logger, _watched_warn
    warnings._showwarnmsg = _watched_show
    _customize = _custom_gradient._eager_mode_decorator
    watches(_watched_get_logger, _get_logger)
    watches(_watched_customize, _customize)
    watches(_watched_warn, _warn)
    _custom_gradient._eager_mode_decorator = _watched_customize
    _record_operation = _record.record_operation
    watches(_watched_record_operation, _record_operation)
    _record.record_operation = _watched_record_operation
    return 0


cdef int _listen_no_more() except -1:
    if _tf_logging.get_logger is _watched_get_logger:
        _tf_logging.get_logger = _get_logger
    if warnings.warn is _watched_warn:
        warnings.warn = _warn
    if warnings._showwarnmsg is _watched_show:
        warnings._showwarnmsg = _show
    if _custom_gradient._eager_mode_decorator is _watched_customize:
        _custom_gradient._eager_mode_decorator = _customize
    if _record.record_operation is _watched_record_operation:
        _record.record_operation = _record_operation
    return 0


watches(_numpy_internal, _method)
watches(_watched_shape_tuple, _shape_tuple)
watches(_watched_num_elements, _num_elements)
watches(_watched_get_seed, _get_seed)


def hang(ran, read, seeded, said, customized, recorded):
    """Patch the hooks into TensorFlow; they call some callables for the calls of this thread.

    Parameters
    ----------
    ran : callable
        An op callback.
    read : callable
        Called with each tensor whose value Python reads.
    seeded : callable
        Called in place of `random_seed.get_seed`, with that function and its argument: the op seed
        of a random op, or None.
    said : callable
        Called when TensorFlow logs a message, or code in C shows a warning. Also called in place of
        `warnings.warn`, with that function, its arguments and the frame of the code that calls it.
    customized : callable
        Called when a function with a custom gradient runs.
    recorded : callable
        Called before such a function is recorded, with the arguments of `record.record_operation`.

    Returns
    -------
    bool
        False if another call is being recorded, or a user has replaced `random_seed.get_seed`.
    """
    global _read, _seeded, _said, _customized, _recorded, _thread, _execute_before, _quick_way
    if _thread is not None or _random_seed.get_seed is not _get_seed:
        return False
    _thread = threading.get_ident()
    _execute_before = _execute.execute
    _quick_way = _pywrap_tfe.TFE_Py_FastPathExecute
    watches(_watched_execute, _execute_before)
    watches(_watched_quick_way, _quick_way)
    try:
        _random_seed.get_seed = _watched_get_seed
        _op_callbacks.add_op_callback(ran)
        _execute.execute = _watched_execute
        _pywrap_tfe.TFE_Py_FastPathExecute = _watched_quick_way
        _listen()
        _read, _seeded, _said = read, seeded, said
        _customized, _recorded = customized, recorded
        set_attribute(_EagerTensor, _METHOD, _numpy_internal)
        _buffer.bf_getbuffer = _watched_getbuffer
    except BaseException:  # a signal handler has raised
        take_down(ran)
        raise
    return True


def take_down(ran):
    """Remove the hooks.

    Returns
    -------
    bool
        Whether all hooks were in place until now. Another thread may have removed one, by adding
        or removing op callbacks.
    """
    global _read, _seeded, _said, _customized, _recorded, _thread
    _buffer.bf_getbuffer = _getbuffer
    set_attribute(_EagerTensor, _METHOD, _method)
    _read = _seeded = _said = _customized = _recorded = None
    complete = (_sizes is None or _Base.__dict__["shape"] is _watched_shape) and (
        _execute.execute is _watched_execute
        and _pywrap_tfe.TFE_Py_FastPathExecute is _watched_quick_way
        and _random_seed.get_seed is _watched_get_seed
        and _custom_gradient._eager_mode_decorator is _watched_customize
        and _record.record_operation is _watched_record_operation
    )
    _watch_no_sizes()
    _listen_no_more()
    if _pywrap_tfe.TFE_Py_FastPathExecute is _watched_quick_way:
        _pywrap_tfe.TFE_Py_FastPathExecute = _quick_way
    if _random_seed.get_seed is _watched_get_seed:
        _random_seed.get_seed = _get_seed
    try:
        _remove(ran)
    except BaseException:  # a signal handler has raised, maybe before anything was done
        _remove(ran)
        raise
    finally:
        if complete:
            _execute.execute = _execute_before
        _thread = None
    return complete


cdef int _remove(ran) except -1:
    """Remove an op callback, if it is there."""
    try:
        _op_callbacks.remove_op_callback(ran)
    except KeyError:
        pass
    return 0


def drop():
    """Remove the hooks of a thread that this process, a forked child, does not have."""
    global _read, _seeded, _said, _customized, _recorded, _thread
    if _thread is None:
        return
    _buffer.bf_getbuffer = _getbuffer
    set_attribute(_EagerTensor, _METHOD, _method)
    _random_seed.get_seed = _get_seed
    _execute.execute = _execute_before
    _pywrap_tfe.TFE_Py_FastPathExecute = _quick_way
    _watch_no_sizes()
    _listen_no_more()
    _read = _seeded = _said = _customized = _recorded = _thread = None
