from cpython.object cimport PyObject

from fastops._cpp.opdef cimport InputArg, OpFacts
from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport DataType

# Whether an input that is no tensor may be converted, by its class.
cdef bint is_convertible(PyObject* value, const InputArg* arg) noexcept
cdef bint is_number(PyObject* value) noexcept
# Whether it is an ndarray, and of no subclass; or that, or a scalar of NumPy's. Its dtype,
# DT_INVALID for one that does not hold numbers, and for all else.
cdef bint is_array(PyObject* value) noexcept
cdef bint is_numpy(PyObject* value) noexcept
cdef DataType array_dtype(PyObject* value) noexcept
cdef bint is_list(PyObject* value) noexcept
# Whether TensorFlow's own conversions are all that is registered for the class of a value.
cdef bint converts_as_ever(PyObject* value) except -1
# Whether all inputs may be converted, by their classes; whether TensorFlow's fast path leaves any
# of them, a list, a text or a scalar of NumPy's, to the slow one, if not one of them all the same.
cdef bint may_convert(const OpFacts& facts, PyObject** values, bint* slowly) except -1
# Whether the slow path would take a tensor of this dtype for an input of which nothing told it.
cdef bint is_chosen(const InputArg* arg, DataType dtype) noexcept
cdef bint is_shape(PyObject* value) noexcept
# The sizes of a TensorShape for an input that takes sizes; the value itself where it is another.
cdef object sizes_or_itself(object value, const InputArg* arg)
# A new reference to an EagerTensor, or null with a Python exception.
cdef PyObject* to_tensor(const Runtime& here, PyObject* value, DataType hint,
                         PyObject* device_name) except? NULL
# What TensorFlow packs of a list in which EagerTensors of one dtype are, with numbers, texts,
# arrays and lists between them, or None where that is for TensorFlow to say. `pack` is the op.
cdef object pack_list(const Runtime& here, object value, DataType dtype, PyObject* device_name,
                      object pack)
# `to_tensor`, but of lists with tensors in them, too.
cdef PyObject* to_tensor_or_pack(const Runtime& here, PyObject* value, DataType hint,
                                 PyObject* device_name, object pack) except? NULL
# Puts tensors into the places of what is none. False where TensorFlow must do it.
cdef bint convert_items(const Runtime& here, list items, DataType hint, PyObject* device_name,
                        object pack) except -1
# What `tf.constant` makes of numbers, strings, small arrays, and lists of these; or None where that
# is for TensorFlow to say.
cdef object constant(const Runtime& here, object value, DataType dtype, PyObject* device_name)
# Lets go of the tensors that are kept.
cdef int forget() except -1
