"""Programs, and the functions of TensorFlow and Keras that they look up, for replacement."""

import functools
import sys
import types
from contextlib import contextmanager

import keras
import numpy as np
import tensorflow as tf
from support import floats

from fastops._install import lookups, reads
from fastops._specialize.guards.names import upstream


def t(*shape, dtype=np.float32, seed=0):
    return tf.constant(floats(*shape, dtype=dtype, seed=seed))


def programs():
    """Return programs by name: functions without arguments, whose results can be compared."""
    a, b, square = t(2, 3), t(2, 3, seed=1), t(3, 3, seed=2)
    indices = tf.constant([1, 0])
    array = floats(2, 3, seed=3)
    variable, assigned = tf.Variable(a), tf.Variable(a)
    own = keras.Variable(floats(2, 3, seed=4))
    dense = keras.layers.Dense(2, activation="relu", kernel_initializer="ones")
    norm = keras.layers.LayerNormalization()
    loss = keras.losses.MeanSquaredError()
    pool = keras.layers.GlobalAveragePooling1D()
    model = keras.Sequential([keras.layers.Dense(3, kernel_initializer="ones"), norm, dense])
    images = t(1, 4, 4, 1, seed=5)
    model(a)
    pool(images[0])

    def step():
        with tf.GradientTape() as tape:
            result = tf.reduce_mean(tf.square(variable * a + b))
        return tape.gradient(result, [variable])

    def step_of_matmul():
        with tf.GradientTape() as tape:
            tape.watch(square)
            result = tf.reduce_sum(tf.nn.relu(tf.matmul(a, square)))
        return tape.gradient(result, square)

    def assign():
        assigned.assign(a)
        assigned.assign_add(b)
        assigned.assign_sub(a)
        return assigned.numpy()

    def rows():
        return list(a)

    return {
        "a + b": lambda: a + b,
        "a * 2.0": lambda: a * 2.0,
        "-a": lambda: -a,
        "a @ square": lambda: a @ square,
        "a == b": lambda: a == b,
        "a[0]": lambda: a[0, 1:],
        "a + own": lambda: a + own,
        "own * a": lambda: own * a,
        "tf.add": lambda: tf.add(a, b),
        "tf.matmul": lambda: tf.matmul(a, square),
        "tf.matmul of an array": lambda: tf.matmul(array, square),
        "tf.reduce_sum": lambda: tf.reduce_sum(a),
        "tf.reduce_mean": lambda: tf.reduce_mean(a, axis=1),
        "tf.cast": lambda: tf.cast(a, tf.int32),
        "tf.convert_to_tensor": lambda: tf.convert_to_tensor([1.0, 2.0]),
        "tf.constant": lambda: tf.constant([1.0, 2.0]),
        "tf.concat": lambda: tf.concat([a, b], 0),
        "tf.stack": lambda: tf.stack([a, b]),
        "tf.split": lambda: tf.split(square, 3),
        "tf.gather": lambda: tf.gather(a, indices),
        "tf.where": lambda: tf.where(a > b, a, b),
        "tf.transpose": lambda: tf.transpose(a),
        "tf.reshape": lambda: tf.reshape(a, [3, 2]),
        "tf.zeros": lambda: tf.zeros([2, 3]),
        "tf.ones_like": lambda: tf.ones_like(a),
        "tf.range": lambda: tf.range(3),
        "tf.one_hot": lambda: tf.one_hot(indices, 3),
        "tf.shape": lambda: tf.shape(a),
        "tf.argmax": lambda: tf.argmax(a, axis=1),
        "tf.nn.relu": lambda: tf.nn.relu(a),
        "tf.nn.softmax": lambda: tf.nn.softmax(a),
        "tf.nn.bias_add": lambda: tf.nn.bias_add(a, square[0]),
        "tf.clip_by_value": lambda: tf.clip_by_value(a, -0.5, 0.5),
        "tf.pad": lambda: tf.pad(a, [[1, 1], [0, 0]]),
        "tf.cond": lambda: tf.cond(tf.constant(True), lambda: a, lambda: b),
        "tf.sigmoid": lambda: tf.sigmoid(a),
        "tf.pow": lambda: tf.pow(a, 2.0),
        "tf.squeeze": lambda: tf.squeeze(images),
        "tf.add_n": lambda: tf.add_n([a, b]),
        "tf.norm": lambda: tf.norm(a),
        "tf.einsum": lambda: tf.einsum("ij,jk->ik", a, square),
        "tf.nn.moments": lambda: tf.nn.moments(a, [0]),
        "tf.image.resize": lambda: tf.image.resize(images, [2, 2]),
        "tf.nn.gelu": lambda: tf.nn.gelu(a),
        "tf.nest.flatten": lambda: tf.nest.flatten([a, {"b": [b]}]),
        "tf.nest.map_structure": lambda: tf.nest.map_structure(tf.identity, [a, (b,)]),
        "tf.is_tensor": lambda: tf.is_tensor(a),
        "tf.as_dtype": lambda: tf.as_dtype("float32"),
        "shape": lambda: (a.shape.as_list(), a.shape.rank, tf.TensorShape([2, None]).dims),
        "tf.Variable": lambda: tf.Variable([1.0, 2.0], trainable=False).read_value(),
        "variable.read_value": lambda: variable.read_value(),
        "variable + a": lambda: variable + a,
        "assign": assign,
        "rows": rows,
        "step": step,
        "step of matmul": step_of_matmul,
        "keras.ops.add": lambda: keras.ops.add(a, b),
        "keras.ops.multiply": lambda: keras.ops.multiply(a, 2.0),
        "keras.ops.matmul": lambda: keras.ops.matmul(a, square),
        "keras.ops.mean": lambda: keras.ops.mean(a),
        "keras.ops.sum": lambda: keras.ops.sum(a, axis=0),
        "keras.ops.exp": lambda: keras.ops.exp(a),
        "keras.ops.cast": lambda: keras.ops.cast(a, "int32"),
        "keras.ops.convert_to_tensor": lambda: keras.ops.convert_to_tensor(array),
        "keras.ops.relu": lambda: keras.ops.relu(a),
        "keras.ops.softmax": lambda: keras.ops.softmax(a),
        "keras.tree.flatten": lambda: keras.tree.flatten([a, [b]]),
        "dense": lambda: dense(square),
        "norm": lambda: norm(a),
        "pool": lambda: pool(images[0]),
        "loss": lambda: loss(a, b),
        "model": lambda: model(a),
        "keras.Variable": lambda: keras.Variable([1.0, 2.0]).numpy(),
    }


# ---------------------------------------------------------------------------------------------
# Replacing
# ---------------------------------------------------------------------------------------------


def put(holder, name, value):
    if isinstance(holder, type):
        setattr(holder, name, value)
    else:
        holder[name] = value


@contextmanager
def counted(holder, name):
    """Replace a function in the `with` block by one that counts its calls and calls the original.

    Yields a list whose only item is the number of calls.
    """
    there = holder.__dict__[name] if isinstance(holder, type) else holder[name]
    count = [0]

    @functools.wraps(upstream(there), updated=())
    def counting(*args, **kwargs):
        count[0] += 1
        return there(*args, **kwargs)

    put(holder, name, counting)
    try:
        yield count
    finally:
        put(holder, name, there)


def places(program):
    """Run a program; return the places where it looks up the functions that it calls.

    Returns
    -------
    dict of tuple to dict
        The dicts of modules, by their names and the names in them.
    """
    calls, built_in = set(), set()

    def see(frame, event, argument):
        if event == "call" and frame.f_back is not None:
            caller = frame.f_back
            calls.add((caller.f_code, id(caller.f_globals), frame.f_code))
            spaces[id(caller.f_globals)] = caller.f_globals
        elif event == "c_call":
            built_in.add((frame.f_code, id(frame.f_globals), argument))
            spaces[id(frame.f_globals)] = frame.f_globals

    spaces = {}
    sys.setprofile(see)
    try:
        program()
    finally:
        sys.setprofile(None)
    holders = {}
    for caller, space, callee in (*calls, *built_in):
        namespace = spaces[space]
        if str(namespace.get("__name__")).partition(".")[0] not in lookups.PACKAGES:
            continue
        for path in reads.paths(caller)[0]:
            place = follow(path, namespace)
            if place is None:
                continue
            holder, name = place
            value = holder[name]
            if value is callee or getattr(value, "__code__", None) is callee:
                holders[holder["__name__"], name] = holder
    return holders


def follow(path, namespace):
    """Return the module's dict and the name in it to which a path leads, or `None`."""
    holder = namespace
    if path[0]:
        module = sys.modules.get(path[0])
        if module is None:
            return None
        holder = vars(module)
    for name in path[1:-1]:
        value = holder.get(name)
        if type(value) is not types.ModuleType:
            return None
        holder = vars(value)
    known = path[-1] in holder and holder.get("__name__", "").partition(".")[0] in lookups.PACKAGES
    return (holder, path[-1]) if known else None
