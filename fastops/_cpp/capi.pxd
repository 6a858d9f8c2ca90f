from cpython.object cimport PyObject

from fastops._tf.eager cimport EagerContext, TFE_TensorHandle
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass CachedOp:
        CachedOp(EagerContext*, const NodeDef&, int)
        # Returns 0, 1 with a status, or -1 with a Python exception.
        int Run(TFE_TensorHandle**, int, const char*, PyObject**, Status*) except +
        int num_outputs()
