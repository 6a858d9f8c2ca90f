# Return the leaves, or pairs of path and leaf; None for a structure that only TensorFlow handles.
cdef list leaves_of(object structure, bint expand)
cdef list leaves_with_paths(object structure, bint expand)
