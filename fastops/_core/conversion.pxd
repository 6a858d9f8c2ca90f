from cpython.object cimport PyObject

from fastops._cpp.opdef cimport InputArg, OpFacts
from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport DataType

# Whether an input that is no tensor may be converted, by its class.
cdef bint is_convertible(PyObject* value, InputArg* arg) noexcept
cdef bint is_number(PyObject* value) noexcept
# Whether it is an ndarray, and of no subclass; or that, or a scalar of NumPy's. Its dtype,
# DT_INVALID for one that does not hold numbers, and for all else.
cdef bint is_array(PyObject* value) noexcept
cdef bint is_numpy(PyObject* value) noexcept
cdef DataType array_dtype(PyObject* value) noexcept
cdef bint is_list(PyObject* value) noexcept
# Whether TensorFlow's own conversions are all that is registered for the class of a value.
cdef bint converts_as_ever(PyObject* value) except -1
# Whether it is a list of ints, or of floats, in which nothing else is.
cdef bint is_of_one_kind(PyObject* value) noexcept
# Whether inputs that are lists convert alone, or as a tensor beside them says.
cdef bint lists_convert(const OpFacts& facts, PyObject** values) noexcept
# A new reference to an EagerTensor, or null with a Python exception.
cdef PyObject* to_tensor(const Runtime& here, PyObject* value, DataType hint,
                         PyObject* device_name) except? NULL
# What `tf.constant` makes of numbers, strings, small arrays, and lists of these; or None where that
# is for TensorFlow to say.
cdef object constant(const Runtime& here, object value, DataType dtype, PyObject* device_name)
# Lets go of the tensors that are kept.
cdef int forget() except -1
