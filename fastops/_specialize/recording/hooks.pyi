from collections.abc import Callable
from typing import Any

def hang(
    ran: Callable[..., None],
    read: Callable[[Any], None],
    seeded: Callable[[Callable[..., Any], Any], Any],
    said: Callable[..., Any],
    customized: Callable[[], None],
    recorded: Callable[..., None],
) -> bool: ...
def take_down(ran: Callable[..., None]) -> bool: ...
def drop() -> None: ...
