# distutils: language = c++
"""Templates: the contents of an object, with which other objects of its class are compared.

Programs make a metric for each epoch, and a loss for each step. The recordings of one such object
also fit another one if a guard of its contents would hold for the other, apart from the identities
of the objects that it consists of. A template compares

* values that never change by their value,
* classes, functions of modules, modules, code and tensors by identity,
* other objects, its *parts*, in turn, also functions that functions make: each part of the object
  must correspond to one part of the other, of the same type, wherever it is held.

It does not keep alive the object it was made of.
"""

cimport cython
from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject, Py_SIZE, Py_TYPE
from libcpp.algorithm cimport find
from libcpp.vector cimport vector

from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.dicts cimport DictVersion, InstanceDict, IterateSet, Referent
from fastops._cpp.python cimport PySequence_Fast_ITEMS
from fastops._specialize.guards.names cimport is_stand_in
from fastops._specialize.guards.watch cimport (
    ARRAY,
    ATTRIBUTES,
    CELL,
    CLASS,
    DICT,
    FUNCTION,
    INSTANCE,
    LIST,
    ORDER,
    PARTS,
    PROXY,
    Place,
    REFERENCE,
    REGISTRY,
    SET,
    TUPLE,
    VALUE,
    Watch,
    content_of,
    is_equal,
    mapping_of,
    parts_of_function,
    same_name,
)
from fastops._specialize.policy cimport MAX_SHARED_PARTS

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()
    PyObject* PyFunction_GET_GLOBALS(PyObject*)

import functools
import threading
from collections import OrderedDict
from types import BuiltinFunctionType, FunctionType, ModuleType

from tensorflow.python.framework.ops import EagerTensor as _EagerTensor
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from fastops._specialize.guards.places import SEALED, is_constant, is_of_module

cdef tuple _IDENTICAL = (
    *(type, ModuleType, BuiltinFunctionType, _EagerTensor),
    type(functools.lru_cache(bool)),
    *SEALED,
)
cdef tuple _LOCKS = (type(threading.Lock()), type(threading.RLock()))
cdef frozenset _SIMPLE = frozenset([bool, int, str, bytes])
cdef object _keys_in_order = OrderedDict.__iter__


class UnsharedError(Exception):
    """The contents of an object cannot be compared with those of another object."""


@cython.final
cdef class ObjectTemplate:
    """The contents of an object, with which other objects of its class are compared.

    Parameters
    ----------
    watch : Watch
        The guard of the object's contents. The object must be alive and unchanged.
    names : dict of type to set of str
        By class, attributes whose texts may differ: names that no recorded call depends on.

    Raises
    ------
    UnsharedError
        If other objects cannot be compared with this one.
    """

    def __init__(self, Watch watch not None, names):
        cdef Place place
        cdef PyObject* value
        cdef size_t i, v
        cdef int number
        cdef dict parts = {}, holders = {}
        self.contents, self.owner_ids, self.kinds = watch.contents, watch.owners, []
        self.kept, self.paths = [], {}
        self.values = watch.values
        self.comparisons.assign(self.values.size(), IDENTICAL)
        self.numbers.assign(self.values.size(), -1)
        compared = set()
        for place in watch.places:
            if place.kind != CLASS and place.kind != REGISTRY:
                compared.add(<size_t>place.at)
        for i in range(watch.places.size()):
            place = watch.places[i]
            owner = self.owner_ids[i]
            self.paths[owner] = watch.path_of(owner)
            if i == 0:
                self.number_of(<object>place.at, parts)
            number = parts.get(<size_t>place.at, -1)
            self.owners.push_back(number)
            self.dicts.push_back(-1)
            self.namespaces.push_back(NULL)
            if number < 0:  # held by something that is the same for all objects
                for v in range(place.first, place.last):
                    self.kept.append(<object>self.values[v])
                self.places.push_back(place)
                continue
            if place.kind == INSTANCE:
                self.kept.append(<object>self.values[place.first])
                if place.part != NULL:
                    self.dicts[i] = self.number_of(<object>place.part, parts)
                    holders[<size_t>place.part] = <object>self.values[place.first]
            elif place.kind == SET:
                for v in range(place.first, place.last):
                    if type(<object>self.values[v]) not in _SIMPLE:
                        raise UnsharedError
                    self.keep(v, EQUAL)
            elif place.kind == ATTRIBUTES:  # a tensor is no part
                raise UnsharedError
            elif place.kind != ARRAY and place.kind != VALUE:
                if place.kind == CLASS or place.kind == REGISTRY:
                    raise UnsharedError
                if place.kind == FUNCTION:
                    namespace = (<object>place.at).__globals__
                    self.kept.append(namespace)
                    self.namespaces[i] = <PyObject*>namespace
                titles = self.contents[place.content][0] if place.kind == DICT else ()
                holder = holders.get(<size_t>place.at)
                for v in range(place.first, place.last):
                    title = titles[v - place.first] if titles else None
                    value = self.values[v]
                    if _is_own(value, holder, title, names):
                        self.comparisons[v] = OWN
                        self.kept.append(type(<object>value))
                    elif (
                        isinstance(<object>value, _IDENTICAL)
                        or is_stand_in(<object>value)
                        or type(<object>value) is FunctionType and is_of_module(<object>value)
                    ):
                        self.keep(v, IDENTICAL)
                    elif is_constant(<object>value):
                        self.keep(v, EQUAL)
                    elif <size_t>value in compared:
                        self.comparisons[v] = PART
                        self.numbers[v] = self.number_of(<object>value, parts)
                    else:
                        raise UnsharedError
            place.at = place.part = NULL
            place.version = 0
            self.places.push_back(place)
        for v in range(self.values.size()):
            if self.comparisons[v] == OWN:
                kind = type(<object>self.values[v])
                self.values[v] = <PyObject*>kind
            elif self.comparisons[v] == PART:
                self.values[v] = NULL
        if len(parts) > MAX_SHARED_PARTS:
            raise UnsharedError

    def keep(self, v, comparison):
        """Compare a value by itself, and keep it alive."""
        self.comparisons[v] = comparison
        self.kept.append(<object>self.values[<size_t>v])

    def number_of(self, value, parts):
        """Return the number of a part. It gets one if it has none."""
        number = parts.setdefault(<size_t><PyObject*>value, len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(type(value))
        return number

    def fits(self, other):
        """Tell whether the contents of another object are equal."""
        cdef vector[PyObject*] parts
        return self.bind(<PyObject*>other, &parts) is not None

    cdef Watch bind(self, PyObject* root, vector[PyObject*]* parts):
        cdef Watch watch
        cdef size_t i
        cdef list kept
        cdef int collects
        if <object>Py_TYPE(<object>root) is not self.kinds[0]:
            return None
        kept = [self.kept]
        parts.assign(len(self.kinds), NULL)
        parts[0][0] = root
        watch = Watch.__new__(Watch)
        watch.places, watch.values = self.places, self.values
        watch.contents, watch.owners, watch.kept = self.contents, self.owner_ids, kept
        watch.path_of = self.paths.get
        collects = PyGC_Disable()  # a collection could free what has been read
        try:
            for i in range(self.places.size()):
                if self.owners[i] >= 0 and not self.read(i, watch, parts, kept):
                    return None
        finally:
            if collects:
                PyGC_Enable()
        # All that is held by something that is the same for all objects is compared here.
        return watch if watch.hold() else None

    cdef bint read(self, size_t i, Watch watch, vector[PyObject*]* parts, list kept) except -1:
        """Read the values of a place of another object. False if they differ."""
        cdef Place* place = &watch.places[i]
        cdef PyObject* at = parts[0][self.owners[i]]
        cdef PyObject* name
        cdef PyObject* value
        cdef PyObject** elements
        cdef PyObject* of_function[5]
        cdef Py_ssize_t position = 0, n = 0, count = <Py_ssize_t>(place.last - place.first)
        cdef tuple names
        cdef list constants, elements_now
        if at == NULL:
            return False
        place.at = at
        if place.kind == INSTANCE:  # its type has been compared
            value = InstanceDict(at)
            if self.dicts[i] < 0:
                return True
            if value == NULL:
                return False
            parts[0][self.dicts[i]] = place.part = value
            return True
        if place.kind == DICT:
            names, skipped, _, _ = self.contents[place.content]
            place.version = DictVersion(at)
            while PyDict_Next(<dict>at, &position, &name, &value):
                if type(<object>name) is str and <object>name in skipped:
                    continue
                if n == count or not same_name(<object>name, names[n]):
                    return False
                if not self.compare(place.first + n, value, watch, parts, kept):
                    return False
                n += 1
            return n == count
        if place.kind == LIST or place.kind == TUPLE or place.kind == ORDER:
            keys = tuple(_keys_in_order(<object>at)) if place.kind == ORDER else None
            if keys is not None:
                at = <PyObject*>keys
            if Py_SIZE(<object>at) != count:
                return False
            elements = PySequence_Fast_ITEMS(at)
            for n in range(count):
                if not self.compare(place.first + n, elements[n], watch, parts, kept):
                    return False
            return True
        if place.kind == SET:
            if len(<object>at) != count:
                return False
            constants = [<object>self.values[place.first + n] for n in range(count)]
            elements_now = list(IterateSet(at))
            if {(type(constant), constant) for constant in constants} != {
                (type(element), element) for element in elements_now
                if type(element) in _SIMPLE
            }:
                return False
            n = 0
            for constant in sorted(elements_now, key=id):
                kept.append(constant)
                watch.values[place.first + n] = <PyObject*>constant
                n += 1
            return True
        if place.kind == PARTS:
            for part in <tuple>self.contents[place.content]:
                element = getattr(<object>at, part)
                if not self.compare(place.first + n, <PyObject*>element, watch, parts, kept):
                    return False
                n += 1
            return True
        if place.kind == FUNCTION:
            if PyFunction_GET_GLOBALS(at) != self.namespaces[i]:
                return False
            place.part = self.namespaces[i]
            parts_of_function(at, of_function)
            for n in range(5):
                if not self.compare(place.first + n, of_function[n], watch, parts, kept):
                    return False
            return True
        if place.kind == CELL:
            return self.compare(place.first, content_of(<object>at), watch, parts, kept)
        if place.kind == REFERENCE:
            return self.compare(place.first, Referent(at), watch, parts, kept)
        if place.kind == PROXY:
            return self.compare(place.first, mapping_of(<object>at), watch, parts, kept)
        return place.kind == ARRAY or place.kind == VALUE  # `Watch.hold` compares their contents

    cdef bint compare(self, size_t v, PyObject* value, Watch watch, vector[PyObject*]* parts,
                      list kept) except -1:
        cdef PyObject* expected = self.values[v]
        cdef int number
        if self.comparisons[v] == IDENTICAL:
            return value == expected
        if self.comparisons[v] == EQUAL:
            if value == expected:
                return True
            if not is_equal(<object>expected, <object>value):
                return False
        elif self.comparisons[v] == OWN:
            if <PyObject*>Py_TYPE(<object>value) != expected:
                return False
        else:
            number = self.numbers[v]
            if parts[0][number] == NULL:
                if (
                    <object>Py_TYPE(<object>value) is not self.kinds[number]
                    or find(parts.begin(), parts.end(), value) != parts.end()
                ):
                    return False
                parts[0][number] = value
            elif parts[0][number] != value:
                return False
            watch.values[v] = value
            return True
        kept.append(<object>value)
        watch.values[v] = value
        return True


cdef bint _is_own(PyObject* value, object holder, object title, dict names) except -1:
    """Whether each object has another value here, which no recorded call depends on."""
    if type(<object>value) in _LOCKS:
        return True
    if holder is None or title is None:
        return False
    if title == "_handle" and issubclass(holder, BaseResourceVariable):
        return IsEagerTensor(value)  # the shape and the dtype are attributes, too
    return type(<object>value) is str and any([
        title in titles and issubclass(holder, kind) for kind, titles in names.items()
    ])
