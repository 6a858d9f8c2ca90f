"""Keras's global settings, which functions of its backend read beside their arguments.

A replay is valid for the settings of its recording, and compares them by identity. Keras's setters
may set an equal object that is not identical, and programs change settings back and forth.
"""

from keras.src.backend import config

from fastops._specialize.policy import MAX_BACKEND_SETTINGS

ASKED = [(config, name) for name in ("_EPSILON", "_FLOATX", "_IMAGE_DATA_FORMAT")]
"""The settings: pairs of a module and the name of an attribute."""

_known: dict = {}
"""The settings that are kept. A program that decreases epsilon step by step has many."""


class SettingsCache:
    """Objects by the current settings. Each is made when it is first needed.

    Parameters
    ----------
    make : callable
        Makes an object.
    """

    def __init__(self, make):
        self._make = make
        self._made = {}

    def now(self):
        """Return the object for the current settings; None if they are those at import."""
        key = settle()
        if key == _FIRST:
            return None
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= MAX_BACKEND_SETTINGS:
                self._made.clear()
            made = self._made[key] = self._make()
        return made


def settle():
    """Replace settings by earlier equal objects, if there are any; return the settings."""
    settings = []
    for module, name in ASKED:
        value = getattr(module, name)
        if len(_known) >= MAX_BACKEND_SETTINGS:
            _known.clear()
        held = _known.setdefault((name, type(value), value), value)
        if held is not value:
            setattr(module, name, held)
        settings.append(held)
    return tuple(settings)


_FIRST = settle()
