from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import tensorflow as tf

from fastops._schedule import Schedule

PASS: object

class KernelError(Exception): ...

@final
class Plan:
    schedule: Schedule
    last_ns: int
    def __init__(
        self, name: str, attrs: Mapping[str, bytes], inputs: Sequence[tf.Tensor]
    ) -> None: ...
    def is_current(self) -> bool: ...
    def run(self, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor] | None: ...

@final
class Entry:
    plan: Plan
    takes: tuple[int, ...]
    captured: tuple[tf.Tensor, ...]
    pack: Callable[[list[tf.Tensor]], Any]
    def __init__(
        self,
        plan: Plan,
        takes: tuple[int, ...],
        captured: tuple[tf.Tensor, ...],
        pack: Callable[[list[tf.Tensor]], Any],
    ) -> None: ...
    def run(self, args: tuple[Any, ...]) -> Any: ...

def is_plain() -> bool: ...
def signature_of(args: tuple[Any, ...]) -> Any: ...
