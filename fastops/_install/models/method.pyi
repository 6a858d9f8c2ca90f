from collections.abc import Callable
from typing import Any, final

from fastops._install.models.scopes import Scopes
from fastops._install.replacement import Replacement

def methods() -> list[RecordedMethod]: ...

@final
class RecordedMethod(Replacement):
    replayed: int
    reasons: dict[str, int]
    unasked: dict[type, set[str]]
    def __init__(
        self,
        original: Callable[..., Any],
        unasked: dict[type, set[str]],
        variable: type,
        scopes: Scopes,
        takes_arrays: Callable[[Any], bool] | None = None,
        takes_zips: Callable[[Any], bool] | None = None,
        names: dict[type, set[str]] | None = None,
        converted: int | None = None,
        takes_plain: bool = False,
        written: str | None = "call",
    ) -> None: ...
    def forget(self) -> None: ...
    def reset_counters(self) -> None: ...
    def describe(self, instance: Any = None) -> dict[str, Any]: ...
    def recordings(self, instance: Any) -> list[dict[str, Any]]: ...
