from collections.abc import Callable
from typing import Any, final

from fastops._plans.plan import Plan

@final
class MappedStage:
    def __init__(
        self,
        make_plans: Callable[[], list[Plan] | None],
        make_iterator: Callable[[list[Any]], Any],
        dtypes: list[Any],
        shapes: list[Any],
        of_rows: bool,
    ) -> None: ...

@final
class MappedFunctions:
    def __init__(self, of_rows: MappedStage | None, of_elements: MappedStage | None) -> None: ...
    @property
    def is_declined(self) -> bool: ...
    @property
    def is_planned(self) -> bool: ...
