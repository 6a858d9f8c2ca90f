# distutils: language = c++
"""Answers for `tf.TensorArray` in eager mode, and for the objects that its `write` returns.

`write` returns a wrapper around the array. If the wrapper is deleted before anything reads one of
its attributes, TensorFlow logs that the result was not used, with the stack of the call. An answer
makes the same objects as TensorFlow does, and TensorFlow's own code logs.

The first comment line of each answer lists the parameters of the function.
"""

cimport cython
from cpython.list cimport PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject, PyObject_GenericGetAttr, PyObject_GenericSetAttr
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport handle_dtype
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_False, Py_None, PyLong_AsLongLongAndOverflow
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._situation cimport EAGERLY, NO_GRAPH_SCOPE, missing

from weakref import ref as _ref

import numpy as np
from tensorflow.python.framework import constant_op as _constant_op
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import ops as _tf_ops
from tensorflow.python.framework import tensor_shape as _tensor_shape
from tensorflow.python.ops import array_ops_stack as _stacks
from tensorflow.python.ops.tensor_array_ops import TensorArray as _TensorArray
from tensorflow.python.ops.tensor_array_ops import _EagerTensorArray
from tensorflow.python.util import tf_should_use as _should_use

cdef extern from "Python.h":
    ctypedef struct PyFrameObject
    PyFrameObject* PyEval_GetFrame()
    object PyUnicode_FromFormat(const char*, ...)


cdef object _new = object.__new__
cdef dict _interned = _dtypes._INTERN_TABLE  # dtypes by number
cdef object _int32 = _dtypes.int32
cdef object _TensorShape = _tensor_shape.TensorShape
cdef object _Helper = _should_use._TFShouldUseHelper
cdef str _name = f"{_TensorArray.__module__}.{_TensorArray.__qualname__}"
cdef dict _wrappers = _should_use._WRAPPERS
cdef frozenset _integers = frozenset((np.int32, np.int64))
cdef str _HELPER = "_tf_should_use_helper"
cdef str _WRAPPED = "_tf_should_use_wrapped_value"
cdef frozenset _own = frozenset((_HELPER, _WRAPPED, "mark_used", "__setattr__"))


cdef Py_ssize_t _number(object index) except -2:
    """Return the value of an index or a size; -1 to fall back to TensorFlow."""
    cdef int overflows = 0
    cdef long long number
    if IsEagerTensor(<PyObject*>index):
        index = index.numpy()
    if type(index) in _integers:
        index = int(index)
    if not PyLong_CheckExact(index):
        return -1
    number = PyLong_AsLongLongAndOverflow(index, &overflows)
    return -1 if overflows or number < 0 else number


cdef bint _put(object array, object index, object value) except -1:
    """Store a tensor. Return False, with nothing done, for what only TensorFlow stores."""
    cdef Py_ssize_t position, size
    cdef list tensors
    if type(array) is not _EagerTensorArray or not IsEagerTensor(<PyObject*>value):
        return False
    if array._dtype is not _interned.get(<int>handle_dtype(<PyObject*>value)):
        return False
    held, known = array._tensor_array, array._element_shape
    if type(held) is not list or type(known) is not _TensorShape:
        return False
    tensors = held
    unknown = known._dims is None
    if not unknown and known._dims != value._shape_tuple():
        return False
    position = _number(index)
    size = PyList_GET_SIZE(tensors)
    if position < 0 or (position >= size and array._dynamic_size is not True):
        return False
    if unknown and array._infer_shape:
        array._element_shape = value.shape
    if position >= size:
        tensors.extend([None] * (position - size + 1))
    tensors[position] = value
    return True


cdef object _array_in(object outer):
    """Return the array that a `tf.TensorArray` has in eager mode; None for any other object."""
    if type(outer) is not _TensorArray:
        return None
    array = outer._implementation
    return array if type(array) is _EagerTensorArray else None


cdef object _store(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, index, value
    if n != 3 or keywords != NULL or missing(EAGERLY):
        return DECLINED
    return None if _put(<object>args[0], <object>args[1], <object>args[2]) else DECLINED


cdef object _write(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, index, value, name=None
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values) or missing(EAGERLY | NO_GRAPH_SCOPE):
        return DECLINED
    array, kind = _array_in(<object>values[0]), _wrappers.get(_TensorArray)
    if array is None or kind is None:
        return DECLINED
    result = array.parent()  # another object than `self` if that is a copy
    if type(result) is not _TensorArray:
        return DECLINED
    if not _put(array, <object>values[1], <object>values[2]):
        return DECLINED
    return _wrapper(kind, result, self.original)


cdef object _read(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, index, name=None
    cdef PyObject* values[MAX_PARAMS]
    cdef Py_ssize_t position
    cdef list tensors
    if not self.bind(args, n, keywords, values) or missing(EAGERLY):
        return DECLINED
    array = _array_in(<object>values[0])
    if array is None:
        return DECLINED
    index = <object>values[1]
    if IsEagerTensor(values[1]):
        index = index.numpy()
    held, position = array._tensor_array, _number(index)
    if type(held) is not list:
        return DECLINED
    tensors = held
    if not 0 <= position < PyList_GET_SIZE(tensors):
        return DECLINED
    tensor = tensors[position]
    if tensor is None:
        return DECLINED
    if array._clear_after_read:
        tensors[position] = None
        array._previously_read_indices.append(index)
    return tensor


cdef object _stack(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, name=None
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values) or missing(EAGERLY):
        return DECLINED
    array = _array_in(<object>values[0])
    if array is None:
        return DECLINED
    tensors = array._tensor_array
    if type(tensors) is not list or not tensors:
        return DECLINED
    for tensor in tensors:
        if tensor is None:
            return DECLINED
    return _tf_ops.convert_to_tensor(tensors, name=<object>values[1], dtype=array._dtype)


cdef object _unstack(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, value, name=None
    cdef PyObject* values[MAX_PARAMS]
    if (
        not self.bind(args, n, keywords, values)
        or not IsEagerTensor(values[1])
        or missing(EAGERLY)
    ):
        return DECLINED
    array = _array_in(<object>values[0])
    if array is None:
        return DECLINED
    result = array.parent()
    if type(result) is not _TensorArray:
        return DECLINED
    try:
        tensors = _stacks.unstack(<object>values[1], name=<object>values[2])
    except Exception:  # TensorFlow will raise the error
        return DECLINED
    if array._dynamic_size is not True and len(tensors) > len(array._tensor_array):
        return DECLINED
    array._tensor_array = tensors
    return result


cdef object _make(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None,
    # handle=None, flow=None, infer_shape=True, element_shape=None,
    # colocate_with_first_write_call=True, name=None
    cdef PyObject* values[MAX_PARAMS]
    cdef Py_ssize_t size
    if (
        not self.bind(args, n, keywords, values)
        or type(<object>values[0]) is not _TensorArray
        or values[6] != Py_None
        or values[7] != Py_None
        or missing(EAGERLY)
    ):
        return DECLINED
    size = _number(<object>values[2])
    if size < 0:
        return DECLINED
    array = _new(_EagerTensorArray)
    array._handle = None
    array._flow = _constant_op.constant(0, dtype=_int32)
    array._infer_shape = <object>values[8]
    array._element_shape = _tensor_shape.as_shape(<object>values[9])
    array._colocate_with_first_write_call = <object>values[10]
    array._dtype = _dtypes.as_dtype(<object>values[1]).base_dtype
    array._dynamic_size = <object>values[3] or False
    array._clear_after_read = True if values[4] == Py_None else <object>values[4]
    array._previously_read_indices = []
    array._tensor_array = [None] * size
    (<object>values[0])._implementation = array
    array.parent = _ref(<object>values[0])
    return None


@cython.final
cdef class DecoratorFrame:
    """The frame of TensorFlow's decorator of `write`, as far as its messages show it.

    Parameters
    ----------
    decorated : function
        The method with the decorator.
    """

    cdef readonly object f_back
    cdef object decorated

    def __init__(self, decorated):
        cdef PyObject* caller = <PyObject*>PyEval_GetFrame()  # the nearest one in Python
        self.decorated = decorated
        self.f_back = None if caller == NULL else <object>caller

    @property
    def f_code(self):
        """The code of the decorator."""
        return self.decorated.__code__

    @property
    def f_globals(self):
        """The names of its module."""
        return self.decorated.__globals__

    @property
    def f_lineno(self):
        """The line of its only statement, which calls the method."""
        lines = [line for _, _, line in self.f_code.co_lines() if line is not None]
        return min(line for line in lines if line > self.f_code.co_firstlineno)


cdef object _wrapper(object kind, object array, object decorated):
    """Return the object that logs a message if the result of `write` is not used."""
    helper = _new(_Helper)
    helper._type = _TensorArray
    helper._repr = PyUnicode_FromFormat("<%U object at %p>", <PyObject*>_name, <PyObject*>array)
    helper._stack_frame = DecoratorFrame(decorated)
    helper._error_in_function = False
    helper._sated = False
    wrapper = _new(kind)
    PyObject_GenericSetAttr(wrapper, _HELPER, helper)
    PyObject_GenericSetAttr(wrapper, _WRAPPED, array)
    return wrapper


cdef object _check(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # x, error_in_function=False, warn_in_eager=False
    cdef PyObject* values[MAX_PARAMS]
    if (
        not self.bind(args, n, keywords, values)
        or values[2] != Py_False
        or missing(EAGERLY)
    ):
        return DECLINED
    return <object>values[0]


cdef object _attribute(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, key
    if n != 2 or keywords != NULL or not PyUnicode_CheckExact(<object>args[1]):
        return DECLINED
    wrapper, name = <object>args[0], <object>args[1]
    if name in _own:
        return DECLINED
    helper = PyObject_GenericGetAttr(wrapper, _HELPER)
    if type(helper) is not _Helper:
        return DECLINED
    helper._sated = True
    helper._type = helper._repr = helper._stack_frame = helper._logging_module = None
    return getattr(PyObject_GenericGetAttr(wrapper, _WRAPPED), name)


cdef object _delete(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    if n != 1 or keywords != NULL or type(<object>args[0]) is not _Helper:
        return DECLINED
    return None if (<object>args[0])._sated is True else DECLINED


register("helpers", "ShouldUseWrapper.__getattribute__", _attribute)
register("helpers", "TensorArray.__init__", _make)
register("helpers", "TensorArray.read", _read)
register("helpers", "TensorArray.stack", _stack)
register("helpers", "TensorArray.unstack", _unstack)
register("helpers", "TensorArray.write", _write)
register("helpers", "_EagerTensorArray._write", _store)
register("helpers", "_TFShouldUseHelper.__del__", _delete)
register("helpers", "tf_should_use._add_should_use_warning", _check)
