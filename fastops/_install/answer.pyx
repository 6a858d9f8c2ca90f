# distutils: language = c++
"""The class of stand-ins for functions and methods that only inspect values.

For plain arguments, a stand-in returns the same answer as the function that it replaces. All other
arguments fall back to that function. The packages `helpers` and `keras` have the answers for
functions of TensorFlow and of Keras. Their modules register the answers here, by name, when they
are imported.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._install.replacement cimport Replacement, call_original, enable, live

import inspect
import sys


@cython.final
@cython.no_gc_clear
cdef class Answer(Replacement):
    """Stand-in for a function or method that an answer is registered for.

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
        self.answer = <answer_t><size_t>_answers[name][1]
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
        if answer is not DECLINED:
            Py_INCREF(answer)
            return <PyObject*>answer
    return call_original(self, args, nargsf, keywords)


cdef dict _answers = {}  # by name: the package that registered the answer, and its address


cdef int register(str package, str name, answer_t answer) except -1:
    """Register an answer under the name of the function that it stands in for.

    The package is the one below `fastops._install` that has the answer. A name is registered once.
    """
    if name in _answers:
        raise ValueError(f"there are two answers for {name}")
    _answers[name] = package, <size_t>answer
    return 0


def registered(package):
    """Return the names of the functions for which a package has registered answers."""
    return frozenset([name for name, (owner, _) in _answers.items() if owner == package])


enable(Answer)
