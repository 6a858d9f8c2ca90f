from typing import Any, final

import tensorflow as tf

from fastops._plans.planned import Planned

@final
class RepeatedTrace:
    concrete: Any
    planned: Planned | None
    def __init__(self, concrete: Any) -> None: ...
    def run(self, tensors: list[tf.Tensor], unrecorded: bool = False) -> Any: ...
