"""Keras's fit under `fastops.install` trains the same weights as stock."""

import time

import numpy as np

from tools.gpu.report import holds, undecided

from .request import Findings, bits


def run(request):
    import tensorflow as tf

    # Otherwise the order of sums may vary, and stock's own runs would differ.
    tf.config.experimental.enable_op_determinism()
    findings = Findings()
    findings.table = [["model", "stock s", "fastops s"]]
    models = {"dense": dense}
    if request.has("libcudnn"):
        models["convolutional"] = convolutional
    else:
        findings.verdicts.append(undecided("convolutional", "libcudnn is empty so far"))
    for name, make in models.items():
        hold(request, findings, name, make)
    return findings


def hold(request, findings, name, make):
    """Train a model twice with stock and once with fastops, from the same initial weights."""
    import fastops

    first, _ = train(request, make)
    again, stock = train(request, make)
    with fastops.accelerated():
        fastops.reset_stats()
        ours, seconds = train(request, make)
        stats = fastops.stats()
    findings.figures[name] = {
        "stock": stock,
        "fastops": seconds,
        "paths": {"direct": stats.direct, "capi": stats.capi, "tensorflow": stats.tensorflow},
    }
    findings.table.append([name, f"{stock:.2f}", f"{seconds:.2f}"])
    if first != again:
        findings.verdicts.append(undecided(f"{name}: weights of stock", "stock's own runs differ"))
    else:
        findings.verdicts.append(
            holds(f"{name}: weights and losses of stock, bit for bit", ours == first)
        )


def train(request, make):
    """Train a model from a seed; return the bits of its weights and losses, and the seconds."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    images = random.normal(size=(256 if request.quick else 2048, 8, 8, 1)).astype(np.float32)
    labels = random.integers(0, 10, len(images))
    with tf.device(request.device):
        model = make(keras)
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        begin = time.perf_counter()
        history = model.fit(images, labels, batch_size=64, epochs=2, verbose=0)
        seconds = time.perf_counter() - begin
    losses = np.float64(history.history["loss"]).tobytes()
    return bits(*(weight.value for weight in model.weights)) + losses, seconds


def dense(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.2, seed=1),
            layers.Dense(10),
        ]
    )


def convolutional(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Conv2D(16, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
