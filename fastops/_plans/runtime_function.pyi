from typing import Any, final

import tensorflow as tf

from fastops._plans.runner import Runner

@final
class RuntimeFunction:
    runner: Runner | None
    draws: str
    owned: bool
    def __call__(self, *args: tf.Tensor) -> list[tf.Tensor]: ...
    def own(self, inputs: list[tf.Tensor]) -> bool: ...

def known(atomic: Any) -> RuntimeFunction | None: ...
