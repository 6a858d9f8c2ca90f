"""Batches of arrays are those of Keras's pipeline, which is only made if it is needed."""

import contextlib
import re
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.trainers.data_adapters import array_data_adapter
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from support import assert_same
from tensorflow.python.framework import config

import fastops
from fastops._install.keras import batches
from fastops._specialize.learned import LearnedByKind


@pytest.fixture
def pipelines(monkeypatch):
    """Return a list that grows with each pipeline that Keras makes."""
    made = []
    make = tf.data.Dataset.range

    def counted(*args, **kwargs):
        made.append(args)
        return make(*args, **kwargs)

    monkeypatch.setattr(tf.data.Dataset, "range", staticmethod(counted))
    return made


@pytest.fixture(autouse=True)
def seedless():
    yield
    tf.random.set_seed(None)
    config.disable_op_determinism()


def plain(value):
    return tf.nest.map_structure(
        lambda leaf: (leaf.dtype.name, tuple(leaf.shape), leaf.numpy().tobytes(), leaf.device),
        value,
    )


def eagerly(dataset):
    """Return the elements of two epochs."""
    return [[plain(element) for element in dataset] for _ in range(2)]


def in_graphs(dataset):
    take = tf.function(lambda iterator: iterator.get_next())
    iterator, elements = iter(dataset), []
    try:
        while True:
            elements.append(plain(take(iterator)))
    except tf.errors.OutOfRangeError:
        return elements


def by_turns(dataset):
    """Return elements that are taken alternately in a graph and eagerly."""
    take = tf.function(lambda iterator: iterator.get_next())
    iterator, elements = iter(dataset), []
    try:
        for number in range(9):
            elements.append(plain(take(iterator) if number % 3 else next(iterator)))
    except (StopIteration, tf.errors.OutOfRangeError) as end:
        elements.append(type(end))
    return elements


def to_the_end(dataset):
    iterator, elements = iter(dataset), []
    for _ in range(6):
        try:
            elements.append(plain(iterator.get_next()))
        except tf.errors.OutOfRangeError as end:
            elements.append(str(end))
    return elements


def as_a_dataset(dataset):
    """Return results that need the pipeline."""
    mapped = dataset.map(lambda *element: element).take(2)
    assert isinstance(dataset, tf.data.Dataset)
    return (
        [plain(element) for element in mapped],
        dataset.cardinality().numpy(),
        dataset.options().autotune.enabled,
    )


def described(dataset):
    iterator = iter(dataset)
    spec = dataset.element_spec
    names = [type(iterator).__name__, type(dataset).__qualname__, type(dataset).__module__]
    return spec, repr(dataset), names, iterator.element_spec, repr(iterator._type_spec)


DATA = {
    "array": lambda n: [np.arange(3 * n, dtype=np.float32).reshape(n, 3)],
    "other floats": lambda n: [np.arange(n, dtype=np.float64), tf.ones((n, 2), tf.float16)],
    "tensors": lambda n: [tf.range(n), tf.ones((n, 2, 2)), np.arange(n) / n],
    "nested": lambda n: [
        {"b": np.arange(n), "a": np.arange(n) % 2 == 0},
        [np.arange(n, dtype=np.uint8), (tf.range(n),)],
    ],
    "strided": lambda n: [np.arange(6 * n, dtype=np.int32).reshape(n, 6)[:, ::2]],
}


def compare(make, uses, pipelines, seed=None):
    """Compare datasets with and without `install`, and assert that no pipelines are made."""

    def run():
        tf.random.set_seed(seed)
        return [use(make().get_tf_dataset()) for use in uses]

    expected = run()
    with fastops.accelerated(functions=True):
        assert run() == expected
        pipelines.clear()
        assert run() == expected
        assert len(pipelines) == uses.count(as_a_dataset)


@pytest.mark.parametrize(
    ("name", "rows", "size"),
    [*((name, 10, 4) for name in DATA), ("tensors", 12, 4), ("nested", 3, 8)],
)
def test_batches(name, rows, size, pipelines):
    uses = [eagerly, in_graphs, by_turns, to_the_end, described]
    compare(lambda: ArrayDataAdapter(*DATA[name](rows), batch_size=size), uses, pipelines)


@pytest.mark.parametrize("seed", [0, -5, 2**40 + 3])
def test_orders_with_a_seed(seed, pipelines):
    def make():
        return ArrayDataAdapter(np.arange(10), np.ones(10), batch_size=4, shuffle=True)

    compare(make, [eagerly, by_turns, as_a_dataset], pipelines, seed)


BY_EPOCH = hasattr(ArrayDataAdapter, "_tf_shuffle")
"""Since Keras 3.16, the number of the epoch determines the order, and no seed does."""

of_seeds = pytest.mark.skipif(BY_EPOCH, reason="the orders of this Keras do not depend on seeds")


@pytest.mark.skipif(not BY_EPOCH, reason="the orders of this Keras depend on seeds")
@pytest.mark.parametrize("seed", [None, np.int64(3)])
def test_orders_by_epoch(seed, pipelines):
    def make():
        adapter = ArrayDataAdapter(np.arange(100), batch_size=8, shuffle=True)
        for _ in range(2):
            adapter.on_epoch_end()
        return adapter

    compare(make, [eagerly, by_turns, as_a_dataset], pipelines, seed)


@of_seeds
def test_orders_without_a_seed(pipelines):
    rows = np.arange(100)
    with fastops.accelerated():
        seen = set()
        for _ in range(3):
            dataset = ArrayDataAdapter(rows, batch_size=8, shuffle=True).get_tf_dataset()
            for _ in range(2):
                order = np.concatenate([batch.numpy() for batch in dataset])
                assert sorted(order) == list(rows)
                seen.add(tuple(order))
            taken = in_graphs(dataset.take(20))
            assert len(taken) == 13
        assert len(seen) == 6


def test_the_seed_is_read_when_iteration_begins():
    def program():
        tf.random.set_seed(3)
        dataset = ArrayDataAdapter(np.arange(10), batch_size=4, shuffle=True).get_tf_dataset()
        tf.random.set_seed(4)
        yield as_a_dataset(dataset)
        yield eagerly(dataset)

    expected = list(program())
    with fastops.accelerated():
        assert list(program()) == expected


def test_later_uses_make_the_pipeline(pipelines):
    with fastops.accelerated():
        arrays = np.arange(10.0), np.arange(10)
        dataset = ArrayDataAdapter(*arrays, batch_size=4).get_tf_dataset()
        before = eagerly(dataset)
        arrays[0][:] = -1  # the batches have copied it
        pipelines.clear()
        assert as_a_dataset(dataset)[1] == -2
        assert len(pipelines) == 1
        assert eagerly(dataset) == before
        assert len(pipelines) == 1
        with pytest.raises(AttributeError, match="nonsense"):
            _ = dataset.nonsense


class Own(ArrayDataAdapter):
    pass


@contextlib.contextmanager
def debugging():
    tf.data.experimental.enable_debug_mode()
    try:
        yield
    finally:
        batches.debug_mode.toggle_debug_mode(False)


@pytest.mark.parametrize(
    ("kind", "data", "options"),
    [
        (Own, [np.arange(8)], {}),
        (ArrayDataAdapter, [np.arange(8)], {"shuffle": "batch"}),
        (ArrayDataAdapter, [tf.constant(["a"] * 8)], {}),
        (ArrayDataAdapter, [np.ones((8, 1 << 18), np.float32)], {}),
        (ArrayDataAdapter, [tf.sparse.eye(8)], {}),
        (ArrayDataAdapter, [np.arange(8, dtype=">i4").astype(">i4")], {}),
    ],
)
def test_other_datasets_fall_back(kind, data, options, pipelines):
    with fastops.accelerated():
        for _ in range(2):
            pipelines.clear()
            kind(*data, batch_size=4, **options).get_tf_dataset()
            assert len(pipelines) == 1


@pytest.mark.parametrize(
    "scope",
    [
        debugging,
        lambda: tf.distribute.MirroredStrategy(["cpu:0"]).scope(),
        lambda: tf.GradientTape(),
        lambda: tf.device("gpu:0"),
        lambda: tf.Graph().as_default(),
    ],
    ids=["debug mode", "strategy", "tape", "device", "graph"],
)
def test_in_scopes_datasets_fall_back(scope, pipelines):
    with fastops.accelerated():
        for _ in range(2):
            pipelines.clear()
            with scope():
                ArrayDataAdapter(np.arange(8), batch_size=4).get_tf_dataset()
            assert len(pipelines) == 1


def test_in_a_scope_of_the_only_device(pipelines):
    def batches():
        pipelines.clear()
        with tf.device("cpu:0"):
            dataset = ArrayDataAdapter(np.arange(8), batch_size=4).get_tf_dataset()
            return [rows for rows in dataset]  # noqa: C416 (`list` asks for the length)

    want = batches()
    with fastops.accelerated():
        for _ in range(3):
            got = batches()
        assert not pipelines
    assert_same(got, want)
    assert [one.device for one in got] == [one.device for one in want]


def test_under_a_tape():
    x = tf.constant([[1.0], [2.0], [3.0]])
    with fastops.accelerated():
        for _ in range(3):
            dataset = ArrayDataAdapter(x, batch_size=2).get_tf_dataset()
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = sum(tf.reduce_sum(batch) for batch in dataset)
            assert y == 6
            assert tape.gradient(y, x) is None


def test_batches_are_not_tensors_of_the_program():
    x = tf.constant([[1.0], [2.0], [3.0]])
    with fastops.accelerated():
        for size in (2, 3, 8):
            for _ in range(2):
                batches = list(ArrayDataAdapter(x, batch_size=size).get_tf_dataset())
                assert all(batch is not x for batch in batches)


@of_seeds
@pytest.mark.parametrize("seed", [np.int64(3), np.array(3)])
def test_odd_seeds_fall_back(seed, pipelines):
    def run():
        tf.random.set_seed(seed)
        return eagerly(ArrayDataAdapter(np.arange(8), batch_size=4, shuffle=True).get_tf_dataset())

    expected = run()
    with fastops.accelerated():
        for _ in range(2):
            pipelines.clear()
            assert run() == expected
            assert len(pipelines) == 1


@of_seeds
def test_determinism_requires_a_seed():
    def run():
        return ArrayDataAdapter(np.arange(8), batch_size=4, shuffle=True).get_tf_dataset()

    with fastops.accelerated():
        run()
        tf.config.experimental.enable_op_determinism()
        with pytest.raises(RuntimeError, match="require a seed"):
            run()


def test_threads_share_an_iterator():
    with fastops.accelerated():
        for _ in range(5):
            rows = np.arange(1000)
            iterator = iter(ArrayDataAdapter(rows, batch_size=1).get_tf_dataset())
            numbers = []

            def work(iterator=iterator, numbers=numbers):
                numbers.extend(int(batch[0]) for batch in iterator)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(numbers) == list(rows)


def test_the_cache_of_orders_is_bounded(monkeypatch):
    monkeypatch.setattr(batches, "_kinds", LearnedByKind("datasets of a test", 2))
    with fastops.accelerated():
        for columns in range(1, 5):
            ArrayDataAdapter(np.ones((2, columns)), batch_size=2).get_tf_dataset()
        assert len(batches._kinds) == 2


def test_after_uninstall_keras_makes_the_pipeline(pipelines):
    original = vars(ArrayDataAdapter)["get_tf_dataset"]
    with fastops.accelerated():
        kept = ArrayDataAdapter(np.arange(8), batch_size=4)
        dataset = kept.get_tf_dataset()
        assert vars(ArrayDataAdapter)["get_tf_dataset"] == original
    assert vars(ArrayDataAdapter)["get_tf_dataset"] is original
    assert array_data_adapter.ArrayDataAdapter is ArrayDataAdapter
    assert [batch.numpy().tolist() for batch in dataset] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    pipelines.clear()
    kept.get_tf_dataset()
    assert len(pipelines) == 1


# ---------------------------------------------------------------------------------------------
# Loops
# ---------------------------------------------------------------------------------------------


class Seen(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.all = []

    def on_train_batch_end(self, batch, logs=None):
        self.all.append((batch, {name: float(value) for name, value in logs.items()}))

    on_test_batch_end = on_train_batch_end

    def on_predict_batch_end(self, batch, logs=None):
        self.all.append((batch, [np.asarray(output).tobytes() for output in logs["outputs"]]))


def weights_of_samples(model, x, y, seen):
    weights = np.linspace(0, 1, len(x))
    return model.fit(x, y, 8, epochs=2, verbose=0, sample_weight=weights, callbacks=[seen])


def weights_of_classes(model, x, y, seen):
    return model.fit(x, y, 8, verbose=0, class_weight={0: 0.5, 2: 2.0}, callbacks=[seen])


def validated(model, x, y, seen):
    return model.fit(x, y, 8, epochs=2, verbose=0, validation_split=0.3, callbacks=[seen])


def steps(model, x, y, seen):
    return model.fit(x, y, epochs=3, verbose=0, steps_per_epoch=2, callbacks=[seen])


def unshuffled(model, x, y, seen):
    return model.fit(tf.constant(x), y, 7, epochs=2, verbose=0, shuffle=False, callbacks=[seen])


FITS = [weights_of_samples, weights_of_classes, validated, steps, unshuffled]


@pytest.mark.parametrize(("eagerly", "several"), [(True, 1), (False, 2)])
def test_loops(eagerly, several, pipelines, capsys):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 4)), np.arange(30) % 3

    def program():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
        model.compile(
            "adam",
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            run_eagerly=eagerly,
            steps_per_execution=several,
        )
        seen = Seen()
        for fit in FITS:
            yield fit(model, x, y, seen).history
        yield model.evaluate(x, y, batch_size=8, verbose=1, callbacks=[seen])
        yield model.predict(x, batch_size=16, verbose=0, callbacks=[seen]).tobytes()
        yield [variable.numpy().tobytes() for variable in model.variables]
        yield seen.all
        # The number of progress lines depends on time.
        last = capsys.readouterr().out.rpartition("\r")[2]
        yield re.sub(r"\d+[mu]?s", "", last).rstrip()

    expected = list(program())
    with fastops.accelerated(models=True, functions=not eagerly):
        list(program())
        pipelines.clear()
        assert list(program()) == expected
        assert not pipelines
