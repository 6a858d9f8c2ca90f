from collections.abc import Callable
from typing import Any, final

@final
class MappedFunctions:
    declined: bool
    def __init__(
        self, make: Callable[[list[Any]], Any], dtypes: list[Any], shapes: list[Any]
    ) -> None: ...
