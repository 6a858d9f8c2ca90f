from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

METHODS: dict[str, Callable[[Callable[..., Any]], Replacement]]

@final
class VariableRead(Replacement):
    def __init__(self, original: Callable[..., Any], kind: int) -> None: ...

@final
class Assign(Replacement):
    def __init__(self, original: Callable[..., Any], op_name: str) -> None: ...
