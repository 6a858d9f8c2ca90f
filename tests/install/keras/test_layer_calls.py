"""Calls of user layers: the stand-in runs the code around their ``call``, or Keras does."""

import threading
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import in_both
from keras import layers as L  # noqa: N812
from keras.src.backend.common import global_state
from keras.src.backend.common.masking import set_keras_mask
from keras.src.backend.common.name_scope import current_path
from support import assert_same, floats

import fastops
from fastops._install import restated

OTHER = restated.changed("keras.src.layers.layer:Layer.__call__")
pytestmark = pytest.mark.skipif(OTHER is not None, reason=f"falls back to Keras: {OTHER}")

CALLS = 3
X = tf.constant(floats(2, 4))


def layer_call():
    """Return the stand-in for `keras.Layer.__call__` below the one that replays."""
    method = vars(keras.Layer)["__call__"]
    return method if hasattr(method, "taken") else method.original


def both(program, *, taken):
    """Compare a program with and without `install`, and the stand-in's calls; None: some.

    With replays there may be fewer calls: Keras runs the calls that are recorded.
    """

    def run():
        keras.utils.set_random_seed(1)
        keras.backend.clear_session()
        begin = layer_call().taken if fastops.is_installed() else 0
        result = program()
        return result, layer_call().taken - begin if fastops.is_installed() else 0

    for exclude in (["models"], None):
        (want, _), (got, number) = in_both(run, exclude=exclude)
        assert_same(got, want)
        if taken is None:
            assert number > 0
        elif exclude is None:
            assert number <= taken, f"{number} calls, not {taken}"
        else:
            assert number == taken, f"{number} calls, not {taken}"


class Told(keras.Layer):
    """A layer that logs the arguments of its ``call`` and the settings around it."""

    def __init__(self, inner=None, **kwargs):
        super().__init__(**kwargs)
        self.inner, self.notes = inner, []

    def call(self, x, training=None):
        context = global_state.get_global_attribute("current_call_ctx")
        self.notes.append(
            (
                training,
                current_path(),
                context.entry_layer.name,
                getattr(context, "training", "absent"),
                tf.constant(1.0).shape.rank,
                tf.Variable(1.0, name="v").name,
                len(self.losses),
            )
        )
        self.add_loss(tf.reduce_sum(x))
        return (x if self.inner is None else self.inner(x)) * 2.0


def nested():
    return Told(Told(Told(name="c"), name="b"), name="a")


def notes_of(layer):
    results = []
    while layer is not None:
        results.append((list(layer.notes), [loss.numpy() for loss in layer.losses]))
        layer = layer.inner
    return results


@pytest.mark.parametrize("given", [{}, {"training": True}, {"training": False}, {"training": None}])
def test_settings_scopes_and_losses_of_nested_layers(given):
    def program():
        layer = nested()
        results = [layer(X, **given) for _ in range(CALLS)]
        return results, notes_of(layer), layer.losses

    # Keras's own calls build the inner layers in the first call; then only the innermost call is
    # plain.
    both(program, taken=3 * (CALLS - 1) + 1)


def test_a_setting_that_the_outer_layer_does_not_take():
    class Outer(keras.Layer):
        def __init__(self):
            super().__init__()
            self.inner = Told()

        def call(self, x):
            return self.inner(x)

    def program():
        layer = Outer()
        results = [layer(X, training=bool(i % 2)) for i in range(4)]
        return results, layer.inner.notes

    both(program, taken=2 * 3 + 1)


def test_defaults_of_the_setting():
    class Training(keras.Layer):
        def call(self, x, training=True, scale=3.0):
            return x * scale if training else x

    def program():
        layer = Training()
        return [layer(X), layer(X), layer(X, training=False), layer(X, scale=2.0), layer(X)]

    both(program, taken=3)


def test_models_and_their_built_in_layers():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.drop, self.out = L.Dense(5), L.Dropout(0.5), L.Dense(3)

        def call(self, x, training=False):
            return self.out(self.drop(tf.nn.relu(self.one(x)), training=training))

    def program():
        model = Model()
        with tf.GradientTape() as tape:
            result = [model(X, training=training) for training in (False, True, False, True)]
            loss = tf.add_n([tf.reduce_sum(output) for output in result])
        return result, tape.gradient(loss, model.trainable_variables)

    both(program, taken=None)


class Masking(keras.Layer):
    def __init__(self):
        super().__init__()
        self.supports_masking, self.given = True, []

    def call(self, x, mask=None):
        self.given.append(None if mask is None else mask.numpy().tolist())
        return x + 1.0

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask if previous_mask is not None else tf.reduce_any(inputs > 0, axis=-1)


def test_masks():
    def program():
        layer = Masking()
        results = [layer(X) for _ in range(CALLS)]
        masked = tf.identity(X)
        set_keras_mask(masked, tf.constant([True, False]))
        results.append(layer(masked))
        return results, layer.given, [result._keras_mask for result in results]

    both(program, taken=CALLS - 1)


def test_a_lost_mask_causes_a_warning():
    class Plain(keras.Layer):
        def __init__(self):
            super().__init__()
            self.supports_masking = False

        def call(self, x):
            return x + 1.0

    def program():
        layer = Plain()
        layer(X)
        masked = tf.identity(X)
        set_keras_mask(masked, tf.constant([True, False]))
        with pytest.warns(UserWarning, match="does not support masking"):
            return layer(masked), layer(X)

    both(program, taken=1)


class Failing(keras.Layer):
    def __init__(self, error=None, inner=None):
        super().__init__()
        self.error, self.inner = error, inner

    def call(self, x, training=None):
        if self.inner is not None:
            return self.inner(x)
        if self.error is not None:
            raise self.error
        return x


class OwnError(Exception):
    def __init__(self, one, other):
        super().__init__(one, other)


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), KeyError(3), OwnError(1, 2), StopIteration(), RuntimeError(), "op"],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("filtered", [True, False])
def test_errors(error, filtered):
    def program():
        if not filtered:  # the setting is of this thread, and lasts until the session is cleared
            keras.config.disable_traceback_filtering()
        inner = Failing()
        layer = Failing(inner=inner)
        layer(X)
        layer(X)
        if error == "op":
            inner.inner = lambda x: tf.matmul(x, x)
        else:
            inner.error = error
        try:
            with pytest.raises(Exception) as caught:  # noqa: PT011
                layer(X)
        finally:
            if hasattr(error, "_keras_call_info_injected"):
                del error._keras_call_info_injected
        inner.error = inner.inner = None
        again = layer(X)
        files = [
            (entry.path.name, entry.lineno)
            for entry in caught.traceback
            if "keras" not in str(entry.path) and "tensorflow" not in str(entry.path)
        ]
        shown = caught.value
        state = [getattr(shown, "_keras_call_info_injected", None), current_path()]
        state.append(global_state.get_global_attribute("current_call_ctx"))
        shown = str(shown).partition("{{function_node")[0], str(type(shown))
        return again, shown, state, [file for file in files if file[0] == "test_layer_calls.py"]

    try:
        both(program, taken=7 if filtered else 0)
    finally:
        keras.config.enable_traceback_filtering()


def test_calls_that_are_not_plain_fall_back():
    class Spec(keras.Layer):
        def call(self, x):
            return tf.cast(x, tf.float32) * 2.0

    def program():
        results, layer = [], Spec()
        layer(X)
        for change in (
            ("activity_regularizer", keras.regularizers.L2(0.1)),
            ("dtype_policy", "mixed_float16"),
            ("call", lambda x: x * 3.0),
            ("input_spec", keras.layers.InputSpec(ndim=3)),
        ):
            results.append(layer(X))
            setattr(layer, *change)
            try:
                results.append(layer(X))
            except ValueError as error:
                results.append(str(error))
            results.append(layer.losses)
            layer, _ = Spec(name="again"), layer
            layer(X)
        results += [layer(X.numpy()), layer(tf.cast(X, tf.int32)), layer(tf.cast(X, tf.float64))]
        results += [layer(x=X), layer(tf.Variable(X)), layer(keras.Input((4,))).shape]
        return results

    # The stand-in makes one call before each change, the call with a replaced `call` on the
    # instance, and the call with a spec, which Keras's own assertion rejects.
    both(program, taken=6)


def test_methods_that_users_override():
    class Asserting(keras.Layer):
        def _assert_input_compatibility(self, arg_0):
            self.asserted = True

        def call(self, x):
            return x

    class Resolving(keras.Layer):
        def _get_call_context(self):
            self.asked = True
            return super()._get_call_context()

        def call(self, x):
            return x

    class Calling(keras.Layer):
        def __call__(self, x):
            return super().__call__(x) + 1.0

        def call(self, x):
            return x

    def program():
        results = []
        for make in (Asserting, Resolving, Calling):
            layer = make()
            layer(X)
            for name in ("asserted", "asked"):
                if hasattr(layer, name):
                    setattr(layer, name, None)
            results += [layer(X), getattr(layer, "asserted", 0), getattr(layer, "asked", 0)]
        return results

    both(program, taken=2)


def test_methods_set_later_and_mocks():
    class Later(keras.Layer):
        def call(self, x):
            return x * 2.0

    def program():
        layer = Later()
        results = [layer(X), layer(X)]
        with mock.patch.object(keras.Layer, "_open_name_scope", autospec=True) as opened:
            opened.side_effect = RuntimeError("mocked")
            with pytest.raises(RuntimeError):
                layer(X)
        with (
            mock.patch("keras.src.layers.layer.CallSpec", side_effect=RuntimeError("mocked")),
            pytest.raises(RuntimeError),
        ):
            layer(X)
        results.append(layer(X))
        with mock.patch.object(Later, "call", lambda self, x: x * 5.0):
            results.append(layer(X))
        return results

    both(program, taken=3)


def test_a_layer_that_calls_itself():
    class Twice(keras.Layer):
        def call(self, x, training=None):
            self.path = current_path()
            return x if training else self(x * 2.0, training=True)

    def program():
        layer = Twice()
        return [layer(X) for _ in range(CALLS)], layer.path

    both(program, taken=CALLS - 1)


def test_scopes_of_keras_functions_and_graphs():
    class Scaled(keras.Layer):
        def build(self, _):
            self.w = self.add_weight(shape=(4,), initializer="ones")

        def call(self, x):
            self.add_loss(tf.reduce_sum(x))
            return x * self.w

    class Doubled(keras.Layer):
        def call(self, x):
            return x * 2.0

    def program():
        layer, plain = Scaled(), Doubled()
        layer(X)
        plain(X)
        weights = [variable.value for variable in layer.trainable_variables]
        stateless = layer.stateless_call(weights, [], X, return_losses=True)
        traced = tf.function(lambda x: layer(x))(X)
        with tf.Graph().as_default():
            name = plain(tf.constant(X.numpy())).name
        with keras.StatelessScope(state_mapping=[(layer.w, weights[0] * 3.0)]):
            scoped = layer(X)
        return stateless[0], stateless[2], traced, name, scoped, layer(X)

    both(program, taken=1)


def test_threads():
    class Deep(keras.Layer):
        def __init__(self, inner=None):
            super().__init__()
            self.inner = inner

        def call(self, x, training=None):
            x = x if self.inner is None else self.inner(x)
            return x + (1.0 if training else 2.0)

    layer = Deep(Deep(Deep()))
    want = {training: layer(X, training=training) for training in (True, False)}
    wrong = []

    def work(number):
        for i in range(200):
            training = bool((i + number) % 2)
            if difference_of(layer(X, training=training), want[training]):
                wrong.append(number)

    with fastops.accelerated(exclude=["models"]):
        before = layer_call().taken
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert layer_call().taken == before + 8 * 200 * 3
    assert not wrong


def difference_of(got, want):
    return not np.array_equal(got.numpy(), want.numpy())
