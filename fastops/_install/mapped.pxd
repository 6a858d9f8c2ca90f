# The functions that a pipeline maps over its elements.
cdef class MappedFunctions:
    cdef object make            # makes the iterator that runs them
    cdef object lock            # held while an element is made
    cdef dict sources           # by the number of rows in a batch: the iterator and its tensors
    cdef list dtypes
    cdef list shapes
    cdef long long shortest_ns
    cdef int num_runs
    cdef readonly bint declined  # whether TensorFlow has to run them

    # The results for the tensors of an element; None if TensorFlow has to run the functions.
    cdef list results(self, list tensors)
    cdef list _run(self, resource)
