# distutils: language = c++
"""Floors for benchmarks of calls: the least work that a call can do."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cython.operator cimport dereference as deref
from libc.string cimport memset

from fastops._core.entries cimport Entry, Placing, placing_of
from fastops._core.reasons cimport R_DIRECT, R_INPUT_DEVICE
from fastops._core.schema cimport FASTOPS_MAX_PARAMS
from fastops._cpp.frame cimport Frame
from fastops._cpp.kernel cimport Manner
from fastops._cpp.python cimport Py_None
from fastops._cpp.vectorcall cimport EnableVectorcall, vectorcall_t
from fastops._dispatch cimport GIL_BYTES, INLINE_RESULTS, Op, collect, runtime
from fastops._tf.status cimport Status

cdef extern from "definitions.h":
    pass


@cython.final
cdef class CallFloor:
    """A callable that does nothing: the cost of a keyword call before any work."""

    cdef vectorcall_t vectorcall

    def __cinit__(self):
        self.vectorcall = _call_floor


cdef PyObject* _call_floor(PyObject* callable, PyObject* const* args, size_t nargsf,
                           PyObject* keywords) except NULL:
    Py_INCREF(None)
    return Py_None


@cython.final
cdef class BareKernel:
    """Runs the kernel of a call without the call: computes and wraps, but checks nothing.

    Parameters
    ----------
    op : Op
        An op whose call with these arguments takes the direct path.
    **arguments
        The arguments. Inputs must be EagerTensors (or lists of them) on the device that the kernel
        expects.

    Raises
    ------
    ValueError
        If the call does not take the direct path.
    """

    cdef vectorcall_t vectorcall
    cdef Entry entry
    cdef list tensors  # keeps the inputs alive
    cdef Frame* frame
    cdef Placing placing  # of a kernel on another device; None for one on the host
    cdef bint release_gil

    def __cinit__(self, Op op, **arguments):
        cdef PyObject* slots[FASTOPS_MAX_PARAMS]
        cdef long long before
        self.vectorcall = _call_bare
        self.frame = new Frame()
        op(**arguments)
        before = op.calls_direct
        op(**arguments)
        if op.calls_direct != before + 1:
            raise ValueError(f"{op.op_name} does not take the direct path with these arguments")
        self.entry = op.last
        self.tensors = list(arguments.values())
        memset(slots, 0, sizeof(slots))
        for name, value in arguments.items():
            slots[op.keywords.index(name)] = <PyObject*>value
        reason = collect(op, slots, self.frame)
        if self.entry.kernel.get() == NULL:
            self.placing = placing_of(self.entry, self.frame, runtime()[0])
            if self.placing is None or reason != R_DIRECT and reason != R_INPUT_DEVICE:
                raise ValueError("all inputs must be EagerTensors on the kernel's device")
        elif reason != R_DIRECT:
            raise ValueError("all inputs must be EagerTensors")
        self.release_gil = op.unbounded or self.frame.bytes > GIL_BYTES

    def __dealloc__(self):
        del self.frame


cdef PyObject* _call_bare(PyObject* callable, PyObject* const* args, size_t nargsf,
                          PyObject* keywords) except NULL:
    cdef BareKernel self = <BareKernel>callable
    cdef PyObject* results[INLINE_RESULTS]
    cdef Status status
    cdef Manner manner
    cdef int i, code
    if self.entry.num_outputs > INLINE_RESULTS:
        raise RuntimeError("the kernel has too many results")
    if self.placing is not None:
        code = deref(self.placing.kernel).Run(
            self.frame.handles, self.frame.size, results, &status
        )
    else:
        manner.release_gil = self.release_gil
        manner.bytes = self.frame.bytes
        code = deref(self.entry.kernel).Run(self.frame.tensors, results, &status, &manner)
    if code != 0:
        raise RuntimeError("the kernel failed")
    if self.entry.num_outputs == 1:
        return results[0]
    outputs = []
    for i in range(self.entry.num_outputs):
        outputs.append(<object>results[i])
        Py_DECREF(<object>results[i])
    Py_INCREF(outputs)
    return <PyObject*>outputs


cdef int _enable_vectorcall() except -1:
    cdef CallFloor floor = CallFloor.__new__(CallFloor)
    EnableVectorcall(<PyTypeObject*>CallFloor, <char*>&floor.vectorcall - <char*><void*>floor)
    # The first field has the same offset in both classes, since they have the same base.
    EnableVectorcall(<PyTypeObject*>BareKernel, <char*>&floor.vectorcall - <char*><void*>floor)
    return 0


_enable_vectorcall()
