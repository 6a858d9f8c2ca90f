"""Iterators over small datasets in memory: their pipelines run in the thread that takes elements.

When TensorFlow makes an iterator, it rewrites the pipeline. It appends a buffer that a thread
fills, and starts another thread, which tunes the pipeline. For small elements that are only cut
out of tensors in memory, waking these threads takes longer than making the element.

For such a pipeline the iterator gets a buffer of length zero instead, and no tuning: a call of
`next` makes the element itself. The datasets of the pipeline, the elements, their order, and what a
checkpoint of the iterator contains, are the same.
"""

import os
import sys
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.data.ops import debug_mode
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.data.util import nest, structure
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_dataset_ops
from tensorflow.python.util._pywrap_determinism import is_enabled

from fastops._specialize.policy import MAX_ELEMENT_BYTES, MAX_ELEMENT_ROWS

_KNOWN = "_fastops_in_caller"
"""The attribute of a dataset in which its `Pipeline` is kept; `False` if it has none."""


class Pipeline(NamedTuple):
    """How to make iterators over a dataset.

    Attributes
    ----------
    source : EagerTensor
        The variant tensor of the dataset.
    variant : EagerTensor
        The one of the dataset that iterators are made of.
    device : str
        The device of these tensors.
    spec : nest of tf.TypeSpec
        The structure of an element.
    dtypes, shapes : list
        The dtypes and shapes of its tensors.
    """

    source: object
    variant: object
    device: str
    spec: object
    dtypes: list
    shapes: list


class Work(NamedTuple):
    """What making one element takes.

    Attributes
    ----------
    rows : int
        The number of elements of sources that it consists of.
    num_bytes : int
        Their size.
    """

    rows: int
    num_bytes: int


def iterate(original, dataset):
    """Return an iterator over a dataset."""
    attributes = vars(dataset)
    pipeline = attributes.get(_KNOWN)
    if pipeline is False:
        return original(dataset)
    if pipeline is None or pipeline.source is not attributes.get("_variant_tensor_attr"):
        pipeline = attributes[_KNOWN] = _pipeline(dataset) or False
    if (
        not pipeline
        or pipeline.spec is not dataset.element_spec
        or debug_mode.DEBUG_MODE
        or is_enabled()
        or context.context().get_server_def() is not None
    ):
        return original(dataset)
    with ops.device(pipeline.device):
        resource = gen_dataset_ops.anonymous_iterator_v3(
            output_types=pipeline.dtypes, output_shapes=pipeline.shapes
        )
        gen_dataset_ops.make_iterator(pipeline.variant, resource)
    iterator = OwnedIterator.__new__(OwnedIterator)
    vars(iterator).update(
        _dataset=dataset,
        _element_spec=pipeline.spec,
        _flat_output_types=pipeline.dtypes,
        _flat_output_shapes=pipeline.shapes,
        _iterator_resource=resource,
        _get_next_call_count=0,
    )
    return iterator


def _pipeline(dataset):
    """Return the `Pipeline` of a dataset; None if TensorFlow has to make its iterators."""
    buffered = dataset
    if _name(dataset) == _PREFETCH:
        if not _is_known(dataset._buffer_size) or int(dataset._buffer_size) == 0:
            return None
        buffered = dataset._input_dataset
    work = _work(buffered)
    if work is None or work.rows > MAX_ELEMENT_ROWS or work.num_bytes > MAX_ELEMENT_BYTES:
        return None
    spec, variant = dataset.element_spec, dataset._variant_tensor
    if (
        not isinstance(variant, EagerTensor)
        or dataset._options_attr != _DEFAULTS
        or any(os.environ.get(name) for name in _EXPERIMENTS)
        or any(type(leaf) is not tf.TensorSpec for leaf in nest.flatten(spec))
    ):
        return None
    dtypes, shapes = structure.get_flat_tensor_types(spec), structure.get_flat_tensor_shapes(spec)
    with ops.device(variant.device):
        made = gen_dataset_ops.prefetch_dataset(
            buffered._variant_tensor, 0, output_types=dtypes, output_shapes=shapes
        )
        made = gen_dataset_ops.options_dataset(
            made, serialized_options=_OPTIONS, output_types=dtypes, output_shapes=shapes
        )
    return Pipeline(variant, made, variant.device, spec, dtypes, shapes)


def _name(dataset):
    """Return the name of a class of TensorFlow's datasets: ``"batch_op._BatchDataset"``.

    TensorFlow imports the modules of these classes when they are first used.
    """
    kind = type(dataset)
    package, _, module = kind.__module__.rpartition(".")
    own = package == "tensorflow.python.data.ops" and kind.__module__ in sys.modules
    if not own or vars(sys.modules[kind.__module__]).get(kind.__qualname__) is not kind:
        return None
    return f"{module}.{kind.__qualname__}"


def _is_known(tensor):
    return isinstance(tensor, EagerTensor) and tensor.device.endswith("CPU:0")


def _work(dataset):
    """Return the `Work` of a dataset. None if it may wait, or if TensorFlow rewrites it.

    TensorFlow leaves out datasets that do nothing. It fuses a shuffle with a repetition, and the
    fused dataset has another order.
    """
    measure = _MEASURES.get(_name(dataset))
    if measure is None or not isinstance(dataset._variant_tensor, EagerTensor):
        return None
    return measure(dataset)


def _of_slices(dataset):
    specs = nest.flatten(dataset.element_spec)
    if not all(spec.shape.is_fully_defined() for spec in specs):
        return None
    return Work(len(specs), sum(spec.shape.num_elements() * spec.dtype.size for spec in specs))


def _of_input(dataset):
    return _work(dataset._input_dataset)


def _batched(dataset):
    work = _work(dataset._input_dataset)
    if work is None or not _is_known(dataset._batch_size):
        return None
    size = int(dataset._batch_size)
    return Work(work.rows * size, work.num_bytes * size)


def _repeated(dataset):
    if _name(dataset._input_dataset) == _SHUFFLE:
        return None
    return _counted(lambda count: count == 1)(dataset)


def _counted(has_no_effect):
    """Return the measure of datasets with a count."""

    def measure(dataset):
        if not _is_known(dataset._count) or has_no_effect(int(dataset._count)):
            return None
        return _work(dataset._input_dataset)

    return measure


def _of_either(dataset):
    works = [_work(part) for part in dataset._inputs()]
    if None in works:
        return None
    return Work(max(work.rows for work in works), max(work.num_bytes for work in works))


def _of_all(dataset):
    works = [_work(part) for part in dataset._inputs()]
    if None in works:
        return None
    return Work(sum(work.rows for work in works), sum(work.num_bytes for work in works))


_PREFETCH = "prefetch_op._PrefetchDataset"
_SHUFFLE = "shuffle_op._ShuffleDataset"

_MEASURES = {
    "batch_op._BatchDataset": _batched,
    "concatenate_op._ConcatenateDataset": _of_either,
    "from_tensor_slices_op._TensorSliceDataset": _of_slices,
    "from_tensors_op._TensorDataset": _of_slices,
    "range_op._RangeDataset": _of_slices,
    "repeat_op._RepeatDataset": _repeated,
    _SHUFFLE: _of_input,
    "skip_op._SkipDataset": _counted(lambda count: count == 0),
    "take_op._TakeDataset": _counted(lambda count: count < 0),
    "zip_op._ZipDataset": _of_all,
}
"""By the name of the class of a dataset, the function that returns its `Work`."""

_DEFAULTS = tf.data.Options()


def _in_caller():
    """Return serialized options that turn off rewrites and tuning of a dataset."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return options._to_proto().SerializeToString()


_OPTIONS = _in_caller()

_EXPERIMENTS = ("TF_JOB_NAME", "TF_DATA_EXPERIMENT_OPT_IN", "TF_DATA_EXPERIMENT_OPT_OUT")
"""Settings by which TensorFlow chooses other rewrites of pipelines."""
