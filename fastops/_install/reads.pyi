from collections.abc import Callable
from types import CodeType
from typing import Any

MISSING: object

class Binding:
    value: Any
    compared: bool
    called: bool
    foreign: bool
    piece: str | None
    known: bool
    generated: bool
    kept: bool
    def __init__(
        self,
        value: Any,
        *,
        compared: bool,
        called: bool,
        foreign: bool,
        piece: str | None,
        known: bool,
        generated: bool,
        kept: bool,
    ) -> None: ...

class Reads:
    names: list[tuple[Any, dict[str, Any]]]
    called: set[int]
    below: list[Any]
    pieces: list[str]
    generated: list[tuple[CodeType, dict[str, Any]]]
    foreign: bool

def paths(code: CodeType) -> tuple[frozenset[tuple[str, ...]], frozenset[str]]: ...
def name_in(holder: Any, name: str, classify: Callable[[Any, str, Any], Binding]) -> Binding: ...
def reads_of(
    code: CodeType,
    namespace: dict[str, Any],
    mirrored: bool,
    kinds: tuple[tuple[type, frozenset[str]], ...],
    classify: Callable[[Any, str, Any], Binding],
    keep: bool,
) -> Reads: ...
