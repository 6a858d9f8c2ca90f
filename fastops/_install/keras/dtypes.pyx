# distutils: language = c++
"""Answers that return the names of dtypes, and the dtypes of results.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._install.answer cimport Answer, register
from fastops._install.intercept cimport DTYPES

from tensorflow.python.framework import dtypes as _tf_dtypes


cdef object _DType = _tf_dtypes.DType
cdef str _FLOATX = "_FLOATX"
cdef dict _config = None  # the configuration of the imported Keras; set by `attach`

cdef dict _dtype_codes = {int: DTYPES, float: DTYPES + 1, bool: DTYPES + 2} | {
    name: _tf_dtypes.as_dtype(name).as_datatype_enum
    for name in (
        "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
        " complex64 complex128 string"
    ).split()
}
cdef dict _dtype_names = {}        # by code of the dtype
cdef dict _result_types = {}       # by codes of the dtypes
cdef object _result_floatx = None  # the value of floatx for which `_result_types` holds


def attach(keras):
    """Look up the configuration of Keras that the answers depend on.

    Parameters
    ----------
    keras : module
        ``keras.src``.
    """
    global _config
    _config = keras.backend.config.__dict__


cdef int _dtype_code(PyObject* dtype) except -2:
    """Return a code for a `tf.DType`, the name of a dtype, or int, float or bool; else -1."""
    cdef PyObject* code
    cdef int number
    if type(<object>dtype) is _DType:
        number = (<object>dtype)._type_enum
        return number if number < DTYPES else -1
    if PyUnicode_CheckExact(<object>dtype) or type(<object>dtype) is type:
        code = PyDict_GetItem(_dtype_codes, <object>dtype)
        return -1 if code == NULL else <object>code
    return -1


cdef object _standardize_dtype(Answer self, PyObject* const* args, Py_ssize_t n,
                               PyObject* keywords):
    # dtype
    cdef int code
    if n != 1 or keywords != NULL:
        return DECLINED
    code = _dtype_code(args[0])
    if code < 0:
        return DECLINED
    stored = PyDict_GetItem(_dtype_names, code)
    if stored != NULL:
        return <object>stored
    name = self.original(<object>args[0])
    _dtype_names[code] = name
    return name


cdef object _result_type(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # *dtypes
    global _result_floatx
    cdef Py_ssize_t i
    cdef int code
    cdef unsigned long long key = n
    cdef PyObject* floatx = PyDict_GetItem(_config, _FLOATX)
    if not 1 <= n <= 4 or keywords != NULL or floatx == NULL:
        return DECLINED
    for i in range(n):
        code = _dtype_code(args[i])
        if code < 0:
            return DECLINED
        key = key << 8 | <unsigned long long>code
    if <PyObject*>_result_floatx != floatx:
        _result_types.clear()
        _result_floatx = <object>floatx
    stored = PyDict_GetItem(_result_types, key)
    if stored != NULL:
        return <object>stored
    name = self.original(*[<object>args[i] for i in range(n)])
    _result_types[key] = name
    return name


register("keras", "backend.common.dtypes.result_type", _result_type)
register("keras", "backend.common.variables.standardize_dtype", _standardize_dtype)
