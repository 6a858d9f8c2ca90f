"""The device of these tests (plugin/): how it is made, loaded, and asked what it has done.

Its memory cannot be touched by the host, its streams lag behind, and it ends the process where it
is given memory that is free. So whatever passes here was in order.
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

# The paths of calls that TensorFlow places on a device which is not the host.
THERE = DIRECT  # all inputs are where the kernel wants them
PLACED = "capi:device"  # the inputs are the host's: they have to be copied
INPUT = "capi:input_device"  # an input has to be copied, or the kernel is one of another kind


def library():
    """Compile the device unless that has been done, and return the path of the library."""
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
    """Load it into this process, which has no context yet; return what its tests are given.

    With a pool TensorFlow hands out parts of large blocks, as it does on GPUs. Without, each tensor
    is a block that is gone once the tensor is.
    """
    os.environ["FASTOPS_TEST_DEVICE_POOL"] = "1" if pool else "0"
    path = str(library())
    load_pluggable_device_library(path)
    return {"device": Device(path)}


class Device:
    """What the library says of all its devices."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        for name in ("live", "allocated", "last_block"):
            getattr(self._library, f"fastops_test_{name}").restype = ctypes.c_int64
        self._library.fastops_test_counts.restype = ctypes.c_char_p

    def work(self):
        """Return a Counter of what devices were given to do: copies, and kernels by their ops."""
        lines = self._library.fastops_test_counts().decode().splitlines()
        return Counter({name: int(count) for count, _, name in (x.partition(" ") for x in lines)})

    def live(self, number=0):
        """Return the number of blocks in use."""
        return self._library.fastops_test_live(number)

    def allocated(self, number=0):
        """Return the number of blocks that were ever handed out."""
        return self._library.fastops_test_allocated(number)

    def last_block(self, number=0):
        """Return the address of the block that was handed out last: the host must not follow it."""
        return self._library.fastops_test_last_block(number)

    def free(self, block, number=0):
        """Free a block as TensorFlow does."""
        self._library.fastops_test_free(ctypes.c_void_p(block), number)

    def synchronize(self):
        """Wait until all streams have done what they were given."""
        self._library.fastops_test_synchronize()

    def delay(self, microseconds):
        """Set for how long work may lag behind."""
        self._library.fastops_test_delay(microseconds)

    def mend(self):
        """Take the faults away, which nothing else does."""
        self.synchronize()
        for number in range(2):
            self._library.fastops_test_mend(number)

    @contextmanager
    def held(self):
        """Let the streams begin nothing meanwhile."""
        self._library.fastops_test_hold(1)
        try:
            yield
        finally:
            self._library.fastops_test_hold(0)

    def work_of(self, function):
        """Return what a function returns, and the work that it gave to the devices."""
        before = self.work()
        result = function()
        return result, self.work() - before


def settled(device, program):
    """Hold a program of raw ops against TensorFlow's: bits, devices, kernels, and copies.

    Returns what it returns on TensorFlow's ops, and the paths of the second run on fastops'.
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
    """Hold a program under `install` against itself without: bits and devices.

    It must not run more kernels on devices, nor make more copies: of Keras's casts some are left
    out. One that makes objects of Keras's does, while calls of theirs are tried on copies: it
    `tries`. The program makes all that it changes. Returns what it returns without, and
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
    """Return tensors on a device, of which the host has no copy."""
    with tf.device(f"{TYPE}:{number}"):
        return [tf.identity(value) for value in values]


def here(*values):
    """Return tensors on the host, of which no device has a copy."""
    with tf.device("CPU:0"):
        return [tf.identity(value) for value in values]


def places(value):
    """Return where each tensor in a structure is, and in whose memory."""
    flat = tf.nest.flatten(value, expand_composites=True)
    return [(one.device, one.backing_device) for one in flat if one is not None]
