# The numbers of the paths and reasons in `reasons.py`. A test checks that the two files agree.

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
    R_CONVERT = -2  # never reported: `collect` returns it to its caller


# Reasons that `on_fallback` does not report: the call will be direct the next time, the user asked
# for the path, or TensorFlow rejects the call anyway.
cdef inline bint is_expected(int reason) noexcept:
    return reason in (R_FIRST_CALL, R_OPTIONS, R_GRAPH, R_ARGUMENTS, R_KERNEL_ERROR)
