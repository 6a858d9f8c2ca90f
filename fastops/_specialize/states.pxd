# The states of what is known about calls of one signature or kind: see `fastops._specialize`.


cdef enum State:
    WAITING
    RECORDED
    ACTIVE
    REFUSED


# The name of a state, as descriptions have it.
cdef inline str name_of_state(State state):
    return ("waiting", "recorded", "active", "refused")[<int>state]
