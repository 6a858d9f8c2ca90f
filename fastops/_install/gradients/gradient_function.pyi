from collections.abc import Callable
from typing import Any

from fastops._install.replacement import Replacement

def gradient_function(original: Callable[..., Any]) -> Replacement: ...
def register(function: Callable[..., Any]) -> None: ...
