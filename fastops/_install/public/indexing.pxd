"""Reads indices of tensors and variables."""


cdef struct Masks:
    # Attributes of StridedSlice: bit i is for item i of an index.
    int begin, end, ellipsis, new_axis, shrink_axis


# Reads an index such as `2`, `1:` or `(..., 0)`: fills the lists and the masks. False if TensorFlow
# must read it: it has a mask, an index that is out of range, or something else that is no int.
cdef bint read_index(object spec, list begins, list ends, list strides, Masks* masks) except -1
