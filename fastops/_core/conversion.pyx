# distutils: language = c++
"""Inputs that are not tensors: which ones convert as TensorFlow's fast path does, and how."""

from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t

from fastops._cpp.arrays cimport ArrayDtype, CopyOfArray, TensorOfSequence
from fastops._cpp.compat cimport ConvertToEagerTensor, ConvertToEagerTensorUncached
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.opdef cimport InputArg, IsHandleType, OpFacts, kSingle
from fastops._cpp.python cimport (
    PyBool_Type,
    PyFloat_Type,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    PyObject_GC_UnTrack,
    PyUnicode_AsUTF8,
)
from fastops._cpp.runtime cimport Observed, Runtime
from fastops._tf.eager cimport EagerTensorFromHandle, TFE_TensorHandle, wrap
from fastops._tf.protos cimport DT_FLOAT, DT_INT32, DT_INVALID, DT_RESOURCE, DT_VARIANT, DataType

cdef extern from "definitions.h":
    pass

import numpy as np
from tensorflow.python.framework import tensor_conversion_registry as _registry
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

cdef enum:
    MAX_RANK = 8         # of nested lists that are looked into, and the length of `_vectors`
    MAX_VECTORS = 1024

cdef PyTypeObject* _variable_type = <PyTypeObject*>ResourceVariable
cdef PyTypeObject* _array_type = <PyTypeObject*>np.ndarray
cdef dict _conversions = _registry._tensor_conversion_func_cache  # by class
cdef dict _own_conversions = {}     # those lists of it that are known to be TensorFlow's alone
cdef dict _vectors = {}             # tuples of ints -> EagerTensors of int32 on the host


cdef int forget() except -1:
    _vectors.clear()
    return 0


cdef bint is_convertible(PyObject* value, InputArg* arg) noexcept:
    cdef PyTypeObject* kind = Py_TYPE(<object>value)
    if kind == _variable_type:
        return arg.fixed == DT_INVALID or not IsHandleType(arg.fixed)
    return kind == _array_type or is_number(value)


cdef bint is_number(PyObject* value) noexcept:
    cdef PyTypeObject* kind = Py_TYPE(<object>value)
    return kind == &PyFloat_Type or kind == &PyLong_Type or kind == &PyBool_Type


cdef bint is_list(PyObject* value) noexcept:
    return PyList_CheckExact(<object>value) or PyTuple_CheckExact(<object>value)


cdef bint converts_as_ever(PyObject* value) except -1:
    """Whether TensorFlow's own conversions are all that is registered for the class of a value.

    Nobody can register any for numbers and arrays.
    """
    kind = type(<object>value)
    cdef PyObject* found = PyDict_GetItem(_conversions, kind)
    conversions = _registry.get(kind) if found == NULL else <object>found
    found = PyDict_GetItem(_own_conversions, kind)
    if found == <PyObject*>conversions:
        return True
    for _, conversion in conversions:
        if not conversion.__module__.startswith("tensorflow."):
            return False
    _own_conversions[kind] = conversions
    return True


cdef bint is_of_one_kind(PyObject* value) noexcept:
    """Whether it is a list of ints, or of floats, in which nothing else is."""
    cdef PyTypeObject* kind = NULL
    return is_list(value) and _are_of(value, &kind, MAX_RANK)


cdef bint _are_of(PyObject* value, PyTypeObject** kind, int depth) noexcept:
    """Whether all numbers are of a kind, which the first one sets."""
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
    """An EagerTensor, or null with a Python exception.

    TensorFlow's fast path passes the device scope on, and where none is open runs an op that
    places the value. Without an accelerator the host is where it comes to lie in any case, but
    who watches sees that op.
    """
    cdef TFE_TensorHandle* handle
    cdef const char* device = PyUnicode_AsUTF8(device_name)
    cdef bint on_host = here.only_host and device[0] == 0 and not Observed(here)
    cdef PyObject* tensor
    if not is_number(value):
        if on_host:
            if is_numpy(value):
                tensor = CopyOfArray(value, hint, here)
                if tensor != NULL:
                    return tensor
                if PyErr_Occurred() != NULL:
                    return NULL
            # Without a hint, an empty list has another dtype.
            if is_vector(value) and (hint == DT_INT32 or hint == DT_INVALID and <object>value):
                return _vector(here, value)
            device = NULL
        if not is_list(value) and (
            not is_array(value) or hint != DT_INVALID and hint != ArrayDtype(value)
        ):
            # Where NumPy warns of a cast, it names the line that asked for it: TensorFlow's.
            raise TypeError("a cast")
        handle = ConvertToEagerTensorUncached(wrap(here.context), value, hint, device)
    else:
        # TensorFlow caches numbers by value and device, and to it 0.0 and -0.0 are one value:
        # zeros are looked up as it does, so as to find the same one.
        if on_host and <object>value != 0:
            device = here.host_name
        handle = ConvertToEagerTensor(wrap(here.context), value, hint, device)
    if handle == NULL:
        return NULL
    tensor = EagerTensorFromHandle(handle)
    if PyErr_Occurred() != NULL:  # of a number out of range, beside a tensor all the same
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
    """Whether it is a short list of ints that fit into 32 bits: a shape, a permutation, axes."""
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


cdef PyObject* _vector(const Runtime& here, PyObject* value) except? NULL:
    """The tensor of int32 for a short list of ints: programs use few of them, again and again."""
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
        # It refers to nothing. Who asks the collector for tensors that are left over (tests of
        # TensorFlow's do) shall not find it.
        PyObject_GC_UnTrack(tensor)
    return tensor


cdef bint lists_convert(const OpFacts& facts, PyObject** values) noexcept:
    """Whether inputs convert alone, or as a tensor beside them says.

    TensorFlow's fast path refuses lists. The slow path has other rules for dtypes, which come
    to the same for inputs of a fixed dtype, for those that share theirs with an EagerTensor,
    for a list that shares it with nothing, and for short lists of ints among themselves.
    """
    cdef int i, j, count = facts.inputs.size()
    cdef bint alone, told, vectors
    cdef DataType fallback
    cdef PyObject* value
    cdef PyObject* other
    if facts.stateful:
        return False  # errors of that path are others, and it must not run a second time
    for i in range(count):
        value = values[i]
        if (
            facts.inputs[i].kind != kSingle
            or facts.inputs[i].fixed != DT_INVALID
            or IsEagerTensor(value)
        ):
            continue
        alone, told = True, False
        vectors = is_vector(value) and <object>value
        for j in range(count):
            if j != i and facts.inputs[j].attr == facts.inputs[i].attr:
                other = values[j]
                if facts.inputs[j].kind != kSingle:
                    return False
                if IsEagerTensor(other):
                    told = True
                elif (
                    Py_TYPE(<object>value) == _variable_type
                    or Py_TYPE(<object>other) == _variable_type
                ):
                    return False
                alone = False
                vectors = vectors and is_vector(other) and <object>other
        if vectors or told or alone and Py_TYPE(<object>value) == _variable_type:
            continue
        if not alone:
            return False
        fallback = facts.inputs[i].fallback
        if is_list(value):
            if fallback != DT_INT32 and not <object>value:
                return False
        elif fallback != DT_INVALID and not (
            fallback == DT_INT32 and Py_TYPE(<object>value) == &PyLong_Type
            or fallback == DT_FLOAT and Py_TYPE(<object>value) == &PyFloat_Type
        ):
            return False
    return True


cdef object constant(const Runtime& here, object value, DataType dtype, PyObject* device_name):
    cdef PyObject* tensor
    cdef TFE_TensorHandle* handle
    if Observed(here):
        return None
    if not is_number(<PyObject*>value) and here.only_host and <object>device_name == "":
        if is_numpy(<PyObject*>value):
            tensor = CopyOfArray(<PyObject*>value, dtype, here)
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
        else:  # not `_vector`: no two constants are one tensor
            handle = ConvertToEagerTensorUncached(
                wrap(here.context), <PyObject*>value, dtype, NULL
            )
            tensor = NULL
            if handle != NULL:
                tensor = EagerTensorFromHandle(handle)
    except Exception:  # TensorFlow will say what is wrong
        return None
    if PyErr_Occurred() != NULL:
        PyErr_Clear()
        Py_XDECREF(tensor)
        return None
    result = <object>tensor
    Py_DECREF(result)
    return result
