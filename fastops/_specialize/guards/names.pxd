cimport cython
from cpython.object cimport PyTypeObject
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from fastops._cpp.classes cimport ClassVersion
from fastops._specialize.guards.condition cimport Condition


@cython.final
cdef class Guard(Condition):
    cdef vector[const uint64_t*] counters   # change counters of the dicts
    cdef vector[PyTypeObject*] classes
    cdef uint64_t holding                   # the sum of counters at the last successful check
    cdef uint64_t failing                   # the sum of counters at the last failed check
    cdef object find
    cdef list asked
    cdef bint blind                         # whether the changes of some dict cannot be counted
    cdef bint hidden                        # whether no counter covers the difference
    cdef readonly long long looks

    cdef bint look(self) noexcept
    cdef bint compare(self) except -1
    cdef bint take_up(self) except -1


# A sum of counters that rises with every change of the guarded modules and classes; 0 if unknown.
cdef inline uint64_t number(Guard guard) noexcept:
    cdef uint64_t total = 1
    cdef unsigned int version
    cdef size_t i
    for i in range(guard.counters.size()):
        total += guard.counters[i][0]
    for i in range(guard.classes.size()):
        version = ClassVersion(guard.classes[i])
        if version == 0:
            return 0
        total += version
    return total


# Whether all names of the guard refer to the expected objects.
cdef inline bint holds(Guard guard) noexcept:
    return number(guard) == guard.holding or guard.look()


# The object that a stand-in of `install` or a hook of a recording replaces; any other value itself.
cpdef object original_of(value)
# The value that a name has without fastops; of a property, its getter.
cpdef object upstream(value)
# Whether a value is a stand-in of `install`.
cpdef bint is_stand_in(value) except -1
