"""Each test of models begins with empty caches."""

import pytest


@pytest.fixture(autouse=True)
def _empty_caches(fresh):
    """Forget the classes of which earlier tests gave up too many objects."""
