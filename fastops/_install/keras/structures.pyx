# distutils: language = c++
"""Answers that tell whether values are tensors, symbolic, or nested.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE

from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport Py_None
from fastops._install.answer cimport Answer, register
from fastops._install.keras.kinds cimport (
    LEAF,
    SEQUENCE,
    SYMBOLIC,
    TENSOR,
    UNKNOWN,
    kind_of,
)


cdef object _is_tensor(Answer self, PyObject* const* args, Py_ssize_t n,
                       PyObject* keywords):
    # x
    cdef int kind
    if n != 1 or keywords != NULL:
        return DECLINED
    kind = kind_of(args[0])
    if kind == TENSOR:
        return True
    return False if kind == LEAF or kind == SEQUENCE else DECLINED


cdef int _symbolic_among(object values, int depth) except -1:
    """Return `TENSOR` if no value is symbolic, `SYMBOLIC` if one is, `UNKNOWN` if undecided."""
    cdef int kind
    for value in values:
        kind = kind_of(<PyObject*>value)
        if kind == SEQUENCE and depth:
            kind = _symbolic_among(value, depth - 1)
        if kind == SYMBOLIC or kind == UNKNOWN or kind == SEQUENCE:
            return SYMBOLIC if kind == SYMBOLIC else UNKNOWN
    return TENSOR


cdef object _any_symbolic_tensors(Answer self, PyObject* const* args, Py_ssize_t n,
                                  PyObject* keywords):
    # args=None, kwargs=None
    cdef int kind = TENSOR
    if keywords != NULL or not 1 <= n <= 2 or not PyTuple_CheckExact(<object>args[0]):
        return DECLINED
    if PyTuple_GET_SIZE(<object>args[0]):
        kind = _symbolic_among(<object>args[0], 4)
    if kind == TENSOR and n == 2 and args[1] != Py_None:
        if not PyDict_CheckExact(<object>args[1]):
            return DECLINED
        if <dict><object>args[1]:
            kind = _symbolic_among((<dict><object>args[1]).values(), 4)
    return DECLINED if kind == UNKNOWN else kind == SYMBOLIC


cdef object _is_nested(Answer self, PyObject* const* args, Py_ssize_t n,
                       PyObject* keywords):
    # structure
    cdef int kind
    if n != 1 or keywords != NULL:
        return DECLINED
    kind = kind_of(args[0])
    return DECLINED if kind == UNKNOWN else kind == SEQUENCE


cdef bint _flat(object values):
    """Whether a list or tuple contains tensors and leaves only."""
    cdef int kind
    for value in values:
        kind = kind_of(<PyObject*>value)
        if kind == UNKNOWN or kind == SEQUENCE:
            return False
    return True


cdef object _flatten(Answer self, PyObject* const* args, Py_ssize_t n,
                     PyObject* keywords):
    # structure
    cdef int kind
    if n != 1 or keywords != NULL:
        return DECLINED
    kind = kind_of(args[0])
    if kind == SEQUENCE:
        return list(<object>args[0]) if _flat(<object>args[0]) else DECLINED
    return DECLINED if kind == UNKNOWN else [<object>args[0]]


cdef object _map_structure(Answer self, PyObject* const* args, Py_ssize_t n,
                           PyObject* keywords):
    # func, *structures, none_is_leaf=True
    cdef int kind
    if n != 2 or keywords != NULL or not callable(<object>args[0]):
        return DECLINED
    function, structure = <object>args[0], <object>args[1]
    kind = kind_of(args[1])
    if kind == SEQUENCE:
        if not _flat(structure):
            return DECLINED
        results = [function(value) for value in structure]
        return results if type(structure) is list else tuple(results)
    if PyDict_CheckExact(structure) and not <dict>structure:
        return {}
    return DECLINED if kind == UNKNOWN else function(structure)


register("keras", "backend.common.keras_tensor.any_symbolic_tensors", _any_symbolic_tensors)
register("keras", "backend.tensorflow.core.is_tensor", _is_tensor)
register("keras", "tree.tree_api.flatten", _flatten)
register("keras", "tree.tree_api.is_nested", _is_nested)
register("keras", "tree.tree_api.map_structure", _map_structure)
