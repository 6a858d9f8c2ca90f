# distutils: language = c++
"""Functions that pipelines map over elements, run in the calling thread by TensorFlow's kernel.

TensorFlow instantiates the functions for each iterator, which takes milliseconds, and runs them in
threads. Here one iterator of TensorFlow's runs the functions for all iterators of a dataset. Its
pipeline repeats the same tensors without end, and maps the functions over them. An element is
copied into the memory of these tensors before they are mapped.
"""

cimport cython
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.string cimport memcpy

from fastops._cpp.handle cimport HostTensor
from fastops._cpp.python cimport call_object
from fastops._cpp.tensors cimport CopyOf
from fastops._dispatch cimport Op
from fastops._specialize.policy cimport MAX_MAPPED_NS, now
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

import sys
import threading


cdef tuple _KEYWORDS = tuple(
    [sys.intern(name) for name in ("iterator", "output_types", "output_shapes")]
)
cdef Op _get_next = Op("IteratorGetNext")
cdef int _TRIALS = 4  # runs after which it is known how long the functions take


@cython.final
cdef class MappedFunctions:
    """The functions that a pipeline maps over its elements.

    Parameters
    ----------
    make : callable
        Given the tensors of an element, returns the resource of an iterator that maps the functions
        over these tensors without end. It must not change the tensors.
    dtypes, shapes : list
        The dtypes and shapes of the results.
    """

    def __init__(self, make, list dtypes, list shapes):
        self.make, self.dtypes, self.shapes = make, dtypes, shapes
        self.lock = threading.RLock()
        self.sources = {}
        self.shortest_ns = -1

    cdef list results(self, list tensors):
        cdef const Tensor* first = HostTensor(<PyObject*>tensors[0])
        cdef long long begin
        cdef long long duration
        key = first.dim_size(0) if first.dims() else -1
        source = self.sources.get(key)
        try:
            if source is None:
                inputs = [CopyOf(deref(HostTensor(<PyObject*>tensor))) for tensor in tensors]
                source = self.sources[key] = (self.make(inputs), inputs)
            resource, inputs = source
            if not _copy_into(inputs, tensors):
                self.declined = True
                return None
            begin = now()
            results = self._run(resource)
            duration = now() - begin
        except Exception:
            self.declined = True  # the iterator that TensorFlow makes has the exception, too
            return None
        self.num_runs += 1
        if self.shortest_ns < 0 or duration < self.shortest_ns:
            self.shortest_ns = duration
        if self.num_runs == _TRIALS and self.shortest_ns > MAX_MAPPED_NS:
            self.declined = True
        return [_apart(result, inputs) for result in results]

    cdef list _run(self, resource):
        cdef PyObject* args[3]
        args[0] = <PyObject*>resource
        args[1] = <PyObject*>self.dtypes
        args[2] = <PyObject*>self.shapes
        return call_object(<PyObject*>_get_next, args, 0, <PyObject*>_KEYWORDS)


cdef bint _copy_into(list inputs, list tensors) except -1:
    """Copy an element into the tensors that are mapped. Return False if their shapes differ."""
    cdef Py_ssize_t i
    cdef const Tensor* source
    cdef const Tensor* target
    for i in range(len(tensors)):
        source = HostTensor(<PyObject*>tensors[i])
        target = HostTensor(<PyObject*>inputs[i])
        if not source.IsSameSize(deref(target)):
            return False
        memcpy(target.data(), source.data(), source.TotalBytes())
    return True


cdef object _apart(object result, list inputs):
    """Return a result that does not share the memory of a tensor that is mapped."""
    cdef const Tensor* tensor = HostTensor(<PyObject*>result)
    cdef const Tensor* other
    cdef const char* data = <const char*>tensor.data()
    for given in inputs:
        other = HostTensor(<PyObject*>given)
        if <const char*>other.data() <= data < <const char*>other.data() + other.TotalBytes():
            return CopyOf(deref(tensor))
    return result
