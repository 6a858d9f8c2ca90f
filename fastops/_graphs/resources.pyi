from collections.abc import Sequence
from typing import Any, final

import tensorflow as tf

@final
class SessionVariables:
    def number(self, node: Any) -> int: ...
    def handles(
        self, session: tf.compat.v1.Session, which: Sequence[int]
    ) -> tuple[tf.Tensor, ...] | None: ...
