"""Layers, models and losses of tf_keras, if it is installed: results are the same, and replayed."""

import gc
import threading
import weakref
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from install.models.changes import (
    add_a_layer,
    another_activation,
    another_class,
    another_dict,
    assign,
    call_of_an_instance,
    compiled,
    first,
    fitted,
    freeze,
    kernel_regularizer,
    no_activation,
    no_bias,
    regularize,
    remove_a_layer,
    set_weights,
    state_of_the_instance,
)
from install.models.keras_programs import (
    CALLS,
    calls_beside_a_recording,
    floats,
    outcome,
    plain,
    probe,
    told,
)
from install.models.tf_keras_programs import (
    MODELS,
    OBJECTION,
    L,
    Subclassed,
    compare,
    convolutional,
    deferred,
    dropped,
    functional,
    masked,
    nested,
    perceptron,
    regularized,
    settings,
    tf_keras,
)
from support import one_in

import fastops
from fastops._core.reasons import advice, text_of

pytestmark = pytest.mark.skipif(OBJECTION is not None, reason=str(OBJECTION))


@pytest.mark.parametrize("training", one_in(2, [None, False, True]))
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_models(make, training):
    def program():
        model, x = make()
        probe(model)
        for _ in range(CALLS):
            yield model(x, training=training)
        yield model.variables
        yield model.losses

    draws = training and make.__name__ in ("dropped", "noisy")  # replays of draws run op by op
    compare(program, native=not draws)


@pytest.mark.parametrize("make", [perceptron, convolutional, masked, MODELS["mixed"]])
def test_gradients(make):
    def program():
        model, x = make()
        probe(model)
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.cast(model(x, training=True), tf.float32) ** 2)
            slopes = tape.gradient(loss, model.trainable_variables)
            yield tf.nest.flatten(slopes, expand_composites=True)
            yield len(tape.watched_variables())

    compare(program, native=True)


def test_higher_derivatives():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            with tf.GradientTape(persistent=True) as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    loss = tf.reduce_sum(model(x) ** 2)
                slopes = tape.gradient(loss, [x, *model.trainable_variables])
                whole = tf.reduce_sum(slopes[0] ** 2)
            yield slopes
            yield outer.gradient(whole, [x, *model.trainable_variables])

    compare(program)


def test_forward_accumulators():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
                y = model(x)
            yield forward.jvp(y)

    compare(program, replayed=None)


def test_replays_are_asserted_by_their_reasons():
    with fastops.accelerated():
        model, x = perceptron()
        for _ in range(CALLS):
            model(x)
        known = told(model)
    assert known["replayed"] == CALLS - 3
    assert known["native"] > 0
    assert known["refused"] is None
    assert not known["reasons"]


@pytest.mark.parametrize(
    "given",
    [
        np.float32([[1, 2, 3, 4]]),
        np.float64([[1, 2, 3, 4.1]]),
        np.int64([[1, 2, 3, 4]]),
        np.ones((4, 2), np.float32).T,
        np.array([[True, False, True, True]]),
        [[1.0, 2.0, 3.0, 4.0]],
        [np.ones((1, 4), np.float32)],
        np.array([["a", "b", "c", "d"]]),
        np.ones((1, 5), np.float32),
        tf.ones((1, 4), tf.float64),
        tf.ones((1, 4), tf.int32),
        tf.ones((0, 4)),
        tf.ones((4,)),
        tf.ones((2, 3, 4)),
        tf.sparse.eye(4),
        tf.ragged.constant([[1.0, 2.0], [3.0]]),
        tf.Variable(tf.ones((1, 4))),
        3.0,
        None,
        "text",
        {"one": tf.ones((1, 4))},
        (tf.ones((1, 4)),),
    ],
    ids=lambda given: f"{type(given).__name__} {given!r}".partition("\n")[0],
)
@pytest.mark.filterwarnings("ignore")
def test_arguments(given):
    def program():
        for model in (perceptron()[0], functional()[0], deferred()[0], L.Dense(2)):
            for _ in range(CALLS):
                yield outcome(model, given)
            yield outcome(model, inputs=given)
            yield outcome(model)

    compare(program)


def test_arrays_in_other_arguments():
    def program():
        layer = L.GlobalAveragePooling1D()
        x, mask = floats(2, 3, 4).numpy(), np.array([[True, False, True], [True, True, False]])
        for _ in range(CALLS):
            yield outcome(layer, x)
            yield outcome(layer, x, mask)
            yield outcome(layer, x, mask=mask)
            yield outcome(layer, x, tf.constant(mask))

    compare(program)


def test_symbolic_inputs_and_traces():
    def program():
        model, x = perceptron()
        probe(model)
        traced = tf.function(model)
        for _ in range(CALLS):
            yield model(x)
            yield traced(x)
        other = tf_keras.Model(inputs := tf_keras.Input((4,)), model(inputs))
        yield other(x)
        for _ in range(CALLS):
            yield model(x)

    compare(program)


# ---------------------------------------------------------------------------------------------
# Changes between calls
# ---------------------------------------------------------------------------------------------


def replace_the_variable(model):
    first(model).kernel = tf.Variable(tf.ones((4, 8)))


def replace_a_layer(model):
    model.pop()
    model.add(L.Dense(3, activation="tanh"))


def swap_a_layer(model):
    """Replace a layer in the list of layers, which a built model does not read."""
    model._self_tracked_trackables[-1] = L.Dense(3)


def freeze_a_layer(model):
    first(model).trainable = False


def another_input_spec(model):
    first(model).input_spec = L.InputSpec(ndim=3)


def another_policy(model):
    first(model)._set_dtype_policy("float64")


def half(model):
    first(model)._set_dtype_policy("mixed_float16")


def half_of_all(model):
    tf_keras.mixed_precision.set_global_policy("mixed_float16")


def no_autocast(model):
    first(model)._autocast = False


def add_a_loss(model):
    model.add_loss(lambda: tf.reduce_sum(first(model).kernel))


def weight_loss(model):
    kernel = first(model).kernel
    first(model)._handle_weight_regularization("kernel", kernel, tf_keras.regularizers.L2(0.1))


def add_a_metric(model):
    model.add_metric(first(model).output, name="mean")


def floatx(model):
    tf_keras.backend.set_floatx("float64")


def epsilon(model):
    tf_keras.backend.set_epsilon(0.1)


def clear(model):
    tf_keras.backend.clear_session()


def masking(model):
    first(model).supports_masking = False


def node_elsewhere(model):
    """Have the model call another layer in the place of the second one."""
    node = model._nodes_by_depth[1][0]
    node.layer = L.Dense(8, activation="relu")


def as_a_part(model):
    """Call the model and its layers by symbolic inputs: this writes to their lists of nodes."""
    tf_keras.Sequential([tf_keras.Input((4,)), model, L.Dense(2)])


CHANGES = [
    *(assign, set_weights, replace_the_variable, replace_a_layer, swap_a_layer, freeze),
    *(freeze_a_layer, add_a_layer, remove_a_layer, another_activation, no_bias, no_activation),
    *(call_of_an_instance, another_input_spec, another_policy, half, half_of_all, no_autocast),
    *(add_a_loss, regularize, kernel_regularizer, weight_loss, add_a_metric, compiled, fitted),
    *(state_of_the_instance, another_dict, another_class, floatx, epsilon, clear, masking),
    *(node_elsewhere, as_a_part),
]


@pytest.mark.parametrize("change", one_in(2, CHANGES), ids=lambda change: change.__name__)
@pytest.mark.parametrize("make", [perceptron, deferred], ids=lambda make: make.__name__)
@pytest.mark.filterwarnings("ignore")
def test_changes(make, change):
    def program():
        with settings():
            model, x = make()
            probe(model)
            for _ in range(CALLS):
                yield model(x)
            yield outcome(change, model)
            for _ in range(CALLS):
                with tf.GradientTape() as tape:
                    y = outcome(model, x)
                    z = tf.reduce_sum(model(x)) if "float" in y[0] else x
                yield y
                yield tape.gradient(z, model.trainable_variables)
                yield outcome(lambda: model.losses)
                yield [plain(metric.result()) for metric in model.metrics]

    compare(program)


def test_changes_that_are_undone():
    def program():
        model, x = perceptron()
        probe(model)
        for number in range(40):
            model.trainable = number % 2 == 0
            with tf.GradientTape() as tape:
                y = model(x)
            yield y
            yield len(tape.watched_variables())

    compare(program)


@pytest.mark.parametrize("make", [convolutional, functional, MODELS["attention"], masked, dropped])
def test_all_attributes_of_layers_are_seen(make):
    """No call is replayed after a change of a number or flag of a layer."""
    with fastops.accelerated():
        model, x = make()
        for _ in range(CALLS):
            model(x)
        replayed = told(model)["replayed"]
        assert replayed > 0, told(model)
        for layer in model.layers[:3]:
            for name, value in list(vars(layer).items()):
                if type(value) not in (bool, int, float) or name in ("_called", "built"):
                    continue
                if name.startswith("_self_"):  # an attribute of TensorFlow for checkpoints
                    continue
                vars(layer)[name] = not value if type(value) is bool else value + 1
                outcome(model, x)
                vars(layer)[name] = value
        assert told(model)["replayed"] == replayed


def test_mixed_shapes():
    def program():
        model, _ = perceptron()
        other, _ = deferred()
        probe(model)
        for number in range(4 * CALLS):
            yield model(floats(1 + number % 3, 4, seed=number))
            yield other(floats(1 + number % 3, 4, seed=number))
        for number in range(CALLS):
            yield outcome(model, floats(2, 3, 4, seed=number))
            yield outcome(model, floats(2, 5))

    compare(program)


def test_deferred_models_that_see_other_ranks():
    def program():
        model, _ = deferred()
        for number in range(4 * CALLS):
            x = floats(2, 4, seed=number) if number // CALLS % 2 == 0 else floats(2, 3, 4)
            yield outcome(model, x)
            yield str(model.input_shape)

    compare(program)


def test_training_that_alternates():
    def program():
        model, x = convolutional()
        probe(model)
        for number in range(4 * CALLS):
            yield model(x, training=number % 2 == 0)
            if number == CALLS:
                model.layers[1].momentum = 0.5
            if number == 2 * CALLS:
                model.layers[1].moving_mean.assign(tf.ones(4))
            if number == 3 * CALLS:
                model.layers[1].trainable = False
        yield model.variables

    compare(program)


@pytest.mark.filterwarnings("ignore")
def test_learning_phase():
    backend = tf_keras.src.backend

    def program():
        tf.random.set_seed(3)
        model, x = convolutional()
        other, y = dropped()
        probe(model)
        try:
            for phase in (None, 0, 1, 0):
                if phase is not None:
                    backend.set_learning_phase(phase)
                for _ in range(CALLS):
                    yield model(x)
                    yield other(y)
                    yield model(x, training=phase != 1)
            with backend.learning_phase_scope(1):
                for _ in range(CALLS):
                    yield model(x)
            with backend.eager_learning_phase_scope(1):
                yield model(x), other(y)
        finally:
            backend.clear_session()
        for _ in range(CALLS):
            yield model(x)
        yield model.variables

    compare(program)


@pytest.mark.filterwarnings("ignore")
def test_a_learning_phase_that_is_set_for_layers_without_training():
    """A dropout layer that gets no `training` reads the learning phase by itself."""
    backend = tf_keras.src.backend

    def program():
        layer, x = L.Dropout(0.5), floats(2, 4)
        probe(layer)
        for number in range(3 * CALLS):
            yield layer(x)
            with backend.eager_learning_phase_scope(number % 2):
                tf.random.set_seed(number)
                yield layer(x)

    compare(program)


def test_mocks():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            yield model(x)
        for target in (
            "tf_keras.src.layers.core.dense.Dense.call",
            "tf_keras.src.activations.relu",
            "tf_keras.src.backend.relu",
            "tf_keras.src.engine.functional.Functional._run_internal_graph",
            "tf_keras.src.engine.input_spec.assert_input_compatibility",
            "tf_keras.src.engine.base_layer.Layer._maybe_cast_inputs",
        ):
            with mock.patch(target, side_effect=RuntimeError(target)) as patched:
                for _ in range(2):
                    yield outcome(model, x)
                yield patched.call_count
            yield model(x)

    compare(program)


def test_hooks_of_classes():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            yield model(x)
        seen = []
        original = L.Dense.call
        L.Dense.call = lambda self, x: seen.append(self.name) or original(self, x)
        try:
            for _ in range(CALLS):
                yield model(x)
            yield len(seen)
        finally:
            L.Dense.call = original
        for _ in range(CALLS):
            yield model(x)

    compare(program)


# ---------------------------------------------------------------------------------------------
# Layers in other layers, and what calls leave behind
# ---------------------------------------------------------------------------------------------


class Impure(Subclassed):
    """A model whose `call` runs as Python."""

    def call(self, x, training=False):
        print(end="")
        return super().call(x, training=training)


def test_layers_of_a_users_model():
    def program():
        model, x = Impure(), floats(2, 4)
        model(x)
        probe(model.hidden)
        probe(model.out)
        for number in range(6 * CALLS):
            yield model(x, training=number % 3 == 0 and number > 3 * CALLS)
        yield model.variables

    compare(program)
    with fastops.accelerated():
        model, x = Impure(), floats(2, 4)
        for _ in range(CALLS):
            model(x)
        assert told(model)["replayed"] == 0
        report = fastops.explain(model, x)
    prints = f"call: {advice('uses_builtin', 'print')}"
    assert any(prints in str(one.detail) for one in report.methods)


class Passing(tf_keras.Model):
    """A model whose layers get `training` from the call around them."""

    def __init__(self):
        super().__init__()
        self.inner = tf_keras.Sequential([L.Dense(4), L.BatchNormalization(), L.Dropout(0.5)])

    def call(self, x, training=None):
        print(end="")  # so that this call runs as Python
        return self.inner(x)


def test_training_of_the_call_around():
    def program():
        model, x = Passing(), floats(3, 4)
        model(x)
        probe(model.inner)
        for number in range(8 * CALLS):
            tf.random.set_seed(number)
            yield model(x, training=[None, False, True][number % 3])
        yield model.variables

    compare(program)


class Casting(tf_keras.layers.Layer):
    """A layer of a user that casts the variables of the layers in it."""

    def __init__(self, inner, **settings):
        super().__init__(**settings)
        self.inner = inner

    def call(self, x):
        return self.inner.kernel + tf.cast(tf.reduce_sum(self.inner(x)), self.inner.kernel.dtype)


def test_variables_that_are_cast():
    policy = tf_keras.mixed_precision.Policy("mixed_float16")

    def program():
        inner = L.Dense(4, dtype=policy)
        inner.build((None, 4))
        x = floats(3, 4)
        probe(inner)
        for layer in (Casting(inner, dtype="float32"), Casting(inner, dtype=policy), inner):
            for _ in range(3 * CALLS):
                yield layer(x)
                yield inner.kernel.dtype.name

    compare(program)


def test_losses_are_dropped_by_each_call():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            yield model(x), len(model.losses)
        for layer in (model, *model.layers):
            layer._thread_local._eager_losses = [tf.constant(1.0)]
        yield len(model.losses)
        yield model(x), len(model.losses)
        first(model)._thread_local._eager_losses.append(tf.constant(2.0))
        yield model.losses
        yield outcome(model, floats(2, 5)), len(model.losses)
        yield model(x), len(model.losses)

    compare(program)


class Around(tf_keras.layers.Layer):
    """A layer of a user that adds a loss before it calls a model."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, x):
        self.inner.layers[0].add_loss(tf.reduce_sum(x))
        self.add_loss(tf.reduce_sum(x) * 2.0)
        return self.inner(x)


def test_losses_stay_in_the_call_around():
    def program():
        model, x = perceptron()
        probe(model)
        layer = Around(model)
        for _ in range(6 * CALLS):
            yield layer(x), layer.losses
        for _ in range(CALLS):
            yield model(x), model.losses, layer.losses

    compare(program)


@pytest.mark.parametrize("outer", [False, True])
def test_calls_that_add_losses_are_left_to_tf_keras(outer):
    def program():
        layers = L.Dense(4, activity_regularizer="l2"), L.ActivityRegularization(0.5), L.Dense(2)
        model = tf_keras.Sequential([tf_keras.Input((4,)), *layers])
        probe(model)
        called = tf_keras.Sequential([model, L.Dense(1)]) if outer else model
        for number in range(CALLS):
            yield called(floats(2, 4, seed=number)), called.losses, model.losses

    compare(program, replayed=False)
    with fastops.accelerated():
        layer = L.Dense(4, activity_regularizer="l2")
        for _ in range(CALLS):
            layer(floats(2, 4))
        assert text_of("adds_losses") in told(layer)["reasons"]


def test_losses_belong_to_a_thread():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            model(x)
        first(model)._thread_local._eager_losses = [tf.constant(1.0)]
        results = []
        thread = threading.Thread(target=lambda: results.append((model(x), model.losses)))
        thread.start()
        thread.join()
        yield results
        yield model.losses
        yield model(x), model.losses

    compare(program)


def test_metrics_of_a_call():
    def program():
        inputs = tf_keras.Input((4,))
        outputs = L.Dense(3)(inputs)
        model = tf_keras.Model(inputs, outputs)
        model.add_metric(outputs, name="mean", aggregation="mean")
        model.add_loss(tf.reduce_mean(outputs))
        for number in range(CALLS):
            yield model(floats(2, 4, seed=number))
            yield model.losses, [metric.result() for metric in model.metrics]

    compare(program)


def test_results_have_their_attributes():
    def program():
        ids = tf.constant([[1, 2, 0]])
        embedding, softmax = L.Embedding(5, 4, mask_zero=True), L.Dense(3, activation="softmax")
        pooling = L.GlobalAveragePooling1D()
        for layer in (embedding, softmax, pooling):
            probe(layer)
        for _ in range(CALLS):
            y = embedding(ids)
            z = softmax(y)
            yield y, y._keras_mask, z, z._keras_mask, z._keras_logits, pooling(z)

    compare(program)


def test_stateful_recurrent_layers():
    def program():
        layer = L.LSTM(3, stateful=True, return_sequences=True)
        x = floats(2, 5, 3)
        for number in range(3 * CALLS):
            yield layer(x), layer.states
            if number % 5 == 4:
                layer.reset_states()

    compare(program)


@pytest.mark.parametrize("seed", [None, 3])
def test_dropout(seed):
    def program():
        model = tf_keras.Sequential([L.Dense(4), L.Dropout(0.5, seed=seed)])
        x = floats(5, 4)
        for number in range(4 * CALLS):
            if number % CALLS == 0:
                tf.random.set_seed(number)
            yield model(x, training=True)
            yield model(x)

    compare(program)


def test_scopes_that_are_left_to_tf_keras():
    def program():
        model, x = perceptron()
        probe(model)
        for _ in range(CALLS):
            yield model(x)
        for scope in (
            tf.device("CPU:0"),
            tf.distribute.OneDeviceStrategy("CPU:0").scope(),
            tf.distribute.get_strategy().scope(),
            tf.name_scope("outer"),
            tf.init_scope(),
            tf.control_dependencies([]),
        ):
            with scope:
                yield outcome(model, x)
            yield model(x)
        with tf.GradientTape() as tape, tape.stop_recording():
            yield model(x)

    compare(program)


def test_threads():
    model, _ = perceptron()
    inputs = [floats(2, 4, seed=seed) for seed in range(8)]
    expected = [plain(model(one)) for one in inputs]
    failures = []

    def run(number):
        for _ in range(60):
            for one, want in zip(inputs[number:], expected[number:], strict=True):
                if plain(model(one)) != want:
                    failures.append(number)

    with fastops.accelerated():
        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert told(model)["replayed"], told(model)
        assert not told(model)["reasons"]


@pytest.mark.parametrize("make", [perceptron, convolutional, regularized])
def test_replays_while_another_thread_records(make):
    compare(lambda: calls_beside_a_recording(make))


def test_models_are_not_kept_alive():
    with fastops.accelerated():
        for make in (perceptron, functional, nested, regularized):
            model, x = make()
            for _ in range(CALLS):
                model(x)
            assert told(model)["replayed"], told(model)
            dropped = [weakref.ref(value) for value in (model, *model.layers, *model.variables)]
            del model
            gc.collect()
            assert not any(reference() for reference in dropped)


def test_models_that_are_saved_and_copied(tmp_path):
    def program():
        model, x = perceptron()
        for _ in range(CALLS):
            yield model(x)
        model.save(tmp_path / "model.keras")
        model.save_weights(tmp_path / "weights.h5")
        loaded = tf_keras.models.load_model(tmp_path / "model.keras")
        clone = tf_keras.models.clone_model(model)
        clone.set_weights(model.get_weights())
        model.load_weights(tmp_path / "weights.h5")
        for other in (loaded, clone, model):
            probe(other)
            for _ in range(CALLS):
                yield other(x)
        tf.saved_model.save(model, str(tmp_path / "saved"))
        yield tf.saved_model.load(str(tmp_path / "saved"))(x)
        yield model(x)

    compare(program)


# ---------------------------------------------------------------------------------------------
# Losses and training
# ---------------------------------------------------------------------------------------------

K = tf_keras.losses

LOSSES = {
    "MeanSquaredError": lambda: K.MeanSquaredError(),
    "a sum": lambda: K.MeanAbsoluteError(reduction="sum"),
    "no reduction": lambda: K.Huber(reduction="none"),
    "CategoricalCrossentropy": lambda: K.CategoricalCrossentropy(from_logits=True),
    "label smoothing": lambda: K.CategoricalCrossentropy(label_smoothing=0.1),
    "BinaryCrossentropy": lambda: K.BinaryCrossentropy(),
    "KLDivergence": lambda: K.KLDivergence(),
    "CosineSimilarity": lambda: K.CosineSimilarity(),
    "Hinge": lambda: K.Hinge(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", LOSSES.values(), ids=LOSSES)
def test_losses(make):
    def program():
        loss = make()
        probe(loss)
        softmax = L.Activation("softmax")
        logits = getattr(loss, "_fn_kwargs", {}).get("from_logits", False)
        for number in range(CALLS):
            wanted, given = floats(3, 4, seed=number), floats(3, 4, seed=number + 50)
            yield loss(wanted, given if logits else softmax(given))
        for number in range(CALLS):
            yield outcome(loss, wanted, given, sample_weight=floats(3, seed=number))
            yield outcome(loss, wanted.numpy(), given.numpy())
            yield outcome(loss, wanted, floats(2, 5))
            yield outcome(loss, wanted, softmax(given))  # with logits, tf_keras warns

    compare(program)


def test_sparse_losses():
    def program():
        loss = K.SparseCategoricalCrossentropy(from_logits=True)
        probe(loss)
        for number in range(CALLS):
            yield loss(tf.constant([0, 2, 1]), floats(3, 4, seed=number))

    compare(program)


@pytest.mark.parametrize("make", [perceptron, convolutional, regularized])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_training_steps(make, kind):
    def program():
        model, x = make()
        loss, optimizer = K.MeanSquaredError(), getattr(tf_keras.optimizers, kind)(0.1)
        wanted = tf.zeros_like(model(x))
        probe(model)
        probe(loss)
        probe(optimizer, "apply_gradients")
        for _ in range(2 * CALLS):
            with tf.GradientTape() as tape:
                value = loss(wanted, model(x, training=True)) + sum(model.losses, 0.0)
            slopes = tape.gradient(value, model.trainable_variables)
            optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            yield value, slopes
        yield model.variables, optimizer.variables

    compare(program, native=True)


def test_fit():
    def program():
        model, _ = perceptron()
        model.compile("sgd", "mse", run_eagerly=True)
        data = floats(8, 4).numpy(), floats(8, 3, seed=1).numpy()
        for eagerly in (True, False):
            model.run_eagerly = eagerly
            history = model.fit(*data, batch_size=2, epochs=3, shuffle=False, verbose=0)
            yield history.history["loss"]
            yield model.predict(data[0], verbose=0), model(data[0])

    compare(program)


# ---------------------------------------------------------------------------------------------
# Classes of users that are declared
# ---------------------------------------------------------------------------------------------


@fastops.keras.replayable
class Scaled(tf_keras.layers.Layer):
    """A declared layer of a user."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.inner = L.Dense(3)

    def call(self, x, training=None):
        if training:
            x = x + 1.0
        return self.inner(x) * self.factor


@fastops.keras.replayable
class Losing(tf_keras.layers.Layer):
    """A declared layer that adds a loss."""

    def call(self, x):
        self.add_loss(tf.reduce_sum(x))
        return x * 2.0


@fastops.keras.replayable
class Reading(tf_keras.layers.Layer):
    """A declared layer that reads the losses of its layers."""

    def __init__(self):
        super().__init__()
        self.inner = L.Dense(3, kernel_regularizer="l2")

    def call(self, x):
        return self.inner(x) + sum(self.losses)


def test_declared_layers():
    def program():
        model = tf_keras.Sequential([tf_keras.Input((4,)), Scaled(2.0), L.Dense(2)])
        probe(model)
        for number in range(3 * CALLS):
            yield model(floats(2, 4, seed=number), training=number % 2 == 0)
            if number == CALLS:
                model.layers[0].factor = 3.0
            if number == 2 * CALLS:
                model.layers[0].inner.activation = tf_keras.activations.tanh
        yield model.variables

    compare(program)


@pytest.mark.parametrize("kind", [Losing, Reading])
def test_declared_layers_with_losses(kind):
    def program():
        layer = kind()
        probe(layer)
        for number in range(CALLS):
            yield layer(floats(2, 4, seed=number)), layer.losses

    compare(program, replayed=False)


class Whole(Subclassed):
    """A model of a user that a test declares."""


def test_a_whole_model_is_declared():
    def program():
        model, x = fastops.keras.replay(Whole()), floats(2, 4)
        probe(model)
        for number in range(3 * CALLS):
            tf.random.set_seed(number)
            yield model(x, training=number % 2 == 0)
        yield model.variables

    compare(program)


def test_classes_that_cannot_be_declared():
    with pytest.raises(TypeError):
        fastops.keras.replayable(tf.Module)  # it has no method `__call__`
    with pytest.raises(TypeError):
        fastops.keras.replay(tf.Module())
