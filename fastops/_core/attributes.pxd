from libc.stdint cimport uint64_t
from libcpp.string cimport string

from fastops._tf.protos cimport AttrValue

cdef object MISSING  # in the place of an attribute that was not given

# Whether the same object means the same value.
cdef bint is_constant(object value) noexcept
# Whether `same` and `hash_of` know this kind of value.
cdef bint is_comparable(object value) except -1
# Whether two comparable values encode to the same attribute.
cdef bint same(object stored, object given) except -1
cdef uint64_t hash_of(object value) except? 0
# A value that stays as it is when the caller changes his list.
cdef object snapshot(object value)
# What a snapshot was made of, or what equals it.
cdef object restored(object value)
# Encodes as TensorFlow would, for an attribute of that type of OpDefs; False for what TensorFlow
# accepts and this does not.
cdef bint encode(object value, str kind, AttrValue* out) except -1
# Whether TensorFlow's dispatch call takes an attribute's value as it is.
cdef bint is_taken(object value, str kind) except -1
cdef string to_bytes(object value) except *
# An attribute's value as text.
cdef str shown(object value, object default)


cdef inline uint64_t mix(uint64_t state, uint64_t value) noexcept:
    state ^= value + <uint64_t>0x9E3779B97F4A7C15 + (state << 6) + (state >> 2)
    return state
