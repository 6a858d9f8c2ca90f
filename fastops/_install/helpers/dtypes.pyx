# distutils: language = c++
"""Answers for `tf.as_dtype`, and for comparisons and base dtypes of `tf.DType`.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._install.answer cimport Answer, register

from tensorflow.python.framework import dtypes as _dtypes


cdef object _DType = _dtypes.DType
cdef dict _known = _dtypes._ANY_TO_TF
cdef dict _interned = _dtypes._INTERN_TABLE


cdef object _as_dtype(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # type_value
    cdef PyObject* dtype = NULL
    if n != 1 or keywords != NULL:
        return DECLINED
    kind = type(<object>args[0])
    if kind is _DType:
        if (<object>args[0])._handle_data is not None:
            return <object>args[0]
        dtype = PyDict_GetItem(_interned, (<object>args[0])._type_enum)
    elif kind is type or PyUnicode_CheckExact(<object>args[0]):
        dtype = PyDict_GetItem(_known, <object>args[0])
    return DECLINED if dtype == NULL else <object>dtype


cdef int _are_same(PyObject* const* args, Py_ssize_t n, PyObject* keywords) except -2:
    """Return whether two dtypes are the same; -1 to fall back to TensorFlow."""
    if n != 2 or keywords != NULL or type(<object>args[0]) is not _DType:
        return -1
    if type(<object>args[1]) is not _DType:
        return False if <object>args[1] is None else -1
    return (<object>args[0])._type_enum == (<object>args[1])._type_enum


cdef object _equal(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, other
    cdef int same = _are_same(args, n, keywords)
    return DECLINED if same < 0 else same == 1


cdef object _unequal(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, other
    cdef int same = _are_same(args, n, keywords)
    return DECLINED if same < 0 else same == 0


cdef object _base(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    if n != 1 or keywords != NULL or type(<object>args[0]) is not _DType:
        return DECLINED
    # Numbers above 100 are reference dtypes.
    return DECLINED if (<object>args[0])._type_enum > 100 else <object>args[0]


register("helpers", "dtypes.as_dtype", _as_dtype)
register("helpers", "DType.__eq__", _equal)
register("helpers", "DType.__ne__", _unequal)
register("helpers", "DType.base_dtype", _base)
