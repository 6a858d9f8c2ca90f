from collections.abc import Callable
from typing import Any

from fastops._install.replacement import Replacement

def construct(original: Callable[..., Any]) -> Replacement: ...
