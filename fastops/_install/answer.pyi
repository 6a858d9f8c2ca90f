from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

def registered(package: str) -> frozenset[str]: ...

@final
class Answer(Replacement):
    def __init__(self, original: Callable[..., Any], name: str) -> None: ...
