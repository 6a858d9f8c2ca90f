from types import CodeType
from typing import Any, final

from fastops._specialize.recording.recorder import Recorder
from fastops._specialize.recording.witness import Witness

@final
class Record:
    recorder: Recorder
    witness: Witness | None
    started: bool
    def __init__(self, declared: dict[CodeType, str]) -> None: ...
    def __enter__(self) -> Record: ...
    def __exit__(self, *error: Any) -> bool: ...
