# distutils: language = c++
"""Answers for assignments to attributes of tf_keras's layers and models that change no value.

Each call of a layer assigns `True` to the same attribute. For this, tf_keras counts references,
unwraps, tracks and deletes, in some thirty calls of Python functions. For a value that is not
tracked, the only effect is that the attribute moves to the end of the dict. The first comment line
of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._cpp.classes cimport ClassVersion, LooksUpAsClasses, LooksUpGenerically
from fastops._cpp.python cimport Py_False, Py_True, _PyType_Lookup
from fastops._install.answer cimport Answer, register

from tensorflow.python.trackable.autotrackable import AutoTrackable as _AutoTrackable


cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object, object, PyObject*) except -1


cdef enum:
    SIZE = 256  # a power of two

cdef struct Known:  # cached result for a class, for one version of it
    PyTypeObject* kind
    unsigned int version
    bint ordinary

cdef Known _known[SIZE]
cdef type _Layer = None
cdef type _Model = None
cdef object _Counts = None
cdef dict _theirs = None  # attributes of `Layer` that an assignment uses
cdef str _TRACKING = "_self_setattr_tracking"
cdef str _COUNTS = "_obj_reference_counts_dict"
cdef frozenset _plain = frozenset((type(None), bool, int, float, str))
cdef tuple _asked = (  # names that no other class may define
    "__class__",
    "__delattr__",
    "__dict__",
    "__setattr__",
    "_maybe_create_attribute",
    "_obj_reference_counts",
    "_track_variables",
    _TRACKING,
)


def attach(tf_keras):
    """Look up tf_keras's classes, before their methods are replaced.

    Parameters
    ----------
    tf_keras : module
        ``tf_keras.src``.
    """
    global _Layer, _Model, _Counts, _theirs
    layer, _Model = tf_keras.engine.base_layer.Layer, tf_keras.engine.training.Model
    _Counts = tf_keras.utils.object_identity.ObjectIdentityDictionary
    _Layer, own = layer, vars(layer)
    _theirs = {name: own.get(name) for name in _asked if name not in ("__setattr__", "__dict__")}
    for value in _theirs.values():
        function = getattr(value, "fget", value)
        if function is not None and function.__module__ != layer.__module__:
            _Layer = None  # for example, a mock


cdef bint _is_ordinary(type kind) except -1:
    """Whether assignments to instances of a class run code of `Layer` and `Model` only."""
    if _Layer is None or not issubclass(kind, _Layer):
        return False
    if not LooksUpGenerically(<PyTypeObject*>kind):
        return False
    if not LooksUpAsClasses(Py_TYPE(kind)):
        return False
    for base in kind.__mro__:
        own = vars(base)
        if base is _Layer:
            for name, value in _theirs.items():
                if own.get(name) is not value:
                    return False
        elif base is not object and base is not _AutoTrackable:
            for name in _asked:
                if name in own and name != "__dict__" and not (
                    base is _Model and name == "__setattr__"
                ):
                    return False
    return True


cdef bint _knows(PyTypeObject* kind) except -1:
    cdef Known* known = &_known[(<size_t>kind >> 4) & (SIZE - 1)]
    cdef unsigned int version = ClassVersion(kind)
    if version != 0 and known.kind == kind and known.version == version:
        return known.ordinary
    ordinary = _is_ordinary(<type><object>kind)
    _PyType_Lookup(kind, <PyObject*>_TRACKING)
    version = ClassVersion(kind)
    if version != 0:
        known.kind = kind
        known.version = version
        known.ordinary = ordinary
    return ordinary


cdef object _set(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, name, value
    cdef PyTypeObject* kind
    cdef PyObject* tracking
    cdef PyObject* counts
    if n != 3 or keywords != NULL or not PyUnicode_CheckExact(<object>args[1]):
        return DECLINED
    kind = Py_TYPE(<object>args[0])
    if type(<object>args[2]) not in _plain or not _knows(kind):
        return DECLINED
    name = <object>args[1]
    if _PyType_Lookup(kind, args[1]) != NULL:  # for example, a property
        return DECLINED
    if _PyType_Lookup(Py_TYPE(<object>kind), args[1]) != NULL:
        return DECLINED
    own = (<object>args[0]).__dict__
    if not PyDict_CheckExact(own):
        return DECLINED
    tracking = PyDict_GetItem(own, _TRACKING)
    if tracking != NULL and tracking != Py_True and tracking != Py_False:
        return DECLINED
    if tracking == Py_False or name == _TRACKING:
        PyObject_GenericSetAttr(<object>args[0], name, args[2])
        return None
    # tf_keras counts the new reference before it removes the old one. For the same value, all
    # counts are therefore unchanged.
    if tracking != Py_True or PyDict_GetItem(own, name) != args[2]:
        return DECLINED
    counts = PyDict_GetItem(own, _COUNTS)
    if counts == NULL or type(<object>counts) is not _Counts:
        return DECLINED
    PyObject_GenericSetAttr(<object>args[0], name, NULL)
    PyObject_GenericSetAttr(<object>args[0], name, args[2])
    return None


register("helpers", "Layer.__setattr__", _set)
register("helpers", "Model.__setattr__", _set)
