"""Gradient functions of single ops, recorded and replayed in walks that do not repeat.

Each program runs under TensorFlow and under `fastops.install`. The bytes, the results None, and the
errors must be the same, and it is asserted which gradient functions were replayed.
"""

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from support import assert_same, failure, floats
from tensorflow.python.framework import ops as tf_ops

import fastops
from fastops._autodiff import op_gradients, rules, walks

pytestmark = pytest.mark.usefixtures("fresh")

TITLE = "GradientTape: gradient functions"


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()
    forget()


def forget():
    walks.forget()
    op_gradients.forget()


def numbers(*shape, seed=0, dtype=tf.float32):
    return tf.cast(tf.constant(0.1 + 0.8 * np.abs(np.tanh(floats(*shape, seed=seed)))), dtype)


def repeat(call, times=8):
    """Return the results of calls whose walks never repeat."""
    found = []
    for i in range(times):
        found.append(call(i))
        walks.forget()
    return found


def hold(call, *, times=8, replayed=1):
    """Compare calls; each walk has `replayed` gradient functions that are replayed in the end."""
    want = repeat(call, times)
    fastops.install(functions=True)
    forget()
    assert_same(repeat(call, times), want)
    before = op_gradients.describe()["replayed"]
    whole = walks.describe()["replayed"]
    assert_same(call(times), repeat_stock(call, times))
    assert op_gradients.describe()["replayed"] - before == replayed
    assert walks.describe()["replayed"] == whole


def repeat_stock(call, number):
    """Return what a call gives without fastops."""
    fastops.uninstall()
    try:
        return call(number)
    finally:
        fastops.install(functions=True)


def gradient(function, *shapes, dtype=tf.float32):
    """Return a call that differentiates a function of tensors with these shapes."""

    def call(i):
        inputs = [numbers(*shape, seed=7 * i + j, dtype=dtype) for j, shape in enumerate(shapes)]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            made = function(*inputs)
        return tape.gradient(made, inputs)

    return call


def spd(x):
    """Return a positive definite matrix, without a record."""
    return tf.stop_gradient(tf.linalg.matmul(x, x, transpose_b=True) + 4 * tf.eye(x.shape[-1]))


def with_solution(function):
    """Return a function that gets a matrix which can be inverted."""
    return lambda x: function(x + 4 * tf.eye(x.shape[-1]))


SQUARE, WIDE = (4, 4), (4, 6)
# Name: the function, the shapes of its arguments, and how many gradient functions are replayed.
FUNCTIONS = {
    "sin": (tf.sin, [WIDE], 1),
    "tan": (tf.tan, [WIDE], 1),
    "acos": (tf.acos, [WIDE], 1),
    "atanh": (tf.atanh, [WIDE], 1),
    "cosh": (tf.cosh, [WIDE], 1),
    "expm1": (tf.math.expm1, [WIDE], 1),
    "lgamma": (tf.math.lgamma, [WIDE], 1),
    "digamma": (tf.math.digamma, [WIDE], 1),
    "erfinv": (tf.math.erfinv, [WIDE], 1),
    "bessel_i0e": (tf.math.bessel_i0e, [WIDE], 1),
    "igamma": (lambda x: tf.math.igamma(0.7, x), [WIDE], 1),
    "atan2 of one shape": (tf.atan2, [WIDE, WIDE], 1),
    "atan2 of two shapes": (tf.atan2, [WIDE, (6,)], 1),
    "floormod": (tf.math.floormod, [WIDE, (4, 1)], 1),
    "xlogy": (tf.math.xlogy, [WIDE, (1, 6)], 1),
    "multiply_no_nan": (tf.math.multiply_no_nan, [WIDE, WIDE], 1),
    "sign": (tf.sign, [WIDE], 1),
    "floor": (tf.floor, [WIDE], 1),
    "prod": (lambda x: tf.reduce_prod(x, 1), [WIDE], 1),
    "cumsum": (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), [WIDE], 1),
    "cumprod": (lambda x: tf.math.cumprod(x, 1), [WIDE], 1),
    "cumulative_logsumexp": (lambda x: tf.math.cumulative_logsumexp(x, 1), [WIDE], 1),
    "gather of columns": (lambda x: tf.gather(x, [2, 0, 2], axis=1), [WIDE], 1),
    "gather in batches": (
        lambda x: tf.gather(x, [[1], [0], [5], [5]], axis=1, batch_dims=1),
        [WIDE],
        1,
    ),
    "top_k": (lambda x: tf.math.top_k(x, 2)[0], [WIDE], 1),
    "reverse": (lambda x: tf.reverse(x, [1]), [WIDE], 1),
    "roll": (lambda x: tf.roll(x, 1, 0), [WIDE], 1),
    "reverse_sequence": (lambda x: tf.reverse_sequence(x, [1, 3, 2, 6], 1), [WIDE], 1),
    "mirror_pad": (lambda x: tf.pad(x, [[1, 1], [2, 0]], "REFLECT"), [WIDE], 1),
    "segment_sum": (lambda x: tf.math.segment_sum(x, [0, 0, 1, 2]), [WIDE], 1),
    "segment_max": (lambda x: tf.math.segment_max(x, [0, 0, 1, 2]), [WIDE], 1),
    "unsorted_segment_sum": (
        lambda x: tf.math.unsorted_segment_sum(x, [2, 0, -1, 0], 3),
        [WIDE],
        1,
    ),
    "scatter_nd": (
        lambda x: tf.scatter_nd(tf.constant([[0], [2], [4], [1]]), x, tf.constant([6, 6])),
        [WIDE],
        1,
    ),
    "tensor_scatter_nd_update": (
        lambda x, y: tf.tensor_scatter_nd_update(x, [[0], [3], [1]], y),
        [WIDE, (3, 6)],
        1,
    ),
    "dynamic_stitch": (
        lambda x, y: tf.dynamic_stitch([[0, 2], [1, 3]], [x, y]),
        [(2, 3), (2, 3)],
        1,
    ),
    "diag": (tf.linalg.diag, [WIDE], 1),
    "diag_part": (tf.linalg.diag_part, [SQUARE], 1),
    "set_diag": (tf.linalg.set_diag, [SQUARE, (4,)], 1),
    "band_part": (lambda x: tf.linalg.band_part(x, 0, 1), [SQUARE], 1),
    "inv": (with_solution(tf.linalg.inv), [SQUARE], 1),
    "det": (with_solution(tf.linalg.det), [SQUARE], 1),
    "slogdet": (with_solution(lambda x: tf.linalg.slogdet(x)[1]), [SQUARE], 1),
    "cholesky": (lambda x: tf.linalg.cholesky(x + spd(x)), [SQUARE], 1),
    "solve": (lambda x, y: tf.linalg.solve(x + 4 * tf.eye(4), y), [SQUARE, WIDE], 1),
    "triangular_solve": (
        lambda x, y: tf.linalg.triangular_solve(x + 4 * tf.eye(4), y),
        [SQUARE, WIDE],
        1,
    ),
    "eigh": (lambda x: tf.linalg.eigh(x + spd(x))[0], [SQUARE], 1),
    "qr": (lambda x: tf.linalg.qr(x)[1], [SQUARE], 1),
    "cross": (tf.linalg.cross, [(4, 3), (4, 3)], 1),
    "rfft": (lambda x: tf.signal.rfft(x), [(3, 8)], 1),
    "fft": (lambda x: tf.signal.fft(tf.complex(x, x)), [(3, 8)], 2),
    "complex": (tf.complex, [WIDE, (6,)], 1),
    "abs of complex": (lambda x, y: tf.abs(tf.complex(x, y)), [WIDE, WIDE], 2),
    "resize bilinear": (lambda x: tf.image.resize(x, [5, 4]), [(1, 8, 8, 2)], 1),
    "resize nearest": (
        lambda x: tf.image.resize(x, [5, 4], "nearest"),
        [(1, 8, 8, 2)],
        1,
    ),
    "crop_and_resize": (
        lambda x: tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9]], [0], [3, 3]),
        [(1, 8, 8, 2)],
        1,
    ),
    "depthwise_conv2d": (
        lambda x, y: tf.nn.depthwise_conv2d(x, y, [1, 1, 1, 1], "SAME"),
        [(1, 6, 6, 2), (3, 3, 2, 2)],
        1,
    ),
    "conv3d": (
        lambda x, y: tf.nn.conv3d(x, y, [1, 1, 1, 1, 1], "VALID"),
        [(1, 4, 4, 4, 2), (2, 2, 2, 2, 3)],
        1,
    ),
    "lrn": (tf.nn.local_response_normalization, [(1, 3, 3, 4)], 1),
    "l2_loss": (tf.nn.l2_loss, [WIDE], 1),
    "softsign": (tf.nn.softsign, [WIDE], 1),
    "batch norm": (
        lambda x, y, z: tf.compat.v1.nn.fused_batch_norm(x, y, z)[0],
        [(2, 3, 3, 4), (4,), (4,)],
        1,
    ),
    "space_to_depth": (lambda x: tf.nn.space_to_depth(x, 2), [(1, 4, 4, 2)], 1),
    "select": (lambda x, y: tf.compat.v1.where(x > y, x, y), [WIDE, WIDE], 1),
    "ensure_shape": (lambda x: tf.ensure_shape(x, [4, None]), [WIDE], 1),
    "check_numerics": (lambda x: tf.debugging.check_numerics(x, ""), [WIDE], 1),
    "two in a row": (lambda x: tf.cos(tf.math.lgamma(x)), [WIDE], 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gradient_function_is_replayed(name):
    function, shapes, replayed = FUNCTIONS[name]
    hold(gradient(function, *shapes), replayed=replayed)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.bfloat16, tf.complex64], ids=str)
def test_dtypes(dtype):
    hold(gradient(lambda x: tf.sin(x), WIDE, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 7], ids=str)
def test_shapes(shape):
    hold(gradient(tf.cos, shape))


def test_loops_of_ever_other_lengths():
    def call(i):
        x = numbers(4, 6, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(2 + i * 5 % 11):
                y = tf.sin(y) + tf.gather(y, [5, 3, 1, 0, 2, 4], axis=1)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, x)

    want = [call(i) for i in range(11)]
    fastops.install(functions=True)
    forget()
    assert_same([call(i) for i in range(11)], want)
    counted = fastops.stats().kinds[TITLE]
    assert counted.copied > 80
    assert counted.tensorflow < 10
    assert walks.describe()["replayed"] == 0


# ---------------------------------------------------------------------------------------------
# What the key has
# ---------------------------------------------------------------------------------------------


def test_one_tensor_given_twice():
    """The recording of a call with one tensor does not stand for a call with two."""

    def call(i):
        x, y = numbers(3, seed=i), numbers(3, seed=i + 50)
        if i < 6:
            y = x
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            made = tf.atan2(x, y)
        return tape.gradient(made, [x, y])

    hold(call, times=12)
    assert op_gradients.describe()["active"] == 2


def test_gradients_that_are_not_needed():
    """The gradient function of a power leaves out what is not needed."""

    def call(i):
        x, y = numbers(3, 2, seed=i), numbers(3, 2, seed=i + 50)
        sources = [y] if i < 6 else [x, y]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            made = x**y
        return tape.gradient(made, sources)

    hold(call, times=12)
    assert op_gradients.describe()["active"] == 2


def test_outputs_without_gradients():
    """Zeros stand for the gradient of an output that is not used."""

    def call(i):
        x = numbers(4, 4, seed=i) + 4 * tf.eye(4)
        with tf.GradientTape() as tape:
            tape.watch(x)
            q, r = tf.linalg.qr(x)
            made = [q, r, q + r][i % 3]
        return tape.gradient(made, x)

    hold(call, times=18)


def test_attributes():
    def call(i):
        x = numbers(3, 4, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.cumsum(x, axis=1, exclusive=i % 2 == 1)
        return tape.gradient(made, x)

    hold(call, times=16)


def test_values_that_the_function_reads():
    """An axis is a tensor. The gradient function of a gather reads its value."""

    def call(i):
        x, axis = numbers(3, 3, 3, seed=i), tf.constant(1 + i % 2)
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.raw_ops.GatherV2(params=x, indices=[2, 0], axis=axis)
        return tape.gradient(made, x)

    hold(call, times=16)
    assert op_gradients.describe()["active"] == 2


def test_sizes_that_values_decide():
    def call(i):
        x = numbers(6, seed=i)
        parts = tf.constant([[0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 1, 0]][i % 2])
        with tf.GradientTape() as tape:
            tape.watch(x)
            first, second = tf.dynamic_partition(x, parts, 2)
            loss = tf.reduce_sum(first) * 2 + tf.reduce_sum(second)
        return tape.gradient(loss, x)

    want = repeat(call, 16)
    fastops.install(functions=True)
    forget()
    before = op_gradients.describe()["replayed"]
    assert_same(repeat(call, 16), want)
    assert op_gradients.describe()["replayed"] - before > 4


def test_a_gradient_of_rows_is_left_to_tensorflow():
    def call(i):
        x = numbers(5, 2, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.gather(tf.ensure_shape(x, [5, 2]), [0, 2])
        rows = tape.gradient(made, x)
        return rows.values, rows.indices, rows.dense_shape

    hold(call, replayed=0)
    assert fastops.stats().kinds[TITLE].reasons["gradient_tensors"] > 5


# ---------------------------------------------------------------------------------------------
# Guards
# ---------------------------------------------------------------------------------------------


def test_a_gradient_that_is_passed_on_is_the_same_object():
    def call(i):
        x, upstream = numbers(2, 2, seed=i), numbers(2, 2, seed=i + 50)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.ensure_shape(x, [2, 2])
        return tape.gradient(y, x, output_gradients=upstream) is upstream

    fastops.install(functions=True)
    forget()
    assert all(repeat(call))
    assert op_gradients.describe()["active"] == 1


def test_another_function_is_registered(monkeypatch):
    call = gradient(tf.sin, WIDE)
    fastops.install(functions=True)
    forget()
    repeat(call)
    assert op_gradients.describe()["active"] == 1
    entry = tf_ops._gradient_registry._registry["Sin"]
    monkeypatch.setitem(entry, "type", lambda op, grad: 7.0 * grad)
    before = op_gradients.describe()["replayed"]
    assert_same(call(0), [tf.fill(WIDE, 7.0)])
    assert op_gradients.describe()["replayed"] == before
    assert fastops.stats().kinds[TITLE].reasons["walk_functions"] == 1


def test_a_name_that_the_function_looks_up_is_replaced(monkeypatch):
    from tensorflow.python.ops import math_ops

    call = gradient(tf.sin, WIDE)
    fastops.install(functions=True)
    forget()
    repeat(call)
    with monkeypatch.context() as patched:
        patched.setattr(math_ops, "cos", lambda x: 7.0 * tf.ones_like(x))
        assert_same(call(0), [tf.fill(WIDE, 7.0)])
    want = repeat_stock(call, 3)
    walks.forget()
    assert_same(call(3), want)


def test_gradient_functions_of_users_run_each_time():
    ran = []

    def call(i):
        x = numbers(3, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(x)

            @tf.custom_gradient
            def double(x):
                def grad(dy):
                    ran.append(i)
                    return 2.0 * dy * len(ran)

                return 2.0 * x, grad

            made = double(x)
        return tape.gradient(made, x)

    fastops.install(functions=True)
    forget()
    found = repeat(call)
    assert len(ran) == 8
    assert_same(found, [tf.fill([3], 2.0 * (i + 1)) for i in range(8)])


def test_an_error_of_a_gradient_function():
    def call(i):
        x = numbers(4, 6, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.linalg.svd(x, full_matrices=True)[1]
        return str(failure(lambda: tape.gradient(loss, x)))

    want = repeat(call)
    assert all("svd gradient is not implemented" in text for text in want)
    fastops.install(functions=True)
    forget()
    assert repeat(call) == want
    assert op_gradients.describe()["active"] == 0


# ---------------------------------------------------------------------------------------------
# Tapes within tapes, threads, memory
# ---------------------------------------------------------------------------------------------


def test_second_and_third_derivatives():
    def call(i):
        x = numbers(3, seed=i)
        with tf.GradientTape() as third:
            third.watch(x)
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch(x)
                    y = tf.sin(x) * tf.math.lgamma(x)
                a = first.gradient(y, x)
            b = second.gradient(a, x)
        return a, b, third.gradient(b, x)

    want = repeat(call, 10)
    fastops.install(functions=True)
    forget()
    assert_same(repeat(call, 10), want)
    assert op_gradients.describe()["replayed"] > 20


def test_persistent_tapes():
    def call(i):
        x = numbers(3, seed=i)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.sin(x)
            z = tf.cos(y)
        return tape.gradient(y, x), tape.gradient(z, x), tape.gradient(z, y)

    hold(call, replayed=5)  # a walk does not end at its sources


def test_walks_of_tensorflow():
    """TensorFlow walks for nested structures of sources."""

    def call(i):
        x = numbers(3, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x)
        return tape.gradient(y, {"x": x})["x"]

    hold(call)


def test_threads():
    call = gradient(lambda x, y: tf.sin(x) + tf.gather(y, [2, 1], axis=1), (3, 2), (3, 4))
    want = [call(i) for i in range(6)]
    fastops.install(functions=True)
    forget()
    problems = []

    def work():
        try:
            for _ in range(20):
                for i in range(6):
                    assert_same(call(i), want[i])
                    walks.forget()
        except BaseException as problem:
            problems.append(problem)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems
    forget()
    repeat(call)
    before = op_gradients.describe()["replayed"]
    call(0)
    assert op_gradients.describe()["replayed"] == before + 2


def test_replays_keep_no_tensor():
    kept = []

    def call(i):
        x = numbers(50, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x)
        kept.extend(weakref.ref(tensor) for tensor in (x, y))
        kept.append(weakref.ref(tape.gradient(y, x)))

    fastops.install(functions=True)
    forget()
    repeat(call, 10)
    gc.collect()
    assert op_gradients.describe()["active"] == 1
    assert not any(reference() is not None for reference in kept)


def test_kinds_that_come_once_take_no_place():
    fastops.install(functions=True)
    forget()
    call = gradient(tf.sin, WIDE)
    repeat(call)
    assert op_gradients.describe()["active"] == 1
    for size in range(1, 1300):
        gradient(tf.cos, (size,))(0)
        walks.forget()
    before = op_gradients.describe()
    assert before["active"] == 1
    call(0)
    assert op_gradients.describe()["replayed"] == before["replayed"] + 1


def test_ops_with_a_rule_are_not_recorded():
    fastops.install(functions=True)
    forget()
    taken = rules.RULES["Tanh"].taken
    repeat(gradient(tf.tanh, WIDE))
    assert rules.RULES["Tanh"].taken - taken == 8
    assert op_gradients.describe() == {"replayed": op_gradients.describe()["replayed"], "active": 0}
