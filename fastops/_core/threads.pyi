from typing import Literal

_Path = Literal["auto", "direct", "capi", "tensorflow"]
_OnFallback = Literal["ignore", "warn", "log", "raise"]
_Threads = Literal["auto", "caller", "pool"]
_OneDnn = Literal["auto", "off"]

ON_FALLBACK: tuple[str, ...]
ONEDNN: tuple[str, ...]
THREADS: tuple[str, ...]

def thread_number() -> int: ...
def get_options(*, default: bool = False) -> dict[str, str]: ...
def set_options(
    *,
    path: _Path,
    on_fallback: _OnFallback,
    onednn: _OneDnn,
    threads: _Threads,
    default: bool = False,
) -> None: ...
