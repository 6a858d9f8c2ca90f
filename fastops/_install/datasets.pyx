# distutils: language = c++
"""Iterators of datasets: ``next(iterator)``, ``iterator.get_next()``, and elements as arrays.

TensorFlow takes an element by the op `IteratorGetNext`, and packs its tensors in Python into the
structure that elements have. The stand-ins run the op's kernel in the calling thread, and pack the
tensors without Python. What the pipeline does, and in which threads, stays the same. A
`RowIterator` (see `pipelines`) copies rows instead.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next, PyDict_Size
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from fastops._core.threads cimport this_thread
from fastops._cpp.options cimport Thread, kAuto
from fastops._cpp.python cimport PyVectorcall_NARGS, _PyType_Lookup, call_object
from fastops._dispatch cimport Op
from fastops._install.replacement cimport Replacement, call_original, live, replacing
from fastops._install.rows cimport RowElements
from fastops._situation cimport IN_ORDER, missing
from fastops._specialize.guards.names cimport holds

import sys
from collections import OrderedDict as _OrderedDict

from numpy import ndarray as _ndarray
from tensorflow.python.data.ops.dataset_ops import NumpyIterator as _NumpyIterator
from tensorflow.python.data.ops.iterator_ops import OwnedIterator as _OwnedIterator
from tensorflow.python.framework.errors_impl import OutOfRangeError as _OutOfRangeError
from tensorflow.python.framework.none_tensor import NoneTensorSpec as _NoneTensorSpec
from tensorflow.python.framework.tensor import TensorSpec as _TensorSpec

from fastops._install.pipelines import RowIterator as _RowIterator


cdef PyTypeObject* _iterator_type = <PyTypeObject*>_OwnedIterator
cdef PyTypeObject* _row_iterator_type = <PyTypeObject*>_RowIterator
cdef PyTypeObject* _numpy_iterator_type = <PyTypeObject*>_NumpyIterator
cdef Op _get_next = Op("IteratorGetNext")
cdef tuple _KEYWORDS = tuple(
    [sys.intern(name) for name in ("iterator", "output_types", "output_shapes")]
)
cdef str _RESOURCE = "_iterator_resource"
cdef str _SPEC = "_element_spec"
cdef str _DTYPES = "_flat_output_types"
cdef str _SHAPES = "_flat_output_shapes"
cdef str _ELEMENTS = "_fastops_elements"
cdef str _PIPELINE = "_fastops_pipeline"
cdef str _PACKING = "_fastops_packing"
cdef str _INNER = "_next_internal"
cdef str _OUTER = "__next__"
cdef Replacement _inner = None  # the stand-in for `_next_internal`
cdef Replacement _outer = None  # the stand-in for `__next__`, which calls it


# ---------------------------------------------------------------------------------------------
# The structure of elements
# ---------------------------------------------------------------------------------------------

cdef enum PartKind:
    kTensor
    kNothing     # stands for None, and has no tensor
    kTuple
    kNamedTuple
    kDict


@cython.final
cdef class ElementPart:
    """A part of the structure of an element: a tensor, or a container of parts."""

    cdef PartKind kind
    cdef object spec        # what it was made from
    cdef type container     # of a named tuple or dict: its class
    cdef list parts         # in the order of the tensors
    cdef list keys          # of a dict: in its own order
    cdef list positions     # for each key, the position of its part
    cdef bint has_dicts     # whether it is a dict or contains one

    cdef object pack(self, list tensors, Py_ssize_t* taken):
        """Return the part of an element that consists of the next tensors of a list."""
        cdef Py_ssize_t i
        cdef Py_ssize_t count
        cdef tuple values
        if self.kind == kTensor:
            taken[0] += 1
            return tensors[taken[0] - 1]
        if self.kind == kNothing:
            return None
        count = len(self.parts)
        values = PyTuple_New(count)
        for i in range(count):
            value = (<ElementPart>self.parts[i]).pack(tensors, taken)
            Py_INCREF(value)
            PyTuple_SET_ITEM(values, i, value)
        if self.kind == kTuple:
            return values
        if self.kind == kNamedTuple:
            return self.container(*values)
        result = self.container()
        for i in range(count):
            result[self.keys[i]] = values[<Py_ssize_t>self.positions[i]]
        return result

    cdef bint is_unchanged(self, object spec) except -1:
        """Whether a specification of this structure still has the same contents."""
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t at = 0
        cdef PyObject* key
        cdef PyObject* value
        if not self.has_dicts:
            return spec is self.spec
        if self.kind != kDict:
            for i in range(len(self.parts)):
                if not (<ElementPart>self.parts[i]).is_unchanged(spec[i]):
                    return False
            return True
        if PyDict_Size(spec) != len(self.keys):
            return False
        while PyDict_Next(spec, &at, &key, &value):
            if <object>key is not self.keys[i]:
                return False
            part = <ElementPart>self.parts[<Py_ssize_t>self.positions[i]]
            if not part.is_unchanged(<object>value):
                return False
            i += 1
        return True


cdef ElementPart _part(object spec, list leaves):
    """Make the part that a specification describes, and collect the specifications of tensors.

    Raise TypeError if TensorFlow has to pack such elements.
    """
    cdef ElementPart inner
    cdef ElementPart part = ElementPart.__new__(ElementPart)
    part.spec, part.container = spec, type(spec)
    part.parts = []
    if part.container is _TensorSpec:
        part.kind = kTensor
        leaves.append(spec)
        return part
    if part.container is _NoneTensorSpec:
        part.kind = kNothing
        return part
    if part.container is dict or part.container is _OrderedDict:
        part.kind, part.has_dicts = kDict, True
        names = sorted(spec)
        part.keys = list(spec)
        part.positions = [names.index(key) for key in part.keys]
        specs = [spec[name] for name in names]
    elif part.container is tuple or _is_named(part.container):
        part.kind = kTuple if part.container is tuple else kNamedTuple
        specs = spec
    else:
        raise TypeError(part.container)
    for item in specs:
        inner = _part(item, leaves)
        part.parts.append(inner)
        part.has_dicts |= inner.has_dicts
    return part


cdef bint _is_named(type kind) except -1:
    """Whether a class is one that `collections.namedtuple` has made."""
    return (
        kind.__bases__ == (tuple,)
        and type(kind.__dict__.get("_fields")) is tuple
        and all([type(name) is str for name in kind._fields])
    )


@cython.final
cdef class Packing:
    """How the elements of an iterator are packed.

    It is an attribute of the iterator, and valid while the iterator has the same attributes.
    """

    cdef object spec
    cdef object dtypes
    cdef object shapes
    cdef ElementPart root    # None if TensorFlow has to pack the elements

    cdef object pack(self, list tensors):
        cdef Py_ssize_t taken = 0
        return self.root.pack(tensors, &taken)


cdef Packing _packing_of(dict attributes):
    """Return how the elements of an iterator are packed; None if TensorFlow has to do it."""
    cdef PyObject* spec = PyDict_GetItem(attributes, _SPEC)
    cdef PyObject* dtypes = PyDict_GetItem(attributes, _DTYPES)
    cdef PyObject* shapes = PyDict_GetItem(attributes, _SHAPES)
    cdef PyObject* known = PyDict_GetItem(attributes, _PACKING)
    cdef Packing packing
    if (
        spec == NULL or dtypes == NULL or shapes == NULL
        or (
            PyDict_GetItem(attributes, _RESOURCE) == NULL
            and PyDict_GetItem(attributes, _ELEMENTS) == NULL
        )
    ):
        return None
    if known != NULL and Py_TYPE(<object>known) == <PyTypeObject*>Packing:
        packing = <Packing>known
        if (
            <PyObject*>packing.spec == spec
            and <PyObject*>packing.dtypes == dtypes
            and <PyObject*>packing.shapes == shapes
        ):
            if packing.root is None or packing.root.is_unchanged(packing.spec):
                return None if packing.root is None else packing
    packing = Packing.__new__(Packing)
    packing.spec, packing.dtypes, packing.shapes = <object>spec, <object>dtypes, <object>shapes
    attributes[_PACKING] = packing
    leaves = []
    try:
        root = _part(packing.spec, leaves)
    except TypeError:
        return None
    # The kernel checks the shapes that the iterator has, so these must be those of the structure.
    if (
        [leaf.dtype for leaf in leaves] == packing.dtypes
        and [leaf.shape for leaf in leaves] == packing.shapes
    ):
        packing.root = root
    return None if packing.root is None else packing


# ---------------------------------------------------------------------------------------------
# Elements
# ---------------------------------------------------------------------------------------------

cdef bint _is_placed(str name, Replacement method) except -1:
    """Whether a method of iterators is a stand-in that nothing has replaced or disabled."""
    return (
        method is not None
        and _PyType_Lookup(_iterator_type, <PyObject*>name) == <PyObject*>method
        and (method.guard is None or holds(method.guard))
    )


cdef Packing _packing_for(PyObject* iterator):
    """Return how to pack the next element; None if TensorFlow has to take the element."""
    cdef Thread* thread
    cdef PyTypeObject* kind = Py_TYPE(<object>iterator)
    if (kind != _iterator_type and kind != _row_iterator_type) or not live:
        return None
    thread = this_thread()
    if thread.options.path != kAuto or thread.observer != NULL or missing(IN_ORDER):
        return None
    return _packing_of((<object>iterator).__dict__)


cdef list _take(PyObject* iterator, Packing packing):
    """Take the tensors of the next element."""
    cdef dict attributes = (<object>iterator).__dict__
    cdef PyObject* found = PyDict_GetItem(attributes, _ELEMENTS)
    cdef RowElements elements
    cdef list tensors
    if found != NULL:
        elements, pipeline = <RowElements?>found, attributes[_PIPELINE]
        tensors = elements.take()
        if tensors is not None:
            if elements.mapped is None:
                _get_next.calls_direct += 1
            return tensors
        resource = pipeline.ended
        if elements.is_for_tensorflow():
            resource = (<object>iterator)._iterator_resource
        elif resource is None:
            resource = pipeline.ending()
            _call_kernel(resource, packing)  # its only element
            pipeline.ended = resource  # only now: other threads take it for one that has ended
    else:
        found = PyDict_GetItem(attributes, _RESOURCE)
        resource = (<object>iterator)._iterator_resource if found == NULL else <object>found
    return _call_kernel(resource, packing)


cdef list _call_kernel(object resource, Packing packing):
    cdef PyObject* args[3]
    args[0] = <PyObject*>resource
    args[1] = <PyObject*>packing.dtypes
    args[2] = <PyObject*>packing.shapes
    return call_object(<PyObject*>_get_next, args, 0, <PyObject*>_KEYWORDS)


cdef list _take_or_stop(PyObject* iterator, Packing packing):
    """Take the tensors of the next element. Raise StopIteration after the last one."""
    try:
        return _take(iterator, packing)
    except _OutOfRangeError:
        raise StopIteration


def next_internal(original):
    """Return the stand-in for the method that ``get_next`` and ``__next__`` call."""
    global _inner
    _inner = replacing(original, _next_internal)
    return _inner


cdef PyObject* _next_internal(PyObject* callable, PyObject* const* args, size_t nargsf,
                              PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    cdef Packing packing
    if keywords != NULL or PyVectorcall_NARGS(nargsf) != 1:
        return call_original(self, args, nargsf, keywords)
    packing = _packing_for(args[0])
    if packing is None:
        return call_original(self, args, nargsf, keywords)
    element = packing.pack(_take(args[0], packing))
    Py_INCREF(element)
    return <PyObject*>element


def advance(original):
    """Return the stand-in for ``__next__``."""
    global _outer
    _outer = replacing(original, _next)
    return _outer


cdef PyObject* _next(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    cdef Packing packing
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 1
        or not _is_placed(_INNER, _inner)
    ):
        return call_original(self, args, nargsf, keywords)
    packing = _packing_for(args[0])
    if packing is None or PyDict_GetItem((<object>args[0]).__dict__, _INNER) != NULL:
        return call_original(self, args, nargsf, keywords)
    element = packing.pack(_take_or_stop(args[0], packing))
    Py_INCREF(element)
    return <PyObject*>element


def advance_arrays(original):
    """Return the stand-in for ``__next__`` of the iterator that converts elements to arrays."""
    return replacing(original, _next_arrays)


cdef PyObject* _next_arrays(PyObject* callable, PyObject* const* args, size_t nargsf,
                            PyObject* keywords) except NULL:
    cdef Replacement self = <Replacement>callable
    cdef Packing packing
    cdef PyObject* iterator
    if (
        keywords != NULL
        or PyVectorcall_NARGS(nargsf) != 1
        or Py_TYPE(<object>args[0]) != _numpy_iterator_type
        or not _is_placed(_INNER, _inner)
        or not _is_placed(_OUTER, _outer)
    ):
        return call_original(self, args, nargsf, keywords)
    held = (<object>args[0])._iterator
    iterator = <PyObject*>held
    packing = _packing_for(iterator)
    if packing is None or PyDict_GetItem(held.__dict__, _INNER) != NULL:
        return call_original(self, args, nargsf, keywords)
    tensors = _take_or_stop(iterator, packing)
    element = packing.pack([_array(tensor) for tensor in tensors])
    Py_INCREF(element)
    return <PyObject*>element


cdef object _array(object tensor):
    """Convert a tensor as TensorFlow's iterator does."""
    array = tensor._numpy()
    if isinstance(array, _ndarray):
        array.setflags(write=False)  # it shares the tensor's memory
    return array


METHODS = (
    ("tf.data.Iterator.get_next", _OwnedIterator, "_next_internal", next_internal),
    ("tf.data.Iterator.__next__", _OwnedIterator, "__next__", advance),
)
"""The patch points: the name, the class, the attribute, and the function that makes the
replacement."""
