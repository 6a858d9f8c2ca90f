# Conditions on what surrounds a call of this thread. While all of them hold, TensorFlow runs ops
# and functions as in a plain eager program. A stand-in states the conditions that it requires, as
# bits.
cdef enum Situation:
    EAGERLY = 1            # ops run eagerly: no graph is being built, no callback is registered
    IN_ORDER = 2           # the same; they run one after the other, and nothing observes them
    ONLY_HOST = 4          # the host is the only device; requires IN_ORDER
    NO_TAPE = 8            # no tape and no accumulator records
    NO_PROMOTION = 16      # NumPy-style dtype promotion is off
    USUAL_DEVICE = 32      # no device scope is open, or one of the only device; requires IN_ORDER
    TRACED_RUN = 64        # calls of `tf.function` run the trace, not the Python function
    NO_CANCELLATION = 128  # no cancellation manager is active
    NO_EXPORT = 256        # no SavedModel is being exported
    NO_GRAPH_SCOPE = 512   # the default graph is the thread's own, and is not being traced
    NO_STRATEGY = 1024     # no scope of a distribution strategy is open
    ONE_REPLICA = 2048     # the same, or only TensorFlow's default strategy with its one replica

    # What recordings and plans require. Users of this set add NO_TAPE, ONLY_HOST and one of the two
    # conditions on strategies, if they need them.
    PLAIN = (
        IN_ORDER | USUAL_DEVICE | TRACED_RUN | NO_CANCELLATION | NO_EXPORT | NO_GRAPH_SCOPE
    )


# Returns the first of the required conditions that does not hold; 0 if all of them hold.
cdef int missing(int required) except -1
# Returns the reason, as text, for a condition that does not hold.
cdef str reason_of(int condition)
# Whether no plain condition is missing, no tape records, and no strategy is active.
cpdef bint is_plain(bint anywhere=*) except -1
