from cpython.object cimport PyObject


cdef extern from "Python.h":
    """
    // The code of a frame, borrowed: the frame keeps it alive.
    static inline PyObject* CodeOf(PyFrameObject* frame) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      Py_DECREF(code);
      return (PyObject*)code;
    }

    // The method definition of a function that is written in C; null for other functions. All bound
    // methods of one function have the same definition.
    static inline const void* DefinitionOf(PyObject* function) {
      return PyCFunction_Check(function) ? ((PyCFunctionObject*)function)->m_ml : NULL;
    }
    """
    ctypedef struct PyFrameObject
    ctypedef int (*Py_tracefunc)(PyObject*, PyFrameObject*, int, PyObject*) except -1
    int PyTrace_CALL, PyTrace_RETURN, PyTrace_C_CALL
    void PyEval_SetProfile(Py_tracefunc function, object told)
    PyObject* CodeOf(PyFrameObject*)
    const void* DefinitionOf(PyObject*)
