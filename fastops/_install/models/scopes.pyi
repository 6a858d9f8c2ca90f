from collections.abc import Callable
from typing import Any, final

class Scopes: ...

@final
class OfKeras(Scopes):
    def __init__(self, keras: Any) -> None: ...

@final
class OfTfKeras(Scopes):
    def __init__(self, calls: Any, backend: Any, casts: Any, layer: type) -> None: ...

@final
class OfModules(Scopes):
    def __init__(self, find: Callable[[], Scopes | None]) -> None: ...
