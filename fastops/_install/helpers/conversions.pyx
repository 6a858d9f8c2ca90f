# distutils: language = c++
"""Conversions to tensors, below `tf.convert_to_tensor`, and static shapes.

The first line of each answer has the function's parameters.
"""

from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.conversion cimport converts_as_ever, is_list, is_number, is_numpy
from fastops._core.tensors cimport handle_dtype
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None
from fastops._dispatch cimport constant, eager, pack_list
from fastops._install.helpers.answer cimport MAX_PARAMS, PASS, Answer, register
from fastops._install.intercept cimport DTYPES
from fastops._tf.protos cimport DT_INVALID, DataType

from tensorflow.python.framework.dtypes import DType as _DType
from tensorflow.python.framework.tensor import Tensor as _Tensor
from tensorflow.python.framework.tensor_shape import Dimension as _Dimension
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape
from tensorflow.python.types.core import Symbol as _Symbol


cdef object _new = object.__new__


cdef object _convert(PyObject* value, PyObject* dtype, PyObject* preferred, PyObject* accepted):
    """A tensor for a tensor, a number, an array, a text or a list; or PASS."""
    cdef int to = DT_INVALID, hint = DT_INVALID
    if not PyTuple_CheckExact(<object>accepted) or PyTuple_GET_SIZE(<object>accepted) != 1:
        return PASS
    kind = PyTuple_GET_ITEM(<object>accepted, 0)
    if kind != <PyObject*>_Symbol and kind != <PyObject*>_Tensor:
        return PASS
    if dtype != Py_None:
        if type(<object>dtype) is not _DType:
            return PASS
        to = (<object>dtype)._type_enum
    if preferred != Py_None:
        if type(<object>preferred) is not _DType:
            return PASS
        hint = (<object>preferred)._type_enum
    if to >= DTYPES or hint >= DTYPES:
        return PASS
    if not eager():  # graphs capture tensors
        return PASS
    if IsEagerTensor(value):
        return <object>value if to == DT_INVALID or to == <int>handle_dtype(value) else PASS
    if to == DT_INVALID:
        to = hint
    if not is_number(value) and not is_numpy(value):
        if not is_list(value) and not PyUnicode_CheckExact(<object>value):
            return PASS
        if not converts_as_ever(value):
            return PASS
        if is_list(value):
            packed = pack_list(<object>value, <DataType>to)
            if packed is not None:
                return packed
    tensor = constant(<object>value, <DataType>to)
    return PASS if tensor is None else tensor


cdef object _convert_by_registry(Answer self, PyObject* const* args, Py_ssize_t n,
                                 PyObject* keywords):
    # value, dtype=None, name=None, as_ref=False, preferred_dtype=None, accepted_result_types
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values):
        return PASS
    return _convert(values[0], values[1], values[4], values[5])


cdef object _convert_to_tensor(Answer self, PyObject* const* args, Py_ssize_t n,
                               PyObject* keywords):
    # value, dtype=None, name=None, as_ref=False, preferred_dtype=None, dtype_hint=None, ctx=None,
    # accepted_result_types
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values):
        return PASS
    if values[4] != Py_None and values[5] != Py_None:
        return PASS
    return _convert(
        values[0], values[1], values[5] if values[4] == Py_None else values[4], values[7]
    )


cdef object _make_shape(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, dims
    cdef PyObject* dims
    cdef list sizes
    if n != 2 or keywords != NULL:
        return PASS
    dims = args[1]
    if PyTuple_CheckExact(<object>dims) or PyList_CheckExact(<object>dims):
        sizes = []
        for size in <object>dims:
            if PyLong_CheckExact(size):
                if size < 0:
                    return PASS
            elif type(size) is _Dimension:
                size = size._value
            elif size is not None:
                return PASS
            sizes.append(size)
        (<object>args[0])._dims = tuple(sizes)
    elif dims == Py_None:
        (<object>args[0])._dims = None
    elif type(<object>dims) is _TensorShape:
        (<object>args[0])._dims = (<object>dims)._dims
    else:
        return PASS
    return None


cdef object _dimensions(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    cdef list made
    if n != 1 or keywords != NULL:
        return PASS
    sizes = (<object>args[0])._dims
    if sizes is None:
        return None
    if type(sizes) is not tuple:
        return PASS
    made = []
    for size in <tuple>sizes:
        if size is not None and (not PyLong_CheckExact(size) or size < 0):
            return PASS
        dimension = _new(_Dimension)
        dimension._value = size
        made.append(dimension)
    return made


register("TensorShape.dims", _dimensions)
register("tensor_conversion_registry.convert", _convert_by_registry)
register("ops.convert_to_tensor", _convert_to_tensor)
register("TensorShape.__init__", _make_shape)
