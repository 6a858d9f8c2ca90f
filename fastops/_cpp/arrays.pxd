from cpython.object cimport PyObject

from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport DataType


cdef extern from "declarations.h" namespace "fastops":
    # Of an array or a scalar of NumPy's that holds numbers; DT_INVALID of all else.
    DataType ArrayDtype(PyObject*)
    # New references. Null without an exception: it is TensorFlow's to convert.
    PyObject* CopyOfArray(PyObject*, DataType hint, const Runtime&)
    PyObject* TensorOfSequence(PyObject*, DataType hint, const Runtime&)
