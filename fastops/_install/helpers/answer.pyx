# distutils: language = c++
"""Stand-ins for functions by which TensorFlow, and what is built on it, ask about values.

Each answers for plain arguments as the function that it replaces does, which is asked about all
others. The modules beside give the answers, by subject; `functions` lists what they are for.
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
    """In the place of a function or method of TensorFlow.

    Parameters
    ----------
    original : callable
        TensorFlow's.
    name : str
        Under which the answer has been registered.
    """

    def __init__(self, original, name):
        super().__init__(original)
        if name not in _answers:
            raise ValueError(f"nothing answers for {name}")
        parameters = inspect.signature(original).parameters.values()
        self.names = tuple(sys.intern(parameter.name) for parameter in parameters)
        self.defaults = tuple(p.default for p in parameters if p.default is not p.empty)
        self.answer = <answer_t><size_t>_answers[name]
        self.vectorcall = _answer

    cdef bint bind(self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   PyObject** values) except -1:
        """Puts the arguments of a call into their places, where none is variadic; or tells no."""
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
                else:  # unknown; or no literal, which is nobody's way to call
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


cdef dict _answers = {}  # addresses, by name


cdef int register(str name, answer_t answer) except -1:
    """Gives an answer the name of the function that it stands in for."""
    if name in _answers:
        raise ValueError(f"there are two answers for {name}")
    _answers[name] = <size_t>answer
    return 0


def registered():
    """Returns the names of the functions that something answers for."""
    return frozenset(_answers)


enable(Answer)
