from collections.abc import Callable, Collection, Sequence
from typing import Any

def referring_to(functions: Collection[int]) -> dict[int, list[Any]]: ...
def patch(
    placed: list[Any],
    points: Sequence[Any],
    original: Any,
    replacement: Any,
    announce: Callable[[Any], Any] | None,
) -> None: ...
def restore(placed: list[Any], begin: int) -> None: ...
