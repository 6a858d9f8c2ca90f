"""Classify one handwritten digit at a time with a saved network, and measure the latency.

A small network is trained on scikit-learn's digits, except for every fifth one, and saved. It is
loaded by `tf.saved_model.load` and by `fastops.graph.load`, and both models run in turn, a block of
images each. If a score differs by a bit, the exit status is 1.
"""

import argparse
import itertools
import operator
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.datasets import load_digits

import fastops

HIDDEN = 32
STEPS = 300
RATE = 0.5
BLOCK = 40
WARM_UP = 20
HELD_OUT = slice(None, None, 5)


class Network(tf.Module):
    """Two dense layers, from the pixels of images to the scores of the ten digits."""

    def __init__(self, seed):
        super().__init__()
        random = np.random.default_rng(seed)

        def layer(rows, columns):
            weights = random.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)
            return [tf.Variable(weights), tf.Variable(tf.zeros([columns]))]

        self.layers = layer(64, HIDDEN) + layer(HIDDEN, 10)

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32)])
    def scores(self, image):
        w1, b1, w2, b2 = self.layers
        return {"scores": tf.nn.relu(image @ w1 + b1) @ w2 + b2}

    @tf.function
    def learn(self, images, digits):
        """Make one step of gradient descent."""
        with tf.GradientTape() as tape:
            scores = self.scores(images)["scores"]
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(digits, scores)
            loss = tf.reduce_mean(loss)
        for variable, gradient in zip(self.layers, tape.gradient(loss, self.layers), strict=True):
            variable.assign_sub(RATE * gradient)


def save(path, images, digits, seed):
    """Train a network and save it."""
    network = Network(seed)
    learnt = np.ones(len(images), bool)
    learnt[HELD_OUT] = False
    images, digits = tf.constant(images[learnt]), tf.constant(digits[learnt])
    for _ in range(STEPS):
        network.learn(images, digits)
    tf.saved_model.save(network, path, signatures=network.scores)


@dataclass
class Server:
    """A loaded network and its measurements.

    Attributes
    ----------
    name : str
        The name of the library that loaded it.
    model : callable
        Computes the scores of an image.
    times : list of int
        The times of calls, from array to array, in nanoseconds.
    scores : list of numpy.ndarray
        The results.
    """

    name: str
    model: Callable
    times: list = field(default_factory=list)
    scores: list = field(default_factory=list)

    def ask(self, images):
        model = self.model
        for image in images:
            begin = perf_counter_ns()
            scores = model(image=image)["scores"].numpy()
            self.times.append(perf_counter_ns() - begin)
            self.scores.append(scores)

    def right(self, digits):
        """Tell for each image whether its digit has the highest score."""
        return np.concatenate(self.scores).argmax(axis=1) == digits


def bits(arrays):
    return [array.tobytes() for array in arrays]


def table(servers, digits):
    """Return a table of the figures, with a row for each server."""
    result = Table(title=f"{len(digits):,} handwritten digits, one at a time")
    result.add_column("loaded by", no_wrap=True)
    for column in ("accuracy", "p50 us", "p90 us", "p99 us", "worst us", "a second"):
        result.add_column(column, justify="right")
    for server in servers:
        result.add_row(
            server.name,
            f"{server.right(digits).mean():.1%}",
            *(f"{time / 1e3:.1f}" for time in np.percentile(server.times, [50, 90, 99, 100])),
            f"{len(server.times) / sum(server.times) * 1e9:,.0f}",
        )
    return result


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=1797, help="how many images to classify")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the initial weights")
    args = parser.parse_args(arguments)
    if not 1 <= args.images <= 1797:
        parser.error("--images: there are 1 to 1797")
    return args


def main(arguments=None):
    args = parse(arguments)
    pixels, digits = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32)
    with tempfile.TemporaryDirectory() as path:
        save(path, pixels, digits, args.seed)
        loaded = tf.saved_model.load(path)
        planned = fastops.graph.load(path)
    stock = Server("tf.saved_model", loaded.signatures["serving_default"])
    fast = Server("fastops.graph", planned)
    images, digits = pixels[: args.images, np.newaxis], digits[: args.images]
    for server in (stock, fast):
        Server("warm-up", server.model).ask(images[:1].repeat(WARM_UP, axis=0))

    # The progress bar is drawn between the blocks, because a thread that draws it would disturb
    # them.
    with Progress(console=Console(stderr=True), auto_refresh=False) as progress:
        starts = progress.track(range(0, len(images), BLOCK), description="blocks of images")
        orders = itertools.cycle([(stock, fast), (fast, stock)])
        for start, servers in zip(starts, orders, strict=False):
            for server in servers:
                server.ask(images[start : start + BLOCK])

    console = Console()
    console.print(table((stock, fast), digits))
    unseen = fast.right(digits)[HELD_OUT]
    console.print(f"of {len(unseen)} that it has not learnt from: {unseen.mean():.1%} right")
    run = planned.describe()
    is_planned = run["executor"] == "plan"
    why = f"a plan of {run['nodes']} nodes" if is_planned else f"TensorFlow: {run['reason']}"
    console.print(f"fastops.graph: {why}")
    differences = sum(map(operator.ne, bits(stock.scores), bits(fast.scores)))
    verdict = f"{differences} DIFFER" if differences else "bit-identical"
    console.print(f"scores of {len(digits):,} images: {verdict}")
    return 0 if is_planned and not differences else 1


if __name__ == "__main__":
    sys.exit(main())
