"""Models for tests, and a function that runs a program with and without replays."""

import contextlib
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers as L  # noqa: N812
from keras.src.utils import naming

import fastops
from fastops._specialize.recording import hooks

LOST_MASK = pytest.mark.filterwarnings("ignore:.* was passed an input with a mask attached to it")
"""For tests in which a recurrent layer gets a mask, which it does not pass on: since Keras 3.16,
such a call warns."""

CALLS = 8
"""The number of calls of one signature. The fourth is replayed, the fifth by kernels alone."""


def perceptron():
    units = [L.Dense(8, activation="relu"), L.Dense(8, activation="gelu"), L.Dense(3)]
    return keras.Sequential([keras.Input((4,)), *units]), floats(2, 4)


def functional():
    inputs = keras.Input((4,))
    x = L.Dense(8, activation="tanh")(inputs)
    x = L.LayerNormalization()(L.Add()([x, L.Dense(8)(inputs)]))
    return keras.Model(inputs, [L.Dense(3, activation="softmax")(x), x]), floats(2, 4)


def convolutional():
    layers = [L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(), L.MaxPooling2D()]
    layers += [L.DepthwiseConv2D(2), L.ReLU(), L.GlobalAveragePooling2D(), L.Dropout(0.4)]
    return keras.Sequential([keras.Input((8, 8, 2)), *layers, L.Dense(3)]), floats(2, 8, 8, 2)


def lstm():
    return keras.Sequential([keras.Input((5, 3)), L.LSTM(4), L.Dense(2)]), floats(2, 5, 3)


def gru():
    layers = [L.GRU(4, return_sequences=True), L.SimpleRNN(3), L.Dense(2)]
    return keras.Sequential([keras.Input((5, 3)), *layers]), floats(2, 5, 3)


def bidirectional():
    layers = [L.Bidirectional(L.LSTM(3)), L.Dense(2)]
    return keras.Sequential([keras.Input((4, 3)), *layers]), floats(2, 4, 3)


def attention():
    inputs = keras.Input((5, 8))
    x = L.LayerNormalization()(L.MultiHeadAttention(2, 4, dropout=0.2)(inputs, inputs) + inputs)
    return keras.Model(inputs, L.Dense(2)(L.GlobalMaxPooling1D()(x))), floats(2, 5, 8)


def embedding():
    layers = [L.Embedding(9, 4), L.GlobalAveragePooling1D(), L.Dense(2)]
    ids = tf.constant([[1, 2, 3, 0], [4, 0, 0, 8]])
    return keras.Sequential([keras.Input((4,), dtype="int32"), *layers]), ids


def masked():
    layers = [L.Embedding(9, 4, mask_zero=True), L.LSTM(3), L.Dense(2)]
    ids = tf.constant([[1, 2, 3, 0], [4, 0, 0, 8]])
    return keras.Sequential([keras.Input((4,), dtype="int32"), *layers]), ids


def noisy():
    layers = [L.Dense(6), L.Dropout(0.5), L.GaussianNoise(0.1), L.SpatialDropout1D(0.3)]
    return keras.Sequential([keras.Input((3, 4)), *layers, L.Flatten()]), floats(2, 3, 4)


def normalized():
    layers = [L.Normalization(mean=1.0, variance=2.0), L.GroupNormalization(2)]
    layers += [L.UnitNormalization(), L.Rescaling(0.5), L.PReLU()]
    return keras.Sequential([keras.Input((4,)), *layers]), floats(2, 4)


def mixed():
    layers = [L.Dense(4, dtype="mixed_bfloat16"), L.LayerNormalization(dtype="mixed_bfloat16")]
    return keras.Sequential([keras.Input((4,)), *layers, L.Dense(2)]), floats(2, 4)


def nested():
    inner, _ = perceptron()
    layers = [L.Dense(4, activation="silu"), inner, L.Dense(2)]
    return keras.Sequential([keras.Input((4,)), *layers]), floats(2, 4)


MODELS = {
    make.__name__: make
    for make in (
        *(perceptron, functional, convolutional, lstm, gru, bidirectional, attention),
        *(embedding, masked, noisy, normalized, mixed, nested),
    )
}


class Subclassed(keras.Model):
    """A model with a `call` of a user."""

    def __init__(self):
        super().__init__()
        self.hidden = L.Dense(8, activation="relu")
        self.dropout = L.Dropout(0.3)
        self.out = L.Dense(2)

    def call(self, x, training=False):
        return self.out(self.dropout(self.hidden(x), training=training))


class Impure(Subclassed):
    """A model whose `call` runs as Python."""

    def call(self, x, training=False):
        print(end="")
        return self.out(self.dropout(self.hidden(x), training=training))


def floats(*shape, seed=0, dtype=np.float32):
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def told(instance, method="__call__"):
    """Return the description of the calls of an object."""
    return getattr(type(instance), method).describe(instance)


@contextlib.contextmanager
def recording_elsewhere():
    """Keep the hooks of recordings in place for another thread, as if it recorded a call."""
    begun, done = threading.Event(), threading.Event()

    def ignore(*args, **kwargs):
        """Note nothing."""

    def record():
        if hooks.hang(ignore, *[ignore] * 5):
            begun.set()
            done.wait()
            hooks.take_down(ignore)

    thread = threading.Thread(target=record)
    thread.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        done.set()
        thread.join()


def calls_beside_a_recording(make):
    """Yield the results of a model while another thread records; each call must be replayed."""
    model, x = make()
    for _ in range(CALLS):
        model(x)
    before = told(model)["replayed"] if fastops.is_installed() else 0
    with recording_elsewhere():
        yield [model(x) for _ in range(CALLS)]
    if fastops.is_installed():
        assert told(model)["replayed"] == before + CALLS


def plain(value):
    """Return a result in a form for comparison: dtypes, shapes, bytes, and attributes."""
    if isinstance(value, tf.Tensor | tf.Variable | keras.Variable | np.ndarray):
        array = np.asarray(value)
        attributes = {}
        if isinstance(value, tf.Tensor):
            attributes = {
                k: plain(v) for k, v in vars(value).items() if not (v is None or callable(v))
            }
        return str(array.dtype), array.shape, array.tobytes(), attributes
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [plain(item) for item in value]
    return repr(value)


def outcome(function, *args, **kwargs):
    """Return the result of a call in the form of `plain`, or its exception."""
    try:
        return plain(function(*args, **kwargs))
    except Exception as error:
        return type(error).__name__, str(error)


def compare(program, *, replayed=True, native=False):
    """Run a program with and without replays, and compare the values that it yields.

    The calls of objects that were given to `probe` must have been replayed (or not, if `replayed`
    is False). With `native`, some replays must have run by kernels alone.
    """
    begin()
    expected = [plain(value) for value in program()]
    begin()
    with fastops.accelerated(), contextlib.ExitStack() as stack:
        subjects = []
        PROBES.append(subjects)
        stack.callback(PROBES.pop)
        given = [plain(value) for value in program()]
        known = [told(instance, name) for instance, name in subjects]
    assert len(given) == len(expected)
    for number, (one, other) in enumerate(zip(given, expected, strict=True)):
        assert one == other, f"result {number}: {one}, not {other}"
    if subjects and replayed is not None:
        assert all(description["replayed"] for description in known) == replayed, known
    assert not native or all(description["native"] for description in known), known


def begin():
    """Reset random seeds and the counters of object names."""
    keras.utils.set_random_seed(7)
    naming.reset_uids()


PROBES = []


def probe(instance, method="__call__"):
    """Make `compare` check whether calls of an object were replayed."""
    if PROBES:
        PROBES[-1].append((instance, method))
