# tensorflow/c/eager/c_api.h, tensorflow/python/eager/pywrap_tfe.h
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libcpp cimport bool

from fastops._tf.protos cimport DataType


cdef extern from "declarations.h" nogil:
    ctypedef struct TFE_Context:
        pass
    ctypedef struct TFE_TensorHandle:
        pass


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    cdef cppclass EagerContext:
        pass


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    TFE_Context* wrap(EagerContext*)


cdef extern from "declarations.h":
    TFE_TensorHandle* EagerTensor_Handle(PyObject* tensor)
    # Takes ownership of the handle. Null with a Python exception.
    PyObject* EagerTensorFromHandle(TFE_TensorHandle* handle)
    # New reference. Null with a Python exception.
    PyObject* GetPyEagerContext()
    # New references.
    PyObject* TFE_Py_TapeSetNew(PyObject* persistent, PyObject* watch_accessed_variables)
    PyObject* TFE_Py_TapeWatchedVariables(PyObject* tape)
    void TFE_Py_TapeSetRemove(PyObject* tape)
    PyObject* TFE_Py_TapeSetIsEmpty()
    PyObject* TFE_Py_RecordGradient(
        PyObject* op_name, PyObject* inputs, PyObject* attrs, PyObject* results, PyObject* scope
    )
    void TFE_Py_TapeSetStopOnThread()
    void TFE_Py_TapeSetRestartOnThread()
    void TFE_Py_TapeWatch(PyObject* tape, PyObject* tensor)
    void TFE_Py_TapeVariableAccessed(PyObject* variable)
    void TFE_Py_VariableWatcherVariableAccessed(PyObject* variable)


cdef extern from "declarations.h" namespace "tensorflow":
    cdef cppclass Safe_PyObjectPtr:
        PyObject* get()


cdef extern from "declarations.h" namespace "tensorflow":
    cdef cppclass EagerContextThreadLocalData:
        bool is_eager
        Safe_PyObjectPtr device_name
        Safe_PyObjectPtr op_callbacks
        Safe_PyObjectPtr function_call_options

    # Null with a Python exception.
    EagerContextThreadLocalData* GetEagerContextThreadLocalData(PyObject* py_context)


cdef extern from "Python.h":
    PyObject* Py_False


cdef inline bint recording() noexcept:
    """Whether a tape or an accumulator of this thread records what runs."""
    empty = TFE_Py_TapeSetIsEmpty()
    Py_DECREF(<object>empty)
    return empty == Py_False
