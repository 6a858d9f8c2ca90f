from collections.abc import Callable
from typing import Any

class Replacement:
    original: Callable[..., Any]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def set_live(value: bool) -> None: ...
