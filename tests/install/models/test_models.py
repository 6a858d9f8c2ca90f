"""Models and layers: results are the same, and calls are replayed."""

import gc
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import (
    CALLS,
    LOST_MASK,
    MODELS,
    Impure,
    calls_beside_a_recording,
    compare,
    floats,
    functional,
    lstm,
    noisy,
    outcome,
    perceptron,
    plain,
    probe,
    told,
)
from keras import layers as L  # noqa: N812

import fastops
from fastops._core.reasons import text_of


@LOST_MASK
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_models(make, training):
    def program():
        model, x = make()
        probe(model)
        for _ in range(CALLS):
            yield model(x, training=training)
        yield model.variables

    compare(program, native=True)


@pytest.mark.parametrize("make", [MODELS[name] for name in ("perceptron", "convolutional", "lstm")])
def test_gradients(make):
    def program():
        model, x = make()
        probe(model)
        for _ in range(CALLS):
            with tf.GradientTape(persistent=True) as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    loss = tf.reduce_sum(model(x, training=True) ** 2)
                slopes = tape.gradient(loss, [x, *model.trainable_variables])
                whole = tf.reduce_sum(slopes[0] ** 2)
            yield slopes
            yield outer.gradient(whole, [x, *model.trainable_variables])

    compare(program)


def test_code_that_a_collection_runs_is_not_recorded():
    def program():
        def callback(*_):
            phases.append(len(phases))

        phases, threshold = [], gc.get_threshold()
        model, x = perceptron()
        probe(model)
        gc.callbacks.append(callback)
        gc.set_threshold(1)
        try:
            for _ in range(CALLS):
                yield model(x)
        finally:
            gc.set_threshold(*threshold)
            gc.callbacks.remove(callback)
        assert phases
        assert gc.isenabled()

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


def test_watched_variables_are_those_that_keras_reads():
    def program():
        model, x = perceptron()
        model.layers[0].trainable = False
        probe(model)
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                model(x)
            yield len(tape.watched_variables())

    compare(program)


@pytest.mark.parametrize(
    "given",
    [
        np.float32([[1, 2, 3, 4]]),
        np.float64([[1, 2, 3, 4.1]]),
        np.int64([[1, 2, 3, 4]]),
        np.ones((4, 2), np.float32).T,
        np.array([[True, False, True, True]]),
        [[1.0, 2.0, 3.0, 4.0]],
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
        None,
        "text",
        {"one": tf.ones((1, 4))},
        (tf.ones((1, 4)),),
    ],
    ids=lambda given: f"{type(given).__name__} {given!r}".partition("\n")[0],
)
def test_arguments(given):
    def program():
        for model in (perceptron()[0], functional()[0], L.Dense(2)):
            for _ in range(CALLS):
                yield outcome(model, given)
            yield outcome(model, inputs=given)

    compare(program)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, bool])
def test_arrays_are_read_in_each_call(dtype):
    def program():
        model, _ = perceptron()
        probe(model)
        array = np.ones((1, 4), dtype)
        for number in range(CALLS):
            array[0, number % 4] = number % 2
            yield model(array)

    compare(program)


def test_layers_of_users_run_and_layers_inside_are_replayed():
    def program():
        model = Impure()
        probe(model.hidden)
        for training in (False, True, False, True, False, True, False, True, False, True):
            yield model(floats(2, 4), training=training)
        probe(model.out)

    compare(program)
    compare(lambda: probe(model := Impure()) or [model(floats(2, 4))] * 2, replayed=False)


def test_an_explicit_setting_reaches_the_layers_after_it():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.other = L.Dropout(0.5), L.Dropout(0.5)

        def call(self, x):
            print(end="")
            return self.other(self.one(x, training=True))

    def program():
        model = Model()
        probe(model.one)
        probe(model.other)
        for _ in range(2 * CALLS):
            yield model(tf.ones((4, 4)))

    compare(program)


@pytest.mark.parametrize("given", [False, True])
def test_masks_that_attention_takes_away(given):
    """The layer sets the mask of its argument to None, and gives it to its result."""
    known = []

    def program():
        embedding, attention = L.Embedding(5, 4, mask_zero=True), L.MultiHeadAttention(2, 3)
        probe(attention)
        for number in range(3 * CALLS):
            ids = tf.constant([[1, 2, number % 3, 0], [3, 0, 0, number % 2]])
            x = embedding(ids)
            more = {"attention_mask": ids[:, None, :] != 1} if given else {}
            yield attention(x, x, **more)
            yield x, vars(x)
            yield attention(x, x, **more)  # it has no mask now
            other = embedding(ids)
            yield attention(other, x, **more)
            yield x, other, vars(other)
        known.append(told(attention)["reasons"] if fastops.is_installed() else None)

    compare(program)
    assert known == [None, {}]


@LOST_MASK
def test_masks_of_users():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding, self.rnn = L.Embedding(5, 4, mask_zero=True), L.GRU(3)

        def call(self, ids):
            mask = self.embedding.compute_mask(ids)
            state = self.rnn.get_initial_state(2)
            return self.rnn(self.embedding(ids), mask=mask, initial_state=state)

    def program():
        model = Model()
        probe(model)
        for number in range(3 * CALLS):
            yield model(tf.constant([[1, 2, number % 3, 0], [3, 0, 0, number % 2]]))

    compare(program)


@LOST_MASK
def test_masks_are_passed_on():
    def program():
        layer = L.Embedding(5, 2, mask_zero=True)
        after = L.LSTM(2)
        probe(layer)
        for _ in range(CALLS):
            x = layer(tf.constant([[1, 0, 2]]))
            yield x
            yield x._keras_mask
            yield after(x)
            yield after(tf.ones((1, 3, 2)), mask=tf.constant([[True, True, False]]))

    compare(program)


def test_states_of_recurrent_layers():
    def program():
        layer = L.GRU(3, stateful=True, return_state=True)
        for number in range(2 * CALLS):
            yield layer(floats(2, 4, 3, seed=number))
            if number == CALLS:
                layer.reset_state()
        yield layer.states

    compare(program)


def test_losses_of_layers():
    def program():
        layer = L.Dense(3, kernel_regularizer="l2", activity_regularizer=keras.regularizers.L1(0.1))
        model = keras.Sequential([keras.Input((4,)), layer])
        for _ in range(CALLS):
            yield model(floats(2, 4))
            yield model.losses

    compare(program)


def test_lambdas_and_callables_of_users_run():
    def program():
        seen = []
        model = keras.Sequential(
            [keras.Input((4,)), L.Lambda(lambda x: seen.append(1) or x * 2), L.Dense(2)]
        )
        for _ in range(CALLS):
            yield model(floats(2, 4))
            yield len(seen)

    compare(program)


def test_sequences_of_random_numbers_continue():
    def program():
        model, x = noisy()
        probe(model)
        for number in range(2 * CALLS):
            yield model(x, training=number % 3 > 0)
        yield [seed for layer in model.layers for seed in layer.variables]

    compare(program)


def test_threads():
    def program():
        model, x = perceptron()
        results = [None] * 4
        for _ in range(CALLS):
            model(x)

        def work(place):
            results[place] = [model(x * float(place)) for _ in range(CALLS)]

        threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield results

    compare(program)


def test_first_calls_in_threads():
    model, x = perceptron()
    inputs = [x * float(place) for place in range(4)]
    expected = [plain(model(one)) for one in inputs]
    differing = []

    def work(one, want):
        for _ in range(10 * CALLS):
            if plain(model(one)) != want:
                differing.append(want)

    with fastops.accelerated():
        threads = [
            threading.Thread(target=work, args=p) for p in zip(inputs, expected, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not differing
        assert told(model)["replayed"]
        assert not told(model)["reasons"]


def test_an_interrupt_ends_the_turn():
    collects, interrupts = [], []

    def activation(x):
        collects.append(gc.isenabled())
        for interrupt in interrupts:
            raise interrupt
        return x

    interrupted = keras.Sequential([L.Activation(activation)])
    model, x = perceptron()
    with fastops.accelerated():
        interrupted(x)
        interrupts.append(KeyboardInterrupt)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                interrupted(x)
        assert False in collects  # a call was recorded
        assert gc.isenabled()
        for _ in range(CALLS):
            model(x)
        assert told(model)["replayed"]


@pytest.mark.parametrize("make", [MODELS[name] for name in ("perceptron", "convolutional", "lstm")])
def test_replays_while_another_thread_records(make):
    compare(lambda: calls_beside_a_recording(make))


def test_many_models_are_forgotten():
    gc.collect()
    with fastops.accelerated():
        references, before = [], keras.Layer.__call__.describe()["recorded"]
        for _ in range(3):
            model, x = perceptron()
            for _ in range(CALLS):
                model(x)
            assert told(model)["replayed"] > 0
            references.append(weakref.ref(model))
            known = type(model).__call__
            del model
        gc.collect()
        assert [reference() for reference in references] == [None] * 3
        assert known.describe()["recorded"] == before


def test_functions_trace_keras_itself():
    def program():
        model, x = lstm()
        for _ in range(CALLS):
            model(x)
        function = tf.function(model)
        for _ in range(2):
            yield function(x)

    compare(program)


def test_with_models_excluded_nothing_is_replaced():
    with fastops.accelerated(models=False):
        assert not hasattr(keras.layers.Layer.__call__, "describe")
    with fastops.accelerated(exclude=["models"]):
        assert not hasattr(keras.layers.Layer.__call__, "describe")
    with fastops.accelerated():
        assert hasattr(keras.layers.Layer.__call__, "describe")
    assert not hasattr(keras.layers.Layer.__call__, "describe")


def test_recordings_outlive_an_uninstall():
    model, x = perceptron()
    with fastops.accelerated():
        for _ in range(CALLS):
            model(x)
        first = told(model)
    stock = model(x)
    with fastops.accelerated():
        for _ in range(CALLS):
            assert np.array_equal(model(x), stock)
        assert told(model)["replayed"] > 0
    assert first["replayed"] > 0


def test_refusals_have_reasons():
    class Odd(keras.layers.Dense):
        def call(self, x):
            print(end="")
            return x

    with fastops.accelerated():
        layer = keras.Sequential([keras.Input((4,)), L.Lambda(lambda x: print(end="") or x)])
        for _ in range(2 * CALLS):
            layer(floats(1, 4))
        assert any("<lambda>" in why for why in told(layer)["details"].values())
        odd = Odd(3)
        for _ in range(CALLS):
            odd(floats(1, 4))
        assert told(odd)["replayed"] == 0


def test_a_second_signature_has_its_own_account(due_after):
    """A recurrent layer reads the batch size, for its first state."""
    model = keras.Sequential([keras.Input((3, 4)), L.SimpleRNN(3), L.Dense(2)])
    with fastops.accelerated():
        for _ in range(CALLS):
            model(floats(2, 3, 4))
        assert told(model)["recorded"] == 1
        due_after(4)
        for _ in range(4):
            model(floats(5, 3, 4))  # like the last batch of an epoch
        known = told(model)
        assert (known["recorded"], known["replayed"]) == (1, CALLS - 3)
        assert all(told(layer)["recorded"] == 0 for layer in model.layers)
        for _ in range(4):
            model(floats(5, 3, 4))
        known = told(model)
        assert (known["recorded"], known["replayed"]) == (2, CALLS - 3 + 2)


def test_annotations_that_python_makes_are_not_a_change():
    class Trained(keras.layers.Dense):
        pass

    fastops.keras.replayable(Trained)
    with fastops.accelerated():
        layer = Trained(3)
        layer(floats(1, 4))
        layer(floats(1, 4))  # this call is recorded for the first time
        assert Trained.__annotations__ == {}  # Python creates the dict on this access
        for _ in range(3):
            layer(floats(1, 4))
        known = told(layer)
        assert (known["recorded"], known["replayed"]) == (1, 2)


def test_explanations_name_the_replayed_objects():
    with fastops.accelerated():
        model, impure = perceptron()[0], Impure()
        x = floats(2, 4)
        first = fastops.explain(model, x)
        (outer, *_) = first.methods
        assert (outer.method, outer.reason) == ("__call__", "a recording would not pay yet")
        for _ in range(CALLS):
            model(x)
            impure(x)
        (only,) = fastops.explain(model, x).methods
        assert (only.name, only.reason, only.calls) == (f"Sequential {model.name}", None, 1)
        report = fastops.explain(impure, x)
        reasons = {method.name: method.reason for method in report.methods}
        reason = reasons[f"Impure {impure.name}"]
        assert reason == text_of("user_class")
        assert reasons[f"Dense {impure.hidden.name}"] is None
        assert "replayed" in str(report)
        assert report.to_dict()["methods"][0]["calls"] == 1


def test_calls_are_counted():
    with fastops.accelerated():
        model, x = perceptron()
        fastops.reset_stats()
        for _ in range(CALLS):
            model(x)
        stats = fastops.stats().methods["Layer.__call__"]
    assert stats.replayed == CALLS - 3
    assert stats.reasons["recorded"] == 2
    assert stats.keras == sum(stats.reasons.values())
    assert fastops.stats().as_dict()["methods"]["Layer.__call__"]["replayed"] == CALLS - 3
    fastops.reset_stats()
    assert "Layer.__call__" not in fastops.stats().methods
