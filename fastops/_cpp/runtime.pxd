from cpython.object cimport PyObject
from libcpp cimport bool
from libcpp.string cimport string

from fastops._tf.device cimport Device
from fastops._tf.eager cimport EagerContext
from fastops._tf.protos cimport NodeDef


cdef extern from "declarations.h" namespace "fastops":
    enum class Devices:
        kNone
        kPlugins
        kAll

    cdef cppclass Runtime:
        PyObject* py_context
        EagerContext* context
        Device* host
        bool deterministic
        bool only_host
        const char* host_name
        void Clear()
        bool Capture(PyObject*, Devices)
        bool Current(PyObject*)

    cdef cppclass ThreadRunner:
        pass

    ThreadRunner* RunnerOf(EagerContext*, Device*)
    Device* LocalDevice(const Runtime&, const string&)
    bool IsCustom(const Runtime&, const string&)
    bool IsOnlyDevice(const Runtime&, const char*)
    bool PlacedOnHost(const Runtime&, const NodeDef&, const string&)
    bool Remote(const Runtime&)
    bool Async(const Runtime&)
    bool Observed(const Runtime&)
    bool OneDnnEnabled()
    bool StoresGraphs(const Runtime&)
    const char* UnknownKernels()
