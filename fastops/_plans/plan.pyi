from collections.abc import Mapping, Sequence
from typing import final

import tensorflow as tf

from fastops._plans.steps import Schedule

@final
class Plan:
    schedule: Schedule
    last_ns: int
    seeded: bool
    def __init__(
        self,
        name: str,
        attrs: Mapping[str, bytes],
        inputs: Sequence[tf.Tensor | None],
        captured: Sequence[tf.Tensor],
        devices: Sequence[str],
        seeds: bool,
    ) -> None: ...
    def catch_up(self, runs: int) -> bool: ...
    def keep(self) -> None: ...
    def primitive_runs(self) -> int: ...
    def is_current(self) -> bool: ...
    def times(self) -> tuple[list[int], list[int]]: ...

def device_name_of(tensor: object) -> str: ...
