from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

def attach(keras: Any) -> None: ...
def methods() -> list[KerasMethod]: ...

@final
class KerasMethod(Replacement):
    replayed: int
    reasons: dict[str, int]
    unasked: dict[type, set[str]]
    def __init__(
        self,
        original: Callable[..., Any],
        unasked: dict[type, set[str]],
        takes_arrays: Callable[[Any], bool] | None = None,
    ) -> None: ...
    def reset_counters(self) -> None: ...
    def describe(self, instance: Any = None) -> dict[str, Any]: ...
    def recordings(self, instance: Any) -> list[dict[str, Any]]: ...
