# distutils: language = c++
"""Guards that the contents of objects, and the globals that code reads, have not changed.

Most comparisons are of version numbers: CPython gives a dict a new version whenever it changes. If
a version differs, or if there is none, the contents are compared with the recorded ones by
identity. A watch keeps only objects alive that cannot change. It may still follow its pointers: it
compares a place only if all places before it are unchanged, and these hold the objects of the
place.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject, PyTypeObject, Py_SIZE, Py_TYPE
from cpython.set cimport PySet_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcmp
from libcpp.algorithm cimport binary_search, sort

from fastops._core.classes cimport version_of
from fastops._cpp.dicts cimport (
    DictVersion, InstanceDict, InstanceDictIfAny, IterateSet, Referent,
)
from fastops._cpp.python cimport PySequence_Fast_ITEMS
from fastops._specialize.guards.names cimport Guard, holds as guard_holds, is_stand_in, original_of

import sys
from abc import get_cache_token as _get_cache_token
from collections import OrderedDict
from gc import get_referents as _get_referents
from types import FunctionType, ModuleType

import numpy as np
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape

from fastops._specialize.guards import places as _places
from fastops._specialize.guards.places import KINDS, is_constant, step_text
from fastops._specialize.libraries import is_of_keras, is_own


cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()
    PyObject* PyFunction_GET_CODE(PyObject*)
    PyObject* PyFunction_GET_CLOSURE(PyObject*)
    PyObject* PyFunction_GET_DEFAULTS(PyObject*)
    PyObject* PyFunction_GET_GLOBALS(PyObject*)
    PyObject* PyFunction_GET_KW_DEFAULTS(PyObject*)


cdef object _MISSING = _places.MISSING

cdef frozenset _SIMPLE = frozenset([bool, int, str, bytes])
# Classes of constants that an equal one may replace.
cdef frozenset _REPLACED = _SIMPLE | {float, complex, tuple, _TensorShape}


cdef dict _NUMBERS = {kind: number for number, kind in enumerate(KINDS)}  # as in the enum `Kind`
cdef tuple _TITLES = tuple(KINDS.values())


@cython.final
cdef class Watch(Condition):
    """Compares the contents of some objects with the recorded contents.

    Parameters
    ----------
    places : fastops._specialize.guards.places.Places
        The places of the objects, with the recorded contents.
    """

    def __init__(self, places):
        cdef Place place
        self.kept = places.kept
        self.constants = {
            id(value)
            for value in places.kept
            if type(value) in _REPLACED or isinstance(value, np.generic)
        }
        self.owners, self.path_of = places.owners, places.path_of
        self.contents = []
        for entry in places.entries:
            place.kind = <Kind><int>_NUMBERS[entry[0]]
            place.content = <int>len(self.contents)
            place.first = self.values.size()
            place.at = <PyObject*>entry[1]
            place.type = Py_TYPE(entry[1])
            place.part = NULL
            place.version = 0
            # Another thread may have changed an object after it was listed. So the first comparison
            # of a dict is by its contents, and the type and the version are those of the list.
            if place.kind == INSTANCE:
                place.type = <PyTypeObject*>entry[2]
                self.values.push_back(<PyObject*>entry[2])
                if entry[3] is not None:
                    place.part = <PyObject*>entry[3]
            elif place.kind == CLASS:
                place.version = entry[2]
            elif place.kind == DICT:
                items, skipped, step, ignored = entry[2:]
                self.contents.append((tuple(items), skipped, step, ignored))
                for value in items.values():
                    self.values.push_back(<PyObject*>value)
            elif place.kind == LIST or place.kind == TUPLE:
                for value in <tuple>entry[2]:
                    self.values.push_back(<PyObject*>value)
            elif place.kind == FUNCTION:
                # `Globals` keeps the namespaces of the code that ran alive.
                place.part = PyFunction_GET_GLOBALS(place.at)
                for value in <tuple>entry[2:]:
                    self.values.push_back(<PyObject*>value)
            elif place.kind == ORDER:
                for value in <tuple>entry[2]:
                    self.values.push_back(<PyObject*>value)
            elif place.kind == HANDLERS:
                for value in <tuple>entry[2]:
                    self.values.push_back(<PyObject*>value)
                self.contents.append(entry[3])
            elif place.kind == PARTS:
                self.contents.append(entry[2])
                for value in entry[3]:
                    self.values.push_back(<PyObject*>value)
            elif place.kind == SET:
                for value in <tuple>entry[2]:
                    self.values.push_back(<PyObject*>value)
                sort(self.values.begin() + place.first, self.values.end())
            elif place.kind == CELL or place.kind == REFERENCE or place.kind == PROXY:
                self.values.push_back(<PyObject*>entry[2])
            elif place.kind == VALUE:
                self.contents.append((entry[2], entry[2](entry[1])))
            elif place.kind == ATTRIBUTES:
                self.contents.append(tuple(entry[2]))
                for value in (<dict>entry[2]).values():
                    self.values.push_back(<PyObject*>value)
            elif place.kind == REGISTRY:
                self.contents.append(entry[2])
            else:  # an array
                self.contents.append(entry[2:])
            place.last = self.values.size()
            self.places.push_back(place)
        places.entries = places.kept = None  # `path_of` keeps `places`, but not the objects

    cdef bint hold(self) except -1:
        """Whether all places are unchanged. The caller keeps the root objects alive."""
        # A garbage collection could run other code, which could free an object between the
        # comparison of the place that holds it and its own comparison.
        cdef int collects = PyGC_Disable()
        try:
            return self.is_same()
        finally:
            if collects:
                PyGC_Enable()

    def require(self, values):
        """Let no equal constant replace one of these, since a program can see which one it is."""
        if self.constants is not None:
            self.constants.difference_update(map(id, values))

    def reaches(self, set identities):
        """Tell whether an object with one of these identities is in a place."""
        return self.has_any(identities)

    cdef bint has_any(self, set identities) except -1:
        """Whether an object with one of these identities is in a place."""
        cdef size_t i
        for i in range(self.values.size()):
            if <size_t>self.values[i] in identities:
                return True
        return False

    cdef bint is_same(self) except -1:
        cdef size_t i
        cdef Place* place
        for i in range(self.places.size()):
            place = &self.places[i]
            self.failed = i
            # An object of another type may be at the address of one that has died.
            if Py_TYPE(<object>place.at) != place.type:
                return False
            if place.kind == DICT:
                if place.version != 0 and place.version == DictVersion(place.at):
                    continue
                if not self.same_items(place):
                    return False
            elif place.kind == INSTANCE:
                if place.part != NULL and InstanceDict(place.at) != place.part:
                    return False
            elif place.kind == CLASS:
                if place.version == 0 or version_of(<object>place.at) != place.version:
                    return False
            elif place.kind == LIST or place.kind == TUPLE:
                if not self.same_elements(
                    place, PySequence_Fast_ITEMS(place.at), Py_SIZE(<object>place.at)
                ):
                    return False
            elif place.kind == FUNCTION:
                if (
                    PyFunction_GET_GLOBALS(place.at) != place.part
                    or not _same_function(place.at, &self.values[place.first])
                ):
                    return False
            elif place.kind == PARTS:
                if not self.same_parts(place):
                    return False
            elif place.kind == SET:
                if not self.same_set(place):
                    return False
            elif place.kind == ORDER:
                keys = tuple(_keys_in_order(<object>place.at))
                if not self.same_elements(
                    place, PySequence_Fast_ITEMS(<PyObject*>keys), len(keys)
                ):
                    return False
            elif place.kind == HANDLERS:
                if not self.same_handlers(place):
                    return False
            elif place.kind == CELL:
                if not self.same_value_at(place.first, content_of(<object>place.at)):
                    return False
            elif place.kind == REFERENCE:
                if Referent(place.at) != self.values[place.first]:
                    return False
            elif place.kind == PROXY:
                if mapping_of(<object>place.at) != self.values[place.first]:
                    return False
            elif place.kind == VALUE:
                if not self.same_value(place):
                    return False
            elif place.kind == ATTRIBUTES:
                if not self.same_attributes(place):
                    return False
            elif place.kind == REGISTRY:
                if _get_cache_token() != self.contents[place.content]:
                    return False
            elif not self.same_array(place):
                return False
        return True

    def differences(self):
        """Return a list with the path of the first difference, and what it is, as one text."""
        return [] if self.hold() else [self.failure()]

    def failure(self):
        """Return the path of the place where the last comparison ended, and what differs there."""
        cdef size_t i = 0
        cdef Place* place
        cdef PyObject* there
        place = &self.places[self.failed]
        path = self.path_of(self.owners[self.failed])
        if place.kind != DICT or Py_TYPE(<object>place.at) != place.type:
            return f"{path} has changed ({_TITLES[place.kind]})"
        names, skipped, step, _ = self.contents[place.content]
        for name in names:
            there = PyDict_GetItem(<dict>place.at, name)
            if there == NULL or not self.same_value_at(place.first + i, there):
                return f"{path}{step_text((step, name))} has changed"
            i += 1
        for name in <dict>place.at:
            if name not in names and name not in skipped:
                return f"{path}{step_text((step, name))} is new"
        return f"the order of {path} has changed"

    def paths(self):
        """Return the paths of what is compared, as code would write them: each path once."""
        return list(dict.fromkeys(self.named(compared=True)))

    def ignored(self):
        """Return the paths of the attributes that are not compared."""
        return self.named(compared=False)

    def named(self, compared):
        """Return the paths of all objects and of the names in their dicts, or of ignored names."""
        cdef size_t i
        paths = []
        for i in range(self.places.size()):
            path = self.path_of(self.owners[i])
            if compared:
                paths.append(path)
            if self.places[i].kind == DICT:
                names, _, step, ignored = self.contents[self.places[i].content]
                for name in names if compared else ignored:
                    paths.append(path + step_text((step, name)))
        return paths

    cdef bint same_value_at(self, size_t v, PyObject* now) except -1:
        """Whether a value is the recorded one, or a constant that code cannot tell from it."""
        cdef PyObject* recorded = self.values[v]
        return now == recorded or (
            self.constants is not None
            and <size_t>recorded in self.constants
            and is_equal(<object>recorded, <object>now)
        )

    cdef bint same_items(self, Place* place) except -1:
        cdef PyObject* name
        cdef PyObject* value
        cdef Py_ssize_t at = 0, n = 0
        cdef uint64_t version = DictVersion(place.at)
        cdef tuple names
        names, skipped, _, _ = self.contents[place.content]
        while PyDict_Next(<dict>place.at, &at, &name, &value):
            if type(<object>name) is str and <object>name in skipped:
                continue
            if (
                n == len(names)
                or not self.same_value_at(place.first + <size_t>n, value)
                or not same_name(<object>name, names[n])
            ):
                return False
            n += 1
        if n != len(names):
            return False
        place.version = version  # a comparison may have run code that changed the dict
        return True

    cdef bint same_elements(self, Place* place, PyObject** now, Py_ssize_t count) except -1:
        cdef Py_ssize_t i
        if count != <Py_ssize_t>(place.last - place.first):
            return False
        for i in range(count):
            if not self.same_value_at(place.first + <size_t>i, now[i]):
                return False
        return True

    cdef bint same_parts(self, Place* place) except -1:
        cdef size_t i = place.first
        for name in <tuple>self.contents[place.content]:
            part = getattr(<object>place.at, name)
            if not self.same_value_at(i, <PyObject*>part):
                return False
            i += 1
        return True

    cdef bint same_handlers(self, Place* place) except -1:
        """Compare the handlers in a table, and for how many signatures each is registered."""
        cdef PyObject* handler
        cdef PyObject* signatures
        cdef Py_ssize_t at = 0, n = 0
        cdef tuple counts = self.contents[place.content]
        while PyDict_Next(<dict>place.at, &at, &handler, &signatures):
            if (
                n == len(counts)
                or handler != self.values[place.first + <size_t>n]
                or len(<object>signatures) != counts[n]
            ):
                return False
            n += 1
        return n == len(counts)

    cdef bint same_set(self, Place* place) except -1:
        if <size_t>PySet_GET_SIZE(<object>place.at) != place.last - place.first:
            return False
        for value in IterateSet(place.at):
            if not binary_search(
                self.values.begin() + place.first,
                self.values.begin() + place.last,
                <PyObject*>value,
            ):
                return False
        return True

    cdef bint same_array(self, Place* place) except -1:
        dtype, shape, content = self.contents[place.content]
        array = <object>place.at
        return array.dtype is dtype and array.shape == shape and array.tobytes() == content

    cdef bint same_value(self, Place* place) except -1:
        value_of, value = self.contents[place.content]
        return is_equal(value, value_of(<object>place.at))

    cdef bint same_attributes(self, Place* place) except -1:
        cdef PyObject* attributes = InstanceDictIfAny(place.at)
        cdef PyObject* name
        cdef PyObject* value
        cdef Py_ssize_t at = 0, n = 0
        cdef tuple names = self.contents[place.content]
        if attributes == NULL:
            return len(names) == 0
        while PyDict_Next(<dict>attributes, &at, &name, &value):
            if (
                n == len(names)
                or value != self.values[place.first + <size_t>n]
                or not same_name(<object>name, names[n])
            ):
                return False
            n += 1
        return n == len(names)


cdef bint _same_function(PyObject* function, const PyObject* const* values) noexcept:
    cdef PyObject* parts[5]
    parts_of_function(function, parts)
    return (
        parts[0] == values[0]
        and parts[1] == values[1]
        and parts[2] == values[2]
        and parts[3] == values[3]
        and parts[4] == values[4]
    )


cdef void parts_of_function(PyObject* function, PyObject** parts) noexcept:
    parts[0] = PyFunction_GET_CODE(function)
    parts[1] = _or_none(PyFunction_GET_CLOSURE(function))
    parts[2] = _or_none(PyFunction_GET_DEFAULTS(function))
    parts[3] = _or_none(PyFunction_GET_KW_DEFAULTS(function))
    parts[4] = InstanceDict(function)


cdef PyObject* _or_none(PyObject* value) noexcept:
    return <PyObject*>None if value == NULL else value


cdef object _keys_in_order = OrderedDict.__iter__


cdef bint same_name(object left, object right):
    if left is right:
        return True
    if type(left) in _REPLACED or isinstance(left, np.generic):
        return is_equal(left, right)
    return type(left) is type(right) and left == right


cdef bint is_equal(object one, object other) except -1:
    """Whether two values that never change are the same, bit by bit."""
    cdef double left, right
    kind = type(one)
    if one is other:
        return True
    if type(other) is not kind:
        return False
    if kind in _SIMPLE:
        return one == other
    if kind is float:
        left, right = <double>one, <double>other
        return memcmp(&left, &right, sizeof(double)) == 0
    if kind is complex:
        return is_equal(one.real, other.real) and is_equal(one.imag, other.imag)
    if kind is tuple:
        return len(one) == len(other) and all([
            is_equal(element, twin)
            for element, twin in zip(one, other, strict=True)
        ])
    if kind is _TensorShape:
        return is_equal(one._dims, other._dims)
    if isinstance(one, np.generic):
        return one.dtype is other.dtype and one.tobytes() == other.tobytes()
    return False


cdef PyObject* mapping_of(object proxy):
    cdef list referents = _get_referents(proxy)
    return <PyObject*>referents[0] if len(referents) == 1 else NULL


cdef PyObject* content_of(object cell):
    try:
        content = cell.cell_contents
    except ValueError:
        content = _MISSING
    return <PyObject*>content


@cython.final
cdef class Globals(Condition):
    """Compares the globals that code reads with the recorded ones.

    Parameters
    ----------
    codes : dict of tuple to dict
        The globals of the code that ran, by the code and the identity of the globals.
    guard : Guard
        The guard of the functions and classes that the code names.
    held : list of tuple, optional
        Pairs of a module that objects hold, and its path.
    """

    def __init__(self, codes, Guard guard not None, held=()):
        self.modules = []
        self.names = []
        for namespace, asked in _places.globals_of(codes, held):
            self.modules.append(namespace)
            self.names.append({title: original_of(value) for title, value in asked.items()})
            self.versions.push_back(0)
        self.guard = guard

    cdef bint hold(self) except -1:
        """Whether all globals are unchanged."""
        cdef Py_ssize_t i
        cdef PyObject* now
        cdef uint64_t version
        if not guard_holds(self.guard):
            return False
        for i in range(<Py_ssize_t>self.versions.size()):
            version = DictVersion(PyList_GET_ITEM(self.modules, i))
            if self.versions[i] != 0 and self.versions[i] == version:
                continue
            for name, value in (<dict>self.names[i]).items():
                now = PyDict_GetItem(<dict>self.modules[i], name)
                if now == NULL:
                    if value is not _MISSING:
                        return False
                elif now != <PyObject*>value and not _is_same(<object>now, value):
                    return False
            self.versions[i] = version  # a comparison may have run code that changed the dict
        return True

    def reaches(self, set identities):
        """Tell whether an object with one of these identities is a global."""
        return self.has_any(identities)

    cdef bint has_any(self, set identities) except -1:
        """Whether an object with one of these identities is a global."""
        for names in self.names:
            for value in (<dict>names).values():
                if (value if type(value) is Address else <size_t><PyObject*>value) in identities:
                    return True
        return False

    def differences(self):
        """Yield the names that refer to other objects now."""
        yield from self.guard.differences()
        for namespace, asked in zip(self.modules, self.names):
            for name, value in asked.items():
                now = namespace.get(name, _MISSING)
                if not _is_same(now, value):
                    yield f"{namespace.get('__name__')}.{name}"

    def paths(self):
        """Return the compared names: those of the guard, and the globals."""
        return self.guard.paths() + self.titles()

    def titles(self):
        """Return the names of the globals, with those of their modules."""
        return [
            f"{namespace.get('__name__')}.{name}"
            for namespace, asked in zip(self.modules, self.names)
            for name in asked
        ]

    def contents(self):
        """Return the globals whose contents may change, by name, and keep them alive no longer.

        The caller compares these contents, too: another object may get the address of one that has
        died. In modules of libraries these are containers of Keras. In modules of users these are
        all objects that do not belong to a library.
        """
        objects = {}
        for namespace, asked in zip(self.modules, self.names):
            name = str(namespace.get("__name__"))
            users = _places.is_of_users(namespace) and namespace is not _modules
            for title, value in list(asked.items()):
                if value is _MISSING or isinstance(value, ModuleType):
                    continue
                if not _is_own(value) if users else (
                    is_of_keras(name) and type(value) in (dict, list, set)
                ):
                    objects[f"{name}.{title}"] = value
                    if not is_constant(value):
                        asked[title] = Address(<size_t><PyObject*>value)
        return objects


class Address(int):
    """Stands for an object that is not kept alive: its address."""


cdef bint _is_same(object now, object recorded) except -1:
    """Whether an object is the recorded one, or a stand-in for it."""
    if type(recorded) is Address:
        return recorded == <size_t><PyObject*>now
    return now is recorded or original_of(now) is recorded


cdef dict _modules = sys.modules


cdef bint _is_own(object value) except -1:
    """Whether a value in a module is a class or function of a library."""
    return (isinstance(value, (type, FunctionType)) or is_stand_in(value)) and (
        is_own(value.__module__ or "")
    )
