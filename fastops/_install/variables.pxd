"""What stand-ins for methods of variables have in common."""

from cpython.object cimport PyObject

from fastops._install.replacement cimport Replacement


# Returns the default graph; None if the call must fall back to TensorFlow. The variable must be
# exactly a `ResourceVariable`, and its value must not be cached.
cdef object graph_of(Replacement method, PyObject* variable)

# Tells tapes that a variable is read.
cdef int tell_tapes(object variable, object graph) except -1

# Converts a value to a tensor of a variable's dtype; None if only TensorFlow may do that.
cdef object value_for(object variable, object value)

# Returns the result of an assignment: a variable whose value is read on first use.
cdef object unread(object variable, object graph, object parent_op)
