# distutils: language = c++
"""Callables that stand in for TensorFlow's own, and take the direct path where it is the same.

Each holds the callable that it replaces and hands it the arguments, untouched, whenever anything is
out of the ordinary: what a call means is for TensorFlow to say. `fastops._install.placement` puts
them into their places and takes them out again.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject

from fastops._cpp.python cimport (
    Py_TPFLAGS_METHOD_DESCRIPTOR, PyObject_Vectorcall, PyVectorcall_Call,
)
from fastops._cpp.vectorcall cimport EnableVectorcall
from fastops._dispatch cimport run_at_once
from fastops._specialize.guards.names cimport Guard, holds

from types import MethodType

from fastops._specialize.guards.names import know


@cython.no_gc_clear
cdef class Replacement:
    """A callable in the place of another one.

    It looks like the one it replaces: what has a name, a signature, a source or attributes of that
    one finds them here, and either is a key to what is stored under the other.

    Parameters
    ----------
    original : callable
        What it stands in for.
    """

    def __init__(self, original):
        self.original = original

    @property
    def __class__(self):
        return self.original.__class__  # `inspect.isfunction` and mocks ask for it

    @property
    def __wrapped__(self):
        return self.original

    @property
    def __dict__(self):
        return self.original.__dict__

    @property
    def __module__(self):
        return self.original.__module__

    def __getattribute__(self, name):
        if name == "__doc__":  # each class of Cython has its own
            return self.original.__doc__
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        return getattr(self.original, name)

    def __setattr__(self, name, value):
        setattr(self.original, name, value)

    def __delattr__(self, name):
        delattr(self.original, name)

    def __repr__(self):
        return repr(self.original)

    def __hash__(self):
        return hash(self.original)

    def __eq__(self, other):
        if isinstance(other, Replacement):
            other = (<Replacement>other).original
        return self.original == other

    def __reduce__(self):
        return self.original.__qualname__

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __call__(self, *args, **kwargs):
        # For callers that ask for the attribute; a call itself goes to `vectorcall`.
        return PyVectorcall_Call(self, args, kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)


live = False


def set_live(value):
    """Sets whether replacements do anything but call what they replace."""
    global live
    live = value
    run_at_once(value)


def put_guard(Replacement one not None, Guard guard):
    """Has a replacement call what it replaces while a guard does not hold; once for each."""
    if one.guard is None and guard is not None:
        one.guard = guard
        one.while_holding = one.vectorcall
        one.vectorcall = _guarded


def guard_of(Replacement one not None):
    """Returns the guard of a replacement, or None."""
    return one.guard


cdef PyObject* _guarded(PyObject* callable, PyObject* const* args, size_t nargsf,
                        PyObject* keywords) except NULL:
    if not holds((<Replacement>callable).guard):
        return PyObject_Vectorcall(
            <PyObject*>(<Replacement>callable).original, args, nargsf, keywords
        )
    return (<Replacement>callable).while_holding(callable, args, nargsf, keywords)


def standing_alone(Replacement one not None):
    """Returns a replacement that works while nothing is installed, too: it is in nobody's place."""
    one.always = True
    return one


cdef Replacement replacing(object original, vectorcall_t call):
    cdef Replacement one = Replacement(original)
    one.vectorcall = call
    return one


cdef int enable(type kind) except -1:
    """Makes instances of a class callable through their `vectorcall`, and methods in classes."""
    cdef Replacement one = Replacement.__new__(Replacement)
    EnableVectorcall(<PyTypeObject*>kind, <char*>&one.vectorcall - <char*><void*>one)
    (<PyTypeObject*>kind).tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR
    return 0


know(Replacement)
enable(Replacement)
