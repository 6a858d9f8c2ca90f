"""Whole programs of the kinds that users write: results are the same, and models are replayed."""

import pytest
from install.models.keras_programs import compare, probe
from install.models.user_programs import PROGRAMS

CALLS = 6


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    def program():
        made = PROGRAMS[name]()
        for subject in made.subjects:
            probe(*subject)
        for _ in range(CALLS):
            yield made.call()
        for _ in range(CALLS):
            yield made.step()
        yield made.call()

    compare(program)
