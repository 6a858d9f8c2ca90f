from typing import Any

from fastops._specialize.recording.sizes import SizeReads

class Ran:
    op_name: str
    inputs: list[Any]
    attrs: dict[str, Any]
    outputs: list[Any]
    stopped: bool
    scope: str

class Read:
    tensor: Any

class Seeded:
    op_seed: int | None
    seeds: tuple[int | None, int | None]

class Customized:
    name: str
    outputs: list[Any]
    inputs: list[Any]
    backward: Any
    stopped: bool

class Recorder:
    sizes: SizeReads | None
    events: list[Any]
    custom: bool
    said: bool
    warned: list[Any]
    builds: bool
    failed: bool
    first_id: int
    def __init__(self, sizes: SizeReads | None = None) -> None: ...
    def start(self) -> bool: ...
    def stop(self) -> None: ...
