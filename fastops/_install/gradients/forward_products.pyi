from collections.abc import Callable
from typing import Any

from fastops._install.answer import Answer

def announce(function: Callable[..., Any]) -> None: ...
def make(original: Callable[..., Any]) -> Answer: ...
