from libc.stdint cimport uint64_t
from libcpp.string cimport string

from fastops._tf.protos cimport AttrValue

cdef object MISSING  # stands for an attribute that was not given

# Whether the value of this object can never change.
cdef bint is_constant(object value) noexcept
# Whether `same` and `hash_of` support this kind of value.
cdef bint is_comparable(object value) except -1
# Whether two comparable values encode to the same attribute.
cdef bint same(object stored, object given) except -1
cdef uint64_t hash_of(object value) except? 0
# Returns a copy that does not change when the caller changes the value.
cdef object snapshot(object value)
# Returns a value equal to the one that a snapshot was made of.
cdef object restored(object value)
# Encodes a value as TensorFlow does. `kind` is the type of the attribute in the OpDef. Returns
# False for a value that is not supported here.
cdef bint encode(object value, str kind, AttrValue* out) except -1
# Whether TensorFlow's dispatch call accepts an attribute's value without conversion.
cdef bint is_taken(object value, str kind) except -1
cdef string to_bytes(object value) except *
# Returns an attribute's value as text.
cdef str shown(object value, object default)


cdef inline uint64_t mix(uint64_t state, uint64_t value) noexcept:
    state ^= value + <uint64_t>0x9E3779B97F4A7C15 + (state << 6) + (state >> 2)
    return state
