"""User classes that are declared to be replayable."""

import functools
import sys
import types
import weakref

import tensorflow as tf

from fastops._specialize.libraries import is_own
from fastops._specialize.policy import MAX_CODES

_classes: weakref.WeakSet = weakref.WeakSet()
changes = [0]
"""A list with one number: how many declarations there were."""


def _keras():
    import keras

    return keras


def _layers():
    """Return the classes of layers: that of Keras, and that of tf_keras if it is imported."""
    older = sys.modules.get("tf_keras")
    kind = _keras().Layer
    return (kind,) if older is None else (kind, older.layers.Layer)


def _is_replayable(kind):
    if not isinstance(kind, type):
        return False
    is_called = issubclass(kind, tf.Module) and any(
        "__call__" in vars(base) for base in kind.__mro__
    )
    return is_called or issubclass(kind, _layers())


def replayable(kind):
    """Declare that calls of a layer, model or module depend only on state that fastops compares.

    Under `fastops.install`, calls of instances are then recorded and replayed like calls of Keras's
    own layers. This is a class decorator.

    Parameters
    ----------
    kind : type
        A subclass of `keras.Layer`, `keras.Model`, `tf_keras.layers.Layer`, `tf_keras.Model`, or
        `tf.Module` with a method ``__call__``. Its own subclasses are not declared with it.

    Returns
    -------
    type
        The same class.

    Raises
    ------
    TypeError
        If `kind` is not a subclass of one of these classes.

    Notes
    -----
    You declare that ``call`` or ``__call__``, and all functions that it calls in your modules, are
    *pure*. A pure function depends only on its arguments, the attributes of the layer and global
    variables, and it only computes tensors and assigns to variables. If the code reads the time, a
    file, or an object that changes inside another library's class, replays keep using the value
    from the recording.

    Each call compares the arguments; all objects that the layer holds, directly and indirectly; the
    globals, and the attributes of modules, classes and functions, that the code can read; and
    Keras's settings. If any of them has changed, your Python code runs.

    No recording is made if something cannot be compared, such as an iterator, a large array, or an
    object written in C; the reason names its path. Nor is one made if the call changed an
    attribute, kept an argument, printed, read the time, drew random numbers from Python or NumPy,
    or ran code of modules other than yours, Keras's and TensorFlow's, or if two calls in a row ran
    different ops. `fastops.explain` reports the reason.

    Examples
    --------
    >>> import fastops, keras
    >>> @fastops.keras.replayable
    ... class Scale(keras.Layer):
    ...     def call(self, x):
    ...         return x * 2.0
    """
    if not _is_replayable(kind):
        raise TypeError(f"replayable takes a subclass of keras.Layer or tf.Module, not {kind!r}")
    _classes.add(kind)
    codes_of.cache_clear()
    changes[0] += 1
    return kind


def replay(layer):
    """Declare the class of a layer or model, and the user classes of the layers in it, replayable.

    Parameters
    ----------
    layer : keras.Layer or tf_keras.layers.Layer
        The layer or model. Classes of layers that you add to it later are not declared.

    Returns
    -------
    keras.Layer or tf_keras.layers.Layer
        The same object.

    Raises
    ------
    TypeError
        If `layer` is not a layer.

    See Also
    --------
    replayable : declares a class, and documents the conditions.

    Examples
    --------
    >>> import fastops, keras
    >>> class Model(keras.Model):
    ...     def call(self, x):
    ...         return x + 1.0
    >>> model = fastops.keras.replay(Model())
    """
    if not isinstance(layer, _layers()):
        raise TypeError(f"replay takes a layer, not {type(layer).__name__}")
    for part in layer._flatten_layers():
        if not is_own(type(part).__module__):
            replayable(type(part))
    return layer


def is_declared(kind):
    """Tell whether a class is declared replayable."""
    return kind in _classes


def codes():
    """Return the code of all methods of declared classes, with the module of each."""
    modules = {}
    for kind in list(_classes):
        modules.update(codes_of(kind))
    return modules


@functools.lru_cache(maxsize=MAX_CODES)
def codes_of(kind):
    """Return the code of the methods of a class, without those of Keras, with its module."""
    modules = {}
    for base in kind.__mro__:
        if base is object or is_own(base.__module__):
            continue
        for value in vars(base).values():
            for part in (value, *(getattr(value, name, None) for name in ("__func__", "fget"))):
                if isinstance(part, types.FunctionType):
                    modules[part.__code__] = part.__globals__.get("__name__")
    return modules
