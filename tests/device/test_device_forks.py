"""Forks of a process that has loaded a device."""

from functools import partial

import plugged
import pytest
import tensorflow as tf
from apart import Fork, Process, within
from plugged import here, there
from support import assert_same, assert_same_bits, floats

import fastops
from fastops import raw_ops


@pytest.fixture
def forking():
    """Yield a process with the device and few other threads."""
    process = Process(plugged.load)
    yield process
    process.end()


@within("forking")
def test_forks(device):
    """A forked child can use only the host, as in TensorFlow; the parent keeps the device."""
    (x,), (y,) = there(floats(3)), here(floats(3))
    v = tf.Variable(floats(3))

    def on_the_host(m):
        with tf.device("CPU:0"):
            return m.Mul(x=m.AddV2(x=y, y=y), y=y)

    def gradient(m):
        with tf.device("CPU:0"), tf.GradientTape() as tape:
            tape.watch(y)
            z = m.Tanh(x=on_the_host(m))
        with tf.device("CPU:0"):
            return tape.gradient(z, y)

    def numbers(m, call):
        fastops.reset_stats()
        drawn = [call(m).numpy() for _ in range(3)]
        return drawn, fastops.stats().direct

    def on_the_device():
        v.assign_add(x)
        return raw_ops.Mul(x=raw_ops.AddV2(x=x, y=x), y=v)

    for call in (on_the_host, gradient):
        for m in (raw_ops, raw_ops, tf.raw_ops):
            call(m)
    on_the_device()
    device.synchronize()
    children = {
        (call, m): Fork(partial(numbers, m, call))
        for call in (on_the_host, gradient)
        for m in (tf.raw_ops, raw_ops)
    }
    # The parent continues while the child runs.
    want = on_the_device().numpy()
    v.assign_sub(x)
    with fastops.accelerated():
        assert_same_bits(on_the_device().numpy(), want)
    sent = {key: child.result() for key, child in children.items()}
    for call in (on_the_host, gradient):
        assert sent[call, tf.raw_ops] is not None, "without fastops, TensorFlow hangs here"
        assert sent[call, raw_ops] is not None
        assert_same(sent[call, raw_ops][0], sent[call, tf.raw_ops][0])
        assert sent[call, raw_ops][1] > 0
