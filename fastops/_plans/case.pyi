from collections.abc import Callable, Iterable
from typing import Any, final

import tensorflow as tf

from fastops._plans.runner import Runner

@final
class Bound:
    runner: Any
    def __init__(
        self,
        runner: Runner,
        takes: Iterable[int | tf.Tensor],
        pack: Callable[[list[tf.Tensor]], Any] | None,
    ) -> None: ...

@final
class FunctionCase:
    key: bytes
    bound: Bound | None
    taped: Bound | None
    @property
    def runner(self) -> Any: ...
    def describe(self) -> dict[str, Any]: ...
