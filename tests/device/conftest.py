"""Processes that have loaded the device, one for each module of tests."""

from functools import partial

import plugged
import pytest
from apart import Process


@pytest.fixture(scope="module")
def plugged_in():
    """Give a process that has loaded the device: each tensor there is a block of its own."""
    process = Process(plugged.load)
    yield process
    process.end()


@pytest.fixture(scope="module")
def pooled():
    """Likewise, but TensorFlow hands out parts of large blocks, as on GPUs."""
    process = Process(partial(plugged.load, pool=True))
    yield process
    process.end()


@pytest.fixture(scope="module")
def resetting():
    """Give a process in which one context follows another."""
    process = Process(plugged.load)
    yield process
    process.end()
