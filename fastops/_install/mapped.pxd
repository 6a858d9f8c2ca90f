from fastops._cpp.rows cimport RowReader
from fastops._specialize.learned cimport Learned
from fastops._specialize.policy cimport Account


# Functions that are mapped one after the other, over the rows or over the batches.
cdef class MappedStage:
    cdef object make_plans
    cdef object make_iterator
    cdef list dtypes
    cdef list shapes
    cdef bint of_rows     # whether the results are batched
    cdef Learned known    # its content: a list of plans, one for each function
    cdef dict sources     # by the number of rows in a batch: such an iterator and its tensors
    cdef Account account  # of the runs without plans
    cdef int num_runs
    cdef bint in_time     # whether a run took no longer than is allowed
    cdef bint declined    # whether TensorFlow's threads have to run the functions

    # The plans, made for TensorFlow's current context. None: an iterator of TensorFlow's runs the
    # functions.
    cdef list plans(self)
    # Leaves the functions to TensorFlow's threads, for the reason in `known`.
    cdef int decline(self) except -1
    # Drops what was learned about the functions.
    cdef int forget(self) except -1


# All functions that a pipeline maps.
cdef class MappedFunctions:
    cdef MappedStage of_rows
    cdef MappedStage of_elements
    cdef object lock      # held while an element is made
    cdef bint declined    # whether TensorFlow has to run them

    # The results for the rows that the reader has found; None if TensorFlow has to make them.
    cdef list results(self, RowReader* reader)
