from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

METHODS: tuple[tuple[str, type, str, type[Replacement]], ...]

@final
class Iter(Replacement):
    def __init__(self, original: Callable[..., Any]) -> None: ...

@final
class Next(Replacement):
    def __init__(self, original: Callable[..., Any]) -> None: ...
