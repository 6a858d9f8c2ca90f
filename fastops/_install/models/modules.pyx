# distutils: language = c++
"""Calls of users' modules: instances of `tf.Module` whose class has a method `__call__`.

The class of a user defines its calls itself, so there is no method of TensorFlow to replace.
CPython calls an instance through a slot of its class. For a class with a method `__call__` in
Python, this slot has a function that looks the method up. While calls are followed, the slots of
users' modules have a function of this module, which passes the call to the stand-in. The attributes
of the class stay as they are. If the program sets `__call__` in the class or in a base class,
CPython sets the slot again, and calls are TensorFlow's until the next module of the class is made.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE

from fastops._cpp.python cimport PyObject_Vectorcall, PyVectorcall_NARGS, _PyType_Lookup
from fastops._cpp.vectorcall cimport EnableVectorcall, vectorcall_t
from fastops._install.replacement cimport Replacement, call_original, replacing

cdef extern from *:
    """
    #include <vector>

    namespace fastops {

    // The slot of classes that have a method `__call__` in Python, and the callable that is called
    // instead: with the instance, and the arguments of the call.
    static ternaryfunc usual_call = nullptr;
    static PyObject* stand_in_for_calls = nullptr;

    // Read: CPython 3.10, 3.11, 3.12, 3.13, 3.14 (slot_tp_call, update_one_slot,
    // fixup_slot_dispatchers and _PyStack_UnpackDict)
    static PyObject* CallStandIn(PyObject* instance, PyObject* args, PyObject* kwargs) {
      PyObject* callable = stand_in_for_calls;
      if (callable == nullptr) return usual_call(instance, args, kwargs);
      const Py_ssize_t count = PyTuple_GET_SIZE(args);
      if (kwargs == nullptr && count == 1) {
        PyObject* given[] = {instance, PyTuple_GET_ITEM(args, 0)};
        return PyObject_Vectorcall(callable, given, 2, nullptr);
      }
      std::vector<PyObject*> given = {instance};
      for (Py_ssize_t i = 0; i < count; ++i) given.push_back(PyTuple_GET_ITEM(args, i));
      if (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0) {
        return PyObject_Vectorcall(callable, given.data(), given.size(), nullptr);
      }
      PyObject* names = PyTuple_New(PyDict_GET_SIZE(kwargs));
      if (names == nullptr) return nullptr;
      PyObject* name;
      PyObject* value;
      Py_ssize_t at = 0, number = 0;
      bool are_texts = true;
      while (PyDict_Next(kwargs, &at, &name, &value)) {
        are_texts &= PyUnicode_CheckExact(name);
        Py_INCREF(name);
        PyTuple_SET_ITEM(names, number++, name);
        Py_INCREF(value);
        given.push_back(value);
      }
      PyObject* result =
          are_texts ? PyObject_Vectorcall(callable, given.data(), count + 1, names)
                    : usual_call(instance, args, kwargs);  // it raises TypeError
      for (size_t i = count + 1; i < given.size(); ++i) Py_DECREF(given[i]);
      Py_DECREF(names);
      return result;
    }

    static inline bool AreFollowed(PyTypeObject* type) { return type->tp_call == CallStandIn; }

    // Whether calls of the instances of a class may be made to go to the stand-in.
    static inline bool CanBeFollowed(PyTypeObject* type) {
      return PY_VERSION_HEX < 0x030f0000 && type->tp_call == usual_call;
    }

    static inline void FollowCalls(PyTypeObject* type) { type->tp_call = CallStandIn; }

    static inline void LeaveCalls(PyTypeObject* type) {
      if (AreFollowed(type)) type->tp_call = usual_call;
    }

    static inline void TakeUsualCall(PyTypeObject* type) { usual_call = type->tp_call; }

    }  // namespace fastops
    """
    PyObject* stand_in_for_calls "fastops::stand_in_for_calls"
    bint AreFollowed "fastops::AreFollowed"(PyTypeObject*)
    bint CanBeFollowed "fastops::CanBeFollowed"(PyTypeObject*)
    void FollowCalls "fastops::FollowCalls"(PyTypeObject*)
    void LeaveCalls "fastops::LeaveCalls"(PyTypeObject*)
    void TakeUsualCall "fastops::TakeUsualCall"(PyTypeObject*)

from types import FunctionType
from weakref import ref as _reference

import tensorflow as tf

from fastops._specialize.libraries import attributes_of, bases_of, is_own, module_of
from fastops._specialize.recording.plain import METACLASSES

cdef str _CALL = "__call__"


class _Callable:
    def __call__(self):
        pass


TakeUsualCall(<PyTypeObject*>_Callable)


@cython.final
@cython.no_gc
cdef class CallOfModule:
    """The method `__call__` of the class of the first argument."""

    cdef vectorcall_t vectorcall

    def __init__(self):
        self.vectorcall = _call_method

    @property
    def __name__(self):
        return _CALL

    @property
    def __qualname__(self):
        return f"Module.{_CALL}"


cdef PyObject* _call_method(PyObject* callable, PyObject* const* args, size_t nargsf,
                            PyObject* keywords) except NULL:
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    cdef PyObject* found = NULL
    if n != 0:
        found = _PyType_Lookup(Py_TYPE(<object>args[0]), <PyObject*>_CALL)
    if found != NULL and type(<object>found) is FunctionType:
        function = <object>found  # the call itself may set another one
        return PyObject_Vectorcall(<PyObject*>function, args, n, keywords)
    raise TypeError("call needs a module with a method __call__")


cdef CallOfModule _original = CallOfModule()
EnableVectorcall(
    <PyTypeObject*>CallOfModule, <char*>&_original.vectorcall - <char*><void*>_original
)

call = _original
"""What is called in the place of users' methods: `follow` reads it when it changes."""

cdef object _follower = None  # keeps `stand_in_for_calls` alive
cdef dict _classes = {}  # by identity: references to the classes whose calls are followed


def follow(value):
    """Follow the calls of all users' modules if the value is a stand-in; otherwise no calls.

    Parameters
    ----------
    value : callable
        What `call` is now.
    """
    global _follower
    global stand_in_for_calls
    if isinstance(value, Replacement):
        _follower = value
        stand_in_for_calls = <PyObject*>value
        _follow_all(tf.Module)
        return
    stand_in_for_calls = NULL
    _follower = None
    for reference in list(_classes.values()):
        kind = reference()
        if kind is not None:
            LeaveCalls(<PyTypeObject*>kind)
    _classes.clear()


def followed():
    """Return the classes whose calls are followed."""
    kinds = [reference() for reference in list(_classes.values())]
    return [kind for kind in kinds if kind is not None and AreFollowed(<PyTypeObject*>kind)]


cdef int _follow_all(object kind) except -1:
    """Follow the calls of the subclasses of a class, those of users."""
    for subclass in type.__subclasses__(kind):
        _follow(<PyTypeObject*>subclass)
        _follow_all(subclass)
    return 0


cdef int _follow(PyTypeObject* kind) except -1:
    """Follow the calls of a class if a user has defined their method."""
    if not CanBeFollowed(kind) or type(<object><PyObject*>kind) not in METACLASSES:
        return 0
    for base in bases_of(<object><PyObject*>kind):
        method = attributes_of(base).get(_CALL)
        if method is None:
            continue
        module = module_of(base)
        if type(method) is FunctionType and module and not is_own(module):
            key = <size_t>kind
            _classes[key] = _reference(<object><PyObject*>kind, _Forget(key))
            FollowCalls(kind)
        return 0
    return 0


@cython.final
cdef class _Forget:
    """Drops the reference to a class that dies."""

    cdef size_t key

    def __init__(self, key):
        self.key = key

    def __call__(self, reference):
        if _classes.get(self.key) is reference:
            del _classes[self.key]


def stand_in_for_init(original):
    """Return the stand-in for `tf.Module.__init__`, which follows the calls of the class."""
    return replacing(original, _initialized)


cdef PyObject* _initialized(PyObject* callable, PyObject* const* args, size_t nargsf,
                            PyObject* keywords) except NULL:
    if stand_in_for_calls != NULL and PyVectorcall_NARGS(nargsf) != 0:
        _follow(Py_TYPE(<object>args[0]))
    return call_original(<Replacement>callable, args, nargsf, keywords)
