# Returns the gradients of the sources: replayed, or by a walk over the tape, which is TensorFlow's
# object. None if TensorFlow has to walk. All items are EagerTensors on this machine.
cdef list gradients_on(object tape, list targets, list sources, list seeds)
