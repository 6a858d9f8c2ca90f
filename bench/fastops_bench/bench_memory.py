"""Growth of memory in many calls, and in many models that are made and dropped."""

import gc
import resource
from itertools import repeat
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import fastops


def resident():
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


pytestmark = pytest.mark.long


def measure(record, label, run, times, **figures):
    """Record the growth of resident memory in many runs, after a tenth as many."""
    run(times // 10)
    gc.collect()
    before = resident()
    run(times)
    gc.collect()
    record("memory", f"{times:,} {label}", growth=resident() - before, **figures)


def test_memory_of_calls(record, quick):
    add, x = fastops.ops.add_v2, tf.constant(1.5)

    def run(calls):
        for _ in repeat(None, calls):
            add(x=x, y=x)

    measure(record, "calls", run, 10_000 if quick else 10_000_000)


def perceptron():
    layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3)]
    return keras.Sequential([keras.Input((4,)), *layers])


def test_memory_of_a_model(record, quick):
    model, x = perceptron(), tf.constant(np.ones([1, 4], np.float32))

    def run(calls):
        for _ in repeat(None, calls):
            model(x)

    with fastops.accelerated():
        measure(record, "calls of a model", run, 1_000 if quick else 100_000)


def test_memory_of_models(record, quick):
    """Compare with the growth caused by stock models."""
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
    stock = resident() - before
    with fastops.accelerated():
        measure(record, "models made, called and dropped", run, times, stock=stock)
