"""Iteration over datasets, compared with TensorFlow: elements, order, ends and checkpoints."""

import collections
import threading

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, in_both, outcome
from support import Failure, one_in
from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.data.ops.dataset_ops import NumpyIterator
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.ops import gen_dataset_ops

import fastops
from fastops._install import pipelines

pytestmark = pytest.mark.usefixtures("fresh")

Point = collections.namedtuple("Point", "x, y")
VALUES = np.arange(24, dtype=np.float32).reshape(12, 2)
LABELS = np.arange(12)


class Named(collections.namedtuple("Named", "x, y")):
    """A class derived from a named tuple. TensorFlow packs such elements."""


def slices(*values):
    return tf.data.Dataset.from_tensor_slices(values if len(values) > 1 else values[0])


def ragged():
    return tf.ragged.constant([[1], [2, 3], []] * 4)


STRUCTURES = {
    "tensor": lambda: slices(VALUES).batch(5),
    "tuple": lambda: slices(VALUES, LABELS).batch(5),
    "one in a tuple": lambda: slices((VALUES,)).batch(5),
    "dict": lambda: slices({"b": VALUES, "a": LABELS, "c": (LABELS, VALUES)}).batch(5),
    "ordered dict": lambda: slices(collections.OrderedDict(b=VALUES, a=LABELS)),
    "named tuple": lambda: slices(Point(VALUES, {"y": LABELS})),
    "none": lambda: slices(VALUES).map(lambda value: (value, None, {"n": None})),
    "nothing": lambda: slices(VALUES).map(lambda value: (value, ())),
    "strings": lambda: slices(np.array([b"a", b"bc", b""])).batch(2),
    "scalars": lambda: tf.data.Dataset.range(3),
    "empty": lambda: slices(np.zeros((3, 0), np.float16)).batch(2),
    "no elements": lambda: slices(np.zeros((0, 2), np.int8)).batch(2),
    "many": lambda: slices(*[LABELS] * 20).batch(6),
    "small types": lambda: slices(LABELS > 3, LABELS.astype(np.uint8), VALUES.astype(np.float16)),
}
BY_TENSORFLOW = {
    "derived": lambda: slices(Named(VALUES, LABELS)),
    "ragged": lambda: slices(ragged(), VALUES).batch(4),
    "sparse": lambda: slices(tf.sparse.from_dense(VALUES), VALUES).batch(4),
    "default dict": lambda: slices(collections.defaultdict(int, a=VALUES, b=LABELS)),
}


def form(value):
    """Return all of a result in a form that can be compared: classes, order of keys, every bit."""
    if isinstance(value, Failure) or not isinstance(value, (tuple, list, dict)):
        if isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
            parts = tf.nest.flatten(value, expand_composites=True)
            return type(value), value.shape.as_list(), form(parts)
        if isinstance(value, tf.Tensor):
            shape, device = value.shape.as_list(), value.device
            return value.dtype, shape, device, tf.io.serialize_tensor(value).numpy()
        if isinstance(value, np.ndarray):
            return value.dtype, value.shape, repr(value), value.flags.writeable
        return type(value), value
    if isinstance(value, dict):
        return type(value), [(key, form(part)) for key, part in value.items()]
    return type(value), [form(part) for part in value]


def assert_same(got, want):
    assert form(got) == form(want)


def to_the_end(take, times=40):
    """Return elements, and the class, message and context of each exception."""
    taken, failures = [], 0
    while len(taken) < times and failures < 3:
        try:
            taken.append(take())
        except Exception as end:
            taken.append((type(end), str(end), type(end.__context__), end.__suppress_context__))
            failures += 1
    return taken


def by_next(dataset):
    iterator = iter(dataset)
    return to_the_end(lambda: next(iterator))


def by_get_next(dataset):
    iterator = iter(dataset)
    return to_the_end(iterator.get_next)


def by_arrays(dataset):
    iterator = dataset.as_numpy_iterator()
    return to_the_end(lambda: next(iterator))


def direct():
    """Return how many elements were taken directly."""
    return fastops.stats().ops["IteratorGetNext"].direct


@pytest.mark.parametrize("use", [list, by_next, by_get_next, by_arrays])
@pytest.mark.parametrize("name", [*STRUCTURES, *BY_TENSORFLOW])
def test_elements(name, use):
    dataset = (STRUCTURES | BY_TENSORFLOW)[name]()
    want, got = in_both(lambda: use(dataset))
    assert_same(got, want)
    if name in STRUCTURES and name != "no elements":
        assert direct() >= len(want) - 1


@pytest.mark.parametrize("name", STRUCTURES)
def test_no_python_of_tensorflow_runs_for_an_element(name):
    dataset = STRUCTURES[name]().repeat()
    if name == "no elements":
        return
    with fastops.accelerated():
        iterator = iter(dataset)
        arrays = dataset.as_numpy_iterator()
        for take in (iterator.__next__, iterator.get_next, arrays.__next__):
            take()
            take()
        assert frames(next, (iterator,), {}) == []
        assert frames(iterator._next_internal, (), {}) == []
        assert {frame.rpartition(".")[2] for frame in frames(next, (arrays,), {})} <= {"_numpy"}


def test_arrays_are_not_writable():
    with fastops.accelerated():
        for array in slices(VALUES).batch(2).as_numpy_iterator():
            assert not array.flags.writeable
        assert next(slices(LABELS).as_numpy_iterator()) == 0


def generated():
    def generate():
        yield 1
        yield 2
        raise KeyError("no more")

    return tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int32))


def in_python():
    return tf.data.Dataset.range(6).map(
        lambda number: tf.py_function(lambda n: 12 // (n - 2), [number], tf.int64)
    )


ERRORS = {
    "division": lambda: slices(LABELS.astype(np.int32)[:4]).map(lambda number: 6 // (number - 1)),
    "check": lambda: slices(VALUES[:4]).map(
        lambda value: tf.debugging.check_numerics(tf.math.log(value - 1), "no number")
    ),
    "shapes": lambda: tf.data.Dataset.range(5).map(tf.range).prefetch(1).batch(2),
    "ignored": lambda: slices(LABELS[:4]).map(lambda n: 6 // (n - 1)).ignore_errors(),
    "cardinality": lambda: tf.data.Dataset.range(4).apply(
        tf.data.experimental.assert_cardinality(2)
    ),
}


@pytest.mark.parametrize("use", [by_next, by_get_next, by_arrays])
@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, use):
    dataset = ERRORS[name]()
    want, got = in_both(lambda: use(dataset))
    assert_same(got, want)
    assert direct() >= 1


@pytest.mark.parametrize("make", [generated, in_python])
def test_errors_of_python(make):
    """The messages have the addresses of Python's frames, so only their classes are compared."""

    def run():
        return [kind[:1] if isinstance(kind, tuple) else kind for kind in by_next(make())]

    want, got = in_both(run)
    assert_same(got, want)


def test_an_exception_of_the_pipeline_leaves_the_iterator_usable():
    with fastops.accelerated():
        iterator = iter(slices(np.array([1, 0, 2])).map(lambda number: 6 // number))
        assert next(iterator) == 6
        with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
            next(iterator)
        assert next(iterator) == 3
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(iterator)
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                iterator.get_next()
        assert next(iterator, None) is None


# ---------------------------------------------------------------------------------------------
# What the stand-ins leave to TensorFlow
# ---------------------------------------------------------------------------------------------


def test_replaced_methods_are_called(monkeypatch):
    dataset = slices(LABELS).batch(4)
    with fastops.accelerated():
        iterator, arrays = iter(dataset), dataset.as_numpy_iterator()
        next(iterator), next(arrays)
        with monkeypatch.context() as patch:
            patch.setattr(OwnedIterator, "_next_internal", lambda self: tf.constant("mine"))
            assert next(iterator) == "mine"
            assert iterator.get_next() == "mine"
            assert next(arrays) == b"mine"
        assert next(iterator)[0] == 4
        iterator._next_internal = lambda: "its own"
        assert next(iterator) == iterator.get_next() == "its own"
        arrays._iterator._next_internal = lambda: tf.constant("its own")
        assert next(arrays) == b"its own"
        del iterator._next_internal
        assert next(iterator)[0] == 8


def test_a_replaced_function_is_called(monkeypatch):
    with fastops.accelerated():
        iterator = iter(slices(LABELS))
        next(iterator), next(iterator)
        with monkeypatch.context() as patch:
            patch.setattr(
                iterator_ops.gen_dataset_ops,
                "iterator_get_next",
                lambda *args, **kwargs: [tf.constant(-1, tf.int64)],
            )
            assert next(iterator) == iterator.get_next() == -1
        assert next(iterator) == 2


def test_derived_iterators():
    class Doubled(OwnedIterator):
        def _next_internal(self):
            return 2 * super()._next_internal()

    with fastops.accelerated():
        iterator = Doubled(slices(LABELS))
        assert [int(next(iterator)) for _ in range(3)] == [0, 2, 4]
        assert iterator.get_next() == 6


def test_changed_specifications():
    """The dicts of a specification belong to the dataset; a program may change them."""

    def run():
        dataset = slices({"a": LABELS, "b": VALUES})
        iterator = iter(dataset)
        taken = [next(iterator)]
        spec = dataset.element_spec
        spec["c"] = spec.pop("a")
        taken.append(outcome(next, (iterator,), {}))
        del spec["b"]
        taken.append(outcome(next, (iterator,), {}))
        return taken

    want, got = in_both(run)
    assert_same(got, want)
    assert [list(element) for element in got[:2]] == [list(element) for element in want[:2]]


def test_other_attributes():
    def run():
        iterator = iter(slices(VALUES))
        taken = [next(iterator)]
        iterator._element_spec = tf.TensorSpec([3])
        taken.append(outcome(next, (iterator,), {}))
        iterator._element_spec = tf.TensorSpec([None])
        iterator._flat_output_shapes = [tf.TensorShape([None])]
        taken.append(outcome(next, (iterator,), {}))
        return taken

    want, got = in_both(run)
    assert_same(got, want)


def test_wrong_arguments():
    def run():
        iterator = iter(slices(VALUES))
        return [
            outcome(OwnedIterator.__next__, arguments, {})
            for arguments in ((), (1,), (iterator, 1), (iterator, "n"))
        ] + [outcome(OwnedIterator._next_internal, (), {"self": iterator})]

    want, got = in_both(run)
    assert_same(got, want)


def test_graphs():
    dataset = slices(VALUES, LABELS).batch(4)

    @tf.function
    def total(iterator):
        value, label = next(iterator)
        return tf.reduce_sum(value) + tf.cast(tf.reduce_sum(label), tf.float32)

    @tf.function
    def whole(dataset):
        result = 0.0
        for value, _ in dataset:
            result += tf.reduce_sum(value)
        return result

    def run():
        iterator = iter(dataset)
        return [total(iterator), next(iterator), total(iterator), whole(dataset)]

    want, got = in_both(run)
    assert_same(got, want)


def test_tapes_scopes_and_executors():
    dataset = slices(VALUES).batch(4)

    def run():
        iterator = iter(dataset)
        with tf.GradientTape() as tape:
            weight = tf.constant(3.0)
            tape.watch(weight)
            loss = tf.reduce_sum(next(iterator) * weight)
            in_tape = iter(dataset)
        taken = [tape.gradient(loss, weight), next(in_tape)]
        with tf.device("/device:CPU:0"):
            taken += [next(iter(dataset)), next(iterator)]
        executor = tf.experimental.async_scope
        with executor():
            taken.append(next(iterator))
        return taken

    want, got = in_both(run)
    assert_same(got, want)


def test_options():
    with fastops.accelerated():
        iterator = iter(slices(LABELS))
        for path in ("tensorflow", "capi"):
            with fastops.options(path=path):
                next(iterator)
                before = direct() if "IteratorGetNext" in fastops.stats().ops else 0
                next(iterator)
                assert not before
        with fastops.profile() as profile:
            assert next(iterator) == 4
        assert "IteratorGetNext" in str(profile)


def test_debug_mode():
    tf.data.experimental.enable_debug_mode()
    try:
        dataset = slices(LABELS).map(lambda number: number + 1).batch(5)
        want, got = in_both(lambda: by_next(dataset))
    finally:
        from tensorflow.python.data.ops import debug_mode

        debug_mode.DEBUG_MODE = False
    assert_same(got, want)


def test_threads_share_an_iterator():
    with fastops.accelerated():
        for dataset in (tf.data.Dataset.range(400), tf.data.Dataset.range(400).map(lambda n: n)):
            iterator, taken = iter(dataset), []

            def take(iterator=iterator, taken=taken):
                taken.extend(int(number) for number in iterator)

            threads = [threading.Thread(target=take) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(taken) == list(range(400))


def test_a_generator_may_iterate_itself():
    def generate():
        yield from (int(number) for number in tf.data.Dataset.range(3))

    def run():
        made = tf.data.Dataset.from_generator(generate, output_types=tf.int64, output_shapes=[])
        return list(made)

    want, got = in_both(run)
    assert_same(got, want)


def test_an_iterator_survives_its_dataset_and_uninstall():
    with fastops.accelerated():
        iterator = iter(slices(VALUES).batch(4))
        next(iterator)
    assert next(iterator)[0, 0] == 8
    with fastops.accelerated():
        assert next(iterator)[0, 0] == 16
    with pytest.raises(StopIteration):
        next(iterator)


# ---------------------------------------------------------------------------------------------
# Pipelines in the calling thread
# ---------------------------------------------------------------------------------------------


def base():
    return slices(VALUES, LABELS)


IN_CALLER = {
    "slices": base,
    "batches": lambda: base().batch(5),
    "full batches": lambda: base().batch(5, drop_remainder=True),
    "shuffled": lambda: base().shuffle(5, seed=3).batch(4),
    "shuffled once": lambda: base().shuffle(5, seed=3, reshuffle_each_iteration=False).batch(4),
    "shuffled batches": lambda: base().batch(4).shuffle(3, seed=1),
    "repeated": lambda: base().batch(5).repeat(2),
    "parts": lambda: base().skip(2).take(9).batch(2),
    "prefetched": lambda: base().shuffle(9, seed=3).batch(4).prefetch(2),
    "prefetched by need": lambda: base().batch(4).prefetch(tf.data.AUTOTUNE),
    "zipped": lambda: tf.data.Dataset.zip((base(), tf.data.Dataset.range(9))).batch(4),
    "joined": lambda: base().concatenate(base()).batch(4),
    "range": lambda: tf.data.Dataset.range(3, 20, 2).batch(3),
    "shuffled and repeated": lambda: base().shuffle(5, seed=3).repeat(2).batch(4),
    "repeated once": lambda: base().repeat(1).batch(4),
    "everything": lambda: base().take(-1).batch(4),
    "nothing skipped": lambda: base().skip(0).batch(4),
    "large": lambda: slices(np.zeros((4, 70000), np.int8)).batch(2),
    "many rows": lambda: tf.data.Dataset.range(4000).batch(2000),
    "one": lambda: tf.data.Dataset.from_tensors((VALUES, 1)),
    "mapped": lambda: base().map(lambda value, label: (value * 2, label)).batch(4),
    "cached": lambda: base().cache().batch(4),
}


def with_options():
    options = tf.data.Options()
    options.deterministic = False
    return base().batch(4).with_options(options)


ELSEWHERE = {
    "filtered": lambda: base().filter(lambda value, label: label > 3),
    "no prefetch": lambda: base().batch(4).prefetch(0),
    "prefetched inside": lambda: base().prefetch(2).batch(4),
    "options": with_options,
    "very large": lambda: slices(np.zeros((4, 2200000), np.int8)).batch(2),
    "very many rows": lambda: tf.data.Dataset.range(40000).batch(20000),
    "ragged": lambda: slices(ragged()).batch(4),
    "windows": lambda: tf.data.Dataset.range(8).window(4),
}
ALL = IN_CALLER | ELSEWHERE


@pytest.mark.parametrize("name", ALL)
def test_which_pipelines_run_in_the_calling_thread(name):
    dataset = ALL[name]()
    with fastops.accelerated():
        iter(dataset)
    assert bool(vars(dataset)[pipelines._KNOWN]) is (name in IN_CALLER)


def shown(value):
    """Return an element in a form that can be compared, with the elements of inner datasets."""
    if isinstance(value, tf.data.Dataset):
        return [int(number) for number in value]
    return tf.nest.map_structure(
        lambda leaf: leaf.to_list() if isinstance(leaf, tf.RaggedTensor) else leaf.numpy().tolist(),
        value,
    )


def taken(iterator, count):
    elements = []
    for _ in range(count):
        try:
            elements.append(shown(next(iterator)))
        except StopIteration:
            elements.append("end")
            break
    return elements


@pytest.mark.parametrize("name", ALL)
def test_epochs(name):
    """Each epoch has TensorFlow's order, also if fastops made the iterators of earlier epochs."""
    make = ALL[name]
    dataset = make()
    want = [taken(iter(dataset), 40) for _ in range(4)]
    with fastops.accelerated():
        dataset = make()
        assert [taken(iter(dataset), 40) for _ in range(4)] == want
    dataset, got = make(), []
    for installed in (True, False, True, False):
        if installed:
            with fastops.accelerated():
                got.append(taken(iter(dataset), 40))
        else:
            got.append(taken(iter(dataset), 40))
    assert got == want
    if name == "shuffled":
        assert want[0] != want[1]


@pytest.mark.parametrize("name", ["shuffled", "batches", "prefetched"])
def test_iterators_side_by_side(name):
    def run():
        dataset = ALL[name]()
        first, second = iter(dataset), iter(dataset)
        return [taken(first, 1), taken(second, 2), taken(first, 2), taken(second, 9)]

    want, got = in_both(run)
    assert got == want


def test_shuffles_without_a_seed():
    with fastops.accelerated():
        dataset = slices(np.arange(100)).shuffle(100).batch(10)
        epochs = [np.concatenate([part.numpy() for part in dataset]) for _ in range(2)]
        assert all(sorted(epoch) == list(range(100)) for epoch in epochs)
        assert epochs[0].tolist() != epochs[1].tolist()
        fixed = slices(np.arange(100)).shuffle(100, reshuffle_each_iteration=False)
        first, rest = fixed.take(40).batch(10), fixed.skip(40).map(lambda number: number)
        both = [*np.concatenate(list(first.as_numpy_iterator())), *rest.as_numpy_iterator()]
        assert sorted(both) == list(range(100))


SAVED = sorted(IN_CALLER.keys() - {"shuffled once"})


@pytest.mark.parametrize("name", one_in(2, SAVED))
@pytest.mark.parametrize("count", [0, 1, 2])
def test_checkpoints(name, count, tmp_path):
    """A checkpoint continues the iteration, with and without `install`."""
    files, rest = [], []
    for number, installed in enumerate((False, True)):
        with fastops.accelerated(only=["datasets"] if installed else []):
            iterator = iter(ALL[name]())
            taken(iterator, count)
            files.append(tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / str(number))))
            rest.append(taken(iterator, 40))
    assert rest[0] == rest[1]
    for path in files:
        for installed in (False, True):
            with fastops.accelerated(only=["datasets"] if installed else []):
                dataset = ALL[name]()
                iterator = iter(dataset)
                assert bool(vars(dataset).get(pipelines._KNOWN)) is installed
                taken(iterator, 1)
                tf.train.Checkpoint(iterator=iterator).read(path).assert_consumed()
                assert taken(iterator, 40) == rest[0], (path, installed)


def test_checkpoints_of_arrays(tmp_path):
    with fastops.accelerated():
        iterator = slices(LABELS).batch(4).as_numpy_iterator()
        next(iterator)
        path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "arrays"))
        want = [part.tolist() for part in iterator]
    iterator = slices(LABELS).batch(4).as_numpy_iterator()
    tf.train.Checkpoint(iterator=iterator).read(path)
    assert [part.tolist() for part in iterator] == want


def test_attributes_of_iterators_and_datasets():
    def run():
        dataset = IN_CALLER["batches"]()
        iterator = iter(dataset)
        return [
            type(iterator).__name__,
            iterator.element_spec == dataset.element_spec,
            iterator._dataset is dataset,
            repr(iterator._type_spec),
            dataset.options() == tf.data.Options(),
            repr(dataset),
            int(dataset.cardinality()),
            iterator.get_next_as_optional().has_value().numpy(),
            iterator._iterator_resource.dtype,
            iterator._iterator_resource.device,
            {name for name in vars(iterator) if not name.startswith("_fastops")},
            type(iterator),
        ]

    want, got = in_both(run)
    assert got == want


def test_a_dataset_whose_tensor_was_replaced():
    dataset = IN_CALLER["batches"]()
    with fastops.accelerated():
        assert len(list(dataset)) == 3
        dataset._variant_tensor_attr = base().batch(3)._variant_tensor
        assert len(list(dataset)) == 4


def test_determinism_and_strategies():
    dataset = IN_CALLER["batches"]()

    def run():
        with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
            return [shown(element) for element in dataset]

    want, got = in_both(run)
    assert got == want


def test_iterators_are_freed():
    with fastops.accelerated():
        dataset = IN_CALLER["batches"]()
        iterator = iter(dataset)
        next(iterator)
        handle = gen_dataset_ops.iterator_to_string_handle(iterator._iterator_resource)
        assert handle.dtype == tf.string
        count = threading.active_count()
        for _ in range(5):
            list(dataset)
        assert threading.active_count() == count


def test_the_classes_are_tensorflows():
    with fastops.accelerated():
        dataset = IN_CALLER["batches"]()
        assert isinstance(iter(dataset), OwnedIterator)
        assert type(dataset.as_numpy_iterator()) is NumpyIterator
        assert isinstance(iter(dataset), tf.data.Iterator)


class Batchable(tf.experimental.BatchableExtensionType):
    values: tf.Tensor


class Plain(tf.experimental.ExtensionType):
    values: tf.Tensor


def test_elements_that_are_no_tensors():
    """Their specs have neither a shape nor a dtype."""
    rows = tf.reshape(tf.range(8.0), [4, 2])

    def run():
        of_rows = tf.data.Dataset.from_tensor_slices(Batchable(rows))
        datasets = (
            of_rows,
            of_rows.batch(2),
            of_rows.map(lambda element: element.values * 2.0),
            tf.data.Dataset.from_tensor_slices({"a": Batchable(rows), "b": rows}).batch(2),
            tf.data.Dataset.from_tensors(Plain(rows)),
            tf.data.Dataset.from_tensor_slices((rows, None)).batch(2),
            tf.data.Dataset.from_tensors(tf.IndexedSlices(rows, tf.range(4))),
        )
        return [
            [
                value
                for value in tf.nest.flatten(list(dataset), expand_composites=True)
                if value is not None
            ]
            for dataset in datasets
            for _ in range(2)
        ]

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)
