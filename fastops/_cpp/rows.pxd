from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from fastops._tf.device cimport Device
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass SeedLog:
        int64_t elements()
        void Restore(int64_t)
        void Keep() except +
        void SetKept()

    cdef cppclass RowPlan:
        pass

    cdef cppclass RowSource:
        RowSource()
        const shared_ptr[const RowPlan]& plan()
        const vector[Tensor]& columns()
        bool batched()

        @staticmethod
        bool Read(const Tensor&, Device*, RowSource*) except +

    bool IsInputOf(const Tensor&, const Tensor&) except +

    cdef cppclass RowReader:
        RowReader(shared_ptr[const RowPlan], vector[Tensor], bool) except +
        SeedLog* log()
        # A new list; None at the end.
        object Take() except +
