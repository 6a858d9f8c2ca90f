from cpython.object cimport PyObject

from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport DataType


cdef extern from "declarations.h" namespace "fastops":
    DataType ArrayDtype(PyObject*)
    # A new reference. Null without an exception: the array is TensorFlow's to convert.
    PyObject* CopyOfArray(PyObject*, DataType hint, const Runtime&)
