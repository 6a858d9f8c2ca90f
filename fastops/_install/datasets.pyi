from collections.abc import Callable
from typing import Any

from fastops._install.replacement import Replacement

METHODS: tuple[tuple[str, type, str, Callable[[Callable[..., Any]], Replacement]], ...]

def advance_arrays(original: Callable[..., Any]) -> Replacement: ...
