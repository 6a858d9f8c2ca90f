"""Measure memory in use, by the counts of its allocators.

Resident memory is not used, because it depends on the size of pages and on allocators that keep
freed memory. With oneDNN, TensorFlow's allocator keeps memory: it takes less than 4 KB from the C
library each time, and larger blocks as parts of some megabytes.
"""

import ctypes
import gc
import sys
from typing import NamedTuple

import pytest
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context


class _Statistics(ctypes.Structure):
    """The ``struct mallinfo2`` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated():
    """Return how many bytes the C library has allocated, including those of tensors.

    Small Python objects are in Python's own pools and do not count; large ones do.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("the C library has no mallinfo2")
    libc.mallinfo2.restype = _Statistics
    statistics = libc.mallinfo2()
    return statistics.uordblks + statistics.hblkhd


def tensors_left():
    """Return how many tensors and shapes the garbage collector tracks.

    TensorFlow's own tests report those that are left after a test as leaks.
    """
    gc.collect()
    return sum(isinstance(value, tf.Tensor | tf.TensorShape) for value in gc.get_objects())


class Growth(NamedTuple):
    """The growth of the process caused by calls."""

    bytes: int
    """Bytes allocated by the C library."""

    blocks: int
    """Blocks allocated by Python, mostly objects."""

    def exceeds(self, other=(0, 0), share=1.0):
        """Tell whether growth exceeds a share of another one, plus a tolerance for caches."""
        return self.bytes > share * other[0] + 2**17 or self.blocks > share * other[1] + 2**10


def growth(call, count):
    """Return the `Growth` caused by `count` calls after a warm-up, without garbage.

    TensorFlow's caches of kernels and of scalars are cleared before and after. Since TensorFlow
    2.22, the second one also clears itself now and then.
    """

    def in_use():
        context.context().clear_kernel_cache()
        pywrap_tfe.TFE_ClearScalarCache()
        gc.collect()
        return allocated(), sys.getallocatedblocks()

    for _ in range(count // 4 + 50):
        call()
    before = in_use()
    for _ in range(count):
        call()
    after = in_use()
    return Growth(*(now - then for now, then in zip(after, before, strict=True)))
