from collections.abc import Callable
from types import ModuleType
from typing import Any

def attach(keras: ModuleType) -> None: ...

class LayerCall:
    taken: int
    def __init__(self, original: Callable[..., Any]) -> None: ...
