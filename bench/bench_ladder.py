"""Each op on every layer: from an empty call and the bare kernel up to TensorFlow's Python."""

import pytest
from cases import CASES
from common import ladder


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.label, marks=pytest.mark.onednn if case.onednn else ())
        for case in CASES
    ],
)
def test_ladder(case, race):
    arms = ladder(case)
    if not arms:
        pytest.skip("no library of this environment has it")
    race("ladder", case.label, arms)
