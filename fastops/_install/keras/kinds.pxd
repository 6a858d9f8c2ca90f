from cpython.list cimport PyList_CheckExact
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.tuple cimport PyTuple_CheckExact
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None, PyBool_Type, PyFloat_Type, PyLong_Type


cdef enum:  # kinds of values, as Keras sees them
    UNKNOWN
    LEAF        # neither a tensor nor a container
    TENSOR
    SYMBOLIC
    SEQUENCE    # a list or tuple

# Classes of TensorFlow and of the imported Keras. `attach` sets those of Keras.
cdef PyTypeObject* tf_variable_type
cdef PyTypeObject* variable_type
cdef PyTypeObject* symbolic_type


cdef inline int kind_of(PyObject* value) noexcept:
    """Return the kind of a value, as Keras sees it."""
    cdef PyTypeObject* kind = <PyTypeObject*>Py_TYPE(<object>value)
    if IsEagerTensor(value) or kind == tf_variable_type or kind == variable_type:
        return TENSOR
    if (
        value == Py_None
        or kind == &PyLong_Type
        or kind == &PyFloat_Type
        or kind == &PyBool_Type
        or PyUnicode_CheckExact(<object>value)
    ):
        return LEAF
    if PyTuple_CheckExact(<object>value) or PyList_CheckExact(<object>value):
        return SEQUENCE
    if kind == symbolic_type:
        return SYMBOLIC
    return UNKNOWN
