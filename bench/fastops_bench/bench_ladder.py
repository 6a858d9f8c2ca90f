"""Each op on every layer: an empty call, the bare kernel, and so on up to TensorFlow's Python."""

import pytest

from fastops_bench.cases import CASES
from fastops_bench.common import ladder


def parameters():
    for case in CASES:
        marks = [pytest.mark.onednn] if case.onednn else []
        marks += [pytest.mark.long] if case.tag == "long" else []
        yield pytest.param(case, id=case.label, marks=marks)


@pytest.mark.parametrize("case", parameters())
def test_ladder(case, race):
    arms = ladder(case)
    if not arms:
        pytest.skip("no library of this environment has it")
    race("ladder", case.label, arms)
