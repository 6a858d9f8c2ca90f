from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement

@final
class Rule:
    stands_for: str
    taken: int
    left: int

RULES: dict[str, Rule]

def reset_counters() -> None: ...
def gradient_function(original: Callable[..., Any]) -> Replacement: ...
