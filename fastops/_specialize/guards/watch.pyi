from types import CodeType
from typing import Any, final

from fastops._specialize.guards.condition import Condition
from fastops._specialize.guards.names import Guard
from fastops._specialize.guards.places import Places

@final
class Watch(Condition):
    def __init__(self, places: Places) -> None: ...
    def failure(self) -> str: ...
    def ignored(self) -> list[str]: ...
    def named(self, compared: bool) -> list[str]: ...

@final
class Globals(Condition):
    def __init__(
        self,
        codes: dict[tuple[CodeType, int], dict[str, Any]],
        guard: Guard,
        held: list[tuple[Any, str]] = ...,
    ) -> None: ...
    def contents(self) -> dict[str, Any]: ...
    def titles(self) -> list[str]: ...
