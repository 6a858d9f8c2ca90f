"""`fastops.install()` runs functions of `tf.function` as plans, in unchanged programs."""

import collections
import copy
import gc
import itertools
import logging
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import assert_same, floats, python
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import ops

import fastops
from fastops._plans.plans import PlansBeside

X = tf.constant(floats(3))
CALL = vars(polymorphic_function.Function)["__call__"]


@pytest.fixture(autouse=True)
def installed():
    fastops.install()
    yield
    fastops.uninstall()
    assert vars(polymorphic_function.Function)["__call__"] is CALL


def plans(function):
    """Return the executor of each signature of a function."""
    return [row["executor"] for row in function._fastops_caller.describe()]


@pytest.mark.quick
def test_the_layer_traced_can_be_chosen():
    fastops.uninstall()
    fastops.install(functions=False)
    assert vars(polymorphic_function.Function)["__call__"] is CALL
    fastops.uninstall()
    with fastops.accelerated(only=["traced"]):
        assert vars(polymorphic_function.Function)["__call__"] is not CALL
    fastops.install(exclude=["traced"])
    assert vars(polymorphic_function.Function)["__call__"] is CALL


def test_calls():
    traces = []

    @tf.function
    def function(x, k=2.0, *, bias=None):
        traces.append((x.shape, k))
        return x * k if bias is None else x * k + bias

    for _ in range(3):
        assert_same(function(X), X * 2.0)
        assert_same(function(X, 3.0), X * 3.0)
        assert_same(function(k=3.0, x=X), X * 3.0)
        assert_same(function(X, bias=X), X * 2.0 + X)
        assert_same(function(X.numpy()), X * 2.0)
        assert_same(function(tf.ragged.constant([[1.0]])).to_tensor(), tf.constant([[2.0]]))
    assert plans(function) == ["plan"] * 4
    assert function.experimental_get_tracing_count() == len(traces) == 4
    with pytest.raises(TypeError, match="missing a required argument"):
        function()


def test_functions_called_once_have_no_plan():
    function = tf.function(lambda x: x + 1.0)
    assert_same(function(X), X + 1.0)
    assert plans(function) == ["tensorflow"]
    assert_same(function(X), X + 1.0)
    assert plans(function) == ["plan"]


def test_functions_called_before_install_and_after_uninstall():
    function = tf.function(lambda x: x + 1.0)
    fastops.uninstall()
    function(X)
    fastops.install()
    for _ in range(2):
        assert_same(function(X), X + 1.0)
    assert plans(function) == ["plan"]
    fastops.uninstall()
    assert_same(function(X), X + 1.0)


def test_methods_and_variables_of_the_first_call():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(2.0)
            self.v.assign_add(1.0)
            return x * self.v

    one, other = Model(), Model()
    assert [float(one(1.0)) for _ in range(4)] == [3.0, 4.0, 5.0, 6.0]
    assert float(other(tf.constant(1.0))) == 3.0
    dead = weakref.ref(one)
    del one
    gc.collect()
    assert dead() is None


def test_functions_that_call_functions():
    inner = tf.function(lambda x: tf.tanh(x))
    outer = tf.function(lambda x: inner(x) + inner(x * 2.0))
    for _ in range(3):
        assert_same(outer(X), tf.tanh(X) + tf.tanh(X * 2.0))
    assert plans(outer) == ["plan"]
    both = fastops.function(outer)
    for _ in range(3):
        assert_same(both(X), outer(X))


def test_tapes_and_graphs():
    v = tf.Variable(3.0)
    function = tf.function(lambda x: tf.reduce_sum(x * x) * v)
    for _ in range(2):
        function(X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = function(X)
        assert_same(tape.gradient(y, [X, v]), [2.0 * X * v, tf.reduce_sum(X * X)])
    with tf.Graph().as_default():
        assert tf.is_symbolic_tensor(tf.function(lambda x: x + 1.0)(tf.constant([1.0])))


def test_functions_that_are_collected_or_copied():
    function = tf.function(lambda x: x + 1.0)
    for _ in range(2):
        function(X)
    state = function.__getstate__()
    assert copy.deepcopy(state["_fastops_caller"]) is None
    plan = weakref.ref(function._fastops_caller)
    dead = weakref.ref(function)
    del function, state
    gc.collect()
    assert dead() is None
    assert plan() is None


def test_a_saved_function(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(3.0)
    module.call = tf.function(
        lambda x: x * module.v, input_signature=[tf.TensorSpec([None], tf.float32)]
    )
    module.call(X)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for _ in range(3):
        assert_same(loaded.call(X), X * 3.0)


def test_tensorflow_warns_about_retracing_equally_often(caplog):
    serial = itertools.count()

    def warnings(count):
        # Each function is new, because TensorFlow counts traces by the code.
        function = tf.function(eval(f"lambda x: x + {next(serial)}.0"), autograph=False)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tensorflow"):
            for size in range(1, 8):
                for _ in range(count):
                    function(tf.zeros([size]))
        return len(caplog.records)

    mine = [warnings(count) for count in (1, 2, 20)]
    fastops.uninstall()
    assert mine == [warnings(count) for count in (1, 2, 20)]
    assert mine[0] > 0
    assert mine[-1] == 0


SERIAL = itertools.count()


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("taped", [True, False])
def test_tensorflow_warns_about_functions_with_the_same_code_equally_often(caplog, kept, taped):
    def warnings(count):
        make = eval(f"lambda tf: tf.function(lambda x: x + {next(SERIAL)}.25, autograph=False)")
        made = []
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tensorflow"):
            for _ in range(7):
                function = make(tf)
                for _ in range(count):
                    function(X)
                if taped:  # the last trace is made on a tape, where no plan runs
                    with tf.GradientTape():
                        function(tf.zeros([3, 4]))
                if kept:
                    made.append(function)
        return len(caplog.records)

    mine = [warnings(count) for count in (1, 4, 20)]
    fastops.uninstall()
    assert mine == [warnings(count) for count in (1, 4, 20)]
    assert mine[0] > 0
    assert mine[-1] == 0


def test_functions_for_xla_are_left_alone():
    function = tf.function(lambda x: x * 2.0, jit_compile=True)
    for _ in range(3):
        assert_same(function(X), X * 2.0)
    assert plans(function) == []


@pytest.mark.quick
def test_iterators():
    """Functions iterate over datasets, also over those of Python generators and those that end."""

    def batches():
        for i in range(6):
            yield np.float32(i), {"k": np.arange(3)}

    signature = (tf.TensorSpec([], tf.float32), {"k": tf.TensorSpec([3], tf.int64)})
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
        x, rest = next(iterator)
        total.assign_add(x)
        return x + tf.cast(rest["k"], tf.float32)

    for dataset in (
        tf.data.Dataset.from_generator(batches, output_signature=signature),
        tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(2),
    ):
        for _ in range(2):
            total.assign(0.0)
            iterator = iter(dataset)
            for i in range(6):
                assert_same(step(iterator), i + tf.constant([0.0, 1.0, 2.0]))
            with pytest.raises(tf.errors.OutOfRangeError) as ended:
                step(iterator)
            assert "End of sequence" in str(ended.value)
            assert float(total) == 15.0
    assert plans(step) == ["plan"]
    other = tf.data.Dataset.from_tensors((1.0, {"k": [1, 2, 3]})).map(
        lambda x, rest: (x, {"k": tf.cast(rest["k"], tf.int64)})
    )
    assert_same(step(iter(other)), tf.constant([2.0, 3.0, 4.0]))


def test_iterators_and_threads():
    dataset = tf.data.Dataset.range(2000)
    step = tf.function(lambda iterator: iterator.get_next() * 2)
    iterator = iter(dataset)
    results = []
    threads = [
        threading.Thread(target=lambda: results.extend(int(step(iterator)) for _ in range(500)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(0, 4000, 2))


def trained(installed):
    """Train a Keras model; return its history, weights and predictions."""
    if not installed:
        fastops.uninstall()
    keras.utils.set_random_seed(3)
    x, y = floats(96, 5), np.arange(96) % 3
    model = keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(8, "relu"),
            keras.layers.Dropout(0.25),
            keras.layers.Dense(3),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    history = model.fit(x, y, epochs=3, batch_size=32, verbose=0, validation_split=0.25)
    logs = [model.train_on_batch(x[:32], y[:32]) for _ in range(4)]
    seen = [model.evaluate(x, y, verbose=0), model.predict(x, verbose=0)]
    seen += [model.predict_on_batch(x[:1]) for _ in range(3)]
    return [history.history, logs, seen, model.get_weights()]


STRUCTURES = {
    "tensor": lambda: X,
    "tuple": lambda: (X, tf.constant(["a"])),
    "dict": lambda: {"b": X, "a": (X + 1.0, {"c": X})},
    "pair": lambda: collections.namedtuple("Pair", "x y")(X, X),
    "ragged": lambda: tf.ragged.constant([[1.0], []]),
    "sparse": lambda: {"s": tf.sparse.from_dense(X)},
    "none": lambda: (X, None),
    "dataset": lambda: tf.data.Dataset.range(3),
}


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.quick
def test_optional_values(kind, monkeypatch):
    optional = tf.experimental.Optional.from_value(STRUCTURES[kind]())
    fastops.uninstall()
    want = optional.get_value()
    assert optional.has_value()
    fastops.install()
    scopes = []
    scope = ops.name_scope
    monkeypatch.setattr(ops, "name_scope", lambda *args: scopes.append(args) or scope(*args))
    for _ in range(2):
        got = optional.get_value()
        assert type(got) is type(want)
        if kind != "dataset":
            tf.nest.assert_same_structure(got, want, expand_composites=True)
            flat = [tf.nest.flatten(result, expand_composites=True) for result in (got, want)]
            assert_same(*flat)
        if type(want) is dict:
            assert [*got] == [*want]
        assert optional.has_value()
    assert bool(scopes) == (kind not in ("tensor", "tuple", "dict")), "the wrong way was taken"


def test_optional_values_without_a_value():
    empty = tf.experimental.Optional.empty(tf.TensorSpec([3]))
    messages = set()
    for install in (fastops.uninstall, lambda: fastops.install()):
        install()
        assert not empty.has_value()
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            empty.get_value()
        messages.add(str(caught.value))
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            empty.get_value(name="mine")
        messages.add(str(caught.value))
    assert len(messages) == 1

    @tf.function
    def traced(optional):
        return tf.cond(optional.has_value(), optional.get_value, lambda: X)

    assert_same(traced(empty), X)
    full = tf.experimental.Optional.from_value(X + 1.0)
    with tf.GradientTape() as tape:
        tape.watch(full._variant_tensor)
        value = full.get_value()
    assert_same(value, traced(full))


def test_several_steps_by_one_call_of_keras():
    def fitted():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, "relu")])
        model.compile(loss="mse", optimizer="adam", steps_per_execution=20)
        x, y = floats(110, 4), floats(110, 1)
        history = model.fit(x, y, batch_size=1, epochs=3, verbose=0).history["loss"]
        return history, model.get_weights(), model.predict(x, batch_size=1, verbose=0)

    mine = fitted()
    fastops.uninstall()
    for got, want in zip(tf.nest.flatten(mine), tf.nest.flatten(fitted()), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def test_keras():
    gc.collect()
    before = {id(value) for value in gc.get_objects() if isinstance(value, PlansBeside)}
    mine = trained(installed=True)
    new = [
        plans
        for plans in gc.get_objects()
        if isinstance(plans, PlansBeside) and id(plans) not in before
    ]
    described = [case for plans in new for case in plans.describe()]
    assert len(described) >= 5
    assert {case["executor"] for case in described} == {"plan"}, described
    want = trained(installed=False)
    for got, expected in zip(tf.nest.flatten(mine), tf.nest.flatten(want), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(expected).tobytes()


def test_tracebacks_do_not_contain_fastops():
    """Tracebacks, and the stacks that TensorFlow stores in graphs, have no frames of fastops.

    The exception is one line if a plan with effects fails: fastops itself raises then.
    """
    out = python("""
        import re
        import traceback
        tf.debugging.enable_traceback_filtering()
        v = tf.Variable(0.0)

        def counted(i):
            v.assign_add(1.0)
            return tf.gather([1.0], i)

        def after_a_draw(i):
            with tf.control_dependencies([tf.random.uniform([], seed=1)]):
                return tf.gather([1.0], i)

        bodies = {
            "wrong shapes": lambda i: tf.zeros([2, 3]) + tf.zeros([4, 5]),
            "a plan": lambda i: tf.gather([1.0], i),
            "a plan with effects": counted,
            "a plan with Python": lambda i: tf.py_function(lambda k: 1 // (1 - k), [i], tf.int32),
            "TensorFlow": after_a_draw,
        }

        kept = []

        def seen():
            found = []
            for name, body in bodies.items():
                function = tf.function(body, autograph=False)
                kept.append(function)
                for i in (0, 0, 3, 1, 0, 1, 1):
                    try:
                        function(tf.constant(i))
                    except Exception as error:
                        if name in ("a plan with effects", "a plan with Python"):
                            error = error.with_traceback(None)
                        text = "".join(traceback.format_exception(error))
                        found.append((name, i, re.sub("(_|line )[0-9]+", "", text)))
            return found

        want = seen()
        assert len(want) == 7 + 4 + 4 + 3 + 4
        with fastops.accelerated():
            got = seen()
            planned = [one.plan for one in fastops.stats().functions.values()]
        assert any(planned)
        for one, other in zip(got, want, strict=True):
            assert one == other, f"{one[:2]}\\n{one[2]}\\nnot\\n{other[2]}"
        print("fine")
    """)
    assert out == "fine\n"
