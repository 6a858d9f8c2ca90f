# The states of what is known about calls of one signature or kind: see `fastops._specialize`.


cdef enum State:
    WAITING
    RECORDED
    ACTIVE
    REFUSED


# The state, by three conditions. `active`: later calls use what is known. `refused`: no more calls
# are recorded. `recorded`: something is known, but more calls have to confirm it.
cdef inline State state_of(bint active, bint refused, bint recorded) noexcept:
    if active:
        return ACTIVE
    if refused:
        return REFUSED
    return RECORDED if recorded else WAITING


# The name of a state, as descriptions have it.
cdef inline str name_of_state(State state):
    return ("waiting", "recorded", "active", "refused")[<int>state]
