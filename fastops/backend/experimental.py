"""Which generators Keras's layers are to draw from: a setting, kept for programs that set it.

The functions of `fastops.backend` do not ask for it: they draw by seeds of NumPy's generator.
"""

from fastops._backend.catalogue import unique

__all__ = [
    "disable_tf_random_generator",
    "enable_tf_random_generator",
    "is_tf_random_generator_enabled",
]

_enabled = [False]


@unique("a setting that nothing here asks for", keras="keras.random.SeedGenerator")
def is_tf_random_generator_enabled():
    """Tell what was set.

    Returns
    -------
    bool

    Examples
    --------
    >>> from fastops import backend
    >>> backend.experimental.is_tf_random_generator_enabled()
    False
    """
    return _enabled[0]


@unique("a setting that nothing here asks for", keras="keras.random.SeedGenerator")
def enable_tf_random_generator():
    """Set that `tf.random.Generator` is to be drawn from.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.experimental.enable_tf_random_generator()
    >>> backend.experimental.disable_tf_random_generator()
    """
    _enabled[0] = True


@unique("a setting that nothing here asks for", keras="keras.random.SeedGenerator")
def disable_tf_random_generator():
    """Set that ops with a state are to be drawn from.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.experimental.disable_tf_random_generator()
    """
    _enabled[0] = False
