from cpython.object cimport PyObject

from fastops._cpp.opdef cimport InputArg, OpFacts
from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport DataType

# Whether the class of an input that is not a tensor allows its conversion.
cdef bint is_convertible(PyObject* value, const InputArg* arg) noexcept
cdef bint is_number(PyObject* value) noexcept
# Whether a value is an ndarray. Subclasses do not count.
cdef bint is_array(PyObject* value) noexcept
# Whether a value is an ndarray or a NumPy scalar.
cdef bint is_numpy(PyObject* value) noexcept
# The dtype of an ndarray or a NumPy scalar. DT_INVALID if it does not hold numbers, and for all
# other objects.
cdef DataType array_dtype(PyObject* value) noexcept
cdef bint is_list(PyObject* value) noexcept
# Whether the class of a value has only conversions that TensorFlow itself registered.
cdef bint has_default_conversion(PyObject* value) except -1
# Whether the classes of all inputs allow their conversion. Sets `slowly` if TensorFlow's fast path
# leaves one of them to its slow path: a list, a string or a NumPy scalar. Does not clear `slowly`.
cdef bint may_convert(const OpFacts& facts, PyObject** values, bint* slowly) except -1
# Whether TensorFlow's slow path would choose this dtype for an input for which it has no hint.
cdef bint is_chosen(const InputArg* arg, DataType dtype) noexcept
cdef bint is_shape(PyObject* value) noexcept
# Returns the sizes of a fully known TensorShape if the input takes sizes, otherwise the value.
cdef object sizes_or_itself(object value, const InputArg* arg)
# Returns a new reference to an EagerTensor, or null with a Python exception.
cdef PyObject* to_tensor(const Runtime& here, PyObject* value, DataType hint,
                         PyObject* device_name) except? NULL
# Packs a list that contains EagerTensors of one dtype into one tensor, as TensorFlow does. The list
# may also contain numbers, strings, arrays and lists. Returns None if TensorFlow has to do it.
# `pack` is the op.
cdef object pack_list(const Runtime& here, object value, DataType dtype, PyObject* device_name,
                      object pack)
# Like `to_tensor`, but also packs lists that contain tensors.
cdef PyObject* to_tensor_or_pack(const Runtime& here, PyObject* value, DataType hint,
                                 PyObject* device_name, object pack) except? NULL
# Replaces all items that are not tensors by tensors. Returns False if TensorFlow has to do it.
cdef bint convert_items(const Runtime& here, list items, DataType hint, PyObject* device_name,
                        object pack) except -1
# Makes the tensor that `tf.constant` makes of numbers, strings, small arrays and lists of these.
# Returns None if TensorFlow has to convert the value.
cdef object constant(const Runtime& here, object value, DataType dtype, PyObject* device_name)
# Drops the cached tensors.
cdef int forget() except -1
