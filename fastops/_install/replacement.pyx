# distutils: language = c++
"""Replacements: callables that stand in for TensorFlow's own.

A replacement takes the direct path if the result is the same. In all other cases it passes the
arguments, unchanged, to the callable that it replaces. `fastops._install.placement` patches
replacements in and takes them out again.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject

from fastops._core.preparing cimport run_at_once
from fastops._cpp.python cimport (
    Py_TPFLAGS_METHOD_DESCRIPTOR, PyObject_Vectorcall, PyVectorcall_Call,
)
from fastops._cpp.vectorcall cimport EnableVectorcall
from fastops._specialize.guards.names cimport Guard, holds

from types import MethodType

from fastops._specialize.guards.names import know


@cython.no_gc_clear
cdef class Replacement:
    """A callable that stands in for another one.

    It looks like its original: it has the same name, signature, source and attributes. It also
    hashes and compares equal to the original, so both are the same key of a dict.

    Parameters
    ----------
    original : callable
        The callable that it replaces.
    """

    def __init__(self, original):
        self.original = original

    @property
    def __class__(self):
        return self.original.__class__  # `inspect.isfunction` and mocks read it

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
        if name == "__doc__":  # otherwise the docstring of the Cython class would be found
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
        # For code that reads the attribute `__call__`. A normal call goes to `vectorcall`.
        return PyVectorcall_Call(self, args, kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)


live = False


def set_live(value):
    """Make replacements active, or have them call their originals."""
    global live
    live = value
    run_at_once(value)


def put_guard(Replacement replacement not None, Guard guard):
    """Give a replacement a guard: while it does not hold, calls go to the original.

    A replacement that has a guard already keeps it.
    """
    if replacement.guard is None and guard is not None:
        replacement.guard = guard
        replacement.while_holding = replacement.vectorcall
        replacement.vectorcall = _guarded


def guard_of(Replacement replacement not None):
    """Return the guard of a replacement, or None."""
    return replacement.guard


cdef PyObject* _guarded(PyObject* callable, PyObject* const* args, size_t nargsf,
                        PyObject* keywords) except NULL:
    if not holds((<Replacement>callable).guard):
        return PyObject_Vectorcall(
            <PyObject*>(<Replacement>callable).original, args, nargsf, keywords
        )
    return (<Replacement>callable).while_holding(callable, args, nargsf, keywords)


cdef bint goes_to(Replacement self, vectorcall_t call) noexcept:
    if self.vectorcall == _guarded:
        return self.while_holding == call and holds(self.guard)
    return self.vectorcall == call


def standing_alone(Replacement replacement not None):
    """Make a replacement usable directly: it is patched in nowhere, and active at all times."""
    replacement.always = True
    return replacement


cdef Replacement replacing(object original, vectorcall_t call):
    cdef Replacement replacement = Replacement(original)
    replacement.vectorcall = call
    return replacement


cdef int enable(type kind) except -1:
    """Make instances of a class callable through `vectorcall`, and let classes bind them."""
    cdef Replacement replacement = Replacement.__new__(Replacement)
    EnableVectorcall(
        <PyTypeObject*>kind, <char*>&replacement.vectorcall - <char*><void*>replacement
    )
    (<PyTypeObject*>kind).tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR
    return 0


know(Replacement)
enable(Replacement)
