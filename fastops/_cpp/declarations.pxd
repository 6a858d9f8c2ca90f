from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass Sizes:
        Sizes()
        size_t size()
        void resize(size_t)
        bool operator==(const Sizes&)
        void push_back(int64_t)
        int64_t& operator[](size_t)

    bool IsEagerTensor(PyObject*)
