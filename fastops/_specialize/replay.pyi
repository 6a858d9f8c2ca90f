from typing import Any, final

@final
class Replay:
    variables: tuple[Any, ...]
    def op_names(self) -> list[str]: ...
    def describe(self) -> dict[str, Any]: ...
