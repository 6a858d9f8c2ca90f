from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import tensorflow as tf

from fastops._schedule import Schedule

@final
class Plan:
    schedule: Schedule
    last_ns: int
    def __init__(
        self,
        name: str,
        attrs: Mapping[str, bytes],
        inputs: Sequence[tf.Tensor | None],
        captured: Sequence[tf.Tensor],
    ) -> None: ...
    def is_current(self) -> bool: ...
    def times(self) -> tuple[list[int], list[int]]: ...

class Runner:
    plan: Plan | None
    settled: bool
    options: list[Any]
    def allow_bare(self) -> None: ...
    def run_bare(self, inputs: list[tf.Tensor]) -> Any: ...
    def is_ready(self) -> bool: ...
    def run(self, inputs: Iterable[tf.Tensor]) -> list[tf.Tensor]: ...

@final
class Case:
    runner: Any
    def __init__(
        self,
        runner: Runner,
        takes: Iterable[int | tf.Tensor],
        pack: Callable[[list[tf.Tensor]], Any] | None,
    ) -> None: ...

class Caller:
    unseen: int
    def __init__(self, target: Callable[..., Any] | None, plans: bool, most: int) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def announce(self) -> bool: ...
    def prepare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], called: bool, result: Any
    ) -> tuple[Case, bool, Any]: ...
    def known_cases(self) -> list[Case]: ...
    def forget(self) -> None: ...

@final
class FunctionCall:
    def __init__(self, original: Callable[..., Any], planner: Callable[[Any], Caller]) -> None: ...

def observe(change: int) -> None: ...
def is_plain() -> bool: ...
