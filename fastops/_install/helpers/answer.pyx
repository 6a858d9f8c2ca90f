# distutils: language = c++
"""The class of stand-ins for helper functions of TensorFlow that inspect values.

For plain arguments, a stand-in returns the same answer as the function that it replaces. All other
arguments fall back to that function. The other modules of this package define the answers, by
subject. `functions` lists the replaced functions.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._install.replacement cimport Replacement, call_original, enable, live

import inspect
import sys


PASS = object()


@cython.final
@cython.no_gc_clear
cdef class Answer(Replacement):
    """Stand-in for a helper function or method.

    Parameters
    ----------
    original : callable
        The function or method that it replaces.
    name : str
        The name under which the answer is registered.
    """

    def __init__(self, original, name):
        super().__init__(original)
        if name not in _answers:
            raise ValueError(f"no stand-in is registered for {name}")
        parameters = inspect.signature(original).parameters.values()
        self.names = tuple(sys.intern(parameter.name) for parameter in parameters)
        self.defaults = tuple(p.default for p in parameters if p.default is not p.empty)
        self.answer = <answer_t><size_t>_answers[name]
        self.vectorcall = _answer

    cdef bint bind(self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   PyObject** values) except -1:
        """Bind the arguments of a call to parameters, none of which is variadic.

        Return False if they do not fit.
        """
        cdef Py_ssize_t i, j, num_params = PyTuple_GET_SIZE(self.names)
        cdef Py_ssize_t num_required = num_params - PyTuple_GET_SIZE(self.defaults)
        cdef PyObject* keyword
        if n > num_params:
            return False
        for i in range(num_params):
            values[i] = args[i] if i < n else NULL
        if keywords != NULL:
            for i in range(PyTuple_GET_SIZE(<object>keywords)):
                keyword = PyTuple_GET_ITEM(<object>keywords, i)
                for j in range(num_params):
                    if keyword == PyTuple_GET_ITEM(self.names, j):
                        break
                else:  # the name is unknown, or is not interned (which is rare)
                    return False
                if values[j] != NULL:
                    return False
                values[j] = args[n + i]
        for i in range(num_params):
            if values[i] == NULL:
                if i < num_required:
                    return False
                values[i] = PyTuple_GET_ITEM(self.defaults, i - num_required)
        return True


cdef PyObject* _answer(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef Answer self = <Answer>callable
    if live:
        answer = self.answer(self, args, PyVectorcall_NARGS(nargsf), keywords)
        if answer is not PASS:
            Py_INCREF(answer)
            return <PyObject*>answer
    return call_original(self, args, nargsf, keywords)


cdef dict _answers = {}  # by name, the address of the function that answers


cdef int register(str name, answer_t answer) except -1:
    """Register an answer under the name of the function that it stands in for."""
    if name in _answers:
        raise ValueError(f"two stand-ins are registered for {name}")
    _answers[name] = <size_t>answer
    return 0


def registered():
    """Return the names of the functions that have an answer."""
    return frozenset(_answers)


enable(Answer)
