"""Caches with a limit, and budgets of failures."""

import pytest

from fastops._specialize.cache import Cache

pytestmark = pytest.mark.quick


def test_the_oldest_entry_is_dropped():
    cache = Cache(3)
    for key in "abcd":
        assert cache.add(key, key.upper()) == key.upper()
    assert (cache.get("a"), cache.get("b"), len(cache)) == (None, "B", 3)
    assert cache.values() == ["B", "C", "D"]


def test_the_first_value_of_a_key_stays():
    cache = Cache(3)
    cache.add("a", 1)
    assert cache.add("a", 2) == 1
    cache.replace("a", 2)
    assert cache.values() == [2]


def test_a_full_cache_accepts_a_known_key():
    cache = Cache(2)
    for key in "ab":
        cache.add(key, key)
    cache.replace("a", "A")
    assert cache.values() == ["A", "b"]
    cache.drop("a")
    cache.drop("a")
    assert cache.values() == ["b"]
    cache.clear()
    assert not len(cache)
