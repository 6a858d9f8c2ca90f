# Functions that read tensors on the host or make small tensors without running an op. Modules that
# use them need not include TensorFlow's headers.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool

from fastops._cpp.declarations cimport Sizes
from fastops._tf.protos cimport DataType
from fastops._tf.tensor cimport Tensor

# The dtype of an EagerTensor on any device and in any state; DT_INVALID for a custom device.
cdef DataType handle_dtype(PyObject* tensor) noexcept
# Whether an EagerTensor is in this process and not packed from several tensors.
cdef bint is_local(PyObject* tensor) noexcept
# The tensor of a computed EagerTensor on the host, borrowed; null for any other object.
cdef const Tensor* host_tensor(PyObject* value) noexcept
# The tensor of a computed EagerTensor on any device of this process, borrowed; null for any other
# object. Use only its dtype and sizes.
cdef const Tensor* local_tensor(PyObject* value) noexcept

# The following functions take tensors from the two above. Those that read elements need a tensor on
# the host.
cdef DataType dtype_of(const Tensor* tensor) noexcept
cdef int rank_of(const Tensor* tensor) noexcept
cdef int64_t size_of(const Tensor* tensor, int axis) noexcept
cdef int64_t num_elements(const Tensor* tensor) noexcept
cdef Sizes sizes_of(const Tensor* tensor) noexcept
cdef bint same_sizes(const Tensor* left, const Tensor* right) noexcept
# Whether a tensor has exactly the sizes in a tuple of Python ints; no other tuple matches.
cdef bint has_sizes(const Tensor* tensor, object sizes) noexcept
# Notes, while reads of sizes are noted, that gradients are computed: their code reads many sizes.
cdef void note_gradient() noexcept
# Whether two tensors have the same dtype, shape and bytes.
cdef bint same_bytes(const Tensor* left, const Tensor* right) noexcept
# The elements of a tensor of int32 or int64. Returns false for other dtypes.
cdef bint ints_of(const Tensor* tensor, Sizes* values) noexcept
# The value of a bool scalar. Returns false for other tensors.
cdef bint truth_of(const Tensor* tensor, bool* truth) noexcept

# The axes along which the gradients of two operands are summed. Returns false if the shapes do not
# broadcast.
cdef bint reduced_axes(const Sizes& x, const Sizes& y, Sizes* x_axes, Sizes* y_axes) noexcept
# Makes a vector of int32 or int64, or a matrix of `columns` columns if that is not 0.
cdef object int_tensor(const Sizes& values, DataType dtype, int columns)
# Returns `tensor[index]` along the first axis as a new reference. Returns null without an exception
# if the op has to run.
cdef PyObject* row_of(const Tensor* tensor, int64_t index) except? NULL
# Makes a copy with its own buffer.
cdef object copy_of(const Tensor* tensor)
# Makes a tensor of ones, or returns None for a dtype that has no gradients.
cdef object ones_like(const Tensor* tensor)
