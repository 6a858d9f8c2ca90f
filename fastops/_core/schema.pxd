from fastops._cpp.frame cimport Frame
from fastops._cpp.opdef cimport OpFacts
from fastops._cpp.tape cimport RecordedOp
from fastops._tf.protos cimport NodeDef
from cpython.object cimport PyObject

cdef extern from *:
    # The longest parameter list of TensorFlow's registry has 31 entries (LoadTPUEmbedding...).
    """
    #define FASTOPS_MAX_PARAMS 64
    """
    enum: FASTOPS_MAX_PARAMS


cdef class Schema:
    cdef readonly str op_name
    cdef bytes op_name_bytes
    cdef OpFacts facts
    cdef const RecordedOp* recorded  # null until a tape first records the op
    cdef tuple keywords             # interned parameter names, "name" last
    cdef int num_params             # 0 until the op is loaded
    cdef int num_inputs
    cdef int num_attrs
    cdef unsigned char input_slots[FASTOPS_MAX_PARAMS]
    cdef unsigned char attr_slots[FASTOPS_MAX_PARAMS]
    cdef list attr_names            # OpDef names of the explicit attributes
    cdef list attr_defaults
    cdef list attr_kinds            # int, float or bool; None for attributes of other kinds
    cdef bint direct                # whether any call may take the direct path
    cdef bint never                 # whether no call may, whichever TensorFlow is running
    cdef bint handles               # state lives behind resource handles
    cdef bint unbounded             # the kernel runs without the GIL even for small inputs
    cdef bint thorough              # kernels get a full context: see PreparedKernel::Describe
    cdef bint makes                 # whether each call creates a new resource, unless it is named
    cdef bint seeded                # whether `draws` can make a call with seeds
    cdef int num_binding            # number of attributes that bind a call to TensorFlow's kernel
    cdef unsigned char binding[FASTOPS_MAX_PARAMS]  # the slots of these attributes

    cdef int read(self, record) except -1
    cdef bint is_bound(self, PyObject** slots) except -1
    cdef bint encode(self, PyObject** slots, Frame* frame, NodeDef* node) except -1
    cdef bint attrs_are_taken(self, PyObject** slots) except -1
    cdef bint attrs_stay(self, PyObject** slots) except -1
    cdef tuple attrs_for_gradient(self, tuple given, Frame* frame)
    cdef tuple attrs_of_call(self, PyObject** slots)
    cdef tuple changes(self, list known, tuple wanted)


cdef bint unknown_kernels   # whether TensorFlow chooses kernels in a way that fastops does not know
