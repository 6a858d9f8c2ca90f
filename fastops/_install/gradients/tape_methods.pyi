from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

METHODS: tuple[tuple[str, Callable[..., Any]], ...]

def watch(original: Callable[..., Any]) -> Replacement: ...

@final
class Gradient(Replacement):
    taken: int
    def __init__(self, original: Callable[..., Any]) -> None: ...
