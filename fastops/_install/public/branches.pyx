# distutils: language = c++
"""Lowerings of functions that call one of several functions, chosen by the value of a tensor.

The first comment line of each lowering lists the parameters of the function.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyCallable_Check, PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libcpp cimport bool

from fastops._core.conversion cimport is_list
from fastops._core.tensors cimport host_tensor, ints_of, rank_of, truth_of
from fastops._cpp.declarations cimport Sizes
from fastops._cpp.python cimport PySequence_Fast_ITEMS, Py_False, Py_None, Py_True
from fastops._install.public.lowering cimport CALLING, Draft, Lowering, NOT_LOWERED, register
from fastops._situation cimport IN_ORDER, missing
from fastops._tf.tensor cimport Tensor

from tensorflow.python.ops import cond as _tf_cond


cdef dict _cond_globals = _tf_cond.__dict__
cdef str _VALIDATES = "_VALIDATE_INACTIVE_BRANCH"


cdef bint _traces_both() noexcept:
    """Whether `tf.cond` also traces the other branch: a setting since TensorFlow 2.22."""
    cdef PyObject* setting = PyDict_GetItem(_cond_globals, _VALIDATES)
    return setting != NULL and setting != Py_False


cdef int _calling(Draft* draft, PyObject* function, int unpacked) noexcept:
    Py_INCREF(<object>function)
    draft.result, draft.unpacked = function, unpacked
    return CALLING


cdef bint _decides(PyObject* value, bool* truth) noexcept:
    """Whether a value is a bool scalar on the host; `truth` gets its value."""
    cdef const Tensor* tensor = host_tensor(value)
    return tensor != NULL and truth_of(tensor, truth)


cdef int _cond(Lowering self, Draft* draft) except -1:
    # pred, true_fn, false_fn
    cdef bool truth = draft.values[0] == Py_True
    if (
        missing(IN_ORDER)
        or _traces_both()
        or not PyCallable_Check(<object>draft.values[1])
        or not PyCallable_Check(<object>draft.values[2])
    ):
        return NOT_LOWERED
    if not truth and draft.values[0] != Py_False and not _decides(draft.values[0], &truth):
        return NOT_LOWERED
    return _calling(draft, draft.values[1 if truth else 2], 0)


cdef int _case(Lowering self, Draft* draft) except -1:
    # pred_fn_pairs, default, exclusive, strict
    cdef PyObject* pair
    cdef PyObject* chosen = NULL
    cdef bool truth = False
    cdef Py_ssize_t i, size
    cdef int levels = 0
    if (
        draft.values[2] != Py_False
        or not is_list(draft.values[0])
        or not PyCallable_Check(<object>draft.values[1])
        or missing(IN_ORDER)
        or _traces_both()
    ):
        return NOT_LOWERED
    size = len(<object>draft.values[0])
    for i in range(size):
        pair = PySequence_Fast_ITEMS(draft.values[0])[i]
        if not PyTuple_CheckExact(<object>pair) or PyTuple_GET_SIZE(<object>pair) != 2:
            return NOT_LOWERED
        if not _decides(PyTuple_GET_ITEM(<object>pair, 0), &truth):
            return NOT_LOWERED
        if not PyCallable_Check(<object>PyTuple_GET_ITEM(<object>pair, 1)):
            return NOT_LOWERED
        if chosen == NULL:
            levels += 1
            if truth:
                chosen = PyTuple_GET_ITEM(<object>pair, 1)
    if size == 0:
        return NOT_LOWERED
    # TensorFlow nests one `tf.cond` for each pair, and each level unpacks a list of one element.
    return _calling(
        draft,
        draft.values[1] if chosen == NULL else chosen,
        levels if draft.values[3] == Py_False else 0,
    )


cdef int _switch_case(Lowering self, Draft* draft) except -1:
    # branch_index, branch_fns, default
    cdef const Tensor* index = host_tensor(draft.values[0])
    cdef PyObject** functions
    cdef Sizes branch
    cdef Py_ssize_t i, size
    if (
        index == NULL
        or rank_of(index) != 0
        or not ints_of(index, &branch)
        or not is_list(draft.values[1])
        or missing(IN_ORDER)
    ):
        return NOT_LOWERED
    functions = PySequence_Fast_ITEMS(draft.values[1])
    size = len(<object>draft.values[1])
    for i in range(size):
        if not PyCallable_Check(<object>functions[i]):
            return NOT_LOWERED
    if size == 0:
        return NOT_LOWERED
    if 0 <= branch[0] < size:
        return _calling(draft, functions[branch[0]], 0)
    if draft.values[2] == Py_None:
        return _calling(draft, functions[size - 1], 0)
    return _calling(draft, draft.values[2], 0)


register("cond", _cond)
register("case", _case)
register("switch_case", _switch_case)
