from collections.abc import Callable
from types import CodeType
from typing import Any, final

@final
class Witness:
    codes: dict[tuple[CodeType, int], dict[str, Any]]
    objection: str | None
    paused: bool

    def __init__(self, declared: dict[CodeType, str]) -> None: ...
    def start(self) -> bool: ...
    def stop(self) -> None: ...

def unwitnessed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
