from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

import tensorflow as tf

from fastops._dispatch import Op
from fastops._install.replacement import Replacement

@final
class FastPathExecute(Replacement):
    def __init__(self, original: Callable[..., Any], find: Callable[[str], Op | None]) -> None: ...

@final
class Generated(Replacement):
    op: Op
    def __init__(
        self, original: Callable[..., Any], op: Op, *, keyword_only: bool = False
    ) -> None: ...

@final
class Operator(Replacement):
    def __init__(
        self,
        original: Callable[..., Any],
        ops: Mapping[tf.DType, Op],
        *,
        arity: int = 2,
        attrs: Mapping[str, Any] | None = None,
        floats: Iterable[tf.DType] = (),
        ints: Iterable[tf.DType] = (),
        bools: Iterable[tf.DType] = (),
        reflected: bool = False,
        compares: bool = False,
        of_variables: bool = False,
    ) -> None: ...
