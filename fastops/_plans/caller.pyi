from collections.abc import Callable, Iterable
from typing import Any, final

import tensorflow as tf

from fastops._plans.runner import Runner

@final
class Case:
    runner: Any
    def __init__(
        self,
        runner: Runner,
        takes: Iterable[int | tf.Tensor],
        pack: Callable[[list[tf.Tensor]], Any] | None,
    ) -> None: ...

@final
class UnseenCalls:
    unseen: int

class Caller:
    tally: UnseenCalls
    def __init__(
        self, target: Callable[..., Any] | None, plans: bool, most: int, patient: bool = False
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def announce(self) -> bool: ...
    def tell_of_calls(self) -> None: ...
    def size_up(self) -> tuple[int, bool, bool, bool]: ...
    def prepare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], called: bool, result: Any
    ) -> tuple[Case, bool, Any]: ...
    def drop(self, key: bytes) -> Case | None: ...
    def known_cases(self) -> list[Case]: ...
    def forget(self) -> None: ...

def callers() -> list[Caller]: ...
