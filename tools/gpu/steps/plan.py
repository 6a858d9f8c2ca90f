"""A perceptron's training step, as a plan of `fastops.function` and as a `tf.function`."""

import itertools

import numpy as np

from tools.gpu.report import at_least, holds, undecided

from .request import Findings, bits, put, synchronize
from .timing import in_turn

FASTER = 5.0
SIZES = (32, 32, 32, 1)
RATE = 0.05


class Perceptron:
    """A perceptron of three layers, with a training step."""

    def __init__(self, device):
        import tensorflow as tf

        random = np.random.default_rng(0)
        self._tf = tf
        with tf.device(device):
            self.weights = [
                tf.Variable(random.normal(size=shape).astype(np.float32) / 8)
                for before, after in itertools.pairwise(SIZES)
                for shape in ((before, after), (after,))
            ]

    def step(self, row, wanted):
        tf = self._tf
        with tf.GradientTape() as tape:
            value = row
            for number, (weight, bias) in enumerate(
                zip(self.weights[::2], self.weights[1::2], strict=True)
            ):
                value = tf.matmul(value, weight) + bias
                if number < len(SIZES) - 2:
                    value = tf.nn.relu(value)
            loss = tf.reduce_mean(tf.square(value - wanted))
        gradients = tape.gradient(loss, self.weights)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.assign_sub(RATE * gradient)
        return loss


def run(request):
    import tensorflow as tf

    import fastops

    random = np.random.default_rng(1)
    row = put(random.normal(size=(1, SIZES[0])).astype(np.float32), request.device)
    wanted = put(np.ones((1, 1), np.float32), request.device)
    models = {arm: Perceptron(request.device) for arm in ("plan", "function", "eager")}
    steps = {
        "plan": fastops.function(models["plan"].step),
        "function": tf.function(models["function"].step),
        "eager": models["eager"].step,
    }
    findings = Findings()
    losses = {}
    for arm, step in steps.items():
        losses[arm] = [step(row, wanted).numpy().tobytes() for _ in range(20)]
    findings.verdicts = [
        holds("20 losses: the bits are those of tf.function", losses["plan"] == losses["function"]),
        holds(
            "weights: the bits are those of tf.function",
            bits(*models["plan"].weights) == bits(*models["function"].weights),
        ),
    ]
    findings.notes += [f"the plan: {line}" for line in _who(fastops)]
    arms = {
        arm: ("step(row, wanted)", {"step": step, "row": row, "wanted": wanted})
        for arm, step in steps.items()
    }
    options = {"rounds": 5, "block": 0.002} if request.quick else {}
    timed = in_turn(arms, synchronize, **options)
    whole = in_turn(arms, synchronize, whole=True, **options)
    for text, timings in (("of the host", timed), ("until it is done", whole)):
        times = timings["function"].median / timings["plan"].median
        verdict = at_least(f"faster than tf.function, {text}", times, FASTER, " times")
        findings.verdicts.append(verdict)
    findings.figures = {
        "host": {arm: timing._asdict() for arm, timing in timed.items()},
        "whole": {arm: timing._asdict() for arm, timing in whole.items()},
    }
    findings.table = [["", "plan us", "tf.function us", "eager us"]]
    for text, timings in (("host", timed), ("until done", whole)):
        findings.table.append([text, *(f"{timings[arm].median:.1f}" for arm in steps)])
    if not any(stats.plan for stats in fastops.stats().functions.values()):
        findings.verdicts.append(undecided("the plan runs", "TensorFlow ran all calls"))
    return findings


def _who(fastops):
    """Return notes on how calls of functions ran, with the reasons of those without a plan."""
    for name, stats in fastops.stats().functions.items():
        left = f"{stats.tensorflow} by TensorFlow {stats.reasons}"
        yield f"{name}: {stats.plan} calls by plan, {left}"
