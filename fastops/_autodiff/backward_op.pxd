# A recorded op of which the backward pass needs the gradients, and accessors for rules. These are
# inline because rules call them often.
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._core.tensors cimport dtype_of, host_tensor, ints_of, local_tensor, rank_of
from fastops._cpp.declarations cimport Sizes
from fastops._tf.protos cimport (
    DT_BFLOAT16,
    DT_COMPLEX128,
    DT_COMPLEX64,
    DT_DOUBLE,
    DT_FLOAT,
    DT_HALF,
)
from fastops._tf.tensor cimport Tensor


# Pointers are borrowed from tuples that the caller keeps alive.
cdef struct BackwardOp:
    PyObject** inputs       # None for an input that the op's gradient does not need
    PyObject** outputs
    PyObject** grads
    Py_ssize_t num_inputs
    Py_ssize_t num_outputs
    Py_ssize_t num_grads
    PyObject* attrs         # names and values, alternating
    unsigned long long unused  # bit i: the tape does not use the gradient of input i
    bint recorded           # a tape or an accumulator records the ops that the rule runs


cdef inline object input_of(BackwardOp* op, Py_ssize_t i):
    if i >= op.num_inputs:
        raise IndexError("an op was recorded without its inputs")
    return <object>op.inputs[i]


cdef inline object output_of(BackwardOp* op, Py_ssize_t i):
    if i >= op.num_outputs:
        raise IndexError("an op was recorded without its outputs")
    return <object>op.outputs[i]


cdef inline object grad_of(BackwardOp* op):
    if op.num_grads == 0:
        raise IndexError("an op was recorded without its outputs")
    return <object>op.grads[0]


cdef inline bint wanted(BackwardOp* op, Py_ssize_t i) noexcept:
    return not (op.unused >> i) & 1


# For a gradient that TensorFlow's function computes even if the tape does not use it. If ops are
# recorded, the rule must compute it, too.
cdef inline bint computed(BackwardOp* op, Py_ssize_t i) noexcept:
    return op.recorded or wanted(op, i)


cdef inline object attr_of(BackwardOp* op, str name):
    cdef Py_ssize_t i
    for i in range(0, PyTuple_GET_SIZE(<object>op.attrs) - 1, 2):
        if <object>PyTuple_GET_ITEM(<object>op.attrs, i) == name:
            return <object>PyTuple_GET_ITEM(<object>op.attrs, i + 1)
    raise KeyError(name)


cdef inline tuple attrs_of(BackwardOp* op, tuple names):
    return tuple([attr_of(op, name) for name in names])


# Returns the tensor of a value on any device. Only its dtype and sizes may be read.
cdef inline const Tensor* tensor_of(object value) except NULL:
    cdef const Tensor* tensor = local_tensor(<PyObject*>value)
    if tensor == NULL:
        raise TypeError("an op was recorded without its tensors")
    return tensor


# Reads the elements of a tensor of int32 or int64 on the host. Returns False for other tensors.
cdef inline bint elements_of(object value, Sizes* elements) noexcept:
    cdef const Tensor* tensor = host_tensor(<PyObject*>value)
    return tensor != NULL and ints_of(tensor, elements)


cdef inline bint is_complex(object value) except -1:
    return dtype_of(tensor_of(value)) in (DT_COMPLEX64, DT_COMPLEX128)


cdef inline bint is_float(object value) except -1:
    return dtype_of(tensor_of(value)) in (DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16)


cdef inline bint is_scalar(object value) except -1:
    return rank_of(tensor_of(value)) == 0
