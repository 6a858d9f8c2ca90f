# Parts of Python's C API that Cython does not declare, or declares with different types.
from cpython.object cimport PyObject, PyTypeObject


cdef extern from "Python.h":
    # Borrowed from the interpreter, for comparisons.
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    PyTypeObject PyBool_Type
    PyTypeObject PyFloat_Type
    PyTypeObject PyLong_Type
    unsigned long Py_TPFLAGS_METHOD_DESCRIPTOR

    Py_ssize_t PyVectorcall_NARGS(size_t)
    object PyVectorcall_Call(object, object, object)
    PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*)
    object call_object "PyObject_Vectorcall"(PyObject*, PyObject* const*, size_t, PyObject*)

    PyObject** PySequence_Fast_ITEMS(PyObject*)
    PyObject* _PyType_Lookup(PyTypeObject*, PyObject*)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    const char* PyUnicode_AsUTF8(PyObject*) except NULL
    void PyObject_GC_UnTrack(PyObject*)
