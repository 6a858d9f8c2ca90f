from cpython.object cimport PyObject
from libcpp cimport bool


cdef extern from "options.h" namespace "fastops":
    enum Path "fastops::Path":
        kAuto "fastops::Path::kAuto"
        kDirect "fastops::Path::kDirect"
        kCapi "fastops::Path::kCapi"
        kTensorflow "fastops::Path::kTensorflow"

    enum Threads "fastops::Threads":
        kAutoThreads "fastops::Threads::kAuto"
        kCaller "fastops::Threads::kCaller"
        kPool "fastops::Threads::kPool"

    enum OnFallback "fastops::OnFallback":
        kIgnore "fastops::OnFallback::kIgnore"
        kWarn "fastops::OnFallback::kWarn"
        kLog "fastops::OnFallback::kLog"
        kRaise "fastops::OnFallback::kRaise"

    cdef cppclass Options:
        Path path
        OnFallback on_fallback
        Threads threads
        bool onednn

    cdef cppclass Thread:
        Options options
        long number
        PyObject* underway
        PyObject* observer
        PyObject* measurement

    Thread& ThisThread()
    Thread& DefaultThread()
