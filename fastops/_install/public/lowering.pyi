from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, final

import tensorflow as tf

from fastops._dispatch import Op
from fastops._install.replacement import Replacement

KINDS: dict[str, int]

@final
class Site:
    def __init__(
        self,
        op: Op,
        generated: tuple[ModuleType, str, Callable[..., Any]],
        params: Mapping[str, str],
        constants: Mapping[str, Any],
        dtypes: Sequence[tf.DType],
        names: tuple[str, ...],
    ) -> None: ...

@final
class Lowering(Replacement):
    def __init__(
        self,
        original: Callable[..., Any],
        *,
        names: tuple[str, ...],
        defaults: tuple[Any, ...],
        needs: Mapping[str, str],
        sites: Callable[[], Iterable[Site]],
        lowering: str | None = None,
        made: tuple[str, ...] = (),
        handlers: Iterable[Mapping[Any, Any]] = (),
        beyond: Callable[..., Any] | None = None,
        always: bool = False,
    ) -> None: ...
