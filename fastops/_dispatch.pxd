from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from fastops._core.entries cimport Entry
from fastops._core.schema cimport FASTOPS_MAX_PARAMS, Schema
from fastops._cpp.frame cimport Frame
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._tf.protos cimport DataType

cdef extern from *:
    """
    #define FASTOPS_CALL_SHAPES 4
    """
    enum: FASTOPS_CALL_SHAPES

cdef enum:
    INLINE_RESULTS = 16
    # Above this many input bytes a kernel runs without the GIL: taking it again costs 40 ns.
    GIL_BYTES = 4096


# The keywords of a call site, and where each of its arguments goes.
cdef struct CallShape:
    PyObject* keywords  # owned, a tuple
    unsigned char slots[FASTOPS_MAX_PARAMS]


# A call as it came in, and TensorFlow's function that takes it where fastops does not.
cdef struct Invocation:
    PyObject* target     # borrowed; null for the op's function in tf.raw_ops
    PyObject* const* args
    size_t nargsf
    PyObject* keywords
    bint raises_status   # an error is raised as TFE_Py_FastPathExecute raises it
    int counts           # 1; 0 where it is part of a call that is counted already
    PyObject* observer   # borrowed, the Observer that is told of it; null where there is none


cdef inline void begin(Invocation* call, PyObject* target, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) noexcept:
    call.target = target
    call.args = args
    call.nargsf = nargsf
    call.keywords = keywords
    call.raises_status = False
    call.counts = 1
    call.observer = NULL


cdef class Op(Schema):
    cdef vectorcall_t vectorcall
    cdef object _record             # what is known of the op; made on first use, like all below
    cdef bint ready
    cdef object reference           # TensorFlow's own function; found on first use
    cdef object result_type         # its namedtuple, or None
    cdef bint direct                # whether any call may take the direct path
    cdef bint never                 # whether none may, whatever TensorFlow it is
    cdef bint handles               # state lives behind resource handles
    cdef bint unbounded             # runs without the GIL however small the inputs
    cdef bint thorough
    cdef CallShape shapes[FASTOPS_CALL_SHAPES]
    cdef int next_shape
    cdef Entry last
    cdef dict table                 # key hash -> Entry, least recently used first
    cdef long long calls_direct
    cdef long long calls_capi
    cdef long long calls_tensorflow
    cdef long long* calls_reason

    cdef int load(self) except -1
    cdef int bind(self, PyObject* const* args, PyObject* keywords, PyObject** slots) except -1
    cdef const unsigned char* call_shape(self, PyObject* keywords) except? NULL


cdef list loaded            # every Op that was ever called
cdef bint unknown_kernels   # whether TensorFlow chooses kernels in a way that fastops does not know

# Runs a call whose arguments are in their slots; the op must be loaded.
cdef PyObject* run_op(Op op, PyObject** slots, Invocation* call) except NULL
# Says whether first calls of keys are direct where TensorFlow is known to accept them.
cdef int run_at_once(bint value) except -1
# Leaves a call of an op that never runs here to TensorFlow. Only a profile counts it.
cdef PyObject* run_elsewhere(Op op, Invocation* call) except NULL
# Whether this thread may run kernels now: a reason, R_DIRECT if it may. The device name is borrowed
# from the thread's state.
cdef int gate(PyObject** device_name) except -1
# Flattens the inputs into the frame. A reason, R_DIRECT if a kernel may take them.
cdef int collect(Op op, PyObject** slots, Frame* frame) except -1
# Tells tapes and accumulators what an op has made of its inputs; `attrs` as for gradient functions.
cdef int record_gradient(Op op, tuple attrs, tuple inputs, list results) except -1
# Tells tapes and watchers that a variable is read.
cdef int tell_watchers(object variable) except -1
# What `tf.constant` makes of numbers, strings, small arrays, and lists of these; or None where that
# is for TensorFlow to say.
cdef object constant(object value, DataType dtype)
# A list with tensors in it as one tensor; or None where that is for TensorFlow to say.
cdef object pack_list(object value, DataType dtype)
# Whether this thread is in no device scope.
cdef bint in_no_scope() except -1
# What kernels are made for now; borrowed. A number that rises when that changes.
cdef Runtime* runtime() except NULL
cdef unsigned long long generation
# One that rises whenever everything that is prepared is dropped, as it is then, too.
cdef unsigned long long flushes
# Whether this thread runs ops, and builds no graph.
cdef bint eager() except -1
# Whether it runs them on the host, at once and unobserved: what it makes, TensorFlow
# would have made in the same place.
cdef bint on_host() except -1
# The same, wherever TensorFlow would place it.
cdef bint in_order() except -1
