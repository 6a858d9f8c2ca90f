from collections.abc import Callable
from typing import Any

def configure(
    generated: Callable[[str], tuple[Any, str, Any]], guard: Callable[..., Any]
) -> None: ...
