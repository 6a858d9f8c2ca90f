from typing import Any

class Specialization:
    key: bytes
    variants: list[Any]
    first: Any
    reason: str | None
    detail: str | None
    missed: str | None
    failures: int
    def __init__(self, key: bytes, most_failures: int, account: Any = None) -> None: ...
    def describe(self) -> dict[str, Any]: ...
