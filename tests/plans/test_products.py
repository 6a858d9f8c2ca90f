"""oneDNN's primitives that plans execute without their kernels give the same bytes."""

import threading

import pytest
import tensorflow as tf
from support import floats, has_primitives, python, special

import fastops

ACTIVATIONS = {
    "none": tf.identity,
    "Relu": tf.nn.relu,
    "Relu6": tf.nn.relu6,
    "Elu": tf.nn.elu,
    "Tanh": tf.tanh,
    "Sigmoid": tf.sigmoid,
    "LeakyRelu": tf.nn.leaky_relu,
}


def dense(depth, columns, activation="Relu", transposed=False, draw=floats):
    weights = tf.Variable(draw(*((columns, depth) if transposed else (depth, columns))))
    bias = tf.Variable(draw(columns))

    @tf.function(input_signature=[tf.TensorSpec([None, depth])])
    def layer(x):
        product = tf.matmul(x, weights, transpose_b=transposed)
        return ACTIVATIONS[activation](tf.nn.bias_add(product, bias))

    return layer, fastops.function(layer, executor="plan")


def plan_of(planned):
    (plan,) = {case.runner.plan for case in planned.known_cases()}
    return plan


def replaced(plan):
    """Tell whether the primitive of oneDNN's kernel computes the product.

    That depends on the processor, and on what TensorFlow exports.
    """
    return has_primitives() and any(
        step.node.op == "_MklNativeFusedMatMul" for step in plan.schedule.steps
    )


def assert_bytes(got, want):
    assert tf.io.serialize_tensor(got) == tf.io.serialize_tensor(want)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("rows", [1, 7])
def test_products_have_the_same_bytes(rows, activation, transposed):
    for draw in (floats, special):
        layer, planned = dense(33, 17, activation, transposed, draw)
        for seed in range(6):
            x = tf.constant(draw(rows, 33, seed=seed))
            assert_bytes(planned(x), layer(x))
        plan = plan_of(planned)
        # The first two calls run the kernel and are compared. With LeakyRelu, all calls run the
        # kernel.
        known = replaced(plan) and activation != "LeakyRelu"
        assert plan.primitive_runs() == (4 if known else 0)


def test_other_sizes():
    """Primitives of four batch sizes are kept, and sizes that come only once are dropped."""
    layer, planned = dense(8, 5)
    batches = {rows: tf.constant(floats(rows, 8)) for rows in range(1, 7)}
    for _ in range(6):
        for x in batches.values():
            assert_bytes(planned(x), layer(x))
    assert plan_of(planned).primitive_runs() == 0
    for x in batches.values():
        for _ in range(6):
            assert_bytes(planned(x), layer(x))
    plan = plan_of(planned)
    assert plan.primitive_runs() == (16 if replaced(plan) else 0)


def test_products_without_a_primitive():
    """Products for which oneDNN would use threads, and empty ones, run in the kernel."""
    for depth, columns, rows in ((2000, 2000, 40), (8, 5, 0)):
        layer, planned = dense(depth, columns)
        x = tf.constant(floats(rows, depth))
        for _ in range(5):
            assert_bytes(planned(x), layer(x))
        assert plan_of(planned).primitive_runs() == 0


def test_primitives_belong_to_threads():
    layer, planned = dense(33, 17)
    x = tf.constant(special(4, 33))
    want = layer(x)
    for _ in range(6):
        assert_bytes(planned(x), want)
    problems, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait()
        try:
            for _ in range(200):
                assert_bytes(planned(x), want)
        except BaseException as error:
            problems.append(error)

    for _ in range(2):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems


def test_a_primitive_that_tensorflow_has_dropped():
    """TensorFlow keeps the last 1,024 primitives of each thread."""
    layer, planned = dense(8, 5)
    _, pushing = dense(8, 5, "Tanh")
    x = tf.constant(floats(2, 8))
    for _ in range(6):
        planned(x)
    plan = plan_of(planned)
    before = plan.primitive_runs()
    for rows in range(1, 1300):
        pushing(tf.ones([rows, 8]))
    for _ in range(4):
        assert_bytes(planned(x), layer(x))
    # The first of these calls has made a new primitive.
    assert plan.primitive_runs() - before == (3 if replaced(plan) else 0)


def test_after_a_fork():
    out = python(
        """
        import os
        weights, bias = tf.Variable(tf.ones([8, 5]) / 3), tf.Variable(tf.ones([5]) / 7)
        layer = fastops.function(lambda x: tf.nn.relu(x @ weights + bias), executor="plan")
        x = tf.ones([1, 8])
        want = [layer(x).numpy() for _ in range(6)]
        pid = os.fork()
        if not pid:
            got = [layer(x).numpy() for _ in range(6)]
            os._exit(7 if np.array_equal(got, want) else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert out == "7\n"
