from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.kernel cimport Manner
from fastops._cpp.runtime cimport Runtime
from fastops._tf.op_kernel cimport OpKernel, TensorValue
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status


cdef extern from "declarations.h" namespace "fastops":
    const int64_t SEED "fastops::SeededKernel::kSeed"
    const int64_t SEED2 "fastops::SeededKernel::kSeed2"

    cdef cppclass SeededKernel:
        @staticmethod
        shared_ptr[SeededKernel] Make(const Runtime&, NodeDef, int, bool) except +
        bool busy()
        # Returns 0, 1 with a status, or -1 with a Python exception.
        int Run(int64_t, int64_t, const TensorValue*, PyObject**, Status*, Manner*) except +

    cdef cppclass GuardedPhiloxRandom "tensorflow::GuardedPhiloxRandom":
        pass

    cdef cppclass DrawSequence:
        GuardedPhiloxRandom* guarded
        int64_t seed
        int64_t seed2
        void Begin()

    GuardedPhiloxRandom* GeneratorOf(OpKernel*, bool sampler, int64_t, int64_t)

    const uint32_t UNDRAWN "fastops::SeedPairs::kNone"
    const uint32_t IN_TENSORFLOW "fastops::SeedPairs::kTensorFlow"

    cdef cppclass SeedPair "fastops::SeedPairs::Pair":
        int64_t seed
        int64_t seed2
        uint32_t number

    cdef cppclass SeedPairs:
        @staticmethod
        bool CanStore(int64_t, int64_t)
        uint32_t Find(int64_t, int64_t)
        void Store(int64_t, int64_t, uint32_t)
        void Clear()
        size_t size()
        vector[SeedPair] Unknown()

    string DrawSizes(const TensorValue*, int, unsigned long long)
