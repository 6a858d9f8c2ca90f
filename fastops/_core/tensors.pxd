# What other parts ask of tensors on the host, and the small tensors that they make without running
# an op. They need none of TensorFlow's headers for it.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool

from fastops._cpp.declarations cimport Sizes
from fastops._tf.protos cimport DataType
from fastops._tf.tensor cimport Tensor

# The dtype of an EagerTensor, whatever its device and state; DT_INVALID for a custom device's.
cdef DataType handle_dtype(PyObject* tensor) noexcept
# Whether an EagerTensor is held by this process and not packed of several.
cdef bint is_local(PyObject* tensor) noexcept
# Borrowed; null for what is not an EagerTensor on the host, computed.
cdef const Tensor* host_tensor(PyObject* value) noexcept
# The same on any device of this process: for its dtype and sizes alone.
cdef const Tensor* local_tensor(PyObject* value) noexcept

# Of what these have returned; the elements are those of tensors on the host.
cdef DataType dtype_of(const Tensor* tensor) noexcept
cdef int rank_of(const Tensor* tensor) noexcept
cdef int64_t size_of(const Tensor* tensor, int axis) noexcept
cdef int64_t num_elements(const Tensor* tensor) noexcept
cdef Sizes sizes_of(const Tensor* tensor) noexcept
cdef bint same_sizes(const Tensor* one, const Tensor* other) noexcept
# Whether a tensor has exactly the sizes in a tuple of Python ints; no other tuple matches.
cdef bint has_sizes(const Tensor* tensor, object sizes) noexcept
# Whether two are equal to the last bit.
cdef bint same_bytes(const Tensor* one, const Tensor* other) noexcept
# The elements of a tensor of int32 or int64. False for other dtypes.
cdef bint ints_of(const Tensor* tensor, Sizes* values) noexcept
# What a scalar of bool says. False for other tensors.
cdef bint truth_of(const Tensor* tensor, bool* truth) noexcept

# Along which axes the gradients of two operands are summed up. False for shapes that do not fit.
cdef bint reduced_axes(const Sizes& x, const Sizes& y, Sizes* x_axes, Sizes* y_axes) noexcept
# A vector of int32 or int64, or a matrix of so many columns.
cdef object int_tensor(const Sizes& values, DataType dtype, int columns)
# Element `index` along the first axis, as `tensor[index]` makes it. A new reference; null without
# an exception where that is for the op to say.
cdef PyObject* row_of(const Tensor* tensor, int64_t index) except? NULL
# The same bytes in a buffer of its own.
cdef object copy_of(const Tensor* tensor)
# Ones, or None for a dtype that has no gradients.
cdef object ones_like(const Tensor* tensor)
