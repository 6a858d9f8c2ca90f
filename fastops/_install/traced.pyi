from collections.abc import Callable
from typing import Any, final

from fastops._install.replacement import Replacement
from fastops._plans.caller import Caller

@final
class FunctionCall(Replacement):
    def __init__(self, original: Callable[..., Any], planner: Callable[[Any], Caller]) -> None: ...

@final
class RuntimeCall(Replacement):
    def __init__(self, original: Callable[..., Any]) -> None: ...

def trace_call(original: Callable[..., Any]) -> Replacement: ...

@final
class PlainMethod(Replacement):
    def __init__(
        self,
        original: Callable[..., Any],
        answer: Callable[[Callable[..., Any], Any], Any],
        *,
        anywhere: bool = False,
    ) -> None: ...
