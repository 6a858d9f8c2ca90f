"""Classes of users that are declared to be replayable."""

import functools
import types
import weakref

from fastops._specialize.libraries import is_own

_classes: weakref.WeakSet = weakref.WeakSet()
changes = [0]
"""How many declarations there were: a list with one number."""


def _keras():
    import keras

    return keras


def replayable(kind):
    """Declare that calls of a layer or model class depend on nothing but what fastops compares.

    Calls of instances are recorded and replayed under `fastops.install`, as those of Keras's own
    classes are. A decorator of classes.

    Parameters
    ----------
    kind : type
        A subclass of `keras.Layer` or `keras.Model`. Its own subclasses are not declared with it.

    Returns
    -------
    type
        The same class.

    Raises
    ------
    TypeError
        If it is no such class.

    Notes
    -----
    What you declare is that ``call``, with all that it calls in your modules, is *pure*: it decides
    by its arguments, by the attributes of the layer and by global variables alone, and does nothing
    but compute tensors and assign to variables. A decision by the time, by a file, or by an object
    that changes behind an attribute of a foreign class would be taken once and for all.

    Compared in each call are the arguments; whatever the layer holds, directly and indirectly; the
    globals, and the attributes of modules, classes and functions, that the code can read; and
    Keras's settings. Where any of them has changed, your Python runs. A recording is refused, with
    the path, where something cannot be compared: an iterator, a large array, an object written in
    C. It is refused as well if the call changed an attribute, kept an argument, printed, asked for
    the time or for Python's or NumPy's random numbers, ran code of modules other than yours,
    Keras's and TensorFlow's, or if two calls in a row did not run the same ops. `fastops.explain`
    tells why.

    Examples
    --------
    >>> import fastops, keras
    >>> @fastops.keras.replayable
    ... class Scale(keras.Layer):
    ...     def call(self, x):
    ...         return x * 2.0
    """
    if not (isinstance(kind, type) and issubclass(kind, _keras().Layer)):
        raise TypeError(f"replayable takes a subclass of keras.Layer, not {kind!r}")
    _classes.add(kind)
    codes_of.cache_clear()
    changes[0] += 1
    return kind


def replay(layer):
    """Declare the same of the class of a layer or model, and of the users' layers in it.

    Parameters
    ----------
    layer : keras.Layer
        The layer or model. Classes of layers that are added to it later are not declared.

    Returns
    -------
    keras.Layer
        The same object.

    Raises
    ------
    TypeError
        If it is no layer.

    See Also
    --------
    replayable : for a class; it says what is declared.

    Examples
    --------
    >>> import fastops, keras
    >>> class Model(keras.Model):
    ...     def call(self, x):
    ...         return x + 1.0
    >>> model = fastops.keras.replay(Model())
    """
    if not isinstance(layer, _keras().Layer):
        raise TypeError(f"replay takes a layer, not {type(layer).__name__}")
    for one in layer._flatten_layers():
        if not is_own(type(one).__module__):
            replayable(type(one))
    return layer


def is_declared(kind):
    """Tell whether calls of the instances of a class may be replayed because of that."""
    return kind in _classes


def codes():
    """Return the code of all methods that somebody has declared pure, with the module of each."""
    found = {}
    for kind in list(_classes):
        found.update(codes_of(kind))
    return found


@functools.lru_cache(maxsize=1024)
def codes_of(kind):
    """Return the code of the methods of a class, but for what it has of Keras, with its module."""
    found = {}
    for base in kind.__mro__:
        if base is object or is_own(base.__module__):
            continue
        for value in vars(base).values():
            for part in (value, *(getattr(value, name, None) for name in ("__func__", "fget"))):
                if isinstance(part, types.FunctionType):
                    found[part.__code__] = part.__globals__.get("__name__")
    return found
