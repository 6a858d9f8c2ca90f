"""Run a program as TensorFlow runs it and under `fastops.install`, and compare the bytes."""

from hypothesis import HealthCheck, Phase, given, seed, settings
from support import difference

import fastops
from fastops._autodiff import walks
from tapes.programs import World, programs

CALLS = 14
"""How often fastops runs a program. The first calls record layers, the next ones the walk."""

WHOLE_CALLS = 9
"""How many of these may replay walks. The walks of later calls replay gradient functions only."""


class Comparison:
    """Compares programs. All use the same variables and layers."""

    def __init__(self):
        self.world = World()
        self.programs = 0

    def search(self, examples, number):
        """Draw and check programs, always the same ones for a number; raise for the least one."""

        @seed(number)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(programs)
        def search(program):
            self.check(program)

        search()

    def check(self, program):
        """Raise `AssertionError` if fastops computes anything else, or raises another error."""
        self.programs += 1
        want = self._outcome(program)
        with fastops.accelerated():
            for call in range(CALLS):
                if call >= WHOLE_CALLS:
                    walks.forget()
                got = self._outcome(program)
                found = difference(want, got)
                assert found is None, f"call {call}: {found}"

    def _outcome(self, program):
        try:
            return self.world.run(program)
        except Exception as error:
            return [type(error).__name__, str(error)]
