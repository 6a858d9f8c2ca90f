cimport cython
from cpython.object cimport PyTypeObject
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from fastops._cpp.classes cimport ClassVersion


@cython.final
cdef class Guard:
    cdef vector[const uint64_t*] counters   # of the dicts
    cdef vector[PyTypeObject*] classes
    cdef uint64_t holding                   # the number at which all was as it should be
    cdef uint64_t failing                   # and the last one at which it was not
    cdef object find
    cdef list asked
    cdef bint blind                         # whether no number tells of changes
    cdef bint hidden                        # whether none tells of the one that was found
    cdef readonly long long looks

    cdef bint look(self) noexcept
    cdef bint compare(self) except -1
    cdef bint take_up(self) except -1


# A number that rises with every change of what a guard looks at; 0 where none is known.
cdef inline uint64_t number(Guard guard) noexcept:
    cdef uint64_t found = 1
    cdef unsigned int version
    cdef size_t i
    for i in range(guard.counters.size()):
        found += guard.counters[i][0]
    for i in range(guard.classes.size()):
        version = ClassVersion(guard.classes[i])
        if version == 0:
            return 0
        found += version
    return found


# Whether nothing stands in for what the guarded code looks up.
cdef inline bint holds(Guard guard) noexcept:
    return number(guard) == guard.holding or guard.look()


# What a stand-in of `install` replaces; any other value itself.
cpdef object original_of(value)
# Whether something is a stand-in of `install`.
cpdef bint is_stand_in(value) except -1
