# Numbers for what `reasons.py` names; a test holds the two together.

cdef enum:
    P_DIRECT = 0
    P_CAPI
    P_TENSORFLOW
    NUM_PATHS

cdef enum:
    R_DIRECT = 0
    R_FIRST_CALL
    R_OP
    R_OPTIONS
    R_GRAPH
    R_CONTEXT
    R_REMOTE
    R_CALLBACKS
    R_ASYNC
    R_OBSERVED
    R_ARGUMENTS
    R_INPUT_TYPE
    R_INPUT_DEVICE
    R_INPUT_STATE
    R_CONVERSION
    R_ATTR_VALUE
    R_DTYPE
    R_DEVICE
    R_KERNEL
    R_KERNEL_ERROR
    NUM_REASONS
    R_CONVERT = -2  # between `collect` and its caller only


# `on_fallback` is silent about calls that will be direct the next time, that were asked for, or
# that TensorFlow rejects anyway.
cdef inline bint is_expected(int reason) noexcept:
    return reason in (R_FIRST_CALL, R_OPTIONS, R_GRAPH, R_ARGUMENTS, R_KERNEL_ERROR)
