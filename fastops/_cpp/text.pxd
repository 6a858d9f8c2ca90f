from libcpp.string cimport string

from fastops._tf.status cimport Status


cdef extern from "declarations.h" namespace "fastops":
    string Message(const Status&)
    int RaiseNotOk(const Status&, const string&, const string&) except -1
