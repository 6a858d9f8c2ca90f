# The default graph of this thread; None where it is not an ordinary one, or there is none yet.
cdef object default_graph()
# Whether this thread is in a scope that a graph keeps in a stack of that name, such as that of a
# distribution strategy.
cdef bint has_scopes(object graph, str stack_name) except -1
