from collections.abc import Callable
from typing import Any

METHODS: tuple[tuple[str, Callable[..., Any]], ...]
