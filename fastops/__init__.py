"""Every TensorFlow op as a keyword-only function, dispatched at kernel speed."""

from fastops._shell import launch

if not launch.is_due():
    from fastops._api import *  # noqa: F403
    from fastops._api import __all__  # noqa: F401
