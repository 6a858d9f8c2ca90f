from collections.abc import Callable
from typing import Any

from fastops._install.replacement import Replacement

call: Callable[..., Any]

def follow(value: Callable[..., Any]) -> None: ...
def followed() -> list[type]: ...
def stand_in_for_init(original: Callable[..., Any]) -> Replacement: ...
