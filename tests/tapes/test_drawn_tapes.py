"""Programs with nested tapes that are drawn at random: TensorFlow's gradients, bit by bit."""

import os

import pytest

import fastops
from fastops._autodiff import op_gradients, walks
from tapes.compare import Comparison

pytestmark = pytest.mark.usefixtures("fresh")

EXAMPLES = int(os.environ.get("EXAMPLES", "80"))
"""The number of programs. The default takes about a minute."""


def test_drawn_programs():
    functions, before = op_gradients.describe(), walks.describe()
    Comparison().search(EXAMPLES, 0)
    after = walks.describe()
    for name in ("replayed", "calls", "expanded"):
        assert after[name] > before[name], f"{name}: no walk of that kind was compared"
    assert op_gradients.describe()["replayed"] > functions["replayed"]
    assert not fastops.is_installed()
