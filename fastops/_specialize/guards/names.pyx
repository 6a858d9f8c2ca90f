# distutils: language = c++
"""Guards that the names which library code looks up still refer to the library's objects.

A user may replace one of TensorFlow's functions, as mocks do. Code that looks up the name would
call the user's function, so no recording or stand-in of that code may run meanwhile. A guard knows
the names and the objects. While no dict and no class among them changes, comparing one sum of
change counters is enough; otherwise the objects are compared. The guard holds again when the user
restores the function.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport UINT64_MAX, uint64_t

from fastops._cpp.changes cimport ChangesOf
from fastops._cpp.python cimport _PyType_Lookup

from sys import modules
from types import ModuleType


cdef type _Replacement = object
cdef dict _watching = {}  # by identity of a recording hook: the hook, and the function it replaces


def know(kind):
    """Set the class of the stand-ins of `install`. A stand-in counts as the object it replaces."""
    global _Replacement
    _Replacement = kind


def watches(function, original):
    """Register a hook of recordings, which replaces a function while a call is recorded.

    Parameters
    ----------
    function, original : callable
        The hook, and the function that it replaces and calls.
    """
    _watching[id(function)] = function, original


def is_hook(value):
    """Tell whether a value is a hook of recordings."""
    return id(value) in _watching


cpdef object original_of(value):
    """Return the object that a stand-in of `install` or a hook of a recording replaces.

    Return any other value unchanged.
    """
    while True:
        if isinstance(value, _Replacement):
            value = value.original
        elif id(value) in _watching:
            value = _watching[id(value)][1]
        else:
            return value


cpdef bint is_stand_in(value) except -1:
    """Tell whether a value is a stand-in of `install`."""
    return issubclass(type(value), _Replacement)


cpdef object upstream(value):
    """Return the value that a name has without fastops; of a property, its getter."""
    if type(value) is property:
        value = value.fget
    elif type(value) is staticmethod or type(value) is classmethod:
        value = value.__func__
    return original_of(value)


@cython.final
cdef class Guard(Condition):
    """Compares the objects that some names refer to with the expected objects.

    Parameters
    ----------
    find : callable
        Called when the guard is first checked. Returns a list of tuples: the dict of a module, or a
        class; the expected objects by name; and whether each call checks it for changes. Also
        returns whether all objects are the library's own: if not, `find` is called again after a
        change.

    Attributes
    ----------
    looks : int
        The number of times that objects were compared.
    """

    def __init__(self, find):
        self.find = find
        self.holding = self.failing = UINT64_MAX

    def __bool__(self):
        return holds(self)

    cdef bint hold(self) except -1:
        return holds(self)

    def paths(self):
        """Return the compared names, with the titles of their holders."""
        holds(self)
        return [
            f"{_title(holder)}.{name}" for holder, names, _ in self.asked or () for name in names
        ]

    def contents(self):
        """Return the compared names and objects, by the title of the module or class."""
        holds(self)
        return {_title(holder): dict(names) for holder, names, _ in self.asked or ()}

    def asked_for(self):
        """Return the titles of the modules and classes that each call checks for changes."""
        holds(self)
        return [_title(holder) for holder, _, each in self.asked or () if each]

    def differences(self):
        """Yield the names that refer to other objects now, with the titles of their holders."""
        holds(self)
        for holder, names, _ in self.asked or ():
            for name, value in names.items():
                if _is_other(holder, name, value):
                    yield f"{_title(holder)}.{name}"

    def differing(self):
        """Return the names that refer to other objects now, with the titles of their holders."""
        return list(self.differences())

    cdef bint look(self) noexcept:
        cdef uint64_t now = number(self)
        cdef bint good
        if now != 0 and now == self.failing and not self.blind:
            return False
        self.looks += 1
        try:
            good = self.compare()
        except Exception:  # do not raise internal errors in a user's call
            good = False
        now = UINT64_MAX if self.blind or self.hidden else number(self)
        if now == 0:
            now = UINT64_MAX
        if good:
            self.holding, self.failing = now, UINT64_MAX
        else:
            self.holding, self.failing = UINT64_MAX, now
        return good

    cdef bint compare(self) except -1:
        if self.find is not None:
            settled = self.take_up()
            if not settled:
                return False
            self.find = None
        self.hidden = False
        for holder, names, each in self.asked:
            for name, value in (<dict>names).items():
                if _is_other(holder, name, value):
                    self.hidden = not each  # no counter shows when it is restored
                    return False
        return True

    cdef bint take_up(self) except -1:
        """Call `find`, and collect the change counters."""
        cdef const uint64_t* counter
        asked, settled = self.find()
        self.asked = list(asked)  # keeps the holders of the counters alive
        self.counters.clear()
        self.classes.clear()
        for holder, _, each in self.asked:
            if settled and not each:
                continue
            if isinstance(holder, type):
                self.classes.push_back(<PyTypeObject*>holder)
                continue
            counter = ChangesOf(<PyObject*>holder)
            if counter == NULL:
                self.blind = True
            elif self.counters.size() == 0 or self.counters.back() != counter:
                self.counters.push_back(counter)
        return settled


cdef PyObject* _lookup(object holder, object name):
    if isinstance(holder, type):
        return _PyType_Lookup(<PyTypeObject*>holder, <PyObject*>name)
    return PyDict_GetItem(<dict>holder, name)


cdef bint _is_other(object holder, object name, object value) except -1:
    """Whether a name refers to another object than the expected one."""
    cdef PyObject* now = _lookup(holder, name)
    if now == <PyObject*>value:
        return False
    return now == NULL or (
        upstream(<object>now) is not value and not _has_loaded(value, <object>now)
    )


cdef bint _has_loaded(object value, object now) except -1:
    """Whether a value is a lazy module, which has put the loaded module in its own place."""
    return isinstance(value, ModuleType) and type(value) is not ModuleType and (
        modules.get(value.__name__) is now
    )


def _title(holder):
    if isinstance(holder, type):
        return f"{holder.__module__}.{holder.__qualname__}"
    return holder.get("__name__", "")
