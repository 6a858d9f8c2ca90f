"""Dispatch handlers that users register for TensorFlow's public functions."""

from tensorflow.python.util import dispatch


def handlers(function):
    """Return the dicts in which users register dispatch handlers of a public function."""
    registries = []
    while function is not None:
        if (of := dispatch._TYPE_BASED_DISPATCH_SIGNATURES.get(function)) is not None:
            registries.append(of)
        function = getattr(function, "__wrapped__", None)
    return registries
