from libcpp.memory cimport shared_ptr

from fastops._cpp.rows cimport RowReader, RowSource
from fastops._install.mapped cimport MappedFunctions


# Which rows of tensors in memory the elements of a dataset consist of. Never changes.
cdef class Rows:
    cdef shared_ptr[RowSource] source


# The elements of one iterator.
cdef class RowElements:
    cdef shared_ptr[RowReader] reader
    cdef MappedFunctions mapped  # None if the elements are the rows
    cdef bint draws_first        # whether all seeds are drawn when an iterator is made
    cdef int withdrawn           # 1 if TensorFlow has to make the last element again
    cdef bint interrupted        # whether TensorFlow has to make the next one
    cdef bint handed_over        # whether TensorFlow's iterator has replaced these elements

    # The tensors of the next element. None at the end, and if TensorFlow has to make it.
    cdef list take(self)
    cdef list _next_rows(self)
    cdef list _next_mapped(self)
    cdef bint is_for_tensorflow(self) noexcept
