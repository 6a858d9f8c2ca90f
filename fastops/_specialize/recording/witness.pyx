# distutils: language = c++
"""Which Python code runs in a recorded call: a profile function of the thread notes it."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from libcpp.unordered_map cimport unordered_map
from libcpp.unordered_set cimport unordered_set

from fastops._cpp.profiling cimport (
    CodeOf, DefinitionOf, PyEval_SetProfile, PyFrameObject, PyTrace_C_CALL,
    PyTrace_CALL,
)

import sys

import numpy as np

from fastops._specialize.libraries import is_own, is_pure

cdef dict _OF_ABSTRACT_CLASSES = vars(sys.modules["_collections_abc"])  # which goes by another name

# Modules that measure times, of which TensorFlow's own monitoring is told.
cdef frozenset _TELLING_TENSORFLOW = frozenset({"tensorflow.python.eager.monitoring"})

cdef type _MODULES = type(sys)


cdef bint _is_of_namedtuple(code, name) except -1:
    """Whether code is what `collections.namedtuple` makes for a class."""
    return code.co_name == "<lambda>" and str(name).startswith("namedtuple_")


cdef bint _draws(code, dict namespace) except -1:
    """Whether code names NumPy's random functions, whose calls no profile function sees."""
    for name in code.co_names:
        value = namespace.get(name)
        if value is np and "random" in code.co_names:
            return True
        for title in (getattr(value, "__name__", ""), getattr(value, "__module__", "")):
            if str(title).startswith("numpy.random"):
                return True
    return False


@cython.final
cdef class Witness:
    """Notes the code that this thread runs between `start` and `stop`.

    Parameters
    ----------
    declared : dict of code to str
        Methods of users that are said to be pure, with their modules: so is what they call there.

    Attributes
    ----------
    codes : dict of tuple to dict
        The globals of each, by the code and their identity: of other modules code may be alike.
    objection : tuple of str or None
        Why nothing can be known of the call: the id of the reason, and the particulars or None.
    """

    cdef dict declared
    cdef readonly dict codes
    cdef readonly tuple objection
    cdef unordered_set[size_t] seen         # the code that is known
    cdef list kept                          # and may not go meanwhile, so that no other is there
    cdef unordered_set[const void*] pure    # definitions of functions that are written in C
    cdef unordered_map[const void*, PyTypeObject*] methods  # the class for which each last was so

    def __init__(self, declared):
        self.declared = declared
        self.codes, self.kept = {}, []

    def start(self):
        """Begin. False if another profile function is set."""
        if sys.getprofile() is not None:
            return False
        PyEval_SetProfile(_see, self)
        return True

    def stop(self):
        """End."""
        if sys.getprofile() is self:
            PyEval_SetProfile(NULL, None)
        else:
            self.objection = ("sets_profiler", None)

    cdef int runs(self, object frame, PyObject* found) except -1:
        """Take up code, which is called."""
        cdef dict namespace = frame.f_globals
        code = <object>found
        self.seen.insert(<size_t>found)
        self.kept.append(code)
        self.codes[code, id(namespace)] = namespace
        name = namespace.get("__name__")
        if namespace is _OF_ABSTRACT_CLASSES or _is_of_namedtuple(code, name):
            return 0
        module = sys.modules.get(name)
        if module is not None and module.__dict__ is namespace and is_own(name):
            return 0
        if not self.is_declared(frame, name):
            self.note("foreign_code", f"{code.co_name} of {name}")
        elif _draws(code, namespace):
            self.note("numpy_random")
        return 0

    cdef int calls(self, object frame, PyObject* function) except -1:
        """Take up a function that is written in C, which is called."""
        cdef const void* definition = DefinitionOf(function)
        cdef PyTypeObject* kind = NULL
        if definition != NULL:
            if self.pure.count(definition) != 0:
                return 0
            # Bound to instances of another class it may be said to be of another module.
            bound = (<object>function).__self__
            kind = Py_TYPE(bound)
            if self.methods[definition] == kind:
                return 0
        if is_pure(<object>function):
            if definition != NULL and isinstance(bound, _MODULES):
                self.pure.insert(definition)
            elif definition != NULL:
                self.kept.append(<object>kind)
                self.methods[definition] = kind
        elif frame.f_globals.get("__name__") not in _TELLING_TENSORFLOW:
            self.note("foreign_c_function", (<object>function).__name__)
        return 0

    cdef bint is_declared(self, frame, name) except -1:
        """Whether code is a declared method, or called by one of its module."""
        while frame is not None and self.declared:
            if self.declared.get(frame.f_code) == name:
                return True
            frame = frame.f_back
        return False

    cdef int note(self, str name, str detail=None) except -1:
        if self.objection is None:
            self.objection = name, detail
        return 0


cdef int _see(PyObject* told, PyFrameObject* frame, int event, PyObject* argument) except -1:
    cdef Witness self = <Witness>told
    cdef PyObject* code
    try:
        if event == PyTrace_CALL:
            code = CodeOf(frame)
            if self.seen.count(<size_t>code) == 0:
                self.runs(<object><PyObject*>frame, code)
        elif event == PyTrace_C_CALL:
            self.calls(<object><PyObject*>frame, argument)
    except Exception as error:
        self.note("not_witnessed", repr(error))
    return 0
