"""Sessions and loaded models in a process with a device that comes before the host."""

import tempfile
from pathlib import Path

import tensorflow as tf
from apart import within
from plugged import FIRST_DEVICE, here, there, unchanged
from support import assert_same, floats

import fastops
from fastops import graph

v1 = tf.compat.v1


def held(g, fetches, feeds=None, calls=4):
    """Compare runs of a session of fastops with a session of TensorFlow."""
    with v1.Session(graph=g) as theirs, graph.Session(g) as ours:
        for session in (theirs, ours):
            with g.as_default():
                session.run(v1.global_variables_initializer())
        for _ in range(calls):
            assert_same(ours.run(fetches, feeds), theirs.run(fetches, feeds))
        return ours.describe()


@within("plugged_in")
def test_sessions(device):
    """Run graphs that TensorFlow places, graphs on the host, and graphs on the device."""
    for scope in (None, "/device:CPU:0", f"/device:{FIRST_DEVICE}"):
        g = tf.Graph()
        with g.as_default(), g.device(scope):
            x = v1.placeholder(tf.float32, [None, 3])
            w = v1.get_variable("w", initializer=floats(3, 2), use_resource=True)
            y = tf.tanh(x @ w) + 1.0
            step = w.assign_sub(0.1 * tf.gradients(y, w)[0])
        held(g, [y, step], {x: floats(4, 3)})


@within("plugged_in")
def test_saved_models(device):
    class Scaled(tf.Module):
        def __init__(self):
            self.weight = tf.Variable(floats(3))

        @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
        def scaled(self, x):
            return {"y": tf.tanh(x * self.weight) - x}

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        module = Scaled()
        tf.saved_model.save(module, path, signatures=module.scaled)
        theirs = tf.saved_model.load(path).signatures["serving_default"]
        ours = graph.load(path)
        for (x,) in (there(floats(2, 3)), here(floats(2, 3))):
            want = theirs(x=x)
            for _ in range(4):
                got = ours(x=x)
                assert_same(got["y"], want["y"])
                assert got["y"].device == want["y"].device


@within("plugged_in")
def test_programs_of_sessions(device):
    def program():
        g = tf.Graph()
        with g.as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [2, 2])
            y = tf.nn.relu(x @ x) + tf.reduce_sum(x)
            return [session.run(y, {x: floats(2, 2)}) for _ in range(4)]

    unchanged(device, program)
    fastops.reset_stats()
