# distutils: language = c++
"""Slices of ``tf.Variable``, and assignments to them, in eager mode."""

cimport cython
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from fastops._call_site cimport CallSite
from fastops._cpp.python cimport PySequence_Fast_ITEMS, PyVectorcall_NARGS, call_object
from fastops._install.public.indexing cimport Masks, read_index
from fastops._install.replacement cimport Replacement, call_original, enable
from fastops._install.variables cimport graph_of, tell_tapes, unread, value_for

import sys

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import ops as _tf_ops


cdef str _MASKS = "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask"
cdef tuple _ARGUMENTS = tuple([
    sys.intern(name) for name in f"begin end strides value name {_MASKS}".split()
])
cdef CallSite _READ = CallSite("ReadVariableOp", "resource dtype")
cdef CallSite _SLICE = CallSite("StridedSlice", f"input begin end strides {_MASKS}")
cdef CallSite _ASSIGN = CallSite(
    "ResourceStridedSliceAssign", f"ref begin end strides value {_MASKS}"
)

cdef object _convert = _tf_ops.convert_to_tensor


@cython.final
@cython.no_gc_clear
cdef class VariableSlice(Replacement):
    """Stand-in for ``__getitem__``, whose result has a function that assigns to the slice."""

    def __init__(self, original):
        super().__init__(original)
        self.vectorcall = _slice


cdef PyObject* _slice(PyObject* callable, PyObject* const* args, size_t nargsf,
                      PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    cdef Masks masks
    cdef SliceAssignment assign
    cdef list begins = [], ends = [], strides = []
    graph = None
    if keywords == NULL and PyVectorcall_NARGS(nargsf) == 2:
        graph = graph_of(self, args[0])
    if graph is None or not read_index(<object>args[1], begins, ends, strides, &masks):
        return call_original(self, args, nargsf, keywords)
    variable = <object>args[0]
    bounds = (begins, ends, strides)
    flags = (masks.begin, masks.end, masks.ellipsis, masks.new_axis, masks.shrink_axis)
    tell_tapes(variable, graph)
    variable._variable_read = True
    value = _READ.run((variable._handle, variable._dtype))
    try:
        result = _SLICE.run((value, *bounds, *flags))
    except Exception:  # TensorFlow will raise the error, which has the name of the call
        return call_original(self, args, nargsf, keywords)
    assign = SliceAssignment.__new__(SliceAssignment)
    assign.variable, assign.bounds, assign.flags = variable, bounds, flags
    assign.scope_name = _tf_context._context._thread_local_data.scope_name
    result.assign = assign
    Py_INCREF(result)
    return <PyObject*>result


@cython.final
cdef class SliceAssignment:
    """The function ``assign`` of a slice of a variable."""

    cdef object variable, scope_name
    cdef tuple bounds, flags

    def __call__(self, val, name=None):
        """Assign a value to the slice, and return the variable."""
        if name is None:
            name = f"{self.scope_name or ''}strided_slice/_assign"
        method = self.variable._strided_slice_assign
        arguments = (*self.bounds, val, name, *self.flags)
        return call_object(
            <PyObject*>method, PySequence_Fast_ITEMS(<PyObject*>arguments), 0,
            <PyObject*>_ARGUMENTS,
        )


@cython.final
@cython.no_gc_clear
cdef class AssignSlice(Replacement):
    """Stand-in for ``_strided_slice_assign``."""

    def __init__(self, original):
        super().__init__(original)
        self.vectorcall = _assign_slice


cdef PyObject* _assign_slice(PyObject* callable, PyObject* const* args, size_t nargsf,
                             PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    if (
        PyVectorcall_NARGS(nargsf) != 1 or keywords == NULL or <object>keywords != _ARGUMENTS
    ):
        return call_original(self, args, nargsf, keywords)
    variable, graph, value = <object>args[0], graph_of(self, args[0]), None
    if graph is not None:
        value = value_for(variable, <object>args[4])
    if value is None:
        return _assign_in_python(self, args, nargsf, keywords)
    begin, end, strides = <object>args[1], <object>args[2], <object>args[3]
    try:
        result = _ASSIGN.run((
            variable._handle, begin, end, strides, value, <object>args[6], <object>args[7],
            <object>args[8], <object>args[9], <object>args[10],
        ))
    except Exception:  # TensorFlow will raise the error, which has the name of the call
        return _assign_in_python(self, args, nargsf, keywords)
    result = unread(variable, graph, result)
    Py_INCREF(result)
    return <PyObject*>result


cdef PyObject* _assign_in_python(Replacement self, PyObject* const* args, size_t nargsf,
                                 PyObject* keywords) except NULL:
    """Call the original with tensors in the places of lists: its errors depend on that."""
    cdef PyObject* given[11]
    cdef int i
    bounds = [_convert(<object>args[i]) for i in range(1, 4)]
    for i in range(11):
        given[i] = PyList_GET_ITEM(bounds, i - 1) if 0 < i < 4 else args[i]
    return call_original(self, given, nargsf, keywords)


METHODS = {"__getitem__": VariableSlice, "_strided_slice_assign": AssignSlice}
"""By name of a method, the class of its replacement."""

enable(VariableSlice)
enable(AssignSlice)
