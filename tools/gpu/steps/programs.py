"""Small eager programs under `fastops.install` give the bytes of stock TensorFlow.

A process runs all programs with stock TensorFlow, another one with the calls that are direct by
default, and a third with direct calls on the device. Ops are deterministic in each of them, because
otherwise the order of sums may vary, and stock's own runs would differ.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np

from tools.gpu.report import holds

from .request import Findings, synchronize

ARMS = {"stock": None, "by default": "plugins", "direct": "all"}
"""By the name of a process, `FASTOPS_DEVICES`; `None` for stock TensorFlow."""

WARM_UP, STEPS = 40, 200
WIDTH, BATCH, THREADS = 32, 32, 4


def run(request):
    seen = {arm: _in_process(request, arm) for arm in ARMS}
    results = {arm: seen[arm]["programs"] for arm in ARMS}
    paths = seen["direct"]["paths"]
    findings = Findings(figures=seen)
    findings.verdicts.append(
        holds(
            "direct: most calls take the direct path",
            paths["direct"] > sum(paths.values()) / 2,
            paths,
        )
    )
    findings.table = [["program", *(f"{arm} us" for arm in ARMS)]]
    for name, (_, stock) in results["stock"].items():
        findings.table.append([name, *(f"{results[arm][name][0]:.1f}" for arm in ARMS)])
        for arm in list(ARMS)[1:]:
            same = results[arm][name][1] == stock
            findings.verdicts.append(holds(f"{name}: bytes of stock, {arm}", same))
    return findings


def _in_process(request, arm):
    """Run all programs in a new process; return what `run_all` prints."""
    code = (
        "from tools.gpu.steps import programs, request\n"
        f"asked = request.Request('programs', {request.device!r}, '', '.', {request.quick})\n"
        f"programs.run_all(asked, {arm != 'stock'})"
    )
    environment = os.environ | {"FASTOPS_DEVICES": ARMS[arm] or "none"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=request.tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stderr, flush=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise RuntimeError(f"{arm}: exit status {done.returncode}: {last[:300]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_all(request, installed):
    """Run the programs; print their times and digests, and the paths of all calls, as JSON."""
    import keras
    import tensorflow as tf

    import fastops

    tf.config.experimental.enable_op_determinism()
    if installed:
        fastops.install()
    results = {}
    with request.scope():
        for make in PROGRAMS:
            keras.utils.set_random_seed(1)
            results[make.__name__] = _timed(*make(tf, keras), 10 if request.quick else STEPS)
    stats = fastops.stats()
    paths = {name: getattr(stats, name) for name in ("direct", "capi", "tensorflow")}
    print(json.dumps({"programs": results, "paths": paths}))


def _timed(step, values, steps):
    """Return the microseconds of a step, and a digest of the values at the end."""
    for _ in range(WARM_UP):
        step()
    synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        last = step()
    synchronize()
    taken = (time.perf_counter() - begin) / steps * 1e6
    sha = hashlib.sha256()
    for value in (last, *values):
        sha.update(np.asarray(value).tobytes())
    return taken, sha.hexdigest()


# The programs. Each returns a step, and variables that the steps change ---------------------------


def _draw(*shape):
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def _model(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((WIDTH,)),
            layers.Dense(64, activation="relu"),
            layers.Dense(64, activation="tanh"),
            layers.Dense(1),
        ]
    )


def operators(tf, _):
    x, y = tf.constant(_draw(BATCH, WIDTH)), tf.constant(_draw(BATCH, WIDTH))
    return lambda: (x + y * 2.0 - y / (x * x + 1.0)) ** 2.0, ()


def products(tf, _):
    x, w = tf.constant(_draw(BATCH, WIDTH)), tf.Variable(_draw(WIDTH, WIDTH))
    c = tf.Variable(_draw(WIDTH))
    return lambda: tf.nn.relu(tf.matmul(x, w) + c), ()


def model(tf, keras):
    net, x = _model(keras), tf.constant(_draw(1, WIDTH))
    return lambda: net(x), ()


def model_of_arrays(_, keras):
    net, row = _model(keras), _draw(1, WIDTH)
    return lambda: net(row).numpy(), ()


def _training(tf, keras):
    net, optimizer = _model(keras), keras.optimizers.Adam(1e-3)
    optimizer.build(net.trainable_variables)
    x, y = tf.constant(_draw(BATCH, WIDTH)), tf.constant(_draw(BATCH, 1))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x, training=True) - y))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        return loss

    return step, net.trainable_variables


def training_by_a_tape(tf, keras):
    return _training(tf, keras)


def training_in_a_function(tf, keras):
    step, variables = _training(tf, keras)
    return tf.function(step), variables


def train_on_batch(_, keras):
    net = _model(keras)
    net.compile("adam", "mse")
    x, y = _draw(BATCH, WIDTH), _draw(BATCH, 1)
    return lambda: net.train_on_batch(x, y), net.trainable_variables


def draws(tf, _):
    return lambda: tf.random.normal([4, 4]) + tf.random.uniform([4, 4]), ()


def dataset(tf, _):
    rows = tf.data.Dataset.from_tensor_slices(_draw(128, WIDTH))
    batches = rows.shuffle(128, seed=1).batch(BATCH)

    def step():
        total = tf.zeros([WIDTH])
        for batch in batches:
            total = total * 0.5 + tf.reduce_sum(batch, 0)
        return total

    return step, ()


def threads(tf, keras):
    net = _model(keras)
    rows = [tf.constant(_draw(1 + number, WIDTH)) for number in range(THREADS)]

    def step():
        results = [None] * THREADS

        def call(number):
            for _ in range(10):
                results[number] = tf.reduce_sum(net(rows[number]) * 2.0, axis=-1)

        started = [threading.Thread(target=call, args=(number,)) for number in range(THREADS)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        return tf.concat(results, 0)

    return step, ()


PROGRAMS = (
    operators,
    products,
    model,
    model_of_arrays,
    training_by_a_tape,
    training_in_a_function,
    train_on_batch,
    draws,
    dataset,
    threads,
)
