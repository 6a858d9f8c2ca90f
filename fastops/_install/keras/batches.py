"""The batches of arrays that `fit`, `evaluate` and `predict` iterate over, without a pipeline.

Each time Keras gets arrays, it makes a dataset that cuts them into batches. The dataset traces
three functions and keeps threads. But the batches are just rows of the arrays, in an order that is
drawn once an epoch, and a few ops can make them. So for small batches fastops makes a dataset
without a pipeline, after Keras has made one for arrays of the same kind. The pipeline is made only
if other code needs it. The resource of the iterator is made only if a graph takes the iterator.
"""

import contextlib
import copy
import itertools
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import debug_mode, prefetch_op
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.data.util import structure
from tensorflow.python.eager import context, record
from tensorflow.python.framework import ops
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_array_ops, gen_dataset_ops, gen_random_ops
from tensorflow.python.util._pywrap_determinism import is_enabled

from fastops._install import restated
from fastops._install.lazy import LazyIterator, named_like
from fastops._plans.packing import nested
from fastops._situation import is_plain
from fastops._specialize.learned import LearnedByKind
from fastops._specialize.policy import (
    MAX_BATCH_BYTES,
    MAX_BATCH_KINDS,
    MAX_BLOCK_BYTES,
    MAX_HELD_BYTES,
    MAX_ORDERS_BYTES,
)

_HOST = "/device:CPU:0"
_FLOATS = frozenset({"float16", "float32", "float64"})
_DTYPES = _FLOATS | {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}

_adapter_type = None
_sliceable = None
_floatx = None
_draws_by_epoch = False
_kinds = LearnedByKind("ArrayDataAdapter.get_tf_dataset", MAX_BATCH_KINDS)
"""By structure, dtypes, shapes and sizes of the arrays: the `_Kind` of the elements."""

_orders = LearnedByKind("Dataset.shuffle", MAX_ORDERS_BYTES, size_of=lambda order: 8 * len(order))
"""By seed and number of rows: the order that Keras's dataset drew. With a seed, each epoch has it.

Since Keras 3.16, the seed is the number of the epoch in which the dataset was made.
"""


def attach(keras):
    """Look up the names of Keras that this module uses.

    Parameters
    ----------
    keras : module
        ``keras.src``.
    """
    global _adapter_type, _sliceable, _floatx, _draws_by_epoch
    _adapter_type = keras.trainers.data_adapters.array_data_adapter.ArrayDataAdapter
    _sliceable = keras.trainers.data_adapters.array_slicing.convert_to_sliceable
    _floatx = keras.backend.floatx
    _draws_by_epoch = restated.variant(_PIECE) == "seed of epoch"


class _Kind:
    """Properties of the elements of a dataset that Keras made.

    Parameters
    ----------
    spec : nest of tf.TensorSpec
        The structure of an element.
    """

    def __init__(self, spec):
        self.spec = spec
        self.dtypes = structure.get_flat_tensor_types(spec)
        self.shapes = structure.get_flat_tensor_shapes(spec)
        self.text = repr(spec)
        self.pack = nested(spec, itertools.count(), tf.TensorSpec, (tuple,))


def get_tf_dataset(original, adapter):
    """Return the dataset of an `ArrayDataAdapter`: a `Batches`, or Keras's own dataset."""
    arrays = []
    batch_size, num_rows, shuffle = adapter._batch_size, adapter._num_samples, adapter._shuffle
    seed = adapter._epoch if _draws_by_epoch else context.global_seed()
    if (
        type(adapter) is not _adapter_type
        or type(batch_size) is not int
        or batch_size < 1
        or not num_rows
        or type(shuffle) is not bool
        or not (seed is None or type(seed) is int)
        or getattr(adapter, "_num_data_shards", 1) != 1
        or debug_mode.DEBUG_MODE
        or is_enabled()
        or context.context().get_server_def() is not None
        or (form := _form(adapter._inputs, arrays)) is None
        or any(len(array) != num_rows for array in arrays)
        or sum(map(_num_bytes, arrays)) * batch_size > MAX_BATCH_BYTES * num_rows
    ):
        return original(adapter)
    key = form, batch_size, num_rows % batch_size == 0, num_rows < batch_size
    with _on_host():
        tensors = list(map(_tensor, arrays))
    kind, order = _kinds.of(key), None
    needed = [kind]
    _kinds.count(kind)
    if shuffle and seed is not None:
        order = _orders.of((seed, num_rows))
        needed.append(order)
        _orders.count(order)
    if not all(learned.is_active for learned in needed):
        made = original(adapter)
        _learn(kind, made.element_spec, tensors)
        if order is not None:
            _learn_order(order, made)
            _orders.trim()
        if not all(learned.is_active for learned in needed):
            return made
    rows = None if order is None else order.content
    return Batches(original, adapter, tensors, kind.content, rows)


def _form(value, arrays):
    """Return a key for a structure of arrays, None if it has other values.

    The arrays are appended to `arrays`, in the order of `tf.nest.flatten`.
    """
    kind = type(value)
    if kind is tuple or kind is list:
        forms = [_form(item, arrays) for item in value]
        return None if None in forms or not forms else ("sequence", *forms)
    if kind is dict:
        if not value or any(type(name) is not str for name in value):
            return None
        forms = [_form(value[name], arrays) for name in sorted(value)]
        return None if None in forms else (tuple(value), *forms)
    if kind is np.ndarray:
        if not value.dtype.isnative:
            return None
    elif kind is not EagerTensor or not value.device.endswith("CPU:0"):
        return None
    dtype = value.dtype.name
    if dtype not in _DTYPES or not value.ndim:
        return None
    arrays.append(value)
    return _floatx() if dtype in _FLOATS else dtype, tuple(value.shape[1:])


def _tensor(array):
    """Convert an array or a tensor as Keras does."""
    dtype = array.dtype.name
    if dtype in _FLOATS and dtype != _floatx():
        array = _sliceable(array, target_backend="tensorflow")
    return array if type(array) is EagerTensor else tf.convert_to_tensor(array)


def _on_host():
    """Return a context manager that places ops on the host, where pipelines run."""
    return contextlib.nullcontext() if is_plain() else ops.device(_HOST)


def _num_bytes(array):
    return array.dtype.size * array.shape.num_elements() if tf.is_tensor(array) else array.nbytes


def _learn(kind, spec, tensors):
    """Learn the properties of Keras's dataset, unless its elements do not match the tensors."""
    if kind.is_decided:
        return
    flat = tf.nest.flatten(spec)
    if (
        len(flat) != len(tensors)
        or any(type(component) is not tf.TensorSpec for component in flat)
        or any(
            component.dtype != tensor.dtype or component.shape[1:] != tensor.shape[1:]
            for component, tensor in zip(flat, tensors, strict=True)
        )
    ):
        kind.refuse("batch_elements", repr(spec))
        return
    try:
        kind.learn(_Kind(spec))
    except TypeError as why:  # the structure has containers other than tuples and dicts
        kind.refuse("batch_elements", str(why))


def _learn_order(order, made):
    """Learn the order of the rows in a dataset of Keras."""
    if order.is_decided:
        return
    drawn, (_, num_rows) = made, order.kind
    while made._inputs():
        drawn, made = made, made._inputs()[0]
    rows = next(iter(drawn))
    if rows.shape != (num_rows,) or rows.dtype != tf.int64:
        order.refuse("batch_order", repr(rows))
    else:
        order.learn(rows)


@named_like(prefetch_op._PrefetchDataset)
class Batches(prefetch_op._PrefetchDataset):
    """A dataset for arrays, like Keras's, whose pipeline has not been made.

    Parameters
    ----------
    original : callable
        Makes the pipeline, given an adapter.
    adapter : ArrayDataAdapter
        The adapter with the arrays.
    tensors : list of EagerTensor
        The arrays as tensors.
    kind : _Kind
        The properties of its elements.
    order : EagerTensor or None
        The order of the rows; None if there is none, or if each epoch draws one.
    """

    def __init__(self, original, adapter, tensors, kind, order):
        # Not by `setattr`: TensorFlow's `__setattr__` needs attributes that do not exist yet.
        self.__dict__.update(
            # The pipeline of Keras would have the state of the adapter at this time.
            _fastops_pipeline=(original, copy.copy(adapter), context.global_seed()),
            _fastops_tensors=tensors,
            _fastops_kind=kind,
            _fastops_order=order,
            _fastops_sizes=(adapter._num_samples, adapter._batch_size, adapter._shuffle),
        )

    @property
    def element_spec(self):
        return self._fastops_kind.spec

    def __getattr__(self, name):
        """Make the pipeline, which has the missing attributes."""
        if name.startswith("_fastops") or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        if "_variant_tensor_attr" not in self.__dict__:
            self.__dict__.update(vars(self._fastops_make()))
        return object.__getattribute__(self, name)

    def __iter__(self):
        if "_variant_tensor_attr" in self.__dict__ or not is_plain(anywhere=True):
            return super().__iter__()
        return BatchIterator(self)

    def _fastops_make(self):
        original, adapter, seed = self._fastops_pipeline
        adapter = copy.copy(adapter)
        tensors = iter(self._fastops_tensors)
        adapter._inputs = tf.nest.map_structure(lambda spec: next(tensors), self._fastops_kind.spec)
        current = context.context()
        given = current._seed
        current._seed = seed  # the seed at the time when Keras would have made the pipeline
        try:
            with ops.init_scope():
                return original(adapter)
        finally:
            current._seed = given


@named_like(OwnedIterator)
class BatchIterator(LazyIterator):
    """An iterator over `Batches` that makes its resource on first use.

    Parameters
    ----------
    batches : Batches
        The dataset.
    """

    def __init__(self, batches):
        kind = batches._fastops_kind
        num_rows, self._batch_size, self._shuffle = batches._fastops_sizes
        self._num_full = num_rows // self._batch_size
        self._num_rows = num_rows
        self._dataset = batches
        self._element_spec = kind.spec
        self._flat_output_types, self._flat_output_shapes = kind.dtypes, kind.shapes
        self._get_next_call_count = 0
        self._fastops_text, self._pack = kind.text, kind.pack
        self._tensors = batches._fastops_tensors
        self._order = batches._fastops_order
        self._elements = []  # the next elements, in reverse order
        self._begin = self._end = 0  # the range of rows that was cut last
        self._num_cut = 0  # the number of elements that it was cut into
        self._resource = None
        self._lock = threading.Lock()

    @property
    def _iterator_resource(self):
        with self._lock:
            if self._resource is None:
                self._resource = self._make()
            return self._resource

    @_iterator_resource.setter
    def _iterator_resource(self, value):
        self._resource = value

    def _next_internal(self):
        if self._resource is None and is_plain(anywhere=True):
            with self._lock:
                if not self._elements and self._resource is None and self._end < self._num_rows:
                    with _on_host():
                        self._cut()
                if self._elements:
                    return self._elements.pop()
        return super()._next_internal()

    def _rows(self, begin, end):
        """Return the rows of each array at positions `begin` to `end` of the order."""
        if self._shuffle and self._order is None:
            rows = np.arange(self._num_rows, dtype=np.int64)
            self._order = gen_random_ops.random_shuffle(tf.constant(rows), seed=0, seed2=0)
        if self._order is None:  # slicing makes new objects, not the program's tensors
            return [_sliced(tensor, begin, end) for tensor in self._tensors]
        rows = self._order
        if (begin, end) != (0, self._num_rows):
            rows = _sliced(rows, begin, end)
        return [gen_array_ops.gather_v2(tensor, rows, 0) for tensor in self._tensors]

    def _cut(self):
        """Cut the next elements."""
        size, begin = self._batch_size, self._end
        count = self._num_full - begin // size
        if count:
            num_bytes = sum(map(_num_bytes, self._tensors)) * size // self._num_rows
            count = min(count, max(1, MAX_BLOCK_BYTES // max(1, num_bytes)))
            end = begin + count * size
            columns = [_unstacked(rows, count, size) for rows in self._rows(begin, end)]
        else:
            end = self._num_rows
            columns = [[rows] for rows in self._rows(begin, end)]
        made = list(map(self._pack, zip(*columns, strict=True)))
        self._elements, self._num_cut, self._begin, self._end = made[::-1], len(made), begin, end

    def _make(self):
        """Make the iterator's resource. It begins with the next element."""
        begin = self._begin + self._batch_size * (self._num_cut - len(self._elements))
        begin = min(begin, self._end)  # the last batch may be smaller
        plain = is_plain(anywhere=True)
        with ops.init_scope(), ops.device(self._tensors[0].device), record.stop_recording():
            if begin == 0 and (not plain or sum(map(_num_bytes, self._tensors)) > MAX_HELD_BYTES):
                variant = self._dataset._variant_tensor  # makes Keras's pipeline
            else:
                variant = self._variant(begin)
            made = gen_dataset_ops.anonymous_iterator_v3(
                output_types=self._flat_output_types, output_shapes=self._flat_output_shapes
            )
            gen_dataset_ops.make_iterator(variant, made)
        self._elements = []
        return made

    def _variant(self, begin):
        """Return the variant tensor of a dataset with the batches from row `begin` on."""
        types, shapes = self._flat_output_types, self._flat_output_shapes
        size, end = self._batch_size, self._num_full * self._batch_size
        rows = self._rows(begin, self._num_rows)
        count = max(0, end - begin) // size
        variant, num_rows, whole = None, self._num_rows - begin, count * size
        if count or begin == self._num_rows:
            stacks = [_stacked(_sliced(part, 0, whole), count, size) for part in rows]
            variant = gen_dataset_ops.tensor_slice_dataset(
                stacks, output_shapes=[part.shape[1:] for part in stacks]
            )
        if whole < num_rows:
            rest = [_sliced(part, whole, num_rows) for part in rows]
            last = gen_dataset_ops.tensor_dataset(rest, output_shapes=[part.shape for part in rest])
            if variant is None:
                variant = last
            else:
                variant = gen_dataset_ops.concatenate_dataset(
                    variant, last, output_types=types, output_shapes=shapes
                )
        return gen_dataset_ops.options_dataset(
            variant, serialized_options=_OPTIONS, output_types=types, output_shapes=shapes
        )


def _sliced(tensor, begin, end):
    # Not `tensor[begin:end]`, which Keras's pipeline does not call: a program may have patched it.
    return gen_array_ops.strided_slice(tensor, [begin], [end], [1])


def _unstacked(rows, count, size):
    return gen_array_ops.unpack(_stacked(rows, count, size), num=count, axis=0)


def _stacked(rows, count, size):
    return gen_array_ops.reshape(rows, [count, size, *rows.shape[1:]])


def _without_threads():
    """Return serialized options that turn off optimizations and autotuning of a dataset."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return options._to_proto().SerializeToString()


_OPTIONS = _without_threads()

_PIECE = "keras.src.trainers.data_adapters.array_data_adapter:ArrayDataAdapter.get_tf_dataset"

METHODS = {
    "trainers.data_adapters.array_data_adapter.ArrayDataAdapter.get_tf_dataset": get_tf_dataset
}
"""By name of a method in ``keras.src``, the function that stands in for it."""
