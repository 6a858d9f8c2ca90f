from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

SECONDS: int

@final
class Subject:
    replacement: Replacement
    original: Callable[..., Any]
    layer: str
    name: str

def verify(layer: str, name: str, attribute: Any) -> None: ...
def start(mode: str, every: int) -> None: ...
def stop() -> None: ...
