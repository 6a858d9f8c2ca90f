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
    # Whether code that reads losses is among code that ran. `apart`: attributes with losses are no
    # part of the object's state.
    cdef bint reads_losses(self, dict codes, bint apart) except -1
    # Drops all losses, as a call in these scopes does.
    cdef int clear(self, list stores, tuple scopes) except -1
    # The layers in an object that keep the losses that calls add in attributes; None if there are
    # none, or if these work in another way than the library's.
    cdef list layers_of(self, object root)
    # Adds losses to each of the layers, given by weak references.
    cdef int add_losses(self, list stores, list losses) except -1
    # Whether `read` has all settings of libraries that code that ran may read.
    cdef bint covers(self, dict codes) except -1


cdef class OfKeras(Scopes):
    cdef dict global_state
    cdef type layer
    cdef tuple of_losses         # the code that reads the losses, with the identity of its globals
    cdef tuple last              # the last state that was read outside of all scopes
    cdef uint64_t last_version   # the version of the dict that `last` was read from


cdef class OfTfKeras(Scopes):
    cdef dict calls      # the globals of the modules with the contexts of calls,
    cdef dict backend    # the learning phases and the numbers in names,
    cdef dict casts      # the dtype that variables are cast to
    cdef type layer
    cdef tuple of_losses  # the code that reads a store, with the identity of its globals
    cdef tuple read_settings(self)


cdef class OfModules(Scopes):
    cdef object find
    cdef Scopes keras  # None before Keras is imported
