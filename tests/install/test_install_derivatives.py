"""Derivatives of higher orders under `fastops.install` are TensorFlow's, to the last bit.

The order in which a tape adds up the gradients of a tensor depends on all its records. So rules and
replays must leave the same records as TensorFlow's own functions.
"""

import gc
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import find
from differentiable import CASES, dense, values
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from records import records
from support import Failure, assert_same, difference, floats, python, walks_in_full

import fastops
from fastops._autodiff.rules import RULES, reset_counters
from fastops._install.models.method import methods

pytestmark = pytest.mark.usefixtures("fresh")

raw = tf.raw_ops

EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
"""The number of compositions to draw at random. By default, a few fixed ones are drawn."""


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    reset_counters()
    with walks_in_full():  # so that the rules run
        yield
    fastops.uninstall()


# ---------------------------------------------------------------------------------------------
# Records of each rule
# ---------------------------------------------------------------------------------------------

DTYPES = (tf.float32, tf.complex64)


def gradient(case, inputs, wanted, seed):
    with tf.GradientTape() as tape:
        tape.watch(wanted)
        output = case.call(*inputs)
    gradients = tape.gradient(output, wanted, output_gradients=seed)
    return [dense(gradient) for gradient in gradients if gradient is not None]


def second(case, inputs, wanted, seed):
    with tf.GradientTape() as outer:
        outer.watch([*wanted, seed])
        gradients = gradient(case, inputs, wanted, seed)
    return outer.gradient(gradients, [*wanted, seed])


def programs(case):
    """Yield the programs of a case: functions, and the tensors that an outer tape watches."""
    for dtype in case.dtypes:
        if dtype not in DTYPES:
            continue
        inputs = [values(s, dtype, i, case.positive) for i, s in enumerate(case.shapes)]
        try:
            like = case.call(*inputs)
        except tf.errors.OpError:  # there is no kernel
            continue
        seed = values(like.shape, like.dtype, 7)
        for wanted in [inputs, *([source] for source in inputs if len(inputs) > 1)]:
            for watched in ([*inputs, seed], [inputs[0]], [seed]):
                for program in (gradient, second):
                    yield (
                        lambda *args, program=program: program(*args),
                        (case, inputs, wanted, seed),
                        watched,
                    )


@pytest.mark.parametrize("op", sorted({case.op for case in CASES}))
def test_records_of_a_rule(op):
    chosen = [program for case in CASES if case.op == op for program in programs(case)]

    def noted():
        return [records(lambda p=p, a=a: p(*a), watched) for p, a, watched in chosen]

    want = noted()
    with fastops.accelerated():
        for _ in range(2):  # TensorFlow makes the first call of a key
            reset_counters()
            got = noted()
    assert RULES[op].taken
    for (_, args, _), a, b in zip(chosen, want, got, strict=True):
        assert a == b, f"{op} of {args[1]}"


# ---------------------------------------------------------------------------------------------
# Activations, as in networks that learn differential equations
# ---------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "gelu": tf.nn.gelu,
    "approximate gelu": lambda z: tf.nn.gelu(z, approximate=True),
    "silu": tf.nn.silu,
    "keras silu": keras.activations.silu,
    "keras gelu": keras.activations.gelu,
    "product with sigmoid": lambda z: z * tf.sigmoid(z),
    "tanh": tf.tanh,
    "softplus": tf.nn.softplus,
    "softmax": tf.nn.softmax,
    "mish": keras.activations.mish,
}


def loss_gradient(activation, order, x, w):
    """Return the weights' gradient of the mean squared derivative with respect to the input."""

    def derivative(order):
        if order == 0:
            return activation(x @ w)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(order - 1)
        return tape.gradient(y, x)

    with tf.GradientTape() as outer:
        loss = tf.reduce_mean(derivative(order) ** 2)
    return outer.gradient(loss, w)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_of_an_activation(name):
    x, w = tf.constant(floats(7, 2)), tf.Variable(floats(2, 8, seed=1))

    def gradients():
        return [loss_gradient(ACTIVATIONS[name], order, x, w) for order in range(1, 5)]

    want = gradients()
    with fastops.accelerated():
        for _ in range(3):
            reset_counters()
            assert_same(gradients(), want)
        assert RULES["MatMul"].taken
        assert not any(rule.left for rule in RULES.values())


def test_trained_weights_of_a_network_of_derivatives():
    """A training step of a physics-informed network: a residual of second derivatives, and Adam."""
    assert (
        python(
            """
        import keras
        x = tf.constant(np.linspace(-1, 1, 24, dtype="f").reshape(12, 2))

        def trained():
            keras.utils.set_random_seed(0)
            model = keras.Sequential([
                keras.layers.Dense(8, activation="silu"),
                keras.layers.Dense(8, activation=lambda z: tf.nn.gelu(z, approximate=True)),
                keras.layers.Dense(1),
            ])
            model.build([None, 2])
            optimizer = keras.optimizers.Adam(0.01)
            for _ in range(20):
                with tf.GradientTape() as tape:
                    with tf.GradientTape() as outer:
                        outer.watch(x)
                        with tf.GradientTape() as inner:
                            inner.watch(x)
                            u = model(x)
                        du = inner.gradient(u, x)
                    ddu = outer.gradient(du, x)
                    loss = tf.reduce_mean((ddu + u * du) ** 2)
                weights = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return [weight.numpy().tobytes() for weight in weights]

        want = trained()
        with fastops.accelerated():
            print([trained() == want for _ in range(2)])
        """
        )
        == "[True, True]\n"
    )


# ---------------------------------------------------------------------------------------------
# Compositions
# ---------------------------------------------------------------------------------------------

ROW = tf.constant(floats(4, seed=2))
SQUARE = tf.constant(floats(4, 4, seed=3) / 2)
FILTER = tf.constant(floats(2, 2, 1, 1, seed=4))
TABLE = tf.Variable(floats(5, 4, seed=5))
WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}


def image(h):
    return tf.reshape(h, [1, 3, 4, 1])


def matrix(h):
    return tf.reshape(h, [3, 4])


def positive(h):
    return raw.AddV2(x=raw.Square(x=h), y=0.5)


STEPS = {
    "Abs": lambda h, x: raw.Abs(x=h),
    "Add": lambda h, x: raw.Add(x=h, y=ROW),
    "AddN": lambda h, x: raw.AddN(inputs=[h, x, h]),
    "AddV2": lambda h, x: 0.5 + h + ROW * x,
    "AvgPool": lambda h, x: matrix(raw.AvgPool(value=image(h), **WINDOW)),
    "BatchMatMulV2": lambda h, x: raw.BatchMatMulV2(x=tf.stack([h, x]), y=SQUARE[tf.newaxis])[0],
    "BiasAdd": lambda h, x: raw.BiasAdd(value=h, bias=x[0]),
    "BroadcastTo": lambda h, x: raw.BroadcastTo(input=h[:, :1] * x[:1], shape=[3, 4]),
    "Cast": lambda h, x: tf.cast(tf.cast(h, tf.float64) * 0.3, tf.float32),
    "ConcatV2": lambda h, x: tf.concat([h[1:], x[:1]], 0),
    "Conv2D": lambda h, x: matrix(
        raw.Conv2D(input=image(h), filter=FILTER, strides=[1, 1, 1, 1], padding="SAME")
    ),
    "DivNoNan": lambda h, x: raw.DivNoNan(x=h, y=positive(x)),
    "Einsum": lambda h, x: raw.Einsum(inputs=[h, SQUARE], equation="ij,jk->ik") * x,
    "Elu": lambda h, x: raw.Elu(features=h),
    "Erf": lambda h, x: raw.Erf(x=h),
    "Erfc": lambda h, x: raw.Erfc(x=h),
    "Exp": lambda h, x: raw.Exp(x=0.1 * raw.Tanh(x=h)),
    "ExpandDims": lambda h, x: (tf.expand_dims(h, 1) * x)[:, 0],
    "GatherV2": lambda h, x: tf.gather(h, [2, 0, 0]) * x,
    "Identity": lambda h, x: raw.Identity(input=h) * h,
    "LeakyRelu": lambda h, x: raw.LeakyRelu(features=h, alpha=0.3),
    "Log": lambda h, x: raw.Log(x=positive(h)),
    "Log1p": lambda h, x: raw.Log1p(x=positive(h)),
    "LogSoftmax": lambda h, x: raw.LogSoftmax(logits=h),
    "MatMul": lambda h, x: raw.MatMul(a=h, b=raw.MatMul(a=x, b=h, transpose_a=True)),
    "Max": lambda h, x: h * tf.reduce_max(h, axis=1, keepdims=True),
    "MaxPool": lambda h, x: matrix(raw.MaxPool(input=image(h), **WINDOW)),
    "Maximum": lambda h, x: raw.Maximum(x=h, y=ROW) + raw.Maximum(x=x, y=0.1),
    "Mean": lambda h, x: h - tf.reduce_mean(h * x, axis=0) + tf.reduce_mean(h),
    "Min": lambda h, x: x + tf.reduce_min(h, axis=0),
    "Minimum": lambda h, x: raw.Minimum(x=h, y=x),
    "Mul": lambda h, x: (h * 0.7) * (ROW * h) * x,
    "Neg": lambda h, x: -h,
    "Pack": lambda h, x: tf.stack([h[0], x[1], h[2]]),
    "Pad": lambda h, x: raw.Pad(input=h[1:], paddings=[[0, 1], [0, 0]]),
    "PadV2": lambda h, x: raw.PadV2(input=h[:, :2], paddings=[[0, 0], [1, 1]], constant_values=1.0),
    "Pow": lambda h, x: positive(h) ** 1.5 + x**2.0,
    "RealDiv": lambda h, x: h / positive(ROW) + x / 3.0,
    "Reciprocal": lambda h, x: raw.Reciprocal(x=positive(h)),
    "Relu": lambda h, x: raw.Relu(features=h),
    "Relu6": lambda h, x: raw.Relu6(features=h),
    "Reshape": lambda h, x: matrix(tf.reshape(h, [4, 3]) * x[0, 0]),
    "ResourceGather": lambda h, x: h * tf.gather(TABLE, [2, 0, 2]) + x,
    "Rsqrt": lambda h, x: raw.Rsqrt(x=positive(h)),
    "SelectV2": lambda h, x: tf.where(h > 0.1, h, ROW) + tf.where(h > 0.2, 0.0, x),
    "Selu": lambda h, x: raw.Selu(features=h),
    "Sigmoid": lambda h, x: raw.Sigmoid(x=h),
    "Slice": lambda h, x: h + raw.Slice(input=x, begin=[1, 0], size=[1, -1]),
    "Softmax": lambda h, x: raw.Softmax(logits=h),
    "SoftmaxCrossEntropyWithLogits": lambda h, x: (
        x * raw.SoftmaxCrossEntropyWithLogits(features=h, labels=tf.nn.softmax(x))[0][:, tf.newaxis]
    ),
    "Softplus": lambda h, x: raw.Softplus(features=h),
    "SparseSoftmaxCrossEntropyWithLogits": lambda h, x: (
        x * raw.SparseSoftmaxCrossEntropyWithLogits(features=h, labels=[0, 3, 1])[0][:, tf.newaxis]
    ),
    "SparseToDense": lambda h, x: (
        h
        + raw.SparseToDense(
            sparse_indices=[[0, 1], [2, 3]],
            output_shape=[3, 4],
            sparse_values=h[0, 1:3] * x[1, :2],
            default_value=x[1, 1],
        )
    ),
    "Split": lambda h, x: tf.concat(tf.split(h, 2, axis=1)[::-1], 1),
    "Sqrt": lambda h, x: raw.Sqrt(x=positive(h)),
    "Square": lambda h, x: raw.Square(x=h),
    "SquaredDifference": lambda h, x: raw.SquaredDifference(x=h, y=ROW),
    "Squeeze": lambda h, x: tf.squeeze(tf.reshape(h, [3, 1, 4]), 1),
    "StridedSlice": lambda h, x: h[:, ::-1] + h[1] * x[..., 2:3],
    "Sub": lambda h, x: 1.0 - (h - ROW) - x[:, :1],
    "Sum": lambda h, x: h * tf.reduce_sum(h, axis=[1], keepdims=True) + tf.reduce_sum(x),
    "Tanh": lambda h, x: raw.Tanh(x=h),
    "TanhGrad": lambda h, x: raw.TanhGrad(y=h, dy=x),
    "Tile": lambda h, x: x + raw.Tile(input=h[:, :2], multiples=[1, 2]),
    "Transpose": lambda h, x: tf.transpose(tf.transpose(h) * x[0, 0]),
    "Unpack": lambda h, x: h * tf.unstack(x)[1] + tf.unstack(h)[0],
}
"""By op, a function whose gradient needs the op's rule. It makes a matrix of the current matrix and
the input."""


def composed(names, x, w):
    h = x * w
    for name in names:
        h = STEPS[name](h, x)
    return h


def nested(order, function, x, w):
    """Differentiate with nested tapes; the outermost also with respect to the variable."""

    def derivative(order):
        if order == 0:
            return function()
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(order - 1)
        return tape.gradient(y, x)

    with tf.GradientTape() as outer:
        outer.watch(x)
        y = derivative(order - 1)
        if y is None:
            return None
        loss = tf.reduce_mean(y**2)
    return outer.gradient(loss, [x, w])


def persistent(order, function, x, w):
    """Differentiate with one tape that records its own gradients."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, gradients = function(), []
        for _ in range(order - 1):
            gradients.append(tape.gradient(y, [x, w]))
            y = gradients[-1][0]
            if y is None:
                return gradients
    return gradients, tape.gradient(y, [x, w]), tape.gradient(y, w)


def many(order, function, x, w):
    """Compute gradients of many targets; the order of the walk depends on all records."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function()
        gradients = [gradient for gradient in tape.gradient(y, [x, w]) if gradient is not None] + [
            y
        ]
        targets = [gradient * (i + 0.5) for i in range(3 * order) for gradient in gradients]
    return outer.gradient(targets, [x, w])


def forward(order, function, x, w):
    """Differentiate in forward mode over a tape, and by a tape over forward mode."""
    tangent = tf.ones_like(x)
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        gradients = nested(min(order, 2), function, x, w)
    products = [accumulator.jvp(gradient) for gradient in gradients or () if gradient is not None]
    with tf.GradientTape() as tape:
        with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
            y = function()
        product = accumulator.jvp(y)
    return products, None if product is None else tape.gradient(product, w)


MODES = {"nested": nested, "persistent": persistent, "many": many, "forward": forward}


def values_of(seed):
    """Return random values of several magnitudes."""
    chance = np.random.default_rng(seed)
    return (chance.normal(size=(3, 4)) * 10 ** chance.uniform(-1.5, 1, size=(3, 4))).astype("f")


def attempt(program):
    try:
        return program()
    except Exception as error:  # the derivative is not defined, so the failures are compared
        return Failure(type(error), str(error))


def hold(names, order, mode, seed):
    x, w = tf.constant(values_of(seed)), tf.Variable(values_of(seed + 1))

    def program():
        return attempt(lambda: MODES[mode](order, lambda: composed(names, x, w), x, w))

    want = program()
    with fastops.accelerated():
        for _ in range(2):
            differing = difference(program(), want)
            assert differing is None, f"{mode}, {order}, {' of '.join(names[::-1])}: {differing}"


def test_every_rule_is_composed():
    assert set(STEPS) | {"ReadVariableOp"} == set(RULES)


@pytest.mark.parametrize("order", [3, 4])
def test_rules_alone(order):
    x, w = tf.constant(values_of(5)), tf.Variable(values_of(6))

    def all_of_them():
        return {
            name: attempt(lambda n=name: nested(order, lambda: composed([n], x, w), x, w))
            for name in STEPS
        }

    want = all_of_them()
    with fastops.accelerated():
        for _ in range(2):
            got = all_of_them()
    assert {name: difference(got[name], want[name]) for name in STEPS} == dict.fromkeys(STEPS)


@settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=3, max_size=3),
    st.sampled_from([3, 2, 4, 1]),
    st.sampled_from(["nested", "nested", "persistent", "many", "many"]),
    st.integers(0, 2**16),
)
@example(["AddV2", "Tanh", "Mul"], 4, "nested", 0)
@example(["Mean", "Sub", "Square"], 3, "persistent", 1)
@example(["SelectV2", "StridedSlice", "Slice"], 3, "many", 2)
def test_compositions(names, order, mode, seed):
    hold(names, order, mode, seed)


@pytest.mark.parametrize(
    "names", [["AddV2", "Softmax", "Mul"], ["MatMul", "Erf", "Sum"], ["Mean", "Sub", "Sigmoid"]]
)
def test_compositions_in_forward_mode(names):
    hold(names, 2, "forward", 3)


# ---------------------------------------------------------------------------------------------
# Replays
# ---------------------------------------------------------------------------------------------

CALLS = 16
"""The number of calls. After half of them, replays know their kernels."""

FUNCTIONS = {
    "tf.reduce_logsumexp": lambda function, x: function(x, 1),
    "tf.clip_by_norm": lambda function, x: function(x, 1.0),
    "tf.repeat": lambda function, x: function(x, 2, axis=0),
    "tf.sort": lambda function, x: function(x),
    "tf.nn.softmax_cross_entropy_with_logits": lambda function, x: function(
        labels=tf.ones([3, 4]), logits=x
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_records_of_a_replayed_function(name):
    x = tf.constant(floats(3, 4))

    def noted():
        return records(lambda: FUNCTIONS[name](find(name), x), [x])

    want = noted()
    with fastops.accelerated():
        for _ in range(CALLS):
            assert noted() == want
        known = find(name).describe()
        assert known["replayed"] == 1
        assert known["native"]


@fastops.keras.replayable
class Reshaping(keras.layers.Layer):
    """A layer in which a shape computed on a tape is an input of a recorded op."""

    def call(self, x):
        h = tf.tanh(x)
        rows = tf.reshape(tf.sin(h) + tf.exp(h), [-1])
        return tf.reshape(rows, tf.shape(h)) + h * tf.reduce_sum(h), tf.shape(h)


MATRIX, SEQUENCE = (3, 4), (2, 5, 4)
LAYERS = {
    "shape": (Reshaping, MATRIX),
    "flatten": (keras.layers.Flatten, SEQUENCE),
    "lstm": (lambda: keras.layers.LSTM(3), SEQUENCE),
    "gru": (lambda: keras.layers.GRU(3), SEQUENCE),
    "groups": (lambda: keras.layers.GroupNormalization(2), MATRIX),
    "repeat": (lambda: keras.layers.RepeatVector(3), MATRIX),
    "dense": (
        lambda: keras.Sequential([keras.layers.Dense(4), keras.layers.LayerNormalization()]),
        MATRIX,
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_records_of_a_replayed_layer(name):
    make, shape = LAYERS[name]
    layer, x = make(), tf.constant(floats(*shape))
    layer(x)
    watched = [x, *(weight.value for weight in layer.trainable_weights)]

    def noted():
        return records(lambda: layer(x), watched)

    def taped():
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = tf.nest.flatten(layer(x))
        return results, tape.gradient(results[0], x)

    def untaped():
        return tf.nest.flatten(layer(x))

    want = noted(), taped(), untaped()
    with fastops.accelerated():
        gc.collect()  # free layers of other tests
        for _ in range(CALLS):
            assert_same((taped(), untaped()), want[1:])
        before = natively()
        assert noted() == want[0]
        assert natively() == before + 1


def natively():
    return sum(method.describe()["native"] for method in methods())


def test_many_targets_of_a_replayed_layer():
    """The walk begins at many targets, in an order that depends even on records without targets."""
    layer, x = keras.layers.LSTM(4), tf.constant(values_of(9)[np.newaxis])
    factors = [tf.constant(values_of(i)[:1]) for i in range(12)]
    layer(x)

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            targets = [layer(x) * factor for factor in factors]
            targets += [targets[-1] * factor for factor in factors]
        return tape.gradient(targets, [x, layer.cell.kernel.value])

    want = gradient()
    with fastops.accelerated():
        before = natively()
        for _ in range(3):
            assert_same(gradient(), want)
        assert natively() > before
