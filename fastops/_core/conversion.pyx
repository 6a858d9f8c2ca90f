# distutils: language = c++
"""Converts inputs that are not tensors as TensorFlow does, and decides which may be converted."""

from cpython.dict cimport PyDict_GetItem
from cpython.bytes cimport PyBytes_CheckExact
from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t

from fastops._core.tensors cimport handle_dtype
from fastops._cpp.arrays cimport (
    ArrayDtype, CopyOfArray, TensorOfSequence, kArrayBytes, kCopiedBytes,
)
from fastops._cpp.compat cimport ConvertToEagerTensor, ConvertToEagerTensorUncached
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.opdef cimport InputArg, IsHandleType, OpFacts, kHomogeneous, kSingle
from fastops._cpp.python cimport (
    PyBool_Type,
    PyFloat_Type,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    PyObject_GC_UnTrack,
    PySequence_Fast_ITEMS,
    PyUnicode_AsUTF8,
)
from fastops._cpp.runtime cimport Observed, Runtime
from fastops._tf.eager cimport EagerTensorFromHandle, TFE_TensorHandle, wrap
from fastops._tf.protos cimport (
    DT_FLOAT, DT_INT32, DT_INT64, DT_INVALID, DT_RESOURCE, DT_VARIANT, DataType,
)

cdef extern from "definitions.h":
    pass

import numpy as np
from tensorflow.python.framework import tensor_conversion_registry as _registry
from tensorflow.python.framework.tensor_shape import TensorShape
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

cdef enum:
    MAX_RANK = 8         # the deepest nesting of lists, and the longest list in `_vectors`
    MAX_VECTORS = 1024

cdef PyTypeObject* _variable_type = <PyTypeObject*>ResourceVariable
cdef PyTypeObject* _shape_type = <PyTypeObject*>TensorShape
cdef PyTypeObject* _array_type = <PyTypeObject*>np.ndarray
cdef dict _conversions = _registry._tensor_conversion_func_cache  # by class
cdef dict _own_conversions = {}     # by class: lists with conversions of TensorFlow alone
cdef dict _vectors = {}             # tuples of ints -> EagerTensors of int32 on the host


cdef int forget() except -1:
    _vectors.clear()
    return 0


cdef bint is_convertible(PyObject* value, const InputArg* arg) noexcept:
    cdef PyTypeObject* kind = Py_TYPE(<object>value)
    if kind == _variable_type:
        return arg.fixed == DT_INVALID or not IsHandleType(arg.fixed)
    return kind == _array_type or is_number(value)


cdef bint is_number(PyObject* value) noexcept:
    cdef PyTypeObject* kind = Py_TYPE(<object>value)
    return kind == &PyFloat_Type or kind == &PyLong_Type or kind == &PyBool_Type


cdef bint is_list(PyObject* value) noexcept:
    return PyList_CheckExact(<object>value) or PyTuple_CheckExact(<object>value)


cdef bint has_default_conversion(PyObject* value) except -1:
    """Whether the class of a value has only conversions that TensorFlow itself registered.

    TensorFlow refuses to register conversions for numbers and arrays.
    """
    kind = type(<object>value)
    cdef PyObject* stored = PyDict_GetItem(_conversions, kind)
    conversions = _registry.get(kind) if stored == NULL else <object>stored
    stored = PyDict_GetItem(_own_conversions, kind)
    if stored == <PyObject*>conversions:
        return True
    for _, conversion in conversions:
        if not conversion.__module__.startswith("tensorflow."):
            return False
    _own_conversions[kind] = conversions
    return True


cdef bint is_of_one_kind(PyObject* value) noexcept:
    """Whether a value is a nested list of only ints or only floats."""
    cdef PyTypeObject* kind = NULL
    return is_list(value) and _are_of(value, &kind, MAX_RANK)


cdef bint _are_of(PyObject* value, PyTypeObject** kind, int depth) noexcept:
    """Whether all items are ints or all are floats. The first item sets `kind`."""
    cdef Py_ssize_t i
    if PyList_CheckExact(<object>value):
        if depth == 0:
            return False
        for i in range(PyList_GET_SIZE(<object>value)):
            if not _are_of(PyList_GET_ITEM(<object>value, i), kind, depth - 1):
                return False
        return True
    if PyTuple_CheckExact(<object>value):
        if depth == 0:
            return False
        for i in range(PyTuple_GET_SIZE(<object>value)):
            if not _are_of(PyTuple_GET_ITEM(<object>value, i), kind, depth - 1):
                return False
        return True
    if kind[0] == NULL:
        kind[0] = Py_TYPE(<object>value)
    elif kind[0] != Py_TYPE(<object>value):
        return False
    return kind[0] == &PyFloat_Type or kind[0] == &PyLong_Type


cdef PyObject* to_tensor(const Runtime& here, PyObject* value, DataType hint,
                         PyObject* device_name) except? NULL:
    """Returns an EagerTensor, or null with a Python exception.

    TensorFlow's fast path uses the device scope. Without a scope it runs an op that places the
    value. If there is no accelerator, the value ends up on the host, so the op is skipped here
    unless something observes ops.
    """
    cdef TFE_TensorHandle* handle
    cdef const char* device = PyUnicode_AsUTF8(device_name)
    cdef bint on_host = here.only_host and device[0] == 0 and not Observed(here)
    cdef PyObject* tensor
    if not is_number(value):
        if IsHandleType(hint):  # an empty list would become a tensor that has no handle
            raise TypeError("a number or list cannot become a resource or variant")
        if on_host:
            # Without a hint, an empty list becomes float32.
            if is_vector(value) and (hint == DT_INT32 or hint == DT_INVALID and <object>value):
                return _vector(here, value)
            tensor = NULL
            if is_sequence(value):
                tensor = TensorOfSequence(value, hint, here)
            elif is_numpy(value):
                tensor = CopyOfArray(value, hint, here, kArrayBytes)
            if tensor != NULL:
                return tensor
            if PyErr_Occurred() != NULL:
                return NULL
            device = NULL
        if is_array(value):
            if hint != DT_INVALID and hint != ArrayDtype(value):
                # NumPy's warning about a cast names the calling line, which must be TensorFlow's.
                raise TypeError("the array has another dtype than the input")
        elif not is_of_one_kind(value):
            raise TypeError("a mixed or deeply nested list")
        handle = ConvertToEagerTensorUncached(wrap(here.context), value, hint, device)
    else:
        # TensorFlow caches numbers by value and device, and treats 0.0 and -0.0 as equal. Zeros
        # are looked up with TensorFlow's device name, so that both find the same tensor.
        if on_host and <object>value != 0:
            device = here.host_name
        handle = ConvertToEagerTensor(wrap(here.context), value, hint, device)
    if handle == NULL:
        return NULL
    tensor = EagerTensorFromHandle(handle)
    if PyErr_Occurred() != NULL:  # a number out of range sets an exception and gives a tensor
        Py_XDECREF(tensor)
        return NULL
    return tensor


cdef bint is_array(PyObject* value) noexcept:
    return Py_TYPE(<object>value) == _array_type


cdef bint is_numpy(PyObject* value) noexcept:
    return is_array(value) or ArrayDtype(value) != DT_INVALID


cdef DataType array_dtype(PyObject* value) noexcept:
    return ArrayDtype(value)


cdef bint is_vector(PyObject* value) noexcept:
    """Whether a value is a short list of 32-bit ints, such as a shape, a permutation or axes."""
    cdef Py_ssize_t i
    if PyList_CheckExact(<object>value):
        if PyList_GET_SIZE(<object>value) > MAX_RANK:
            return False
        for i in range(PyList_GET_SIZE(<object>value)):
            if not _is_int32(PyList_GET_ITEM(<object>value, i)):
                return False
        return True
    if PyTuple_CheckExact(<object>value):
        if PyTuple_GET_SIZE(<object>value) > MAX_RANK:
            return False
        for i in range(PyTuple_GET_SIZE(<object>value)):
            if not _is_int32(PyTuple_GET_ITEM(<object>value, i)):
                return False
        return True
    return False


cdef bint _is_int32(PyObject* value) noexcept:
    cdef int overflow = 0
    cdef long long number
    if Py_TYPE(<object>value) != &PyLong_Type:
        return False
    number = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
    return overflow == 0 and number == <int32_t>number


cdef PyObject* to_tensor_or_pack(const Runtime& here, PyObject* value, DataType hint,
                                 PyObject* device_name, object pack) except? NULL:
    if is_list(value):
        packed = pack_list(here, <object>value, hint, device_name, pack)
        if packed is not None:
            Py_INCREF(packed)
            return <PyObject*>packed
    return to_tensor(here, value, hint, device_name)


cdef bint convert_items(const Runtime& here, list items, DataType hint, PyObject* device_name,
                        object pack) except -1:
    cdef Py_ssize_t i
    cdef PyObject* tensor
    for i in range(len(items)):
        if IsEagerTensor(<PyObject*>items[i]):
            continue
        try:
            tensor = to_tensor_or_pack(here, <PyObject*>items[i], hint, device_name, pack)
        except Exception:
            return False
        items[i] = <object>tensor
        Py_DECREF(<object>tensor)
    return True


cdef object pack_list(const Runtime& here, object value, DataType dtype, PyObject* device_name,
                      object pack):
    cdef DataType own = _dtype_within(<PyObject*>value, MAX_RANK)
    if own == DT_INVALID or IsHandleType(own) or dtype != DT_INVALID and dtype != own:
        return None
    try:
        return _packed(here, value, own, MAX_RANK, device_name, pack)
    except Exception:  # TensorFlow will raise the proper error
        return None


cdef DataType _dtype_within(PyObject* value, int depth) noexcept:
    """Returns the dtype of the first tensor in a nested list; DT_INVALID if there is none."""
    cdef Py_ssize_t i
    cdef PyObject** items
    cdef DataType dtype
    if IsEagerTensor(value):
        return handle_dtype(value)
    if depth and is_list(value):
        items = PySequence_Fast_ITEMS(value)
        for i in range(len(<object>value)):
            dtype = _dtype_within(items[i], depth - 1)
            if dtype != DT_INVALID:
                return dtype
    return DT_INVALID


cdef object _packed(const Runtime& here, object value, DataType dtype, int depth,
                    PyObject* device_name, object pack):
    """Packs a nested list from the inside out. Returns a list without tensors unchanged."""
    cdef list items = list(value)
    cdef Py_ssize_t i
    cdef bint tensors = False
    if depth == 0 or not items:  # TensorFlow packs an empty list by other rules
        raise TypeError("a mixed or deeply nested list")
    for i in range(len(items)):
        if is_list(<PyObject*>items[i]):
            items[i] = _packed(here, items[i], dtype, depth - 1, device_name, pack)
        if IsEagerTensor(<PyObject*>items[i]):
            if handle_dtype(<PyObject*>items[i]) != dtype:
                raise TypeError("a list with tensors of several dtypes")
            tensors = True
    if not tensors:
        return value
    for i in range(len(items)):
        if not IsEagerTensor(<PyObject*>items[i]):
            items[i] = constant(here, items[i], dtype, device_name)
            if items[i] is None:
                raise TypeError("a list item that cannot become a constant")
    return pack(values=items)


cdef PyObject* _vector(const Runtime& here, PyObject* value) except? NULL:
    """Returns the int32 tensor for a short list of ints.

    The tensors are cached, since programs use the same few lists again and again.
    """
    cdef tuple key = tuple(<object>value)
    cdef PyObject* tensor = PyDict_GetItem(_vectors, key)
    if tensor != NULL:
        Py_INCREF(<object>tensor)
        return tensor
    cdef TFE_TensorHandle* handle = ConvertToEagerTensorUncached(
        wrap(here.context), <PyObject*>key, DT_INT32, NULL
    )
    if handle == NULL:
        return NULL
    tensor = EagerTensorFromHandle(handle)
    if tensor != NULL:
        if len(_vectors) >= MAX_VECTORS:
            _vectors.clear()
        _vectors[key] = <object>tensor
        # TensorFlow's tests search the garbage collector for leaked tensors. They must not find
        # this one. Untracking is safe, since the tensor refers to no other object.
        PyObject_GC_UnTrack(tensor)
    return tensor


cdef bint is_sequence(PyObject* value) noexcept:
    return is_list(value) or _is_text(value)


cdef bint _is_text(PyObject* value) noexcept:
    return PyUnicode_CheckExact(<object>value) or PyBytes_CheckExact(<object>value)


cdef bint is_shape(PyObject* value) noexcept:
    return Py_TYPE(<object>value) == _shape_type


cdef object sizes_or_itself(object value, const InputArg* arg):
    if (
        value._dims is not None
        and None not in value._dims
        and _takes_sizes(arg)
    ):
        return value._dims
    return value


cdef bint _takes_sizes(const InputArg* arg) noexcept:
    cdef size_t i
    for i in range(arg.allowed.size()):
        if arg.allowed[i] != DT_INT32 and arg.allowed[i] != DT_INT64:
            return False
    return arg.allowed.size() != 0 or arg.fixed == DT_INT32 or arg.fixed == DT_INT64


cdef bint may_convert(const OpFacts& facts, PyObject** values, bint* slowly) except -1:
    cdef int i
    cdef Py_ssize_t j, n
    cdef bint tensors, variables, others
    cdef const InputArg* arg
    cdef PyObject* value
    cdef PyObject* item
    for i in range(<int>facts.inputs.size()):
        arg = &facts.inputs[i]
        value = values[i]
        if arg.kind == kSingle:
            if not IsEagerTensor(value) and not is_convertible(value, arg):
                if not is_sequence(value) and not is_numpy(value):
                    return False
                slowly[0] = True
            continue
        if not is_list(value):
            return False
        tensors = variables = others = False
        n = PyTuple_GET_SIZE(<object>value) if PyTuple_CheckExact(<object>value) else (
            PyList_GET_SIZE(<object>value)
        )
        for j in range(n):
            if PyTuple_CheckExact(<object>value):
                item = PyTuple_GET_ITEM(<object>value, j)
            else:
                item = PyList_GET_ITEM(<object>value, j)
            if IsEagerTensor(item):
                tensors = True
            elif Py_TYPE(<object>item) == _variable_type:
                variables = True
            elif arg.kind != kHomogeneous:
                return False
            else:
                others = True
                if not is_number(item) and not is_array(item):
                    if not is_sequence(item) and not is_numpy(item):
                        return False
                    slowly[0] = True
        # The first tensor determines the dtype of the others. Arrays of one dtype need no tensor.
        if others and variables:
            return False
        if others and not tensors and arg.fixed == DT_INVALID:
            if not _are_arrays_of_one_dtype(value):
                return False
            slowly[0] = True
    return not slowly[0] or _dtypes_are_known(facts, values)


cdef bint _are_arrays_of_one_dtype(PyObject* value) noexcept:
    cdef PyObject** items = PySequence_Fast_ITEMS(value)
    cdef Py_ssize_t i
    cdef DataType dtype = ArrayDtype(items[0])
    for i in range(len(<object>value)):
        if not is_array(items[i]) or ArrayDtype(items[i]) != dtype:
            return False
    return dtype != DT_INVALID


cdef bint _dtypes_are_known(const OpFacts& facts, PyObject** values) except -1:
    """Whether the dtype is known to which TensorFlow's slow path would convert each input.

    The slow path accepts a variable only as its own dtype, whatever the other inputs are. For
    inputs of a fixed dtype, and for inputs that share a type attribute with an EagerTensor, it has
    the same rules as the fast path. If there are only lists, strings and arrays, all get the dtype
    of the first one if the op allows that dtype. If the first one has no dtype, all get the
    attribute's default.
    """
    cdef int i, j, first, dtype, count = facts.inputs.size()
    cdef bint told
    cdef const InputArg* arg
    cdef PyObject* value
    for i in range(count):
        arg = &facts.inputs[i]
        if arg.kind != kSingle or IsEagerTensor(values[i]):
            continue
        dtype = DT_INVALID
        if Py_TYPE(<object>values[i]) == _variable_type:
            dtype = (<object>values[i])._dtype._type_enum
        if arg.fixed != DT_INVALID:
            if dtype != DT_INVALID and dtype != <int>arg.fixed:
                return False
            continue
        first, told = count, False
        for j in range(count):
            if facts.inputs[j].attr != arg.attr:
                continue
            if facts.inputs[j].kind != kSingle:
                return False
            value = values[j]
            first = min(first, j)
            told = told or IsEagerTensor(value)
            if j == i:
                continue
            if dtype != DT_INVALID:
                if not IsEagerTensor(value) or <int>handle_dtype(value) != dtype:
                    return False
            elif Py_TYPE(<object>value) == _variable_type:
                return False
        value = values[first]
        if told or Py_TYPE(<object>value) == _variable_type:
            continue
        if is_list(value):
            if arg.fallback != DT_INT32 and not <object>value:
                return False
        elif is_number(value):
            # The fast path converts a single number to the attribute's default dtype. The slow path
            # does not.
            if arg.fallback != DT_INVALID and (first != i or not (
                arg.fallback == DT_INT32 and Py_TYPE(<object>value) == &PyLong_Type
                or arg.fallback == DT_FLOAT and Py_TYPE(<object>value) == &PyFloat_Type
            )):
                return False
    return True


cdef bint is_chosen(const InputArg* arg, DataType dtype) noexcept:
    cdef size_t i
    if arg.allowed.empty():
        return arg.fallback == DT_INVALID or arg.fallback == dtype
    for i in range(arg.allowed.size()):
        if arg.allowed[i] == dtype:
            return True
    return False


cdef object constant(const Runtime& here, object value, DataType dtype, PyObject* device_name):
    cdef PyObject* tensor
    cdef TFE_TensorHandle* handle
    if Observed(here):
        return None
    if not is_number(<PyObject*>value) and here.only_host and <object>device_name == "":
        if is_numpy(<PyObject*>value):
            tensor = CopyOfArray(<PyObject*>value, dtype, here, kCopiedBytes)
        elif is_list(<PyObject*>value) or type(value) is str or type(value) is bytes:
            tensor = TensorOfSequence(<PyObject*>value, dtype, here)
        else:
            return None
        if tensor != NULL:
            result = <object>tensor
            Py_DECREF(result)
            return result
        PyErr_Clear()
        if dtype == DT_RESOURCE or dtype == DT_VARIANT:
            return None
    if not is_number(<PyObject*>value) and not is_of_one_kind(<PyObject*>value):
        return None
    try:
        if is_number(<PyObject*>value):
            tensor = to_tensor(here, <PyObject*>value, dtype, device_name)
        elif not here.only_host or <object>device_name != "":
            return None
        else:  # not from `_vector`: each constant must be a new tensor
            handle = ConvertToEagerTensorUncached(
                wrap(here.context), <PyObject*>value, dtype, NULL
            )
            tensor = NULL
            if handle != NULL:
                tensor = EagerTensorFromHandle(handle)
    except Exception:  # TensorFlow will raise the proper error
        return None
    if PyErr_Occurred() != NULL:
        PyErr_Clear()
        Py_XDECREF(tensor)
        return None
    result = <object>tensor
    Py_DECREF(result)
    return result
