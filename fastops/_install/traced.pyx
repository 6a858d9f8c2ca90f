# distutils: language = c++
"""Stand-ins for the method that calls traced functions, and for methods of related objects.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._install.replacement cimport Replacement, call_original, enable, live, replacing
from fastops._plans.caller cimport call_as
from fastops._plans.runtime_function cimport call_flat
from fastops._plans.runner cimport Original
from fastops._plans.taped cimport call_taped
from fastops._situation cimport is_plain
from fastops._tf.eager cimport recording as taped

cdef extern from "definitions.h":
    pass


cdef str _CALLER = "_fastops_caller"


@cython.final
@cython.no_gc_clear
cdef class FunctionCall(Replacement):
    """Stand-in for the method that calls traced functions.

    Parameters
    ----------
    original : callable
        TensorFlow's method.
    planner : callable
        Makes the `Caller` of a function that has none yet.
    """

    cdef object planner

    def __init__(self, original, planner):
        super().__init__(original)
        self.planner = planner
        self.vectorcall = _function_call


cdef PyObject* _function_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                              PyObject* keywords) except NULL:
    cdef FunctionCall self = <FunctionCall>callable
    cdef Original call = Original(<PyObject*>self.original, args, nargsf, keywords)
    if not live or PyVectorcall_NARGS(nargsf) == 0:
        return call_original(self, args, nargsf, keywords)
    caller = getattr(<object>args[0], _CALLER, None)
    if caller is None:
        caller = self.planner(<object>args[0])
        setattr(<object>args[0], _CALLER, caller)
    return call_as(caller, &call, 1)


@cython.final
@cython.no_gc_clear
cdef class RuntimeCall(Replacement):
    """Stand-in for the method that calls functions of TensorFlow's runtime with flat tensors.

    Parameters
    ----------
    original : callable
        TensorFlow's method.
    """

    def __init__(self, original):
        super().__init__(original)
        self.vectorcall = _runtime_call


cdef PyObject* _runtime_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                             PyObject* keywords) except NULL:
    cdef RuntimeCall self = <RuntimeCall>callable
    cdef Original call = Original(<PyObject*>self.original, args, nargsf, keywords)
    if not live or keywords != NULL or PyVectorcall_NARGS(nargsf) == 0:
        return call_original(self, args, nargsf, keywords)
    result = call_flat(&call, PyVectorcall_NARGS(nargsf))
    Py_INCREF(result)
    return <PyObject*>result


def trace_call(original):
    """Return the stand-in for the method that calls traces, and has tapes record the calls."""
    return replacing(original, _trace_call)


cdef PyObject* _trace_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                           PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    if live and keywords == NULL and PyVectorcall_NARGS(nargsf) == 3 and taped():
        result = call_taped(<object>args[0], <object>args[1], <object>args[2])
        if result is not DECLINED:
            Py_INCREF(result)
            return <PyObject*>result
    return call_original(self, args, nargsf, keywords)


@cython.final
@cython.no_gc_clear
cdef class PlainMethod(Replacement):
    """Stand-in for a method that has a cheaper equivalent in plain calls (see `is_plain`).

    Parameters
    ----------
    original : callable
        TensorFlow's method.
    answer : callable
        Given the original and the object, returns the result of the method without arguments.
    anywhere : bool
        Whether `answer` is also right when there are devices other than the host.
    """

    cdef object answer
    cdef bint anywhere

    def __init__(self, original, answer, *, anywhere=False):
        super().__init__(original)
        self.answer = answer
        self.anywhere = anywhere
        self.vectorcall = _method_call


cdef PyObject* _method_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                            PyObject* keywords) except NULL:
    cdef PlainMethod self = <PlainMethod>callable
    if (
        not live or keywords != NULL or PyVectorcall_NARGS(nargsf) != 1
        or not is_plain(self.anywhere)
    ):
        return call_original(self, args, nargsf, keywords)
    result = self.answer(self.original, <object>args[0])
    Py_INCREF(result)
    return <PyObject*>result


enable(FunctionCall)
enable(RuntimeCall)
enable(PlainMethod)
