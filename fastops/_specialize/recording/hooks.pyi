from collections.abc import Callable
from typing import Any

from fastops._specialize.recording.sizes import SizeReads

def hang(
    ran: Callable[..., None],
    read: Callable[[Any], None],
    seeded: Callable[[Callable[..., Any], Any], Any],
    said: Callable[..., Any],
    customized: Callable[[], None],
    recorded: Callable[..., None],
) -> bool: ...
def watch_sizes(sizes: SizeReads) -> None: ...
def take_down(ran: Callable[..., None]) -> bool: ...
def drop() -> None: ...
