"""Every TensorFlow op as a keyword-only function, dispatched at kernel speed."""

from fastops import _launch

if not _launch.is_due():
    from fastops._api import *  # noqa: F403
    from fastops._api import __all__  # noqa: F401
