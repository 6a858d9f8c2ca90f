# distutils: language = c++
"""Answers for functions of TensorFlow that call functions of users for elements.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
from fastops._core.preparing cimport flushes
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._situation cimport NO_PROMOTION, NO_STRATEGY, PLAIN, missing

from functools import partial

from fastops._install import bodies as _bodies, loops as _loops


cdef enum:
    _REQUIRED = PLAIN | NO_PROMOTION | NO_STRATEGY


cdef unsigned long long _known_after = flushes


cdef bint _takes(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                 PyObject** given) except -1:
    """Bind the arguments of a call. Return False if only TensorFlow makes calls here."""
    global _known_after
    if not self.bind(args, n, keywords, given) or missing(_REQUIRED):
        return False
    if _known_after != flushes:
        _known_after = flushes
        _bodies.forget()
        _loops.forget()
    return True


cdef object _vectorized_map(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # fn, elems, fallback_to_while_loop=True, warn=True
    cdef PyObject* given[MAX_PARAMS]
    if not _takes(self, args, n, keywords, given):
        return DECLINED
    if type(<object>given[2]) is not bool or type(<object>given[3]) is not bool:
        return DECLINED
    made = _bodies.vectorized_map(
        <object>given[0], <object>given[1], <object>given[2], <object>given[3]
    )
    return DECLINED if made is None else made[0]


cdef bint _is_default(PyObject* const* given, int back_prop) except -1:
    """Whether `back_prop` and `swap_memory`, the next argument, have their default values."""
    return <object>given[back_prop] is True and <object>given[back_prop + 1] is False


cdef bint _is_called(PyObject* function, PyObject* name) except -1:
    """Whether a call has a function, and no name or a text."""
    return callable(<object>function) and (name == <PyObject*>None or type(<object>name) is str)


cdef object _scan(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
    # infer_shape=True, reverse=False, name=None
    cdef PyObject* given[MAX_PARAMS]
    if not _takes(self, args, n, keywords, given):
        return DECLINED
    if (
        not _is_default(given, 4)
        or not _is_called(given[0], given[8])
        or <object>given[6] is not True
        or type(<object>given[7]) is not bool
    ):
        return DECLINED
    original = partial(
        self.original, elems=<object>given[1], initializer=<object>given[2],
        parallel_iterations=<object>given[3], reverse=<object>given[7], name=<object>given[8],
    )
    made = _loops.scan(
        original, <object>given[0], <object>given[1], <object>given[2], <object>given[7],
        <object>given[8],
    )
    return DECLINED if made is None else made[0]


cdef object _fold(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords, title):
    cdef PyObject* given[MAX_PARAMS]
    if not _takes(self, args, n, keywords, given):
        return DECLINED
    if not _is_default(given, 4) or not _is_called(given[0], given[6]):
        return DECLINED
    original = partial(
        self.original, elems=<object>given[1], initializer=<object>given[2],
        parallel_iterations=<object>given[3], name=<object>given[6],
    )
    made = _loops.fold(
        original, title, <object>given[0], <object>given[1], <object>given[2], <object>given[6]
    )
    return DECLINED if made is None else made[0]


cdef object _foldl(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
    # name=None
    return _fold(self, args, n, keywords, "foldl")


cdef object _foldr(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
    # name=None
    return _fold(self, args, n, keywords, "foldr")


cdef object _map_fn(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False,
    # infer_shape=True, name=None, fn_output_signature=None
    cdef PyObject* given[MAX_PARAMS]
    if not _takes(self, args, n, keywords, given):
        return DECLINED
    if (
        <object>given[2] is not None
        or <object>given[3] is not None
        or not _is_default(given, 4)
        or not _is_called(given[0], given[7])
        or <object>given[6] is not True
    ):
        return DECLINED
    made = _loops.map_fn(
        <object>given[0], <object>given[1], <object>given[7], <object>given[8]
    )
    return DECLINED if made is None else made[0]


register("helpers", "control_flow_ops.vectorized_map", _vectorized_map)
register("helpers", "functional_ops.scan", _scan)
register("helpers", "functional_ops.foldl", _foldl)
register("helpers", "functional_ops.foldr", _foldr)
register("helpers", "map_fn.map_fn", _map_fn)
