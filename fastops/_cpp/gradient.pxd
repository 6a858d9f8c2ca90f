from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool

from fastops._tf.protos cimport DataType
from fastops._tf.tensor cimport Tensor


cdef extern from "gradient.h" namespace "fastops":
    cdef cppclass Sizes:
        Sizes()
        size_t size()
        void push_back(int64_t)
        int64_t& operator[](size_t)

    bool IsLocal(PyObject*)
    Sizes ShapeOf(const Tensor&)
    bool HasShape(const Tensor&, PyObject*)
    bool IntsOf(const Tensor&, Sizes*)
    bool ReducedAxes(const Sizes&, const Sizes&, Sizes*, Sizes*)
    # New references.
    object IntTensor(const Sizes&, DataType, int)
    object OnesLike(const Tensor&)
