# distutils: language = c++
"""Notes the Python code that runs in a recorded call, by a profile function of the thread."""

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
from fastops._specialize.recording.proof import Proof

cdef dict _OF_ABSTRACT_CLASSES = vars(sys.modules["_collections_abc"])  # its `__name__` differs

# Modules whose C calls report times to TensorFlow's monitoring: these calls need no guard.
cdef frozenset _TELLING_TENSORFLOW = frozenset({"tensorflow.python.eager.monitoring"})

cdef type _MODULES = type(sys)


cdef bint _is_of_namedtuple(code, name) except -1:
    """Whether `collections.namedtuple` has made the code for a class."""
    return code.co_name == "<lambda>" and str(name).startswith("namedtuple_")


cdef bint _draws(code, dict namespace) except -1:
    """Whether code names NumPy's random functions. A profile function does not see their calls."""
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
        Methods that users have declared to be pure, with the names of their modules. Code of the
        same module that they call counts as pure too. Other code of users must be shown to be pure
        in each of its calls, since its arguments are a part of the proof.

    Attributes
    ----------
    proof : Proof
        The proof for the user code that ran.
    codes : dict of tuple to dict
        The globals of the code that ran, by the code and the identity of the globals: equal code
        may come from several modules.
    objection : tuple of str or None
        Why the call cannot be replayed: the id of the reason, and its detail or None.
    paused : bool
        Whether the code that runs now is not part of the call.
    """

    cdef dict declared
    cdef readonly object proof
    cdef readonly dict codes
    cdef readonly tuple objection
    cdef public bint paused
    cdef unordered_set[size_t] seen         # addresses of code that has been noted
    cdef list kept                          # keeps it alive, so that addresses stay unique
    cdef unordered_set[const void*] pure    # definitions of pure functions in C
    cdef unordered_map[const void*, PyTypeObject*] methods  # the class whose method is pure

    def __init__(self, declared):
        self.declared = declared
        self.codes, self.kept, self.proof = {}, [], Proof()

    def start(self):
        """Start. False if another profile function is set."""
        if sys.getprofile() is not None:
            return False
        PyEval_SetProfile(_see, self)
        return True

    def stop(self):
        """Stop."""
        if sys.getprofile() is self:
            PyEval_SetProfile(NULL, None)
        else:
            self.objection = ("sets_profiler", None)

    cdef int runs(self, object frame, PyObject* code_object) except -1:
        """Note code that is called for the first time, or that was shown to be pure before."""
        cdef dict namespace = frame.f_globals
        code = <object>code_object
        self.seen.insert(<size_t>code_object)
        self.kept.append(code)
        self.codes[code, id(namespace)] = namespace
        name = namespace.get("__name__")
        if namespace is _OF_ABSTRACT_CLASSES or _is_of_namedtuple(code, name):
            return 0
        module = sys.modules.get(name)
        if module is not None and module.__dict__ is namespace and is_own(name):
            return 0
        if self.is_declared(frame, name):
            if _draws(code, namespace):
                self.note("numpy_random")
        elif self.objection is None:
            why = self.proof.objection(frame)
            if why is not None:
                self.note("foreign_code", why)
            self.seen.erase(<size_t>code_object)
        return 0

    cdef int calls(self, object frame, PyObject* function) except -1:
        """Note a call of a function written in C."""
        cdef const void* definition = DefinitionOf(function)
        cdef PyTypeObject* kind = NULL
        if definition != NULL:
            if self.pure.count(definition) != 0:
                return 0
            # The class of the bound instance decides to which module a method belongs.
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
        """Whether code is a declared method, or such a method of the same module calls it."""
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
    if self.paused:
        return 0
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


def unwitnessed(function, *args, **kwargs):
    """Call a function that is not part of the recorded call."""
    witness = sys.getprofile()
    if type(witness) is not Witness:
        return function(*args, **kwargs)
    witness.paused = True
    try:
        return function(*args, **kwargs)
    finally:
        witness.paused = False
