# Returns this thread's value of an attribute of a `threading.local`; None if it has none.
cdef object of_this_thread(object local, str name)
# Returns the default graph of this thread, or None if there is none yet. Sets whether the graph is
# that of a scope.
cdef object default_graph(bint* scoped)
# Whether the class of a graph is exactly `tf.Graph`, so that it is not a graph being traced.
cdef bint is_ordinary(object graph) noexcept
# Whether this thread is in a scope that a graph keeps in the stack of that name. An example is the
# scope of a distribution strategy.
cdef bint has_scopes(object graph, str stack_name) except -1
# Whether neither a global seed nor determinism is set, so that random ops use only their own seeds.
cdef bint unseeded() except -1
# Whether mixed dtypes are an error: NumPy-style dtype promotion is off.
cdef bint promotes_no_dtypes() noexcept
