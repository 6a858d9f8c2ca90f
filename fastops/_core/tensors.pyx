# distutils: language = c++
"""Functions on tensors on the host, for modules that do not include TensorFlow's headers."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.utility cimport move, pair
from libcpp.vector cimport vector

from fastops._cpp.declarations cimport Sizes
from fastops._cpp.handle cimport HandleDtype, HostTensor, LocalTensor
from fastops._cpp.python cimport PyObject_GC_UnTrack
from fastops._cpp.tensors cimport (
    CopyOf,
    HasShape,
    IntTensor,
    IntsOf,
    IsTruth,
    IsLocal,
    OnesLike,
    ReducedAxes,
    RowOf,
    SameBytes,
    ShapeOf,
    WrapOnHost,
)
from fastops._tf.eager cimport EagerTensor_Handle
from fastops._tf.protos cimport DT_RESOURCE, DT_VARIANT, DataType
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass


cdef DataType handle_dtype(PyObject* tensor) noexcept:
    return HandleDtype(EagerTensor_Handle(tensor))


cdef bint is_local(PyObject* tensor) noexcept:
    return IsLocal(tensor)


cdef const Tensor* host_tensor(PyObject* value) noexcept:
    return HostTensor(value)


cdef const Tensor* local_tensor(PyObject* value) noexcept:
    return LocalTensor(value)


def is_local_tensor(value):
    """Tell whether a value is a computed EagerTensor on a device of this process."""
    return LocalTensor(<PyObject*>value) != NULL


def is_host_tensor(value):
    """Tell whether a value is a computed EagerTensor on the host."""
    return HostTensor(<PyObject*>value) != NULL


def address_of(value):
    """Return the address of the elements of a tensor on the host.

    Return 0 for an empty tensor, for a handle and for any other value.
    """
    cdef const Tensor* tensor = HostTensor(<PyObject*>value)
    if tensor == NULL or tensor.NumElements() == 0:
        return 0
    if tensor.dtype() in (DT_RESOURCE, DT_VARIANT):
        return 0
    return <size_t>tensor.data()


cdef DataType dtype_of(const Tensor* tensor) noexcept:
    return tensor.dtype()


cdef int rank_of(const Tensor* tensor) noexcept:
    return tensor.dims()


# Reads while they are noted: the address of a tensor, and the axis of a size that was read.
# Elements are noted, too, since they may be the sizes of another tensor.
cdef vector[pair[size_t, int]] _reads
cdef bint _notes = False
cdef int _ALL = -1
cdef int _ELEMENTS = -2


cdef inline void _note(const Tensor* tensor, int axis) noexcept:
    if _notes:
        _reads.push_back(pair[size_t, int](<size_t>tensor, axis))


def note_sizes():
    """Note from now on of which tensors the functions of this module read sizes or elements."""
    global _notes
    _reads.clear()
    _notes = True


cdef void note_gradient() noexcept:
    _note(NULL, _ALL)


def noted_sizes():
    """Stop noting, and return what was noted.

    Returns
    -------
    set of tuple
        The `identity_of` of a tensor, and the axis of the size; "all" for all sizes, and "elements"
        if an element was read.
    """
    global _notes
    _notes = False
    titles = {_ALL: "all", _ELEMENTS: "elements"}
    noted = {(read.first, titles.get(read.second, read.second)) for read in _reads}
    _reads.clear()
    return noted


def identity_of(value):
    """Return what identifies an EagerTensor of this process in `noted_sizes` while it is alive."""
    return <size_t>LocalTensor(<PyObject*>value)


cdef int64_t size_of(const Tensor* tensor, int axis) noexcept:
    _note(tensor, axis)
    return tensor.dim_size(axis)


cdef int64_t num_elements(const Tensor* tensor) noexcept:
    _note(tensor, _ALL)
    return tensor.NumElements()


cdef Sizes sizes_of(const Tensor* tensor) noexcept:
    _note(tensor, _ALL)
    return ShapeOf(tensor[0])


cdef bint same_sizes(const Tensor* left, const Tensor* right) noexcept:
    _note(left, _ALL)
    _note(right, _ALL)
    return left.IsSameSize(right[0])


cdef bint has_sizes(const Tensor* tensor, object sizes) noexcept:
    _note(tensor, _ALL)
    return HasShape(tensor[0], <PyObject*>sizes)


cdef bint same_bytes(const Tensor* left, const Tensor* right) noexcept:
    return SameBytes(left[0], right[0])


cdef bint ints_of(const Tensor* tensor, Sizes* values) noexcept:
    _note(tensor, _ELEMENTS)
    return IntsOf(tensor[0], values)


cdef bint truth_of(const Tensor* tensor, bool* truth) noexcept:
    _note(tensor, _ELEMENTS)
    return IsTruth(tensor[0], truth)


cdef bint reduced_axes(const Sizes& x, const Sizes& y, Sizes* x_axes, Sizes* y_axes) noexcept:
    return ReducedAxes(x, y, x_axes, y_axes)


cdef object int_tensor(const Sizes& values, DataType dtype, int columns):
    return IntTensor(values, dtype, columns)


cdef PyObject* row_of(const Tensor* tensor, int64_t index) except? NULL:
    _note(tensor, 0)
    return RowOf(tensor[0], index)


cdef object copy_of(const Tensor* tensor):
    return CopyOf(tensor[0])


def alias_of(tensor):
    """Return a new tensor with the buffer of one on the host; None for any other value."""
    cdef const Tensor* original = HostTensor(<PyObject*>tensor)
    cdef Tensor alias
    if original == NULL or original.dtype() == DT_RESOURCE or original.dtype() == DT_VARIANT:
        return None
    alias = original[0]
    return WrapOnHost(move(alias))


def to_keep(tensor):
    """Return a copy of a tensor, to keep for later calls.

    Return the value itself if it is a handle or not a tensor on the host.
    """
    cdef const Tensor* value = HostTensor(<PyObject*>tensor)
    if value == NULL or value.dtype() in (DT_RESOURCE, DT_VARIANT):
        return tensor
    kept = CopyOf(value[0])
    # TensorFlow's tests search the garbage collector for leaked tensors and shapes. They must not
    # find this tensor, or a shape that the original has cached. Untracking is safe, since the copy
    # refers to no other object.
    PyObject_GC_UnTrack(<PyObject*>kept)
    return kept


cdef object ones_like(const Tensor* tensor):
    return OnesLike(tensor[0])
