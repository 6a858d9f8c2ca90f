# distutils: language = c++
"""The signature of a call: dtypes, shapes, Python values and structure of its arguments.

All code that reads signatures goes through this module, since the set of classes that signatures
know (`Known`) is a variable of one extension.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.runtime cimport Runtime
from fastops._cpp.signature cimport (
    Known, OfMethods, OfRecordings, OfTraces, Print, Signature,
)
from fastops._dispatch cimport runtime

cdef extern from "definitions.h":
    pass

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator as _OwnedIterator
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.sparse_tensor import SparseTensor as _SparseTensor
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape
from tensorflow.python.ops.ragged.ragged_tensor import RaggedTensor as _RaggedTensor
from tensorflow.python.ops.ragged.row_partition import RowPartition as _RowPartition
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable


cdef Runtime* _where = runtime()  # the address never changes; `gate` keeps the contents current

COMPOSITES = frozenset((_SparseTensor, _RaggedTensor, _RowPartition))
"""Classes whose instances consist of attributes: tensors, shapes, dtypes and other composites."""


cdef bint read_values(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                      PyObject* keywords) noexcept:
    return signature.Read[OfTraces](_where[0], args, positional, keywords, NULL)


cdef bint read_tensors(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                       PyObject* keywords) noexcept:
    return signature.Read[OfRecordings](_where[0], args, positional, keywords, NULL)


cdef bint read_method(Signature* signature, PyObject* const* args, Py_ssize_t positional,
                      PyObject* keywords, PyTypeObject* identified) noexcept:
    return signature.Read[OfMethods](_where[0], args, positional, keywords, identified)


cdef str text_of(bytes key):
    cdef string text = Print[OfRecordings](PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), _where[0])
    return text.decode("utf-8", "replace") or None


def describe(str policy, *args, **kwargs):
    """Return the signature of a call as text; None if the policy refuses an argument.

    Parameters
    ----------
    policy : {"traces", "recordings", "methods"}
        See the policies in `_cpp/signature.h`. "methods" takes instances of `tf.Module` itself by
        identity.
    *args, **kwargs
        The arguments of the call.
    """
    cdef Signature signature
    cdef vector[PyObject*] given
    cdef tuple names = tuple(kwargs)
    cdef PyObject* keywords = <PyObject*>names
    cdef Py_ssize_t n = len(args)
    cdef bint taken
    cdef string text
    for argument in (*args, *kwargs.values()):
        given.push_back(<PyObject*>argument)
    runtime()  # captures TensorFlow's context, as calls do before they read signatures
    if policy == "traces":
        taken = read_values(&signature, given.data(), n, keywords)
    elif policy == "recordings":
        taken = read_tensors(&signature, given.data(), n, keywords)
    else:
        taken = read_method(&signature, given.data(), n, keywords, <PyTypeObject*>tf.Module)
    if not taken:
        return None
    if policy == "traces":
        text = Print[OfTraces](signature.data(), signature.size(), _where[0])
    else:
        text = Print[OfRecordings](signature.data(), signature.size(), _where[0])
    return text.decode("utf-8", "replace") or None


def know_objects(classes):
    """Make `read_tensors` support instances of more classes.

    Parameters
    ----------
    classes : dict of type to frozenset of str
        By class, the names of attributes that no recorded method reads. The other attributes
        describe an instance completely.
    """
    global _objects
    _objects = dict(classes)
    Known().objects = <PyObject*>_objects


def know_iterator(kind):
    """Make `read_values` support instances of a class as iterators of datasets.

    Parameters
    ----------
    kind : type
        The class. It is derived from TensorFlow's `OwnedIterator`, and has the same attributes.
    """
    global _lazy_iterator
    _lazy_iterator = kind
    Known().lazy_iterator = <PyTypeObject*>kind


def _describe_iterator(iterator):
    """Return a text that says what a trace depends on for an iterator; None if it is unknown."""
    try:
        return iterator._fastops_text
    except AttributeError:
        specs = tf.nest.flatten(iterator.element_spec)
        plain = all(type(spec) is tf.TensorSpec for spec in specs)
        iterator._fastops_text = repr(iterator.element_spec) if plain else None
    return iterator._fastops_text


cdef int _set_up() except -1:
    known = &Known()
    known.variable = <PyTypeObject*>_ResourceVariable
    known.array = <PyTypeObject*>np.ndarray
    known.array_scalar = <PyTypeObject*>np.generic
    known.dtype = <PyTypeObject*>_dtypes.DType
    known.iterator = <PyTypeObject*>_OwnedIterator
    known.shape = <PyTypeObject*>_TensorShape
    known.composites = <PyObject*>_COMPOSITES
    known.handle = <PyObject*>_HANDLE
    known.static_shape = <PyObject*>_STATIC_SHAPE
    known.trainable = <PyObject*>_TRAINABLE
    known.cached = <PyObject*>_CACHED
    known.caching = <PyObject*>_CACHING
    known.number = <PyObject*>_NUMBER
    known.iterated = <PyObject*>_ITERATED
    known.dims = <PyObject*>_DIMS
    known.copy = <PyObject*>_COPY
    known.describe_iterator = <PyObject*>_DESCRIBE
    return 0


cdef str _HANDLE = "_handle"
cdef str _STATIC_SHAPE = "_shape"
cdef str _TRAINABLE = "_trainable"
cdef str _CACHED = "_cached_value"
cdef str _CACHING = "_caching_device"
cdef str _NUMBER = "as_datatype_enum"
cdef str _ITERATED = "_iterator_resource"
cdef str _DIMS = "_dims"
cdef str _COPY = "copy"
cdef object _COMPOSITES = COMPOSITES
cdef object _DESCRIBE = _describe_iterator
cdef dict _objects = None
cdef object _lazy_iterator = None

_set_up()
