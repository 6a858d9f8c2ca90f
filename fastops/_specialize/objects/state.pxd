# One state of an object, and the recordings that the objects of a class share.

from cpython.object cimport PyObject
from libcpp.vector cimport vector

from fastops._cpp.signature cimport Signature
from fastops._specialize.cache cimport Cache
from fastops._specialize.guards.template cimport ObjectTemplate
from fastops._specialize.guards.watch cimport Watch
from fastops._specialize.objects.case cimport MethodCase


cdef class SharedRecordings:
    cdef ObjectTemplate template
    cdef Cache cases


cdef class ClassRecordings:
    cdef bint outlived
    cdef bint brief
    cdef Cache accounts
    cdef list shared

    # A state with the recordings that fit an object; None if none fit.
    cdef ObjectState find(self, PyObject* root)
    # Shares the recordings of an object, unless they are good for no other object.
    cdef int publish(self, PyObject* root, ObjectState state, MethodCase case,
                     dict names) except -1


cdef class ObjectState:
    cdef Watch watch
    cdef object places
    cdef dict variables
    cdef dict tables
    cdef set seen
    cdef Cache cases
    cdef Cache batches            # by signature for any batch size and scopes: a `MethodCase`
    cdef MethodCase last
    cdef list losses              # see `Scopes.stores_of` in `_install/models/scopes.pxd`
    cdef SharedRecordings shared  # recordings that fit the object, too; None if there are none
    cdef vector[PyObject*] parts  # if so, the parts of the object by their number in the template

    # A state in which calls may be recorded: this one, or one with the same recordings.
    cdef ObjectState completed(self, root, unasked, unasked_of)
    # The recordings for a signature in these scopes; None if there are none. If there are replays
    # for any batch size only, these.
    cdef MethodCase case_of(self, const Signature& signature, tuple scopes)
    # The recordings for a signature in these scopes that may hold for any batch size; None if there
    # are none.
    cdef MethodCase batch_of(self, const Signature& signature, tuple scopes)
    # All of its recordings.
    cdef list all_cases(self)
