"""Iterators that copy rows of tensors in memory, until TensorFlow's take their place."""

import contextlib
import copy
import gc
import re
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from calls import in_both
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import one_in, optimizer_options
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.framework import config

import fastops
from fastops._install import pipelines
from fastops._install.lazy import LazyIterator
from fastops._specialize import policy

pytestmark = pytest.mark.usefixtures("fresh")

VALUES = np.arange(26, dtype=np.float32).reshape(13, 2)
LABELS = np.arange(13)


def slices(*values):
    return tf.data.Dataset.from_tensor_slices(values)


def base():
    return slices(VALUES, LABELS)


ROWS = {
    "slices": base,
    "batches": lambda: base().batch(5),
    "full batches": lambda: base().batch(5, drop_remainder=True),
    "batches of all": lambda: base().batch(13),
    "too large batches": lambda: base().batch(20, drop_remainder=True),
    "shuffled": lambda: base().shuffle(5, seed=3).batch(4),
    "shuffled as a whole": lambda: base().shuffle(100, seed=3).batch(4),
    "shuffled once": lambda: base().shuffle(5, seed=3, reshuffle_each_iteration=False).batch(4),
    "shuffled twice": lambda: base().shuffle(5, seed=3).shuffle(4, seed=1).batch(4),
    "shuffled rows": lambda: base().shuffle(6, seed=2),
    "repeated": lambda: base().batch(5).repeat(2),
    "repeated without end": lambda: base().shuffle(9, seed=8).batch(5).repeat(),
    "shuffled after repeating": lambda: base().repeat().shuffle(20, seed=4).batch(4),
    "shuffled and repeated": lambda: base().shuffle(5, seed=3).repeat(3).batch(4),
    "shuffled and repeated without end": lambda: base().shuffle(40, seed=3).repeat().batch(4),
    "shuffled once and repeated": lambda: (
        base().shuffle(5, seed=3, reshuffle_each_iteration=False).repeat(2).batch(4)
    ),
    "repeated twice": lambda: base().shuffle(5, seed=3).repeat(2).repeat(2).batch(4),
    "parts": lambda: base().skip(2).take(9).batch(2),
    "parts of batches": lambda: base().batch(2).skip(1).take(4),
    "first of each order": lambda: base().shuffle(13, seed=6).take(4).repeat(3).batch(3),
    "all but the first of each order": lambda: base().shuffle(13, seed=6).skip(9).repeat(2),
    "everything": lambda: base().take(-1).skip(0).repeat(1).shuffle(5, seed=1).repeat(1).batch(4),
    "without effect in between": lambda: base().shuffle(5, seed=1).take(-1).repeat(2).batch(4),
    "prefetched": lambda: base().shuffle(9, seed=3).batch(4).prefetch(2),
    "zipped": lambda: tf.data.Dataset.zip((base(), tf.data.Dataset.range(9))).batch(4),
    "zipped and shuffled": lambda: (
        tf.data.Dataset.zip((slices(VALUES), slices(LABELS))).shuffle(13, seed=3).batch(4)
    ),
    "enumerated": lambda: tf.data.Dataset.range(5, -5, -3),
    "skipped too far": lambda: base().skip(20),
    "no rows": lambda: slices(np.zeros((0, 2), np.int8)).shuffle(3, seed=1).repeat().batch(2),
    "empty rows": lambda: slices(np.zeros((3, 0), np.float16)).batch(2),
    "strings": lambda: slices(np.array([b"a", b"bc" * 30, b""]), LABELS[:3]).shuffle(3, seed=1),
    "strings in batches": lambda: slices(np.array([[b"a"], [b"bc" * 30], [b""]])).batch(2),
    "long rows": lambda: slices(np.arange(3 * 2048, dtype=np.float32).reshape(3, 2048)),
    "large batches": lambda: slices(np.arange(90000).reshape(30, 3000)).shuffle(9, seed=1).batch(9),
    "dict": lambda: tf.data.Dataset.from_tensor_slices({"b": VALUES, "a": LABELS}).batch(5),
    "cached": lambda: base().cache().shuffle(5, seed=3).batch(4),
    "cached batches": lambda: base().batch(5).cache().repeat(2),
    "cached twice": lambda: base().take(9).cache().batch(2).cache().skip(1),
}
"""Datasets whose elements are copied from rows."""


def scaled(value, label):
    return value * 0.3 + tf.reduce_mean(value), tf.one_hot(label, 13), label


def reshaped(value, label):
    return {"l": label, "v": tf.reshape(value, [-1]), "both": (value, value[:1])}


def shuffled(seed=3):
    return base().shuffle(9, seed=seed).batch(4)


MAPPED = {
    "mapped": lambda: shuffled().map(scaled),
    "in parallel": lambda: shuffled().map(scaled, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2),
    "in two threads": lambda: base().batch(4).map(scaled, num_parallel_calls=2),
    "same memory": lambda: shuffled().map(reshaped),
    "same tensors": lambda: shuffled().map(lambda value, label: (label, value)),
    "several functions": lambda: shuffled().map(scaled).map(lambda v, hot, n: (v - 1, hot, n * 2)),
    "rows": lambda: base().shuffle(9, seed=1).map(scaled),
    "constants": lambda: shuffled().map(lambda value, label: (value @ tf.constant(VALUES[:2]), 1)),
    "strings": lambda: base().batch(4).map(lambda value, label: tf.strings.as_string(label)),
    "loop": lambda: (
        base()
        .batch(4)
        .map(lambda value, label: tf.while_loop(lambda n: n < 9, lambda n: n * 2, [label[0] + 1]))
    ),
    "repeated": lambda: base().batch(4).repeat(2).map(scaled),
    "before batches": lambda: base().map(scaled).batch(4),
    "before full batches": lambda: base().map(reshaped).batch(4, drop_remainder=True),
    "before batches in parallel": lambda: (
        base()
        .shuffle(9, seed=1)
        .map(scaled, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(4)
        .prefetch(2)
    ),
    "before and after": lambda: (
        base().map(scaled).batch(4).map(lambda v, hot, n: (v @ tf.transpose(v), hot - 1, n * 2))
    ),
    "before the order": lambda: base().map(scaled).shuffle(9, seed=1).batch(4),
    "before parts": lambda: base().map(scaled).skip(1).batch(3).take(3),
    "cached": lambda: base().map(scaled).cache().shuffle(9, seed=1).batch(4),
    "cached and repeated": lambda: base().map(scaled).batch(5).cache().repeat(2),
    "strings of rows": lambda: base().map(lambda v, n: (tf.strings.as_string(v), n)).batch(4),
    "long rows": lambda: (
        slices(np.arange(7 * 2048, dtype=np.float32).reshape(7, 2048))
        .map(lambda row: (row, tf.reshape(row, [2, 1024]), row[5:]))
        .batch(2)
    ),
    "empty rows": lambda: slices(np.zeros((7, 0), np.float16)).map(lambda row: row + 1).batch(2),
}
"""Datasets with functions that the caller runs."""

EPOCHS = {
    "orders of epochs": lambda: shuffled().repeat(2).map(scaled),
    "functions of epochs": lambda: shuffled().map(scaled).repeat(3).prefetch(2),
    "rows of epochs": lambda: base().shuffle(9, seed=1).map(scaled).repeat(3).batch(4),
    "shuffled and repeated": lambda: base().map(scaled).shuffle(9, seed=1).repeat(2).batch(4),
    "first of each order": lambda: (
        base().shuffle(13, seed=6).map(scaled).take(4).repeat(3).batch(3)
    ),
    "two orders": lambda: (
        base().shuffle(9, seed=1).map(scaled).repeat(2).shuffle(7, seed=2).batch(4).repeat(2)
    ),
}
"""Datasets with functions that the caller runs, and with seeds that are drawn in each epoch."""

PARALLEL = {
    "in any order": lambda: (
        base().batch(4).map(scaled, num_parallel_calls=2, deterministic=False).take(0)
    ),
    "random": lambda: base().batch(4).map(lambda v, n: v + 0 * tf.random.uniform([], seed=1)),
    "python": lambda: (
        base().batch(4).map(lambda v, n: tf.numpy_function(lambda x: x, [v], tf.float32))
    ),
    "pure python": lambda: (
        base()
        .batch(4)
        .map(lambda v, n: tf.numpy_function(lambda x: x, [v], tf.float32, stateful=False))
    ),
    "assertion": lambda: base().batch(4).map(checked),
    "strings": lambda: slices(np.array([b"a", b"b"])).batch(2).map(tf.strings.upper),
    "zipped": lambda: tf.data.Dataset.zip((base().map(scaled), base())).batch(4),
    "joined": lambda: base().map(scaled).concatenate(base().map(scaled)).batch(4),
    "cached orders": lambda: base().shuffle(9, seed=1).cache().map(scaled).batch(4),
    "batches of batches": lambda: base().map(scaled).batch(2).batch(2),
    "ragged": lambda: base().batch(4).map(lambda v, n: tf.RaggedTensor.from_tensor(v)),
}
"""Datasets with functions that TensorFlow runs."""


def checked(value, label):
    with tf.control_dependencies([tf.debugging.Assert(label[0] >= 0, [label])]):
        return value + 1


DATASETS = {
    "batches shuffled": lambda: base().batch(4).shuffle(3, seed=1),
    "batches of batches": lambda: base().batch(2).batch(2),
    "never": lambda: base().shuffle(5, seed=3).batch(2).repeat(0),
    "none taken": lambda: base().batch(2).take(0),
    "all skipped": lambda: base().batch(2).skip(-1),
    "joined": lambda: base().concatenate(base()).batch(4),
    "zipped orders": lambda: tf.data.Dataset.zip((base().shuffle(9, seed=1), base())).batch(4),
    "cached orders": lambda: base().shuffle(9, seed=1).cache().batch(4),
    "cached in part": lambda: base().shuffle(9, seed=1).take(5).cache().repeat(2).batch(4),
    "other numbers": lambda: tf.data.Dataset.range(9, output_type=tf.int32),
    "long range": lambda: tf.data.Dataset.range(1 << 40),
    "one": lambda: tf.data.Dataset.from_tensors((VALUES, 1)),
}
"""Datasets whose rows are not known: TensorFlow's iterators make their elements."""

ALL = ROWS | DATASETS

AHEAD = (
    *("shuffled once", "shuffled once and repeated", "shuffled twice"),
    *("repeated without end", "shuffled and repeated without end"),
)
"""Datasets whose checkpoints depend on how far a thread was ahead when they were written."""


@pytest.fixture(autouse=True)
def timeless():
    """Set a clock on which functions take no time."""
    policy.set_clock(lambda: 0)
    yield
    policy.set_clock(None)


@pytest.fixture(autouse=True)
def seedless():
    yield
    tf.random.set_seed(None)
    config.disable_op_determinism()


def plain(element):
    return tf.nest.map_structure(
        lambda leaf: (
            *(leaf.dtype.name, tuple(leaf.shape), leaf.device),
            tf.io.serialize_tensor(leaf).numpy(),
        ),
        element,
    )


def iterate(dataset):
    """Return an iterator. Without `install`, it has no thread that draws seeds ahead of time."""
    if not fastops.is_installed():
        options = tf.data.Options()
        options.autotune.enabled = False
        dataset = dataset.with_options(options)
    return iter(dataset)


def taken(iterator, count=12):
    """Return up to `count` elements, and "end" if the iterator has ended."""
    elements = []
    for _ in range(count):
        try:
            elements.append(plain(next(iterator)))
        except StopIteration:
            elements.append("end")
            break
    return elements


def copies(iterator):
    """Tell whether an iterator copies rows; otherwise it is TensorFlow's."""
    assert type(iterator) is OwnedIterator or isinstance(iterator, LazyIterator)
    return type(iterator) is not OwnedIterator


@pytest.mark.parametrize("name", ALL)
def test_elements_and_orders(name):
    """Each epoch has TensorFlow's elements, with or without `install` in earlier epochs."""
    make = ALL[name]
    dataset = make()
    want = [taken(iterate(dataset)) for _ in range(4)]
    dataset, got = make(), []
    for installed in (True, False, True, True):
        with fastops.accelerated() if installed else contextlib.nullcontext():
            iterator = iterate(dataset)
            assert copies(iterator) is (installed and name in ROWS)
            got.append(taken(iterator))
            assert copies(iterator) is (installed and name in ROWS)
    assert got == want


@pytest.mark.parametrize("name", one_in(2, ROWS))
@pytest.mark.parametrize("count", [0, 2, 12])
def test_tensorflows_iterator_goes_on(name, count):
    """TensorFlow's iterator continues at the same element, and later epochs do not change."""

    def run(hand_over):
        dataset = ROWS[name]()
        iterator = iterate(dataset)
        elements = taken(iterator, count)
        other = iterate(dataset)
        elements += taken(other, 2)
        if hand_over:
            assert copies(iterator)
            assert iterator._iterator_resource.dtype == tf.resource
            assert not copies(iterator)
        elements += taken(iterator, 9)
        elements += taken(other, 9)
        return elements + taken(iterate(dataset))

    want = run(hand_over=False)
    with fastops.accelerated():
        assert run(hand_over=True) == want


@pytest.mark.parametrize("name", one_in(2, ROWS))
@pytest.mark.parametrize("count", [0, 3])
def test_checkpoints(name, count, tmp_path):
    """A checkpoint continues the iteration, with and without `install`."""
    if name in AHEAD:
        pytest.skip("the thread of TensorFlow's pipeline may have drawn other seeds")
    files, rest = [], []
    for number, installed in enumerate((False, True)):
        with fastops.accelerated(only=["datasets"] if installed else []):
            iterator = iter(ROWS[name]())
            taken(iterator, count)
            assert copies(iterator) is installed
            files.append(tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / str(number))))
            rest.append(taken(iterator))
    assert rest[0] == rest[1]
    for path in files:
        for installed in (False, True):
            with fastops.accelerated(only=["datasets"] if installed else []):
                iterator = iter(ROWS[name]())
                taken(iterator, 1)
                tf.train.Checkpoint(iterator=iterator).read(path).assert_consumed()
                assert taken(iterator) == rest[0], (path, installed)


STEPS = st.one_of(
    st.tuples(st.just("take"), st.integers(-1, 20)),
    st.tuples(st.just("skip"), st.integers(-1, 20)),
    st.tuples(st.just("repeat"), st.integers(-1, 3)),
    st.tuples(st.just("shuffle"), st.integers(1, 30), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("batch"), st.integers(1, 9), st.booleans()),
)


@settings(deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 13),
    st.lists(STEPS, max_size=5),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.booleans()), max_size=6),
)
def test_any_pipeline(count, steps, uses):
    """Three iterators take turns; TensorFlow's may take the place of each at any time."""

    def run():
        dataset = slices(VALUES[:count], LABELS[:count])
        for name, *arguments in steps:
            dataset = getattr(dataset, name)(*arguments)
        iterators = [iterate(dataset)]
        elements = []
        for number, times, hand_over in uses:
            while number >= len(iterators):
                iterators.append(iterate(dataset))
            if hand_over:
                assert iterators[number]._iterator_resource.dtype == tf.resource
            elements += taken(iterators[number], times)
        return elements + taken(iterate(dataset), 5)

    def outcome():
        try:
            return run()
        except tf.errors.InvalidArgumentError as error:  # a shuffled dataset, repeated no times
            return str(error)

    want, got = in_both(outcome)
    assert got == want


def test_seeds_of_the_program():
    """The global seed is drawn when the dataset is made, as in TensorFlow."""

    def run():
        elements = []
        for _ in range(2):
            tf.random.set_seed(5)
            for _ in range(2):
                dataset = base().shuffle(13).batch(6)
                elements += taken(iter(dataset)) + taken(iter(dataset))
        return elements

    want, got = in_both(run)
    assert got == want
    assert want[:6] != want[6:12]


def test_without_seeds():
    with fastops.accelerated():
        dataset = base().shuffle(13).batch(4)
        epochs = []
        for hand_over in (False, True, False):
            iterator = iter(dataset)
            rows = [*next(iterator)[1].numpy()]
            if hand_over:
                assert iterator._iterator_resource.dtype == tf.resource
            rows += [row for _, labels in iterator for row in labels.numpy()]
            assert sorted(rows) == [*range(13)]
            epochs.append(rows)
        assert epochs[0] != epochs[1] != epochs[2]
        fixed = base().shuffle(13, reshuffle_each_iteration=False).batch(4)
        first, second = iter(fixed), iter(fixed)
        assert second._iterator_resource.dtype == tf.resource
        assert taken(first) == taken(second)


def test_each_element_counts_as_a_direct_call():
    with fastops.accelerated():
        list(base().batch(4))
        stats = fastops.stats().ops["IteratorGetNext"]
        # Four elements, and two calls at the end: the first prepares the kernel.
        assert (stats.direct, stats.reasons) == (5, {"first_call": 1})
        list(base().batch(4))
        assert fastops.stats().ops["IteratorGetNext"].direct >= 9


def test_graphs_take_the_place():
    @tf.function
    def total(iterator):
        value, label = next(iterator)
        return tf.reduce_sum(value) + tf.cast(tf.reduce_sum(label), tf.float32)

    def run():
        iterator = iter(base().shuffle(9, seed=1).batch(4))
        closed = iter(base().batch(2))
        next(closed)

        @tf.function
        def from_closure():
            return next(closed)[0]

        return [
            next(iterator)[1].numpy().tolist(),
            total(iterator).numpy(),
            next(iterator)[1].numpy().tolist(),
            from_closure().numpy().tolist(),
            next(closed)[1].numpy().tolist(),
        ]

    want, got = in_both(run)
    assert got == want


def test_attributes():
    def run():
        dataset = base().batch(5)
        iterator = iter(dataset)
        next(iterator)
        return [
            iterator.element_spec == dataset.element_spec,
            iterator._dataset is dataset,
            isinstance(iterator, OwnedIterator),
            type(iterator).__name__,
            repr(iterator._type_spec),
            plain(iterator.get_next()),
            iterator.get_next_as_optional().has_value().numpy(),
            iterator._iterator_resource.device,
            {name for name in vars(iterator) if not name.startswith("_fastops")},
            type(iterator) is OwnedIterator,
        ]

    want, got = in_both(run)
    assert got == want


def test_a_program_sets_the_resource():
    with fastops.accelerated():
        one, other = iter(base().batch(4)), iter(base().batch(6))
        next(one)
        one._iterator_resource = other._iterator_resource
        assert not copies(one)
        assert next(one)[1].shape == [6]


def test_changed_datasets():
    def run():
        dataset = base().batch(5)
        elements = taken(iter(dataset))
        dataset._variant_tensor_attr = base().batch(3)._variant_tensor
        return elements + taken(iter(dataset))

    want, got = in_both(run)
    assert got == want


def test_uninstall_in_the_middle():
    want = taken(iter(base().shuffle(9, seed=1).batch(2)))
    with fastops.accelerated():
        iterator = iter(base().shuffle(9, seed=1).batch(2))
        got = taken(iterator, 3)
        assert copies(iterator)
    got += taken(iterator, 2)
    assert not copies(iterator)
    with fastops.accelerated():
        got += taken(iterator)
    assert got == want


def test_settings_that_leave_elements_to_tensorflow():
    with fastops.accelerated():
        for path in ("tensorflow", "capi"):
            iterator = iter(base().shuffle(9, seed=1).batch(2))
            want = taken(iter(base().shuffle(9, seed=1).batch(2)), 4)
            got = taken(iterator, 2)
            with fastops.options(path=path):
                got += taken(iterator, 1)
            assert not copies(iterator)
            assert got + taken(iterator, 1) == want
        tf.config.experimental.enable_op_determinism()
        tf.random.set_seed(1)
        assert not copies(iter(base().batch(2)))


def test_options_of_the_program():
    options = tf.data.Options()
    options.deterministic = False
    with fastops.accelerated():
        assert not copies(iter(base().batch(4).with_options(options)))
        assert not copies(iter(base().with_options(options).batch(4)))


def test_threads():
    """Threads share an iterator, and each element is taken once, even if a thread replaces it."""
    with fastops.accelerated():
        dataset = tf.data.Dataset.range(400).shuffle(50, seed=1)
        for hands_over in (False, True):
            iterator, numbers = iter(dataset), []

            def take(iterator=iterator, numbers=numbers, hands_over=hands_over):
                for number in iterator:
                    numbers.append(int(number))
                    if hands_over and len(numbers) == 100:
                        assert iterator._iterator_resource.dtype == tf.resource

            threads = [threading.Thread(target=take) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(numbers) == [*range(400)]


def test_threads_share_a_dataset():
    """Each iterator has its own order, while TensorFlow's take the place of some others."""
    with fastops.accelerated():
        dataset = tf.data.Dataset.range(60).shuffle(60, seed=1).repeat(3)
        results = []

        def use():
            for number in range(20):
                iterator = iter(dataset)
                elements = [int(next(iterator)) for _ in range(70)]
                if number % 3 == 0:
                    assert iterator._iterator_resource.dtype == tf.resource
                elements += [int(element) for element in iterator]
                results.append(elements)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for elements in results:
            for begin in (0, 60, 120):
                assert sorted(elements[begin : begin + 60]) == [*range(60)]
        assert len({tuple(elements[:60]) for elements in results}) == 80


def test_iterators_and_datasets_are_freed():
    with fastops.accelerated():
        dataset = base().shuffle(9, seed=1).batch(2)
        iterator = iter(dataset)
        next(iterator)
        del dataset
        gc.collect()
        assert next(iterator)[1].shape == [2]
        assert iterator._iterator_resource.dtype == tf.resource
        assert len(list(iterator)) == 5
        count = threading.active_count()
        for _ in range(5):
            list(base().batch(2))
        assert threading.active_count() == count


def test_copies_of_datasets():
    """A shallow copy has the pipeline of the dataset that it was copied from."""

    def run():
        dataset = base().shuffle(9, seed=1).batch(4)
        elements = taken(iter(dataset))
        return elements + taken(iter(copy.copy(dataset)))

    want, got = in_both(run)
    assert got == want


def test_tapes():
    def run():
        iterator = iter(slices(VALUES).batch(4))
        with tf.GradientTape() as tape:
            weight = tf.constant(3.0)
            tape.watch(weight)
            loss = tf.reduce_sum(next(iterator)[0] * weight)
        return tape.gradient(loss, weight).numpy()

    want, got = in_both(run)
    assert got == want


# ---------------------------------------------------------------------------------------------
# Functions
# ---------------------------------------------------------------------------------------------


def is_planned(dataset):
    """Tell whether plans run the functions of a dataset. Otherwise a kernel of TensorFlow does."""
    return vars(dataset)["_fastops_in_caller"]._mapped.is_planned


@pytest.fixture(
    params=[
        pytest.param(0.0, id="by plans"),
        pytest.param(1e18, id="by a kernel", marks=pytest.mark.slow),
    ]
)
def planned(request):
    """Tell whether plans run mapped functions from the second run on."""
    before = policy.set_share(request.param)
    yield request.param == 0
    policy.set_share(before)


@pytest.mark.parametrize("name", MAPPED | EPOCHS)
def test_mapped_functions(name, planned):
    """The test keeps all elements, so it fails if an element shares memory with a later one."""
    make = (MAPPED | EPOCHS)[name]
    dataset = make()
    want = [taken(iter(dataset), 60) for _ in range(4)]
    dataset, got = make(), []
    for installed in (True, False, True, True):
        with fastops.accelerated() if installed else contextlib.nullcontext():
            iterator = iter(dataset)
            elements = [next(iterator) for _ in range(3)]
            assert copies(iterator) is installed
            got.append([*map(plain, elements), *taken(iterator, 57)])
            assert copies(iterator) is installed
    assert got == want
    assert is_planned(dataset) is planned


@pytest.mark.parametrize("name", PARALLEL)
def test_functions_that_tensorflow_runs(name):
    with fastops.accelerated():
        iterator = iter(PARALLEL[name]())
        assert not copies(iterator)
        for _ in iterator:
            pass


FUNCTIONS = {
    "scale": lambda value, label: (value * 0.3 + tf.reduce_mean(value), label),
    "cast": lambda value, label: (tf.cast(value, tf.float64) / 7.0, label + 1),
    "sum": lambda value, label: (tf.reduce_sum(value, axis=-1, keepdims=True), label),
}
"""Functions of elements with any number of axes."""


@settings(deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 13),
    st.lists(
        STEPS
        | st.tuples(st.just("map"), st.sampled_from([*FUNCTIONS]), st.sampled_from([None, 2, -1]))
        | st.tuples(st.just("cache")),
        max_size=7,
    ),
    st.integers(0, 8),
    st.booleans(),
    st.booleans(),
)
def test_any_pipeline_with_functions(count, steps, first, hand_over, plans):
    def run():
        dataset = slices(VALUES[:count], LABELS[:count])
        for name, *arguments in steps:
            if name == "map":
                dataset = dataset.map(FUNCTIONS[arguments[0]], num_parallel_calls=arguments[1])
            else:
                dataset = getattr(dataset, name)(*arguments)
        iterator = iter(dataset)
        elements = taken(iterator, first)
        if hand_over:
            assert iterator._iterator_resource.dtype == tf.resource
        return elements + taken(iterator, 30)

    def outcome():
        try:
            return run()
        except tf.errors.InvalidArgumentError as error:  # a shuffled dataset, repeated no times
            return str(error)

    before = policy.set_share(0 if plans else 1e18)
    try:
        want, got = in_both(outcome)
    finally:
        policy.set_share(before)
    assert got == want


LARGE = np.random.default_rng(1).normal(size=(8, 300, 200)).astype(np.float32)

SPLIT = {
    "sum": tf.reduce_sum,
    "mean": lambda x: tf.reduce_mean(x, axis=0),
    "product": lambda x: tf.matmul(x, x, transpose_a=True),
    "softmax": tf.nn.softmax,
    "standardized": lambda x: (x - tf.reduce_mean(x)) / (tf.math.reduce_std(x) + 1e-3),
    "convolution": lambda x: tf.nn.conv1d(x[tf.newaxis], tf.ones([3, 200, 8]), 1, "SAME"),
    "resized": lambda x: tf.image.resize(x[..., tf.newaxis], [99, 101]),
    "elementwise": lambda x: tf.tanh(x / 255.0) ** 3 + tf.math.erf(x),
    "sorted": lambda x: (tf.sort(x), tf.argsort(x)),
    "cumulated": tf.cumsum,
    "normalized": lambda x: tf.linalg.l2_normalize(x, axis=0),
    "constant": lambda x: x / 3.0,
}
"""Functions whose kernels split their work among threads, and one whose constant TensorFlow's
optimizer of graphs inverts in traced functions, but not in functions of datasets."""


@pytest.mark.parametrize("name", SPLIT)
def test_bits_that_depend_on_options(name, planned):
    """TensorFlow has options for mapped functions: one thread for a kernel, no constant folding."""

    def run():
        elements = []
        for dataset in (
            tf.data.Dataset.from_tensor_slices(LARGE).map(SPLIT[name]).batch(3),
            tf.data.Dataset.from_tensor_slices(LARGE).map(SPLIT[name], num_parallel_calls=2),
        ):
            elements += taken(iter(dataset))
            if fastops.is_installed():
                assert is_planned(dataset) is planned
        return elements

    want, got = in_both(run)
    assert got == want


@pytest.mark.parametrize("count", [0, 1, 4, 5, 20])
@pytest.mark.parametrize("name", EPOCHS)
def test_orders_of_epochs_go_on_in_tensorflow(name, count):
    def run():
        iterator = iter(EPOCHS[name]())
        elements = taken(iterator, count)
        if fastops.is_installed():
            assert copies(iterator)
            assert iterator._iterator_resource.dtype == tf.resource
            assert not copies(iterator)
        return elements + taken(iterator, 40)

    want, got = in_both(run)
    assert got == want


def test_iterators_that_draw_from_one_generator():
    """TensorFlow's threads decide which iterator draws first. Each epoch has each row once."""
    with fastops.accelerated():
        dataset = base().shuffle(13, seed=6).map(scaled).repeat(3).batch(13)
        iterators = iter(dataset), iter(dataset)
        assert all(map(copies, iterators))
        for _ in range(3):
            for iterator in iterators:
                assert sorted(next(iterator)[2].numpy().tolist()) == [*range(13)]
        assert not copies(iterators[0])
        for iterator in iterators:
            with pytest.raises(StopIteration):
                next(iterator)


def test_options_of_the_program_leave_functions_to_the_kernel():
    """TensorFlow optimizes mapped functions by these options, too."""

    def run():
        dataset = base().batch(4).map(lambda v, n: v / 3.0 / 3.0)
        elements = taken(iter(dataset))
        if fastops.is_installed():
            assert not is_planned(dataset)
        return elements

    with optimizer_options(arithmetic_optimization=False):
        want, got = in_both(run)
    assert got == want


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("name", MAPPED)
def test_mapped_functions_go_on_in_tensorflow(name, count):
    def run(hand_over):
        dataset = MAPPED[name]()
        iterator, other = iter(dataset), iter(dataset)
        elements = taken(iterator, count) + taken(other, 1)
        if hand_over:
            assert copies(iterator)
            assert iterator._iterator_resource.dtype == tf.resource
            assert not copies(iterator)
        return elements + taken(iterator) + taken(other) + taken(iter(dataset))

    want = run(hand_over=False)
    with fastops.accelerated():
        assert run(hand_over=True) == want


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("name", ["mapped", "in parallel", "same memory", "rows"])
def test_checkpoints_of_mapped_functions(name, count, tmp_path):
    files, rest = [], []
    for number, installed in enumerate((False, True)):
        with fastops.accelerated() if installed else contextlib.nullcontext():
            iterator = iter(MAPPED[name]())
            taken(iterator, count)
            assert copies(iterator) is installed
            files.append(tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / str(number))))
            rest.append(taken(iterator))
    assert rest[0] == rest[1]
    for path in files:
        for installed in (False, True):
            with fastops.accelerated() if installed else contextlib.nullcontext():
                iterator = iter(MAPPED[name]())
                taken(iterator, 1)
                tf.train.Checkpoint(iterator=iterator).read(path).assert_consumed()
                assert taken(iterator) == rest[0], (path, installed)


CHANCE = r"MapDataset:\d+|Shapes are: .*? \[Op:"
"""The parts of TensorFlow's errors that vary: numbers, and which row was copied first."""

FAILING = {
    "batches": lambda: tf.data.Dataset.range(8).batch(2).map(lambda number: 12 // (number - 2)),
    "rows": lambda: tf.data.Dataset.range(8).map(lambda number: 12 // (number - 5)).batch(2),
    "shapes of rows": lambda: tf.data.Dataset.range(8).map(tf.range).batch(2),
}


@pytest.mark.parametrize("name", FAILING)
def test_errors_of_mapped_functions(name, planned):
    """An error is TensorFlow's, and TensorFlow has to make all further elements."""

    def run():
        iterator, elements = iter(FAILING[name]()), []
        for _ in range(7):
            try:
                elements.append(next(iterator).numpy().tolist())
            except Exception as error:
                elements.append((type(error), re.sub(CHANCE, "", str(error))))
        return elements, taken(iter(tf.data.Dataset.range(4).batch(2).map(lambda n: 4 // (n + 1))))

    want, got = in_both(run)
    assert got == want


def test_all_iterators_are_tensorflows_after_an_error():
    with fastops.accelerated():
        dataset = tf.data.Dataset.range(4).batch(2).map(lambda number: 12 // (number - 2))
        iterator, other = iter(dataset), iter(dataset)
        assert next(iterator).numpy().tolist() == [-6, -12]
        assert copies(iterator)
        with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
            next(iterator)
        assert not copies(iterator)
        assert copies(other)
        assert next(other).numpy().tolist() == [-6, -12]
        assert not copies(other)
        assert not copies(iter(dataset))


def test_slow_functions_run_in_threads():
    """TensorFlow makes the iterators as soon as it is known that the functions take long."""
    clock = iter(range(0, 1 << 60, 1 << 40))
    with fastops.accelerated():
        dataset = base().batch(2).map(scaled)
        want = taken(iter(dataset))
        dataset = base().batch(2).map(scaled)
        policy.set_clock(lambda: next(clock))
        iterator = iter(dataset)
        got = taken(iterator, 4)
        assert copies(iterator)
        got += taken(iterator, 1)
        assert not copies(iterator)
        assert got + taken(iterator) == want
        assert not copies(iter(dataset))
        assert fastops.stats().kinds["Dataset.map"].reasons["mapped_slow"] == 1


def test_calls_of_functions_are_counted_by_what_runs_them():
    with fastops.accelerated():
        dataset = base().batch(2).map(scaled)
        taken(iter(dataset))
        seen = fastops.stats().kinds["Dataset.map"]
        assert (seen.copied, seen.reasons) == (6, {"kind_new": 1})
        fastops.reset_stats()
        with optimizer_options(remapping=False):  # graphs have options of the program
            dataset = base().batch(2).map(scaled)
            taken(iter(dataset))
        seen = fastops.stats().kinds["Dataset.map"]
        assert (seen.copied, seen.reasons) == (0, {"kind_new": 1, "mapped_unplanned": 6})


def test_plans_with_other_results_are_not_used(monkeypatch):
    """The plans of a wrong function take the place of those of the mapped one."""

    def other(dataset):
        return [(dataset._map_func.function, None, None)]

    def run():
        dataset = base().batch(2).map(scaled)
        wrong = base().batch(2).map(lambda value, label: (value + 1.0, value, label))
        with monkeypatch.context() as patch:
            patch.setattr(pipelines, "_plans", lambda functions: plans(other(wrong)))
            return taken(iter(dataset)) + taken(iter(dataset))

    plans = pipelines._plans
    want, got = in_both(run)
    assert got == want
    seen = fastops.stats().kinds["Dataset.map"]
    assert (seen.copied, seen.reasons) == (0, {"kind_new": 1, "mapped_differs": 13})


def test_changed_functions():
    def run():
        dataset = base().batch(4).map(scaled)
        other = base().batch(4).map(lambda value, label: (value, value, label))
        elements = taken(iter(dataset))
        dataset._variant_tensor_attr = other._variant_tensor
        return elements + [type(end) for end in taken(iter(other))]

    want, got = in_both(run)
    assert got == want


def test_threads_share_mapped_functions():
    with fastops.accelerated():
        dataset = tf.data.Dataset.range(100).batch(4).map(lambda number: number * 2)
        results = []

        def use():
            for _ in range(5):
                results.append([number for part in dataset for number in part.numpy().tolist()])

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [[*range(0, 200, 2)]] * 20


def test_mapped_datasets_are_freed():
    with fastops.accelerated():
        dataset = base().batch(4).map(scaled).prefetch(1)
        assert len(list(dataset)) == 4
        freed = weakref.ref(dataset)
        gc.disable()
        try:
            del dataset
            assert freed() is None
        finally:
            gc.enable()
