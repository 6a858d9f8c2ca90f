# distutils: language = c++
"""The signature of a call: dtypes, shapes, Python values and structure of its arguments.

All code that reads signatures goes through this module, since the set of classes that signatures
know (`Known`) is a variable of one extension.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.classes cimport LooksUpGenerically
from fastops._cpp.python cimport _PyType_Lookup
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.signature cimport (
    ClassUse,
    Known,
    OfMethods,
    OfRecordings,
    OfTraces,
    Print,
    Signature,
    kIdentity,
    kNamedTuple,
    kRefused,
)
from fastops._dispatch cimport runtime

cdef extern from "definitions.h":
    pass

import collections as _collections
from weakref import ref as _ref

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator as _OwnedIterator
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.indexed_slices import IndexedSlices as _IndexedSlices
from tensorflow.python.framework.sparse_tensor import SparseTensor as _SparseTensor
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape
from tensorflow.python.ops.ragged.ragged_tensor import RaggedTensor as _RaggedTensor
from tensorflow.python.ops.ragged.row_partition import RowPartition as _RowPartition
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable


cdef Runtime* _where = runtime()  # the address never changes; `gate` keeps the contents current

COMPOSITES = frozenset((_IndexedSlices, _SparseTensor, _RaggedTensor, _RowPartition))
"""Classes whose instances consist of attributes: tensors, shapes, dtypes and other composites."""

SCALARS = frozenset(
    kind for kind in (int, complex, str, *_dtypes._ANY_TO_TF) if type(kind) is type
)
"""Classes of Python and NumPy that TensorFlow takes as dtypes, such as ``np.float32``."""


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


cdef str text_of_values(bytes key):
    cdef string text = Print[OfTraces](PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), _where[0])
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
    cdef bytes key
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
    key = PyBytes_FromStringAndSize(signature.data(), signature.size())
    return text_of_values(key) if policy == "traces" else text_of(key)


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
    """Make `read_values` support iterators of datasets of more classes.

    Parameters
    ----------
    kind : type
        The base of these classes. It is derived from TensorFlow's `OwnedIterator`, and has the
        same attributes.
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


cdef ClassUse _use_of(PyTypeObject* kind) noexcept:
    """Return how `tf.function` takes instances of a class that signatures do not know.

    It takes an instance by identity if weak references to it exist, if instances are equal only to
    themselves, and if it has no attribute that asks for something else. Namedtuples are tuples. All
    other classes are refused: it may unwrap their instances, open them or compare their values. So
    are classes with items, because they may be registered as mappings.
    """
    try:
        if (
            not LooksUpGenerically(kind)
            or _PyType_Lookup(kind, _CLASS) != <PyObject*>_usual_class
        ):
            return kRefused
        for name in _TRACING_NAMES:
            if _PyType_Lookup(kind, <PyObject*>name) != NULL:
                return kRefused
        if hasattr(<object>kind, "__attrs_attrs__"):  # its metaclass may have the attribute
            return kRefused
        if _is_namedtuple(<type>kind):
            return kNamedTuple
        if (
            _PyType_Lookup(kind, _EQ) == <PyObject*>_usual_eq
            and _PyType_Lookup(kind, _ITEM) == NULL
            and _WEAK.__get__(<object>kind) != 0
            and not issubclass(<object>kind, _ref)
        ):
            return kIdentity
    except Exception:
        pass  # the code of a metaclass failed
    return kRefused


cdef bint _is_namedtuple(type kind) except -1:
    """Whether instances of a class are tuples, and the attributes named by `_fields` the items."""
    cdef PyObject* found
    if (
        _BASES.__get__(kind) != (tuple,)
        or _DICT.__get__(kind) != 0
        or kind.__iter__ is not tuple.__iter__
    ):
        return False
    fields = kind.__dict__.get("_fields")
    if type(fields) is not tuple:
        return False
    for i, field in enumerate(fields):
        found = _PyType_Lookup(<PyTypeObject*>kind, <PyObject*>field)
        if type(field) is not str or found == NULL or type(<object>found) is not _field_type:
            return False
        if (<object>found).__reduce__()[1][0] != i:
            return False
    return True


cdef int _set_up() except -1:
    known = &Known()
    known.variable = <PyTypeObject*>_ResourceVariable
    known.array = <PyTypeObject*>np.ndarray
    known.array_scalar = <PyTypeObject*>np.generic
    known.dtype = <PyTypeObject*>_dtypes.DType
    known.iterator = <PyTypeObject*>_OwnedIterator
    known.shape = <PyTypeObject*>_TensorShape
    known.composites = <PyObject*>_COMPOSITES
    known.scalars = <PyObject*>_SCALARS
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
    known.use_of = _use_of
    known.tracing_names = <PyObject*>_TRACING_NAMES
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
cdef frozenset _SCALARS = SCALARS
cdef object _DESCRIBE = _describe_iterator
cdef dict _objects = None
cdef object _lazy_iterator = None
cdef tuple _TRACING_NAMES = (
    "__tf_tracing_type__", "__wrapped__", "__attrs_attrs__", "__array__", "__tf_flatten__",
)
cdef PyObject* _CLASS = <PyObject*>"__class__"
cdef PyObject* _EQ = <PyObject*>"__eq__"
cdef PyObject* _ITEM = <PyObject*>"__getitem__"
cdef object _usual_class = vars(object)["__class__"]
cdef object _usual_eq = vars(object)["__eq__"]
cdef object _field_type = type(vars(_collections.namedtuple("_Example", "field"))["field"])
# Attributes of all classes, read without code of metaclasses.
cdef object _BASES = vars(type)["__bases__"]
cdef object _DICT = vars(type)["__dictoffset__"]
cdef object _WEAK = vars(type)["__weakrefoffset__"]

_set_up()
