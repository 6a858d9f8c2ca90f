from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.draws cimport DrawSequence
from fastops._cpp.kernel cimport PreparedKernel
from fastops._cpp.options cimport Threads
from fastops._cpp.placed cimport PlacedKernel
from fastops._cpp.runtime cimport ThreadRunner
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    enum StepKind "fastops::NativeStep::StepKind":
        kKernel "fastops::NativeStep::kKernel"
        kRead "fastops::NativeStep::kRead"
        kCopy "fastops::NativeStep::kCopy"
        kSwitch "fastops::NativeStep::kSwitch"
        kMerge "fastops::NativeStep::kMerge"
        kLoop "fastops::NativeStep::kLoop"
        kNothing "fastops::NativeStep::kNothing"

    cdef cppclass NativeStep:
        StepKind kind
        int number
        string location
        shared_ptr[PreparedKernel] kernel
        shared_ptr[PlacedKernel] placed
        vector[int] inputs
        vector[int] outputs
        vector[int] shared
        vector[int] releases
        vector[int] needs
        int control
        bool seeded
        vector[NativeStep] enters
        vector[NativeStep] body
        vector[NativeStep] exits
        vector[int] entered
        vector[int] current
        vector[int] next
        int condition
        void Want(int, const vector[int64_t]&) except +
        void Check(int, const Tensor&) except +

    cdef cppclass Times:
        vector[int64_t] runs
        vector[int64_t] ns

    cdef cppclass Borrowed:
        Borrowed()
        size_t size()
        void push_back(const Tensor*)

    cdef cppclass ArgumentKinds:
        void Assign(const Borrowed&) except +
        bool Match(const Borrowed&)

    cdef cppclass Made:
        Made()
        size_t size()
        Tensor& operator[](size_t)
        void clear()
        void push_back(const Tensor&) except +

    cdef cppclass NativePlan:
        vector[NativeStep] steps
        vector[int] arguments
        vector[int] results
        vector[int] transient
        bool conditional
        const ThreadRunner* runner
        Times times
        vector[DrawSequence] sequences
        void Resize(int)
        Status Fix(const PreparedKernel&, int) except +
        Status FixPlaced(const PlacedKernel&, int) except +
        void Hold(int, const Tensor&)
        void Release(int)
        void CopyTo(NativePlan*)
        bool CatchUp(int64_t) except +
        int64_t PrimitiveRuns()
        # Borrows the arguments.
        Status Run(
            const Borrowed&, bool release_gil, Threads, bool measured, Made*,
            const NativeStep** failed
        ) except +

    bool Differs(const Status&)
