# distutils: language = c++
"""Iteration over tensors: ``for x in tensor``, ``list(tensor)``, ``a, b = tensor``.

TensorFlow's iterator makes each element by ``tensor[i]``. While no tape records and no observer or
patch would notice the op, the stand-in makes an element without an op.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_SetNone
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_INCREF

from fastops._core.tensors cimport host_tensor, rank_of, row_of, size_of
from fastops._core.threads cimport this_thread
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.options cimport Thread, kAuto
from fastops._cpp.python cimport PyLong_AsLongLongAndOverflow, PyLong_Type, PyVectorcall_NARGS
from fastops._install.public.lowering cimport Lowering, Site
from fastops._install.replacement cimport Replacement, call_original, live, replacing
from fastops._situation cimport EAGERLY, IN_ORDER, NO_TAPE, ONLY_HOST, missing
from fastops._specialize.guards.names cimport Guard, holds
from fastops._tf.tensor cimport Tensor

from tensorflow.python.framework.tensor import Tensor as _Tensor, _TensorIterator


cdef PyTypeObject* _iterator_type = <PyTypeObject*>_TensorIterator
cdef str _GETITEM = "__getitem__"


cdef bint _unwatched() except -1:
    """Whether an element may be made without the op that TensorFlow runs for it."""
    cdef Thread* thread = this_thread()
    cdef PyObject* getitem
    cdef Guard guard
    if (
        thread.options.path != kAuto
        or thread.observer != NULL
        or missing(IN_ORDER | ONLY_HOST | NO_TAPE)
    ):
        return False
    # Other code may have patched the method, or a function that it calls.
    getitem = PyDict_GetItem(<object>(<PyTypeObject*>_Tensor).tp_dict, _GETITEM)
    if getitem == NULL or Py_TYPE(<object>getitem) != <PyTypeObject*>Lowering:
        return False
    guard = (<Replacement>getitem).guard
    if guard is not None and not holds(guard):
        return False
    for site in (<Lowering>getitem).sites or ():
        return (<Site>site).passable()
    return False


def advance(original):
    """Return the stand-in for ``__next__`` of the iterator over a tensor."""
    return replacing(original, _next)


cdef PyObject* _next(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    cdef const Tensor* tensor
    cdef PyObject* row
    cdef int overflow = 0
    cdef long long index
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 1
        or Py_TYPE(<object>args[0]) != _iterator_type
        or not live
    ):
        return call_original(self, args, nargsf, keywords)
    iterator = <object>args[0]
    of, position = iterator._tensor, iterator._index
    tensor = host_tensor(<PyObject*>of)
    if tensor == NULL or Py_TYPE(position) != &PyLong_Type:
        return call_original(self, args, nargsf, keywords)
    if position == iterator._limit:
        PyErr_SetNone(StopIteration)
        return NULL
    index = PyLong_AsLongLongAndOverflow(position, &overflow)
    if overflow or not _unwatched():
        return call_original(self, args, nargsf, keywords)
    row = row_of(tensor, index)
    if row == NULL:
        return call_original(self, args, nargsf, keywords)
    iterator._index = index + 1
    return row


def iterate(original):
    """Return the stand-in for ``tf.Tensor.__iter__``."""
    return replacing(original, _iter)


cdef PyObject* _iter(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    cdef const Tensor* tensor
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 1
        or not IsEagerTensor(args[0])
        or not live
        or missing(EAGERLY)
    ):
        return call_original(self, args, nargsf, keywords)
    tensor = host_tensor(args[0])
    if tensor == NULL or rank_of(tensor) == 0:
        return call_original(self, args, nargsf, keywords)
    result = _TensorIterator.__new__(_TensorIterator)
    result._tensor = <object>args[0]
    result._index = 0
    result._limit = size_of(tensor, 0)
    Py_INCREF(result)
    return <PyObject*>result


METHODS = (
    ("tf.Tensor.__iter__", _Tensor, "__iter__", iterate),
    ("tf.Tensor.__iter__.__next__", _TensorIterator, "__next__", advance),
)
"""The patch points: the name, the class, the attribute, and the function that makes the
replacement."""
