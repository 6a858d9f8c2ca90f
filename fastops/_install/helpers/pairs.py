"""Unpacking of pairs in Python, for its errors: those of compiled code have other texts."""


def unpacked(given):
    """Return the two items of an iterable."""
    first, second = given
    return first, second
