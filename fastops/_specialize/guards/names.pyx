# distutils: language = c++
"""Whether the names that code looks up still lead to the objects that it was written for.

Somebody may have put a function of their own in the place of one of TensorFlow's, as mocks do. Code
that looks it up would call it, so nothing that stands in for that code may run meanwhile. A guard
knows the names and the objects. As long as no dict and no class among them has changed, one sum
tells so; else the objects are compared. What is put back is in force again.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport UINT64_MAX, uint64_t

from fastops._cpp.changes cimport ChangesOf
from fastops._cpp.python cimport _PyType_Lookup


cdef type _Replacement = object
cdef dict _watching = {}  # by the identity of a function of ours, that and the one it calls


def know(kind):
    """Learn the class of what `install` puts into places, which counts as what it replaces."""
    global _Replacement
    _Replacement = kind


def watches(function, original):
    """Tell that a function of ours stands in a place while a call is recorded, and calls another.

    Parameters
    ----------
    function, original : callable
        Ours, and the one that it calls.
    """
    _watching[id(function)] = function, original


cpdef object original_of(value):
    """Return what a stand-in of `install` replaces; any other value itself."""
    return value.original if isinstance(value, _Replacement) else value


cpdef bint is_stand_in(value) except -1:
    """Tell whether something is a stand-in of `install`."""
    return issubclass(type(value), _Replacement)


def upstream(value):
    """Return what stands in a place without fastops; of a property, what gets its value."""
    if type(value) is property:
        value = value.fget
    elif type(value) is staticmethod or type(value) is classmethod:
        value = value.__func__
    while True:
        if isinstance(value, _Replacement):
            value = value.original
        elif id(value) in _watching:
            value = _watching[id(value)][1]
        else:
            return value


@cython.final
cdef class Guard:
    """Compares what some names lead to with what they have to lead to.

    Parameters
    ----------
    find : callable
        Called when the guard is first asked. Returns a list of tuples, each of the dict of a module
        or a class; what its names lead to, a dict; and whether each call asks for changes of it.
        And whether all of that is upstream's own: if not, it is called again after a change.

    Attributes
    ----------
    looks : int
        How often objects were compared.
    """

    def __init__(self, find):
        self.find = find
        self.holding = self.failing = UINT64_MAX

    def __bool__(self):
        return holds(self)

    def contents(self):
        """Return what is compared, by the title of a module or class: names and objects."""
        holds(self)
        return {_title(holder): dict(names) for holder, names, _ in self.asked or ()}

    def asked_for(self):
        """Return the modules and classes of which each call asks whether they have changed."""
        holds(self)
        return [_title(holder) for holder, _, each in self.asked or () if each]

    def differing(self):
        """Return the names that lead to something else now, with the modules and classes."""
        holds(self)
        return [
            f"{_title(holder)}.{name}"
            for holder, names, _ in self.asked or ()
            for name, value in names.items()
            if upstream(_found(holder, name)) is not value
        ]

    cdef bint look(self) noexcept:
        cdef uint64_t now = number(self)
        cdef bint good
        if now != 0 and now == self.failing and not self.blind:
            return False
        self.looks += 1
        try:
            good = self.compare()
        except Exception:  # a call of the user's is no place to learn of it
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
        cdef PyObject* now
        if self.find is not None:
            settled = self.take_up()
            if not settled:
                return False
            self.find = None
        self.hidden = False
        for holder, names, each in self.asked:
            for name, value in (<dict>names).items():
                now = _there(holder, name)
                if now != <PyObject*>value and (now == NULL or upstream(<object>now) is not value):
                    self.hidden = not each  # no number will tell when it is put back
                    return False
        return True

    cdef bint take_up(self) except -1:
        """Find out what is to be compared."""
        cdef const uint64_t* counter
        asked, settled = self.find()
        self.asked = list(asked)  # from here on it holds what is counted
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


cdef PyObject* _there(object holder, object name):
    if isinstance(holder, type):
        return _PyType_Lookup(<PyTypeObject*>holder, <PyObject*>name)
    return PyDict_GetItem(<dict>holder, name)


def _found(holder, name):
    cdef PyObject* found = _there(holder, name)
    return None if found == NULL else <object>found


def _title(holder):
    if isinstance(holder, type):
        return f"{holder.__module__}.{holder.__qualname__}"
    return holder.get("__name__", "")
