# distutils: language = c++
"""Stand-ins for methods of ``tf.GradientTape``."""

cimport cython
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._autodiff.tape cimport (
    mark_failed,
    pop_tape,
    push_tape,
    tape_gradient,
    watch_tensors,
)
from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._install.replacement cimport Replacement, call_original, enable, live, replacing

from tensorflow.python.eager.backprop import GradientTape as _GradientTape
from tensorflow.python.ops.unconnected_gradients import UnconnectedGradients as _Unconnected


cdef object _NONE = _Unconnected.NONE


# Verification replaces these two. The stand-ins for their callers then leave calls to TensorFlow.
cdef object _push = _GradientTape._push_tape
cdef object _pop = _GradientTape._pop_tape


# ---------------------------------------------------------------------------------------------
# tf.GradientTape.__enter__ and __exit__
# ---------------------------------------------------------------------------------------------

def enter(original):
    """Return the stand-in for ``tf.GradientTape.__enter__``."""
    return replacing(original, _enter)


cdef PyObject* _enter(PyObject* callable, PyObject* const* args, size_t nargsf,
                      PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 1
        or <PyObject*>Py_TYPE(<object>args[0]) != <PyObject*>_GradientTape
        or not live
        or _GradientTape._push_tape is not _push
        or not push_tape(<object>args[0])
    ):
        return call_original(self, args, nargsf, keywords)
    Py_INCREF(<object>args[0])
    return args[0]


def leave(original):
    """Return the stand-in for ``tf.GradientTape.__exit__``."""
    return replacing(original, _leave)


cdef PyObject* _leave(PyObject* callable, PyObject* const* args, size_t nargsf,
                      PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 4
        or <PyObject*>Py_TYPE(<object>args[0]) != <PyObject*>_GradientTape
        or not live
        or _GradientTape._pop_tape is not _pop
        or not pop_tape(<object>args[0])
    ):
        return call_original(self, args, nargsf, keywords)
    Py_INCREF(None)
    return <PyObject*>None


# ---------------------------------------------------------------------------------------------
# tf.GradientTape.watch
# ---------------------------------------------------------------------------------------------

def watch(original):
    """Return the stand-in for ``tf.GradientTape.watch``."""
    return replacing(original, _watch)


cdef PyObject* _watch(PyObject* callable, PyObject* const* args, size_t nargsf,
                      PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 2
        or <PyObject*>Py_TYPE(<object>args[0]) != <PyObject*>_GradientTape
        or not live
    ):
        return call_original(self, args, nargsf, keywords)
    result = watch_tensors(<object>args[0], <object>args[1])
    if result is DECLINED:
        return call_original(self, args, nargsf, keywords)
    Py_INCREF(result)
    return <PyObject*>result


# ---------------------------------------------------------------------------------------------
# tf.GradientTape.gradient
# ---------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear
cdef class Gradient(Replacement):
    """Stand-in for ``tf.GradientTape.gradient``.

    Parameters
    ----------
    original : callable
        TensorFlow's method.
    """

    cdef readonly long long taken  # number of calls that did not fall back

    def __init__(self, original):
        super().__init__(original)
        self.vectorcall = _gradient


cdef tuple _PARAMETERS = ("target", "sources", "output_gradients", "unconnected_gradients")


cdef PyObject* _gradient(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    cdef Gradient self = <Gradient>callable
    cdef Py_ssize_t i, j, n = PyVectorcall_NARGS(nargsf)
    cdef PyObject* given[4]
    if (
        not live
        or not 1 <= n <= 5
        or <PyObject*>Py_TYPE(<object>args[0]) != <PyObject*>_GradientTape
    ):
        return call_original(self, args, nargsf, keywords)
    given[0] = given[1] = NULL
    given[2] = <PyObject*>None
    given[3] = <PyObject*>_NONE
    for i in range(1, n):
        given[i - 1] = args[i]
    if keywords != NULL:
        for i in range(PyTuple_GET_SIZE(<object>keywords)):
            for j in range(n - 1, 4):
                if _PARAMETERS[j] == <object>PyTuple_GET_ITEM(<object>keywords, i):
                    given[j] = args[n + i]
                    break
            else:
                return call_original(self, args, nargsf, keywords)
    if given[0] == NULL or given[1] == NULL:
        return call_original(self, args, nargsf, keywords)
    tape = <object>args[0]
    try:
        result = tape_gradient(
            tape, <object>given[0], <object>given[1], <object>given[2], <object>given[3]
        )
        if result is DECLINED:
            return call_original(self, args, nargsf, keywords)
    except BaseException:
        mark_failed(tape)
        raise
    self.taken += 1
    Py_INCREF(result)
    return <PyObject*>result


enable(Gradient)


METHODS = (
    ("__enter__", enter), ("__exit__", leave), ("gradient", Gradient), ("watch", watch),
)
