from cpython.object cimport PyObject, PyTypeObject
from libcpp cimport bool
from libcpp.vector cimport vector

from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass TensorflowSession "tensorflow::Session":
        pass

    # Null, without an exception, unless the session runs this graph. The type is `PyGraph`.
    TensorflowSession* SessionOf(PyObject* session, PyObject* graph, PyTypeObject*)

    cdef cppclass NativeSessionVariables:
        Status Add(const NodeDef&) except +
        bool Find(TensorflowSession*, const vector[int]&, vector[int]* changed) except +
        Status Handle(int, const Runtime&, Tensor*) except +

    object WrapHandle(Tensor, const Runtime&)
