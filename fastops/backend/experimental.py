"""A setting of Keras: which generators its layers draw from. It is kept for programs that set it.

The functions of `fastops.backend` ignore it: they draw with seeds from NumPy's generator.
"""

from fastops._backend.catalogue import unique

__all__ = [
    "disable_tf_random_generator",
    "enable_tf_random_generator",
    "is_tf_random_generator_enabled",
]

_enabled = [False]


@unique("a setting that fastops does not read", keras="keras.random.SeedGenerator")
def is_tf_random_generator_enabled():
    """Tell whether `tf.random.Generator` is enabled.

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


@unique("a setting that fastops does not read", keras="keras.random.SeedGenerator")
def enable_tf_random_generator():
    """Enable `tf.random.Generator` as the generator of layers.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.experimental.enable_tf_random_generator()
    >>> backend.experimental.disable_tf_random_generator()
    """
    _enabled[0] = True


@unique("a setting that fastops does not read", keras="keras.random.SeedGenerator")
def disable_tf_random_generator():
    """Make stateful random ops the generator of layers.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.experimental.disable_tf_random_generator()
    """
    _enabled[0] = False
