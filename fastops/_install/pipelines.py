"""Iterators over datasets in memory, without the threads and tensors of TensorFlow's pipelines.

When TensorFlow makes an iterator, it rewrites the pipeline. It appends a buffer that a thread
fills, and starts another thread, which tunes the pipeline. Each dataset of the pipeline hands on
tensors, one for each row. For small elements that are only cut out of tensors in memory, waking
these threads and making these tensors takes longer than copying the elements.

So an iterator over such a pipeline is a `RowIterator`: it finds out which rows an element consists
of, and copies them. Code that reads its resource gets TensorFlow's iterator, which has drawn the
same seeds and given the same elements. For small elements the pipeline of that iterator has a
buffer of length zero and no tuning, so that a call of `next` makes the element. All else is as in
TensorFlow: the datasets of the pipeline, the elements, their order, and the content of checkpoints.
"""

import contextlib
import os
import sys
from functools import partial
from types import ModuleType
from typing import NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.data.ops import debug_mode
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.data.util import nest, structure
from tensorflow.python.eager import context, record
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
from tensorflow.python.framework import op_def_registry, ops
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_dataset_ops
from tensorflow.python.util._pywrap_determinism import is_enabled

from fastops._install.lazy import LazyIterator, named_like
from fastops._install.mapped import MappedFunctions, MappedStage
from fastops._install.rows import RowElements, handing_over, rows_of
from fastops._plans.planned import Planned
from fastops._specialize.policy import (
    MAX_COPIED_BYTES,
    MAX_COPIED_ROWS,
    MAX_ELEMENT_BYTES,
    MAX_ELEMENT_ROWS,
)

_KNOWN = "_fastops_in_caller"
"""The attribute of a dataset in which its `Pipeline` is kept; `False` if it has none."""


class Work(NamedTuple):
    """The cost of making one element.

    Attributes
    ----------
    num_rows : int
        The number of tensors that the sources hand on for one element.
    num_bytes : int
        The size of these tensors.
    rewritten : bool
        Whether TensorFlow rewrites the datasets, even if it neither buffers nor tunes.
    mapped : bool
        Whether a function is mapped, which may take long.
    """

    num_rows: int
    num_bytes: int
    rewritten: bool
    mapped: bool = False

    @property
    def is_small(self):
        """Whether the datasets make an element faster than a thread hands it over."""
        return (
            self.num_rows <= MAX_ELEMENT_ROWS
            and self.num_bytes <= MAX_ELEMENT_BYTES
            and not self.mapped
        )


class Pipeline:
    """How to make iterators over a dataset.

    Parameters
    ----------
    dataset : tf.data.Dataset
        The dataset.
    buffered : tf.data.Dataset
        The same dataset without the buffer at its end.
    work : Work
        The cost of making an element.
    maps : list of tf.data.Dataset
        Datasets of the pipeline that map functions, in their order.

    Attributes
    ----------
    source : EagerTensor
        The variant tensor of the dataset.
    spec : nest of tf.TypeSpec
        The structure of an element.
    ended : EagerTensor or None
        The resource of an iterator that has ended: it raises TensorFlow's exception for the end of
        a dataset. None before `ending`.
    """

    def __init__(self, dataset, buffered, work, maps=()):
        self.source, self.spec = dataset._variant_tensor, dataset.element_spec
        self._device = self.source.device
        self._dtypes, self._shapes = _flat(self.spec)
        self._buffered, self._work = buffered._variant_tensor, work
        self._mapped = None
        taken = maps[0]._input_dataset if maps else buffered
        self._rows = self._known_rows(maps, *_flat(taken.element_spec))
        if maps and self._rows is not None:
            num_of_rows = sum(of_row for _, of_row in self._rows.functions())
            self._mapped = MappedFunctions(
                _stage(self._device, maps[:num_of_rows], of_rows=True),
                _stage(self._device, maps[num_of_rows:], of_rows=False),
            )
        self._variant = None
        self.ended = None

    @property
    def is_faster(self):
        """Whether the caller makes an element faster than a thread hands it over."""
        return self._rows is not None or self._work.is_small

    @property
    def is_declined(self):
        """Whether TensorFlow has to make further iterators."""
        return self._mapped is not None and self._mapped.is_declined

    def _known_rows(self, maps, dtypes, shapes):
        """Return the rows that the elements consist of; None if TensorFlow has to make them.

        `dtypes` and `shapes` are those of the elements that the first function takes, or of all.
        """
        if self._work.num_rows > MAX_COPIED_ROWS or self._work.num_bytes > MAX_COPIED_BYTES:
            return None
        rows = rows_of(self._buffered)
        names = [part._map_func.function.name.decode() for part in maps]
        if rows is None or [name for name, _ in rows.functions()] != names:
            return None
        fits = rows.dtypes() == [dtype.as_datatype_enum for dtype in dtypes] and all(
            shape.is_compatible_with(sizes)
            for shape, sizes in zip(shapes, rows.shapes(), strict=True)
        )
        return rows if fits else None

    def iterator(self, dataset):
        """Return an iterator over the dataset."""
        made = RowIterator.__new__(RowIterator)
        attributes = vars(made)
        attributes.update(
            _dataset=dataset,
            _element_spec=self.spec,
            _flat_output_types=self._dtypes,
            _flat_output_shapes=self._shapes,
            _get_next_call_count=0,
        )
        if self._rows is None:
            made._iterator_resource = self._made(self._in_caller())
        else:
            attributes["_fastops_pipeline"] = self
            attributes["_fastops_elements"] = RowElements(self._rows, self._mapped)
        return made

    def handed_over(self, elements):
        """Return the resource of TensorFlow's iterator in place of one that copies rows."""
        with ops.init_scope(), record.stop_recording():
            if self._mapped or (elements.untouched() and not self._work.is_small):
                return elements.handed_to(lambda: self._made(self.source), self._take)
            variant = self._in_caller()
            return elements.handed_to(lambda: self._made(variant), self._take)

    def ending(self):
        """Return the resource of an iterator with one element.

        The caller takes the element, which prepares the kernel, and then sets `ended` to the
        resource.
        """
        with ops.init_scope(), record.stop_recording():
            shapes = [[size or 0 for size in shape.as_list()] for shape in self._shapes]
            with ops.device(self._device):
                zeros = [tf.zeros(*like) for like in zip(shapes, self._dtypes, strict=True)]
                one = gen_dataset_ops.tensor_dataset(zeros, output_shapes=self._shapes)
            return self._made(self._with(one, _OPTIONS))

    def _made(self, variant):
        return _resource(variant, self._device, self._dtypes, self._shapes)

    def _with(self, variant, options):
        return _with_options(variant, options, self._device, self._dtypes, self._shapes)

    def _take(self, resource):
        with contextlib.suppress(tf.errors.OutOfRangeError):
            _iterator_get_next(resource, output_types=self._dtypes, output_shapes=self._shapes)

    def _in_caller(self):
        """Return the variant tensor of a dataset whose elements the caller makes."""
        if self._variant is None:
            with ops.device(self._device):
                buffered = gen_dataset_ops.prefetch_dataset(
                    self._buffered, 0, output_types=self._dtypes, output_shapes=self._shapes
                )
            options = _REWRITING_OPTIONS if self._work.rewritten else _OPTIONS
            self._variant = self._with(buffered, options)
        return self._variant


def _resource(variant, device, dtypes, shapes):
    """Return the resource of an iterator over a dataset, given its variant tensor."""
    with ops.device(device):
        resource = gen_dataset_ops.anonymous_iterator_v3(output_types=dtypes, output_shapes=shapes)
        gen_dataset_ops.make_iterator(variant, resource)
    return resource


def _with_options(variant, options, device, dtypes, shapes):
    with ops.device(device):
        return gen_dataset_ops.options_dataset(
            variant, serialized_options=options, output_types=dtypes, output_shapes=shapes
        )


def _stage(device, maps, of_rows):
    """Return the `MappedStage` of the functions that datasets map; None if there are none."""
    if not maps:
        return None
    functions = [(part._map_func.function, *_flat(part.element_spec)) for part in maps]
    _, dtypes, shapes = functions[-1]
    return MappedStage(
        partial(_plans, functions), partial(_mapping, device, functions), dtypes, shapes, of_rows
    )


def _plans(functions):
    """Return the plans of functions; None if plans cannot run one of them."""
    if context.context().config.graph_options != _NO_GRAPH_OPTIONS:
        return None  # the program has set options for graphs
    plans = [Planned(function, options=_mapped_options()).plan for function, _, _ in functions]
    return None if None in plans else plans


def _mapped_options():
    """Return the options with which TensorFlow instantiates functions that datasets map."""
    config = tf.compat.v1.ConfigProto()
    config.CopyFrom(context.context().config)
    rewrites = config.graph_options.rewrite_options
    rewrites.layout_optimizer = rewrites.constant_folding = RewriterConfig.OFF
    return context.FunctionCallOptions(config_proto=config)


def _mapping(device, functions, tensors):
    """Return an iterator that maps functions over the same tensors, without end.

    The kernels of the functions use one thread each, as they do after TensorFlow's rewrites.

    Parameters
    ----------
    device : str
        The device.
    functions : list of tuple
        The functions, each with the dtypes and shapes of its results.
    tensors : list of EagerTensor
        The tensors.
    """
    dtypes, shapes = [part.dtype for part in tensors], [part.shape for part in tensors]
    with ops.init_scope(), record.stop_recording():
        with ops.device(device):
            variant = gen_dataset_ops.tensor_dataset(tensors, output_shapes=shapes)
            variant = gen_dataset_ops.repeat_dataset(
                variant, -1, output_types=dtypes, output_shapes=shapes
            )
            for function, dtypes, shapes in functions:
                variant = gen_dataset_ops.map_dataset(
                    variant,
                    function.captured_inputs,
                    f=function,
                    output_types=dtypes,
                    output_shapes=shapes,
                    preserve_cardinality=True,
                )
        made = _with_options(variant, _MAPPING_OPTIONS, device, dtypes, shapes)
        return _resource(made, device, dtypes, shapes)


@named_like(OwnedIterator)
class RowIterator(LazyIterator):
    """An iterator that copies rows of tensors in memory.

    When its resource is read, its class becomes `OwnedIterator`. It has the attributes of
    TensorFlow's iterators and, until its class changes, `_fastops_elements` and
    `_fastops_pipeline`.
    """

    @property
    def _iterator_resource(self):
        attributes = vars(self)
        elements = attributes.get("_fastops_elements")
        # Wait for an element that another thread makes: if that fails, TensorFlow has to make it.
        with contextlib.nullcontext() if elements is None else elements.lock, handing_over:
            if "_fastops_elements" in attributes:
                self._iterator_resource = attributes["_fastops_pipeline"].handed_over(elements)
            return attributes["_iterator_resource"]

    @_iterator_resource.setter
    def _iterator_resource(self, resource):
        attributes = vars(self)
        attributes.pop("_fastops_elements", None)
        attributes.pop("_fastops_pipeline", None)
        attributes["_iterator_resource"] = resource
        self.__class__ = OwnedIterator


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
        or pipeline.is_declined
        or pipeline.spec is not dataset.element_spec
        or debug_mode.DEBUG_MODE
        or is_enabled()
        or context.context().get_server_def() is not None
    ):
        return original(dataset)
    return pipeline.iterator(dataset)


def _pipeline(dataset):
    """Return the `Pipeline` of a dataset; None if TensorFlow has to make its iterators."""
    buffered = dataset
    if _name(dataset) == _PREFETCH:
        if not _is_known(dataset._buffer_size) or int(dataset._buffer_size) == 0:
            return None
        buffered = dataset._input_dataset
    work = _work(buffered)
    if work is None:
        return None
    maps = _maps(buffered)
    if (
        not isinstance(dataset._variant_tensor, EagerTensor)
        or dataset._options_attr != _DEFAULTS
        or any(os.environ.get(name) for name in _EXPERIMENTS)
        or not _has_tensors(dataset)
        or not all(map(_is_pure, maps))
    ):
        return None
    pipeline = Pipeline(dataset, buffered, work, maps)
    return pipeline if pipeline.is_faster else None


def _maps(dataset):
    """Return the datasets of a pipeline that map functions, in their order."""
    inputs = dataset._inputs()
    before = _maps(inputs[0]) if len(inputs) == 1 else []
    return [*before, dataset] if _name(dataset) in _MAPS else before


def _flat(spec):
    """Return the dtypes and the shapes of the tensors of an element."""
    return structure.get_flat_tensor_types(spec), structure.get_flat_tensor_shapes(spec)


def _has_tensors(dataset):
    return all(type(leaf) is tf.TensorSpec for leaf in nest.flatten(dataset.element_spec))


def _is_pure(dataset):
    """Tell whether a mapped function is stateless, takes only numbers, and keeps the order."""
    function = getattr(dataset._map_func, "function", None)
    if (
        not isinstance(function, ConcreteFunction)
        or not _has_tensors(dataset)
        or getattr(dataset, "_deterministic", "true") == "false"
        or getattr(dataset, "_use_unbounded_threadpool", False)
        or not dataset._use_inter_op_parallelism
        or not all(map(_is_known, function.captured_inputs))
        or any(
            getattr(leaf, "dtype", tf.variant) in _NOT_NUMBERS  # extension types have none
            for leaf in nest.flatten(dataset._input_dataset.element_spec)
        )
    ):
        return False
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for part in graph.library.function for node in part.node_def)]
    return not any(
        name in _OF_PYTHON or getattr(op_def_registry.get(name), "is_stateful", False)
        for name in {node.op for node in nodes}
    )


def _name(dataset):
    """Return the name of a class of TensorFlow's datasets: ``"batch_op._BatchDataset"``.

    TensorFlow imports the modules of these classes when they are first used.
    """
    kind = type(dataset)
    package, _, name = kind.__module__.rpartition(".")
    module = sys.modules.get(kind.__module__)
    own = package == "tensorflow.python.data.ops" and issubclass(type(module), ModuleType)
    if not own or vars(module).get(kind.__qualname__) is not kind:
        return None
    return f"{name}.{kind.__qualname__}"


def _is_known(tensor):
    return isinstance(tensor, EagerTensor) and tensor.device.endswith("CPU:0")


def _work(dataset):
    """Return the `Work` of a dataset.

    None if making an element may block, or if TensorFlow has to make the elements.
    """
    measure = _MEASURES.get(_name(dataset))
    if measure is None or not isinstance(dataset._variant_tensor, EagerTensor):
        return None
    return measure(dataset)


def _of_source(dataset):
    specs = nest.flatten(dataset.element_spec)
    if not (_has_tensors(dataset) and all(spec.shape.is_fully_defined() for spec in specs)):
        return None
    num_bytes = sum(spec.shape.num_elements() * spec.dtype.size for spec in specs)
    return Work(len(specs), num_bytes, False)


def _of_input(dataset):
    return _work(dataset._input_dataset)


def _of_mapped(dataset):
    work = _work(dataset._input_dataset)
    return work and work._replace(mapped=True)


def _of_cached(dataset):
    filename = dataset._filename
    if not _is_known(filename) or filename.numpy() != b"":
        return None
    return _work(dataset._input_dataset)


def _batched(dataset):
    work = _work(dataset._input_dataset)
    if work is None or not _is_known(dataset._batch_size):
        return None
    size = int(dataset._batch_size)
    return work._replace(num_rows=work.num_rows * size, num_bytes=work.num_bytes * size)


def _counted(has_no_effect):
    """Return the function that computes the `Work` of datasets with a count.

    TensorFlow's rewrites remove datasets whose count has no effect.
    """

    def measure(dataset):
        work = _work(dataset._input_dataset)
        if work is None or not _is_known(dataset._count):
            return None
        return work._replace(rewritten=work.rewritten or has_no_effect(int(dataset._count)))

    return measure


def _repeated(dataset):
    work = _counted(lambda count: count == 1)(dataset)
    # TensorFlow's rewrites make one dataset of a shuffled and repeated one.
    joined = _name(dataset._input_dataset) == _SHUFFLE
    return work and work._replace(rewritten=work.rewritten or joined)


def _of_either(dataset):
    works = [_work(part) for part in dataset._inputs()]
    if None in works or any(work.mapped for work in works):
        return None
    return Work(
        max(work.num_rows for work in works),
        max(work.num_bytes for work in works),
        any(work.rewritten for work in works),
    )


def _of_all(dataset):
    works = [_work(part) for part in dataset._inputs()]
    if None in works or any(work.mapped for work in works):
        return None
    return Work(
        sum(work.num_rows for work in works),
        sum(work.num_bytes for work in works),
        any(work.rewritten for work in works),
    )


_MAPS = ("map_op._MapDataset", "map_op._ParallelMapDataset")
_PREFETCH = "prefetch_op._PrefetchDataset"
_REPEAT = "repeat_op._RepeatDataset"
_SHUFFLE = "shuffle_op._ShuffleDataset"

_MEASURES = {
    "batch_op._BatchDataset": _batched,
    "cache_op.CacheDataset": _of_cached,
    "concatenate_op._ConcatenateDataset": _of_either,
    "from_tensor_slices_op._TensorSliceDataset": _of_source,
    "from_tensors_op._TensorDataset": _of_source,
    **dict.fromkeys(_MAPS, _of_mapped),
    "range_op._RangeDataset": _of_source,
    _REPEAT: _repeated,
    _SHUFFLE: _of_input,
    "skip_op._SkipDataset": _counted(lambda count: count == 0),
    "take_op._TakeDataset": _counted(lambda count: count < 0),
    "zip_op._ZipDataset": _of_all,
}
"""By the name of the class of a dataset, the function that returns its `Work`."""

_NOT_NUMBERS = (tf.string, tf.resource, tf.variant)
_OF_PYTHON = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
_DEFAULTS = tf.data.Options()
_NO_GRAPH_OPTIONS = tf.compat.v1.GraphOptions()
_iterator_get_next = gen_dataset_ops.iterator_get_next  # kept: a program may replace it


def _in_caller(*, rewriting=False, op_threads=None):
    """Return serialized options that turn off tuning, and possibly rewrites, of a dataset.

    Without tuning, TensorFlow's rewrites append no buffer.
    """
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = rewriting
    options.autotune.enabled = False
    if op_threads is not None:
        options.threading.max_intra_op_parallelism = op_threads
    return options._to_proto().SerializeToString()


_OPTIONS = _in_caller()
_MAPPING_OPTIONS = _in_caller(op_threads=1)
_REWRITING_OPTIONS = _in_caller(rewriting=True)

_EXPERIMENTS = ("TF_JOB_NAME", "TF_DATA_EXPERIMENT_OPT_IN", "TF_DATA_EXPERIMENT_OPT_OUT")
"""Environment variables by which TensorFlow chooses other rewrites of pipelines."""
