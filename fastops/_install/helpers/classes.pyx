# distutils: language = c++
"""A cache of facts about classes that TensorFlow's helpers need.

A class may change, so facts hold for one version of it. CPython counts these versions for its own
attribute caches. Facts that depend on registration with an abstract class hold until the next
registration with any abstract class.
"""

from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_XDECREF

from fastops._cpp.classes cimport (
    ClassVersion,
    GenericAttribute,
    LooksUpAsClasses,
    LooksUpGenerically,
)
from fastops._cpp.python cimport _PyType_Lookup

import abc
import collections

from tensorflow.python.util import _pywrap_utils


cdef enum:
    SIZE = 2048  # a power of two; programs use some hundreds of classes

cdef Facts _table[SIZE]

cdef object _usual_class = vars(object)["__class__"]
cdef PyObject* _CLASS = <PyObject*>"__class__"
cdef object _registrations = abc.get_cache_token
cdef object _seen_registrations = None

cdef object _is_nested = _pywrap_utils.IsNested
cdef object _is_nested_or_composite = _pywrap_utils.IsNestedOrComposite
cdef object _is_namedtuple = _pywrap_utils.IsNamedtuple
cdef object _is_mapping = _pywrap_utils.IsMapping
cdef object _is_attrs = _pywrap_utils.IsAttrs
cdef object _is_mapping_view = _pywrap_utils.IsMappingView
cdef object _is_composite_tensor = _pywrap_utils.IsCompositeTensor
cdef object _is_type_spec = _pywrap_utils.IsTypeSpec
cdef object _field_type = type(vars(collections.namedtuple("_Example", "field"))["field"])
cdef tuple _dicts = (collections.OrderedDict, collections.defaultdict)


cdef Facts* facts_of(PyTypeObject* kind):
    cdef Facts* facts = &_table[(<size_t>kind >> 4) & (SIZE - 1)]
    cdef unsigned int version = ClassVersion(kind)
    if version == 0:
        _PyType_Lookup(kind, _CLASS)
        version = ClassVersion(kind)
        if version == 0:
            return NULL
    if facts.kind != kind or facts.version != version:
        facts.kind = kind
        facts.version = version
        facts.structure = UNSEEN
        facts.usual = UNKNOWN
        facts.is_tensor = facts.is_variable = UNKNOWN
    return facts


cdef int notice_registrations() except -1:
    global _seen_registrations
    cdef int i
    now = _registrations()
    if now is not _seen_registrations and now != _seen_registrations:
        _seen_registrations = now
        for i in range(SIZE):
            _table[i].is_tensor = _table[i].is_variable = UNKNOWN
    return 0


cdef bint is_usual(Facts* facts):
    if facts.usual == UNKNOWN:
        facts.usual = NO
        if (
            LooksUpGenerically(facts.kind) or LooksUpAsClasses(facts.kind)
        ) and _PyType_Lookup(facts.kind, _CLASS) == <PyObject*>_usual_class:
            facts.usual = YES
    return facts.usual == YES


cdef bint has_own(PyObject* value, PyObject* name) except -1:
    cdef PyObject* attribute
    if not LooksUpGenerically(Py_TYPE(<object>value)):  # the value is a class
        return _PyType_Lookup(<PyTypeObject*>value, name) != NULL
    attribute = GenericAttribute(value, name)
    Py_XDECREF(attribute)
    return attribute != NULL


cdef int look_up_structure(PyObject* value) except -1:
    """Return the kind of a value whose class is none of the basic ones.

    TensorFlow, too, caches such facts by class, and never drops them.
    """
    cdef PyTypeObject* kind = Py_TYPE(<object>value)
    cdef Facts* facts = facts_of(kind)
    cdef int structure
    if facts == NULL:
        return _structure(<object>value)
    if facts.structure != UNSEEN:
        return facts.structure
    structure = _structure(<object>value)
    facts = facts_of(kind)
    if facts != NULL:
        facts.structure = structure
    return structure


cdef int _structure(object value) except -1:
    kind = type(value)
    if not _is_nested(value):
        return COMPOSITE if _is_nested_or_composite(value) else LEAF
    if kind in _dicts:
        return DICT
    return NAMED if _is_plain_namedtuple(value, kind) else OTHER


cdef bint _is_plain_namedtuple(object value, type kind) except -1:
    """Whether a value is a namedtuple whose items are its fields, and no other kind as well."""
    if (
        not issubclass(kind, tuple)
        or kind.__dictoffset__ != 0
        or kind.__iter__ is not tuple.__iter__
        or not LooksUpGenerically(<PyTypeObject*>kind)
        or _PyType_Lookup(<PyTypeObject*>kind, _CLASS) != <PyObject*>_usual_class
        or hasattr(kind, "__tf_flatten__")
        or not _is_namedtuple(value, False)
        or _is_mapping(value) or _is_mapping_view(value) or _is_attrs(value)
        or _is_composite_tensor(value) or _is_type_spec(value)
    ):
        return False
    fields = kind._fields
    if type(fields) is not tuple or len(fields) != len(value):
        return False
    for i, field in enumerate(fields):
        descriptor = _PyType_Lookup(<PyTypeObject*>kind, <PyObject*>field)
        if descriptor == NULL or type(<object>descriptor) is not _field_type:
            return False
        if (<object>descriptor).__reduce__()[1][0] != i:
            return False
    return True
