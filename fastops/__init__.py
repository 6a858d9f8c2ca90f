"""Every TensorFlow op as a keyword-only function, dispatched at kernel speed."""

from fastops._shell import launch

if not launch.is_due():
    from fastops._api import *  # noqa: F403
    from fastops._api import __all__  # noqa: F401


def __getattr__(name):
    if name == "backend":  # imported on first use, because the import takes long
        import fastops.backend

        return fastops.backend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
