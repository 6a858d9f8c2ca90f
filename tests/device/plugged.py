"""Build, load and query the test device, whose sources are in plugin/.

The host cannot access the device's memory, its streams lag behind, and it ends the process if it
gets the address of freed memory. So a test that passes has made no such mistake.
"""

import ctypes
import fcntl
import hashlib
import os
import subprocess
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
from recorder import Recorder
from support import DIRECT, ROOT, assert_same
from tensorflow.python.framework.load_library import load_pluggable_device_library

import fastops

SOURCES = Path(__file__).parent / "plugin"

TYPE = "FASTOPS_TEST"
FIRST_DEVICE, SECOND_DEVICE = f"{TYPE}:0", f"{TYPE}:1"

# The paths of calls that TensorFlow places on a device other than the host.
THERE = DIRECT  # all inputs are in the memory that the kernel expects
PLACED = "capi:device"  # the inputs are on the host and have to be copied
# An input has to be copied, or the kernel is asynchronous or otherwise unsupported.
INPUT = "capi:input_device"


def library():
    """Return the path of the device's library; compile it first if necessary."""
    sources = sorted(SOURCES.iterdir())
    command = [
        "g++",
        *("-shared", "-fPIC", "-O1", "-w", "-DNDEBUG", "-pthread"),
        *tf.sysconfig.get_compile_flags(),
        *(str(source) for source in sources if source.suffix == ".cc"),
        *tf.sysconfig.get_link_flags(),
    ]
    digest = hashlib.sha256(repr((command, tf.version.GIT_VERSION)).encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = ROOT / "build" / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"device-{digest.hexdigest()[:16]}.so"
    with open(folder / "device.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            partly = made.with_suffix(".partly")
            subprocess.run([*command, "-o", str(partly)], check=True)
            partly.rename(made)
    return made


def load(pool=False):
    """Load the device into this process, which must have no context; return tests' arguments.

    With a pool, TensorFlow allocates tensors in large blocks, as it does on GPUs. Without a pool,
    each tensor has its own block, which is freed together with the tensor.
    """
    os.environ["FASTOPS_TEST_DEVICE_POOL"] = "1" if pool else "0"
    path = str(library())
    load_pluggable_device_library(path)
    return {"device": Device(path)}


class Device:
    """The state of all devices of the library, and functions that control them."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        for name in ("live", "allocated", "last_block"):
            getattr(self._library, f"fastops_test_{name}").restype = ctypes.c_int64
        self._library.fastops_test_counts.restype = ctypes.c_char_p

    def work(self):
        """Return a Counter of the work given to the devices: copies, and kernels by op."""
        lines = self._library.fastops_test_counts().decode().splitlines()
        return Counter({name: int(count) for count, _, name in (x.partition(" ") for x in lines)})

    def live(self, number=0):
        """Return the number of blocks in use."""
        return self._library.fastops_test_live(number)

    def allocated(self, number=0):
        """Return the number of blocks that were ever allocated."""
        return self._library.fastops_test_allocated(number)

    def last_block(self, number=0):
        """Return the address of the block that was allocated last. The host must not access it."""
        return self._library.fastops_test_last_block(number)

    def free(self, block, number=0):
        """Free a block in the way in which TensorFlow frees blocks."""
        self._library.fastops_test_free(ctypes.c_void_p(block), number)

    def synchronize(self):
        """Wait until all streams have finished their work."""
        self._library.fastops_test_synchronize()

    def delay(self, microseconds):
        """Set the longest delay between giving work to a stream and its execution."""
        self._library.fastops_test_delay(microseconds)

    def mend(self):
        """Clear the recorded faults; only this function clears them."""
        self.synchronize()
        for number in range(2):
            self._library.fastops_test_mend(number)

    @contextmanager
    def held(self):
        """Stop the streams from beginning new work in the `with` block."""
        self._library.fastops_test_hold(1)
        try:
            yield
        finally:
            self._library.fastops_test_hold(0)

    def work_of(self, function):
        """Return the result of a function, and the work that it gave to the devices."""
        before = self.work()
        result = function()
        return result, self.work() - before


def settled(device, program):
    """Compare a program of raw ops on fastops with TensorFlow: bits, devices, kernels, and copies.

    Returns the program's result with TensorFlow's ops, and the paths of its second run with
    fastops.
    """
    program(tf.raw_ops)
    want, expected = device.work_of(lambda: program(tf.raw_ops))
    for attempt in range(2):
        ops = Recorder()
        got, work = device.work_of(lambda ops=ops: program(ops))
        assert_same(got, want)
        if attempt:
            assert work == expected, f"{work}, not {expected}"
    return want, ops.paths


def unchanged(device, program, tries=False):
    """Compare the results of a program under `install` and without it: bits and devices.

    Under `install`, the program must not run more kernels on devices or make more copies; it may
    run fewer, because some of Keras's casts are skipped. A program that makes Keras objects does
    run more, because trials run calls on copies of the variables: pass `tries`. The program must
    create all objects that it changes. Returns the program's result without `install`, and
    `fastops.stats()` of its last run under `install`.
    """
    for _ in range(2):
        want = program()
    want, expected = device.work_of(program)
    with fastops.accelerated():
        for _ in range(4):
            assert_same(program(), want)
        fastops.reset_stats()
        got, work = device.work_of(program)
        seen = fastops.stats()
    assert_same(got, want)
    assert tries or work <= expected, f"{work - expected} more than {expected}"
    return want, seen


def there(*values, number=0):
    """Return tensors that are on a device, with no copy on the host."""
    with tf.device(f"{TYPE}:{number}"):
        return [tf.identity(value) for value in values]


def here(*values):
    """Return tensors that are on the host, with no copy on a device."""
    with tf.device("CPU:0"):
        return [tf.identity(value) for value in values]


def places(value):
    """Return the device of each tensor in a structure, and the device whose memory it uses."""
    flat = tf.nest.flatten(value, expand_composites=True)
    return [(value.device, value.backing_device) for value in flat if value is not None]
