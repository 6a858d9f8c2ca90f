"""Fixtures: processes that have loaded the test device, one for each test module."""

from functools import partial

import plugged
import pytest
from apart import Process


@pytest.fixture(scope="module")
def plugged_in():
    """Yield a process with the device, in which each tensor has its own block of memory."""
    process = Process(plugged.load)
    yield process
    process.end()


@pytest.fixture(scope="module")
def pooled():
    """Yield a process with the device, in which tensors share large blocks, as on GPUs."""
    process = Process(partial(plugged.load, pool=True))
    yield process
    process.end()


@pytest.fixture(scope="module")
def resetting():
    """Yield a process with the device in which tests may reset TensorFlow's context."""
    process = Process(plugged.load)
    yield process
    process.end()
