# tensorflow/core/framework/node_def_util.h
from fastops._tf.protos cimport NodeDef, OpDef


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    void AddDefaultsToNodeDef(const OpDef& op_def, NodeDef* node)
