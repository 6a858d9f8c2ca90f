from typing import Any, final

from fastops._specialize.guards.watch import Watch

class UnsharedError(Exception): ...

@final
class ObjectTemplate:
    def __init__(self, watch: Watch, names: dict[type, set[str]]) -> None: ...
    def fits(self, other: Any) -> bool: ...
