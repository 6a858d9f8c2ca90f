# What this thread keeps under a name; None where it keeps nothing.
cdef object of_this_thread(object local, str name)
# The default graph of this thread, None where there is none yet; and whether it is that of a scope.
cdef object default_graph(bint* scoped)
# Whether it is none that is being traced, and of no class but TensorFlow's own.
cdef bint is_ordinary(object graph) noexcept
# Whether this thread is in a scope that a graph keeps in a stack of that name, such as that of a
# distribution strategy.
cdef bint has_scopes(object graph, str stack_name) except -1
# Whether random ops have no seed but those of their own, and need none.
cdef bint unseeded() except -1
