"""The numbers of reasons and paths, in Cython, and their names."""

import re
from pathlib import Path

import pytest

from fastops._core import reasons

pytestmark = pytest.mark.quick

DECLARED = Path(reasons.__file__).with_suffix(".pxd").read_text()


@pytest.mark.parametrize(
    ("prefix", "names"),
    [("P", reasons.PATHS), ("R", [name for name, _ in reasons.REASONS])],
)
def test_numbers_are_in_the_order_of_names(prefix, names):
    enum = re.search(rf"cdef enum:\n(    {prefix}_\w+ = 0\n.*?)    NUM_", DECLARED, re.DOTALL)[1]
    declared = re.findall(rf"{prefix}_(\w+)", enum)
    assert [name.lower() for name in declared] == list(names)
