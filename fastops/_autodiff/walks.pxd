# Returns the gradients of the sources: replayed, or by a walk over the tape, which is TensorFlow's
# object. None if TensorFlow has to walk. All items are EagerTensors on this machine.
cdef list gradients_on(object tape, list targets, list sources, list seeds)
# Returns what a walk from a target depends on: its key, an object that keeps alive what the key has
# by address, and the tensors that the records keep. None if walks over this tape are not replayed.
cdef tuple describe_from(object tape, object target, list sources)
# Puts the records of their ops in the place of the records of calls. Any walk of TensorFlow's over
# a tape needs this.
cdef int expand(object tape) except -1
# Counts a walk that is not replayed.
cdef int count_walk(str why) except -1
