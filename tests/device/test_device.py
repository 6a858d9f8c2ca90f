"""The test device itself, without fastops, detects the mistakes for which it was made."""

import os
import signal

import numpy as np
import plugged
import pytest
import tensorflow as tf
from apart import within
from plugged import FIRST_DEVICE, SECOND_DEVICE, there
from support import failure, floats, python

BEGIN = f"""
    import ctypes, sys
    sys.path.append({os.path.dirname(__file__)!r})
    import plugged
    device = plugged.load()["device"]
    x, = plugged.there([1.0, 2.0])
    block = device.last_block()
"""


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ctypes.string_at(block, 1)", -signal.SIGSEGV),
        ("ctypes.memset(block, 0, 1)", -signal.SIGSEGV),
        ("device.free(block); device.free(block)", -signal.SIGABRT),
        ("device.free(block + 1)", -signal.SIGABRT),
        ("device.free(block); x.numpy()", -signal.SIGABRT),
        ("device.free(block); x + x", -signal.SIGABRT),
        ("print(x.numpy(), (x + x).numpy())", 0),
    ],
    ids=["read", "write", "free-twice", "free-unknown", "copy-freed", "use-freed", "in-order"],
)
def test_wrong_uses_of_device_memory_end_the_process(code, status):
    plugged.library()
    printed = python(f"{BEGIN}    {code}", status=status)
    assert printed == ("" if status else "[1. 2.] [2. 4.]\n")


@within("plugged_in")
def test_there_are_two_devices(device):
    names = [d.name for d in tf.config.list_logical_devices(plugged.TYPE)]
    assert names == [f"/device:{FIRST_DEVICE}", f"/device:{SECOND_DEVICE}"]
    assert tf.constant([1.0]).device.endswith(FIRST_DEVICE), "the device is chosen before the host"
    assert tf.constant([1]).backing_device.endswith("CPU:0"), "int32 constants stay on the host"


@within("plugged_in")
def test_streams_lag_behind(device):
    """An op returns before its result is computed; later ops see the results of earlier ones."""
    x, y = there(floats(3), floats(3, seed=1))
    device.synchronize()
    with device.held():
        total, work = device.work_of(lambda: x + y)
        assert work == {"kernel AddV2": 1}
        for _ in range(20):
            total = total * y
    want = floats(3) + floats(3, seed=1)
    for _ in range(20):
        want *= floats(3, seed=1)
    np.testing.assert_array_equal(total.numpy(), want)


@within("plugged_in")
def test_order_is_kept_across_streams_and_devices(device):
    """Copies have their own streams, which wait for the computing streams, and vice versa."""
    device.delay(300)
    (total,) = there(np.zeros(4, "f"))
    want = np.zeros(4, "f")
    for i in range(60):
        step = floats(4, seed=i)
        with tf.device(f"{plugged.TYPE}:{i % 2}"):
            total = total * 0.5 + there(step, number=(i + 1) % 2)[0]
        want = want * np.float32(0.5) + step
        if i % 7 == 0:
            np.testing.assert_array_equal(total.numpy(), want)
    np.testing.assert_array_equal(total.numpy(), want)
    device.delay(60)


@within("plugged_in")
def test_blocks_are_freed_and_used_again(device):
    (x,) = there(floats(100))
    assert (x + 1.0).shape == 100  # TensorFlow keeps the number 100 in this block
    live, allocated = device.live(), device.allocated()
    for _ in range(50):
        x = x + 1.0
    np.testing.assert_array_equal(x.numpy(), sum([np.float32(1)] * 50, floats(100)))
    assert device.live() == live
    assert device.allocated() >= allocated + 50


@within("plugged_in")
def test_faults_are_reported_later(device):
    x, y = there([1.0, np.nan], [1.0])
    with device.held():
        checked = tf.raw_ops.CheckNumerics(tensor=x, message="found")
    device.synchronize()
    for read in (checked.numpy, y.numpy):
        assert failure(read).kind is tf.errors.InternalError
    seen = failure(tf.raw_ops.Neg, x=y)
    assert seen.kind is tf.errors.InternalError
    assert "the device has a fault: found" in seen.message, seen
    device.mend()
    np.testing.assert_array_equal((-y).numpy(), [-1.0])
