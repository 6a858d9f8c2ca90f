from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from fastops._core.base cimport BaseOp
from fastops._core.schema cimport FASTOPS_MAX_PARAMS
from fastops._cpp.frame cimport Frame
from fastops._cpp.options cimport Options
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


# The keywords of a call site, and the slot of each of its arguments.
cdef struct CallShape:
    PyObject* keywords  # owned, a tuple
    unsigned char slots[FASTOPS_MAX_PARAMS]


# The arguments of a call, and the TensorFlow function that runs it if fastops does not.
cdef struct Invocation:
    PyObject* target     # TensorFlow's function, borrowed; null: the op's function in tf.raw_ops
    PyObject* const* args
    size_t nargsf
    PyObject* keywords
    bint raises_status   # whether errors are raised as TFE_Py_FastPathExecute raises them
    int counts           # 1; 0 for a nested call, whose outer call is counted already
    PyObject* observer   # the Observer of the call, borrowed; null if there is none


cdef inline void begin(Invocation* call, PyObject* target, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) noexcept:
    call.target = target
    call.args = args
    call.nargsf = nargsf
    call.keywords = keywords
    call.raises_status = False
    call.counts = 1
    call.observer = NULL


cdef class Op(BaseOp):
    cdef vectorcall_t vectorcall
    cdef CallShape shapes[FASTOPS_CALL_SHAPES]
    cdef int next_shape

    # Puts the arguments of a call into their slots. Returns False for an unknown keyword, and for
    # an op that is not loaded.
    cdef int bind(self, PyObject* const* args, PyObject* keywords, PyObject** slots) except -1
    # Returns the slots for arguments with these keywords. Null if `bind` would return False.
    cdef const unsigned char* call_shape(self, PyObject* keywords) except? NULL
    # Prepares the kernel for a call that TensorFlow has already run.
    cdef int prepare(self, PyObject** slots) except -1


# Runs a call whose arguments are in their slots. The op must be loaded.
cdef PyObject* run_op(Op op, PyObject** slots, Invocation* call) except NULL
# Passes a call of an op that is excluded from the direct path to TensorFlow. Only a profile counts
# the call.
cdef PyObject* run_elsewhere(Op op, Invocation* call) except NULL
# Returns R_DIRECT if this thread may run kernels now, otherwise the reason why not. The device name
# is borrowed from the thread's state.
cdef int gate(PyObject** device_name) except -1
# Flattens the inputs into the frame. Returns R_DIRECT if a kernel may take them, otherwise the
# reason why not.
cdef int collect(Op op, PyObject** slots, Frame* frame) except -1
# Records an op on the gradient tapes and the forward accumulators. `attrs` are in the form that
# gradient functions receive.
# Notifies tapes and variable watchers that a variable is read.
cdef int tell_watchers(object variable) except -1
# Makes the tensor that `tf.constant` makes of numbers, strings, small arrays and lists of these.
# Returns None if TensorFlow has to convert the value.
cdef object constant(object value, DataType dtype)
# Packs a list that contains tensors into one tensor. Returns None if TensorFlow has to do it.
cdef object pack_list(object value, DataType dtype)
# The state that current kernels are built for; borrowed.
cdef Runtime* runtime() except NULL
