"""What functions of Keras's backend ask beside their arguments and TensorFlow's context.

A replay is for the settings that it was recorded under, which it knows by their identity. Keras's
setters may put an equal object into the place, and a program may change them back and forth.
"""

from keras.src.backend import config

from fastops._dispatch import flush

ASKED = [(config, name) for name in ("_EPSILON", "_FLOATX", "_IMAGE_DATA_FORMAT")]
"""Modules, and the attributes of theirs that hold the settings."""

_held = [getattr(*place) for place in ASKED]


def settle():
    """Put back the object of a setting that is the same; after a change, forget all recordings."""
    changed = False
    for i, (module, name) in enumerate(ASKED):
        value = getattr(module, name)
        if value is _held[i]:
            continue
        if type(value) is type(_held[i]) and value == _held[i]:
            setattr(module, name, _held[i])
        else:
            _held[i] = value
            changed = True
    if changed:
        flush()
