"""Make a graph op by op and save it as a model, as a binding for another language would.

The graph is built, differentiated, trained by a session, saved, loaded and run.
"""

import argparse
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

from fastops import graph, ops


def build():
    """Build a linear model, its loss, and the gradient of the loss."""
    with graph.Graph().as_default() as g:
        x = ops.placeholder(dtype=tf.float32, shape=[None, 2], name="x")
        y = ops.placeholder(dtype=tf.float32, shape=[None], name="y")
        w = ops.placeholder(dtype=tf.float32, shape=[2, 1], name="w")
        with tf.name_scope("model"):  # Python's numbers and lists become constants
            products = ops.squeeze(input=ops.mat_mul(a=x, b=w), axis=[1])
            guess = ops.add_v2(x=products, y=1.0, name="guess")
        loss = ops.mean(input=ops.squared_difference(x=guess, y=y), axis=[0], name="loss")
        (slope,) = graph.gradients(loss, [w])
        ops.identity(input=slope, name="slope")
    return g


def extend(g):
    """Add operations with control inputs, devices, kernel labels and functions."""
    halve = tf.function(lambda x: 0.5 * x, autograph=False)
    function = halve.get_concrete_function(tf.TensorSpec([], tf.float32))
    with g.as_default():
        loss = g.get_tensor_by_name("loss:0")
        with tf.control_dependencies([ops.no_op(name="first")]), tf.device("/CPU:0"):
            ops.identity(input=loss, name="placed")
        with graph.kernel_labels({"DataFormatVecPermute": "host"}):  # sets the attribute `_kernel`
            ops.data_format_vec_permute(x=[1, 8, 8, 3], name="permuted")
        (half,) = ops.partitioned_call(args=[loss], Tout=[tf.float32], f=function)
        small = graph.cond(half < 1.0, lambda: ops.neg(x=half), lambda: half)
        halvings, _ = graph.while_loop(
            lambda count, left: left > 1e-3,
            lambda count, left: (count + 1, left * 0.5),
            [tf.constant(0), tf.abs(small)],
        )
        ops.identity(input=halvings, name="halvings")


def train(session, steps):
    """Fit the weights to data made with known weights; return them and the loss."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(64, 2)).astype(np.float32)
    y = x @ np.float32([2.0, -3.0]) + np.float32(1.0)
    w = np.zeros((2, 1), np.float32)
    for _ in range(steps):
        loss, slope = session.run(["loss:0", "slope:0"], {"x:0": x, "y:0": y, "w:0": w})
        w -= np.float32(0.1) * slope
    return w, loss


def freeze(g, w):
    """Return the graph with the weights as a constant."""
    frozen = graph.Graph()
    with frozen.as_default():
        weights = tf.constant(w, name="weights")
    return graph.from_bytes(graph.to_bytes(g), graph=frozen, replace={"w": weights})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    begin = time.perf_counter()

    g = build()
    extend(g)
    kernel = g.get_operation_by_name("permuted").get_attr("_kernel").decode()
    print(len(g.get_operations()), "operations, the kernel of one is that for the", kernel)
    with graph.Session(g) as session:
        w, loss = train(session, args.steps)
        print("weights:", w.ravel().tolist(), "loss:", float(loss))
        more = session.run(
            {"halvings": "halvings:0", "others": ["placed:0", "permuted:0"], "first": "first"},
            {"loss:0": np.float32(8.0)},
        )
        print("more:", more)
        print("run by:", *sorted({run["executor"] for run in session.describe()}))

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "model.pb")
        graph.save(freeze(g, w), path)
        model = graph.load(path, inputs=["x"], outputs={"guess": "model/guess"})
    print("loaded:", model, "with", model.inputs["x"].shape, model.outputs["guess"].dtype.name)
    print("guess:", model([[1.0, 1.0], [0.0, 2.0]])["guess"].numpy().tolist())
    print(f"seconds: {time.perf_counter() - begin:.2f}")


if __name__ == "__main__":
    main()
