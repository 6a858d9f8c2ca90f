# distutils: language = c++
"""Answers that tell whether a value is a tensor, and that return the value of a tensor.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.object cimport PyObject, PyObject_GenericGetAttr, Py_TYPE
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport _PyType_Lookup
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._install.helpers.classes cimport (
    NO,
    UNKNOWN,
    YES,
    Facts,
    facts_of,
    has_own,
    is_usual,
    notice_registrations,
)

from tensorflow.python.framework import tensor_util as _tensor_util
from tensorflow.python.framework.errors_impl import UnimplementedError as _Unimplemented


cdef object _is_tf_type = _tensor_util.is_tf_type
cdef frozenset _of_arrays = frozenset(  # TensorFlow's error for these names has a hint
    ("T", "astype", "ravel", "transpose", "reshape", "clip", "size", "tolist", "data")
)
cdef PyObject* _PROTOCOL = <PyObject*>"is_tensor_like"  # `tensor_util.IsTensorLike` reads it


cdef int _is_tensor_by_class(PyObject* value) except -1:
    """Return whether TensorFlow treats a value as a tensor: YES, NO, or UNKNOWN."""
    cdef Facts* facts
    notice_registrations()
    facts = facts_of(Py_TYPE(<object>value))
    if facts == NULL or not is_usual(facts):
        return UNKNOWN
    if _PyType_Lookup(Py_TYPE(<object>value), _PROTOCOL) != NULL or has_own(value, _PROTOCOL):
        return UNKNOWN
    facts = facts_of(Py_TYPE(<object>value))
    if facts == NULL:
        return UNKNOWN
    if facts.is_tensor == UNKNOWN:
        is_tensor = YES if _is_tf_type(<object>value) else NO
        facts = facts_of(Py_TYPE(<object>value))
        if facts == NULL:
            return UNKNOWN
        facts.is_tensor = is_tensor
    return facts.is_tensor


cdef object _is_tensor(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # x
    cdef int is_tensor
    if n != 1 or keywords != NULL:
        return DECLINED
    if IsEagerTensor(args[0]):
        return True
    is_tensor = _is_tensor_by_class(args[0])
    return DECLINED if is_tensor == UNKNOWN else is_tensor == YES


cdef object _constant_value(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # tensor, partial=False
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values):
        return DECLINED
    if IsEagerTensor(values[0]):
        try:
            return (<object>values[0]).numpy()
        except _Unimplemented:  # the tensor is on several devices at once
            return None
    return <object>values[0] if _is_tensor_by_class(values[0]) == NO else DECLINED


cdef object _missing_attribute(Answer self, PyObject* const* args, Py_ssize_t n,
                               PyObject* keywords):
    # self, name
    if n != 2 or keywords != NULL or not IsEagerTensor(args[0]):
        return DECLINED
    name = <object>args[1]
    if not PyUnicode_CheckExact(name) or name in _of_arrays:
        return DECLINED
    if _PyType_Lookup(Py_TYPE(<object>args[0]), args[1]) != NULL:  # a property that has raised
        return DECLINED
    PyObject_GenericGetAttr(<object>args[0], name)
    return None  # reached only if code calls `__getattr__` itself for an existing attribute


register("helpers", "Tensor.__getattr__", _missing_attribute)
register("helpers", "tensor_util.is_tf_type", _is_tensor)
register("helpers", "tensor_util.constant_value", _constant_value)
