from typing import Any, final

class Scopes: ...

@final
class OfKeras(Scopes):
    def __init__(self, keras: Any) -> None: ...
