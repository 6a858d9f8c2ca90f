from collections.abc import Callable
from types import ModuleType
from typing import Any, final

from fastops._install.replacement import Replacement

HELPERS: dict[str, str]
METHODS: dict[str, str]

@final
class Helper(Replacement):
    def __init__(self, original: Callable[..., Any], name: str) -> None: ...

def attach(keras: ModuleType) -> None: ...
