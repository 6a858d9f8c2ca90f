"""Modules of Keras that have another name in later versions."""

import sys

_BACKEND = "keras.src.backend.tensorflow."

MOVED = {
    f"{_BACKEND}{name}": f"{_BACKEND}ops.{name}"
    for name in ("core", "image", "linalg", "math", "nn", "numpy")
}
"""By the earlier name of a module, its name in later versions (of Keras: since 3.16)."""

_EARLIER = {later: earlier for earlier, later in MOVED.items()}


def earlier_name(module):
    """Return the name of a module before it moved. Tables, reasons and titles have this name."""
    return _EARLIER.get(module, module)


def running_name(name):
    """Return the name of a module, or of something in it, in the version that is imported."""
    if not name.startswith(_BACKEND):
        return name
    earlier = _BACKEND + name[len(_BACKEND) :].partition(".")[0]
    later = MOVED.get(earlier)
    if later is None or earlier in sys.modules or later not in sys.modules:
        return name
    return later + name[len(earlier) :]
