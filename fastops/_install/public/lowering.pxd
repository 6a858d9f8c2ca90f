cimport cython
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM

from fastops._cpp.python cimport PyFloat_Type, PyLong_Type
from fastops._dispatch cimport Invocation, Op
from fastops._install.replacement cimport Replacement


cdef enum:
    MAX_PARAMS = 16
    MAX_KEPT = 8

cdef enum:  # outcomes of a lowering
    NOT_LOWERED  # fall back to TensorFlow
    CHOSEN       # run the op of `site` with `values`
    DONE         # `result` is the result
    CALLING      # calling `result` without arguments gives the result
    RAISING      # `result` is the exception that the user gets

# A call while it is lowered.
cdef struct Draft:
    PyObject* values[MAX_PARAMS]  # the arguments: borrowed from the call or from `kept`
    int site                      # index of the chosen site
    unsigned int copies           # bit i: values[i] is the copy of an array
    PyObject* kept[MAX_KEPT]      # owned references
    int num_kept
    PyObject* result              # owned: the result, the function to call, or the exception
    int unpacked                  # how many levels of one-element lists to unpack from the result

ctypedef int (*lowering_t)(Lowering, Draft*) except -1


@cython.final
cdef class Site:
    cdef Op op
    cdef dict namespace
    cdef str attribute
    cdef object generated
    cdef unsigned char slots[MAX_PARAMS]
    cdef tuple constants
    cdef unsigned char constant_slots[MAX_PARAMS]
    cdef unsigned long long dtypes

    cdef int source(self, int i) noexcept
    cdef bint keeps_dtypes(self, Draft* draft) except -1

    cdef bint passable(self)
    cdef PyObject* run(self, PyObject** values, Py_ssize_t num_values,
                       Invocation* call) except NULL


@cython.final
cdef class Lowering(Replacement):
    cdef tuple names
    cdef int num_params
    cdef int num_values     # parameters, followed by the values that the lowering makes
    cdef int num_required
    cdef int name_param
    cdef tuple defaults
    cdef unsigned char kinds[MAX_PARAMS]
    cdef int lead           # index of the first tensor parameter, -1 if there is none
    cdef object make_sites
    cdef tuple sites
    cdef lowering_t lowering
    cdef tuple handlers
    cdef tuple num_handlers
    cdef object beyond      # the fallback: called if a call is not lowered

    cdef bint bind(self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                   PyObject** values) except -1
    cdef bint fits(self, Draft* draft) except -1
    cdef int choose(self, Draft* draft) except -1


cdef int register(str name, lowering_t lowering) except -1
cdef lowering_t find(str name) except NULL
# Whether a value is an EagerTensor, or a variable that TensorFlow reads in the usual way.
cdef bint is_tensor(PyObject* value) noexcept
cdef bint may_run(Lowering self) except -1


cdef inline Op op_at(Lowering self, Py_ssize_t i):
    return (<Site>PyTuple_GET_ITEM(self.sites, i)).op


cdef inline PyObject* keep(Draft* draft, object value) noexcept:
    """Keep a value alive until the call ends."""
    Py_INCREF(value)
    draft.kept[draft.num_kept] = <PyObject*>value
    draft.num_kept += 1
    return <PyObject*>value


cdef inline int done(Draft* draft, object result) noexcept:
    Py_INCREF(result)
    draft.result = <PyObject*>result
    return DONE


cdef inline int failed(Draft* draft, object error) noexcept:
    """Raise an exception after something was done that TensorFlow must not do again."""
    Py_INCREF(error)
    draft.result = <PyObject*>error
    return RAISING


cdef inline bint is_number(PyObject* value) noexcept:
    return Py_TYPE(<object>value) == &PyFloat_Type or Py_TYPE(<object>value) == &PyLong_Type
