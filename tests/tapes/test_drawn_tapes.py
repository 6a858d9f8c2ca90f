"""Programs with nested tapes that are drawn at random: TensorFlow's gradients, bit by bit."""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import fastops
from fastops._autodiff import walks
from tapes.compare import Comparison
from tapes.programs import programs

pytestmark = pytest.mark.usefixtures("fresh")

EXAMPLES = int(os.environ.get("EXAMPLES", "80"))
"""The number of programs. The default takes about a minute."""


def test_drawn_programs():
    comparison = Comparison()
    before = walks.describe()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs)
    def search(program):
        comparison.check(program)

    search()
    after = walks.describe()
    for name in ("replayed", "calls", "expanded"):
        assert after[name] > before[name], f"{name}: no walk of that kind was compared"
    assert not fastops.is_installed()
