from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from fastops._cpp.runtime cimport Runtime
from fastops._tf.protos cimport DataType


cdef extern from "declarations.h" namespace "fastops":
    # The largest arrays that are copied: where TensorFlow may share memory, and where it copies.
    const int64_t kArrayBytes
    const int64_t kCopiedBytes
    # The dtype of a NumPy array or scalar that holds numbers; DT_INVALID for all other objects.
    DataType ArrayDtype(PyObject*)
    # `CopyOfArray` and `TensorOfSequence` return a new reference. Null without an exception means
    # that TensorFlow has to convert the value.
    PyObject* CopyOfArray(PyObject*, DataType hint, const Runtime&, int64_t most)
    PyObject* TensorOfSequence(PyObject*, DataType hint, const Runtime&)
