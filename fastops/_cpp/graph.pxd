from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.runtime cimport Runtime
from fastops._tf.device cimport Device
from fastops._tf.eager cimport TFE_TensorHandle
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status


cdef extern from "declarations.h" namespace "fastops":
    Status ExecutedGraphs(
        const Runtime&, const NodeDef&, const vector[TFE_TensorHandle*]&,
        const vector[string]& names, vector[string]*, Device** preferred
    ) except +
