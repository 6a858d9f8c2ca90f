from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import tensorflow as tf

from fastops._dispatch import Op
from fastops._install.replacement import Replacement

@final
class Alias(Replacement):
    op: Op
    def __init__(
        self,
        original: Callable[..., Any],
        op: Op,
        params: Mapping[str, str],
        constants: Mapping[str, Any] = ...,
        tensors: Sequence[str] = (),
        dtypes: Sequence[tf.DType] = (),
        handlers: Iterable[Mapping[Any, Any]] = (),
    ) -> None: ...
