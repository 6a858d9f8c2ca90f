from cpython.object cimport PyObject

from libc.stdint cimport uint64_t


# The settings and open scopes that a library keeps for a thread.
cdef class Scopes:
    # The state that calls depend on, beside their arguments and their object. It is compared by
    # `==`. None if it is unknown.
    cdef tuple read(self, PyObject* entry)
    # The context of the outermost layer call; None outside of layer calls.
    cdef object call_context(self)
    # By kind of name, how many names this thread has generated.
    cdef dict names_given(self)
    # Adds to these counts.
    cdef int give_names(self, dict counts) except -1
    # Where the object and the layers in it keep the losses that calls add; None if that is nowhere,
    # or in attributes.
    cdef list stores_of(self, object root)
    # Whether code that adds losses there, or reads them, is among code that ran.
    cdef bint reads_losses(self, dict codes) except -1
    # Drops all losses, as a call in these scopes does.
    cdef int clear(self, list stores, tuple scopes) except -1


cdef class OfKeras(Scopes):
    cdef dict global_state
    cdef tuple last              # the last state that was read outside of all scopes
    cdef uint64_t last_version   # the version of the dict that `last` was read from


cdef class OfTfKeras(Scopes):
    cdef dict calls      # the globals of the modules with the contexts of calls,
    cdef dict backend    # the learning phases and the numbers in names,
    cdef dict casts      # the dtype that variables are cast to
    cdef type layer
    cdef tuple of_losses  # the code that reads a store, with the identity of its globals
    cdef tuple read_settings(self)
