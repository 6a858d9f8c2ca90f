# Of a structure of which it is known what TensorFlow makes of it; None for others.
cdef list leaves_of(object structure, bint expand)
cdef list leaves_with_paths(object structure, bint expand)
