from types import CodeType
from typing import Any, final

from fastops._specialize.recording.recorder import Recorder
from fastops._specialize.recording.witness import Witness

@final
class Record:
    has_turn: bool
    is_profiled: bool
    started: bool
    recorder: Recorder
    witness: Witness | None
    def __enter__(self) -> Record: ...
    def __exit__(self, *error: Any) -> bool: ...
    def start(self, declared: dict[CodeType, str]) -> int: ...
    def stop(self) -> int: ...
