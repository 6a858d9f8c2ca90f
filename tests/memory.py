"""What memory is in use, by the books of those who give it out.

What the kernel says is resident depends on more: the size of pages, and allocators that keep what
they have. TensorFlow's is one of these where oneDNN runs; it takes less than 4 KB from the C
library's each time, and more as a part of some megabytes.
"""

import ctypes
import gc
import sys
from typing import NamedTuple

import pytest
import tensorflow as tf
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
    """Return how many bytes the C library has given out, tensors' among them.

    Python's own objects, which it takes from pools, count where they are large.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("the C library has no mallinfo2")
    libc.mallinfo2.restype = _Statistics
    statistics = libc.mallinfo2()
    return statistics.uordblks + statistics.hblkhd


def tensors_left():
    """Return how many tensors, and shapes, the collector finds.

    TensorFlow's own tests take for a leak what they find so after a test, and not before.
    """
    gc.collect()
    return sum(isinstance(one, tf.Tensor | tf.TensorShape) for one in gc.get_objects())


class Growth(NamedTuple):
    """By how much something makes the process grow."""

    bytes: int
    """Of the C library."""

    blocks: int
    """Of Python: objects, most of them."""

    def exceeds(self, other=(0, 0), share=1.0):
        """Tell whether it is more than that share of another, and what caches come and go with."""
        return self.bytes > share * other[0] + 2**17 or self.blocks > share * other[1] + 2**10


def growth(call, count):
    """Return the `Growth` by so many calls, once the process has its size, without garbage.

    TensorFlow's cache of kernels is emptied before and after.
    """

    def in_use():
        context.context().clear_kernel_cache()
        gc.collect()
        return allocated(), sys.getallocatedblocks()

    for _ in range(count // 4 + 50):
        call()
    before = in_use()
    for _ in range(count):
        call()
    after = in_use()
    return Growth(*(now - then for now, then in zip(after, before, strict=True)))
