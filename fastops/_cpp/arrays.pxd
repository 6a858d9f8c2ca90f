from cpython.object cimport PyObject

from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport DataType


cdef extern from "declarations.h" namespace "fastops":
    # The dtype of a NumPy array or scalar that holds numbers; DT_INVALID for all other objects.
    DataType ArrayDtype(PyObject*)
    # `CopyOfArray` and `TensorOfSequence` return a new reference. Null without an exception means
    # that TensorFlow has to convert the value.
    PyObject* CopyOfArray(PyObject*, DataType hint, const Runtime&)
    PyObject* TensorOfSequence(PyObject*, DataType hint, const Runtime&)
