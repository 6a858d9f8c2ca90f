from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.plan cimport Made, NativePlan
from fastops._tf.device cimport Device
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass SeedLog:
        int64_t elements()
        void Restore(int64_t)
        void Keep() except +
        void ForbidOthers()
        void SetKept(bool)

    cdef cppclass RowPlan:
        pass

    Status RunMapped(NativePlan*, bool release_gil, Made*) except +

    cdef cppclass MappedFunction:
        string name
        bool batched

    cdef cppclass RowSource:
        RowSource()
        const shared_ptr[const RowPlan]& plan()
        const vector[Tensor]& columns()
        bool batched()
        const vector[MappedFunction]& functions()
        bool draws_first()

        @staticmethod
        bool Read(const Tensor&, Device*, RowSource*) except +

    enum Search "fastops::RowReader::Search":
        kRows "fastops::RowReader::kRows"
        kEnd "fastops::RowReader::kEnd"
        kOthersDraw "fastops::RowReader::kOthersDraw"

    cdef cppclass RowReader:
        RowReader(shared_ptr[const RowPlan], vector[Tensor], bool) except +
        SeedLog* log()
        Search Next() except +
        int64_t num_rows()
        Made Row(int64_t) except +
        Made Element() except +
        # A new list; None at the end.
        object Take() except +

        @staticmethod
        object ListOf(Made) except +

    cdef cppclass RowBatch:
        RowBatch(int64_t)
        bool Append(const Made&) except +
        Made& tensors()
