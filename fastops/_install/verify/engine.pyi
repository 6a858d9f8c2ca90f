from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

SECONDS: int

@final
class Subject:
    original: Callable[..., Any]
    layer: str
    name: str
    @property
    def replacement(self) -> Replacement: ...

def verify(layer: str, name: str, replacement: Any) -> None: ...
def start(mode: str, every: int) -> None: ...
def stop() -> None: ...
