from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool

from fastops._cpp.declarations cimport Sizes
from fastops._tf.protos cimport DataType
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    bool IsLocal(PyObject*)
    Sizes ShapeOf(const Tensor&)
    bool HasShape(const Tensor&, PyObject*)
    bool SameBytes(const Tensor&, const Tensor&)
    bool IntsOf(const Tensor&, Sizes*)
    bool IsTruth(const Tensor&, bool*)
    PyObject* RowOf(const Tensor&, int64_t) except? NULL
    bool ReducedAxes(const Sizes&, const Sizes&, Sizes*, Sizes*)
    # The following functions return new references.
    object CopyOf(const Tensor&)
    object WrapOnHost(Tensor)
    object IntTensor(const Sizes&, DataType, int)
    object OnesLike(const Tensor&)
