"""Whether memory stays flat: over calls, and over models that are made and dropped."""

import gc
import resource
from itertools import repeat
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import fastops


def resident():
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(benchmark, label, run, times):
    """Record how much resident memory grows while something runs, after a tenth as often."""
    run(times // 10)
    gc.collect()
    before = resident()
    benchmark.group = "memory"
    benchmark.pedantic(run, args=[times], rounds=1)
    gc.collect()
    benchmark.extra_info.update(label=f"{times:,} {label}", growth=resident() - before)


def test_memory_of_calls(benchmark, quick):
    add, x = fastops.ops.add_v2, tf.constant(1.5)

    def run(calls):
        for _ in repeat(None, calls):
            add(x=x, y=x)

    measure(benchmark, "calls", run, 10_000 if quick else 10_000_000)


def perceptron():
    layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3)]
    return keras.Sequential([keras.Input((4,)), *layers])


def test_memory_of_a_model(benchmark, quick):
    model, x = perceptron(), tf.constant(np.ones([1, 4], np.float32))

    def run(calls):
        for _ in repeat(None, calls):
            model(x)

    with fastops.accelerated():
        measure(benchmark, "calls of a model", run, 1_000 if quick else 100_000)


def test_memory_of_models(benchmark, quick):
    """Beside what stock models leave behind."""
    x = tf.constant(np.ones([1, 4], np.float32))

    def run(models):
        for _ in repeat(None, models):
            keras.backend.clear_session()
            model = perceptron()
            for _ in range(4):
                model(x)

    times = 20 if quick else 200
    run(times // 10)
    gc.collect()
    before = resident()
    run(times)
    gc.collect()
    benchmark.extra_info["stock"] = resident() - before
    with fastops.accelerated():
        measure(benchmark, "models made, called and dropped", run, times)
