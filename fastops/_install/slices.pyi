from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

METHODS: dict[str, Callable[[Callable[..., Any]], Replacement]]

@final
class VariableSlice(Replacement):
    def __init__(self, original: Callable[..., Any]) -> None: ...

@final
class AssignSlice(Replacement):
    def __init__(self, original: Callable[..., Any]) -> None: ...
