from typing import Any, final

from fastops._dispatch import Op

@final
class CallFloor:
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...

@final
class BareKernel:
    def __init__(self, op: Op, **arguments: Any) -> None: ...
    def __call__(self) -> Any: ...
