# The tape is a `tf.GradientTape`, of exactly this class. The other parameters are those of its
# methods `gradient` and `watch`.
cdef object tape_gradient(object tape, object target, object sources, object output_gradients,
                          object unconnected)
cdef object watch_tensors(object tape, object tensors)
# Do what `__enter__` and `__exit__` do. Return False, with nothing done, if TensorFlow has to.
cdef bint push_tape(object tape) except -1
cdef bint pop_tape(object tape) except -1
# Records that `gradient` of a tape has raised. Later calls for the tape are declined.
cdef int mark_failed(object tape) except -1
# Does what TensorFlow does with a tape that has computed gradients and is not persistent.
cpdef object use_up(object tape)
# Calls the function of TensorFlow's runtime that walks over a tape, which is the first argument.
# Profiles show the walk with the reason.
cdef object walk_of_runtime(object function, str why, tuple arguments)
