"""Control flow in eager mode, functions that call functions, tapes, and arrays of tensors."""

import tensorflow as tf


def taped(function, *sources, **options):
    """Return a tape that has watched a function of the sources, and the result."""
    with tf.GradientTape(**options) as tape:
        tape.watch(sources)
        result = function(*sources)
    return tape, result


def entered(source):
    with tf.GradientTape():
        return source * source


def watches(source):
    with tf.GradientTape() as tape:
        tape.watch(source)


def gradient(function, *sources):
    tape, result = taped(function, *sources)
    return tape.gradient(result, sources)


def jacobian(function, source):
    tape, result = taped(function, source)
    return tape.jacobian(result, source)


def batch_jacobian(function, source):
    tape, result = taped(function, source)
    return tape.batch_jacobian(result, source)


def paused(source):
    with tf.GradientTape() as tape:
        tape.watch(source)
        with tape.stop_recording():
            factor = source * 2.0
        result = source * factor
    return tape.gradient(result, source)


def reset(source):
    with tf.GradientTape() as tape:
        tape.watch(source)
        tape.reset()
        tape.watch(source)
        result = source * source
    return tape.gradient(result, source)


def watched(variable):
    with tf.GradientTape() as tape:
        result = variable * 2.0
    return result, len(tape.watched_variables())


def jvp(function, source, tangent):
    with tf.autodiff.ForwardAccumulator(source, tangent) as accumulator:
        result = function(source)
    return accumulator.jvp(result)


def accumulating(source, tangent):
    with tf.autodiff.ForwardAccumulator(source, tangent):
        return source * source


@tf.custom_gradient
def cubed(value):
    return value**3, lambda upstream: 3.0 * upstream * value**2


@tf.recompute_grad
def recomputed(value):
    return tf.sin(value) * value


def empty(size):
    return tf.TensorArray(tf.float32, size, infer_shape=False)


def beside(world):
    written = tf.TensorArray(tf.float32, 2, clear_after_read=False)
    return {
        "written": written.write(0, world.x).write(1, world.y),
        "two": world.m[:2],
        "yes": world.a > 0.0,
        "no": world.a > 9.0,
        "one": tf.constant(1),
    }


TEXT = """
tf.case([(no, lambda: x), (yes, lambda: y)], default=lambda: t)
tf.cond(yes, lambda: x, lambda: y)
tf.foldl(lambda total, each: total + each, x)
tf.foldr(lambda total, each: total + each, x)
tf.map_fn(lambda each: each * 2.0, x)  # AutoGraph checks the function for each element
tf.numpy_function(lambda value: value + 1.0, [x], tf.float32)
tf.py_function(lambda value: value + 1.0, [x], tf.float32)
tf.scan(lambda total, each: total + each, x)  # AutoGraph checks the function for each element
tf.switch_case(one, [lambda: x, lambda: y, lambda: t], default=lambda: u)
tf.vectorized_map(lambda each: each * 2.0, x)
tf.while_loop(lambda n, total: n < 4, lambda n, total: (n + 1, total * 2.0), [0, x])
tf:
    custom_gradient: gradient(cubed, x)
    grad_pass_through: gradient(tf.grad_pass_through(tf.round), x)
    recompute_grad: gradient(recomputed, x)
tf.GradientTape:
    __enter__: entered(x)
    watch: watches(x)
    gradient: gradient(lambda x, y: tf.reduce_sum(x * y), x, y)
    jacobian: jacobian(tf.square, x)
    batch_jacobian: batch_jacobian(tf.square, m)
    stop_recording: paused(x)
    reset: reset(x)
    watched_variables: watched(v)
tf.autodiff.ForwardAccumulator:
    __enter__: accumulating(x, t)
    jvp: jvp(tf.square, x, t)
tf.TensorArray:
    concat: written.concat()
    gather: written.gather([1, 0])
    identity: written.identity().stack()
    read: written.read(0)
    scatter: empty(2).scatter([0, 1], [t, u]).stack()
    size: written.size()
    split: empty(2).split(x, [2, x.shape[0] - 2]).read(0)
    stack: written.stack()
    unstack: empty(2).unstack(two).read(0)
    write: empty(2).write(0, t).read(0)
"""
