from cpython.object cimport PyObject

cdef object call_context()
cdef dict names_given()
cdef int give_names(dict counts) except -1
cdef tuple read_scopes(PyObject* entry)
