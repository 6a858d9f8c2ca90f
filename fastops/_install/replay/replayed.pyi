from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

@final
class Replayed(Replacement):
    passed: Any
    settings: Any
    def __init__(
        self,
        original: Callable[..., Any],
        passed: Callable[[str], Any],
        handlers: Any = (),
        settings: Any = (),
        always: bool = False,
        arrays: Any = (),
        frees_sizes: bool = False,
    ) -> None: ...
    def describe(self) -> dict[str, Any]: ...
    def recordings(self) -> list[dict[str, Any]]: ...
