from collections.abc import Callable
from typing import Any, final

from fastops._specialize.guards.names import Guard

@final
class Rule:
    stands_for: str
    registered: Callable[..., Any] | None
    restated: bool
    taken: int
    left: int

RULES: dict[str, Rule]

def choose(objection: Callable[[str, Any], str | None], guard: Callable[[Any], Guard]) -> None: ...
def leave_out() -> None: ...
def reset_counters() -> None: ...
