"""The settings that functions of the backend read: float type, epsilon, layout, learning phase.

Float type, epsilon and layout are settings of the process, as in Keras. The learning phase is a
setting of the thread. A graph that a session runs has its own phase: a placeholder, until the phase
is set.
"""

import collections
import contextlib
import json
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as _context

from fastops._backend import below
from fastops._backend.catalogue import unique

_FLOATS = ("float16", "float32", "float64")
_LAYOUTS = ("channels_last", "channels_first")


class Settings:
    """The settings of the process: those in Keras's configuration file, or defaults."""

    def __init__(self):
        self.floatx, self.epsilon, self.image_data_format = "float32", 1e-7, "channels_last"
        home = os.environ.get("KERAS_HOME") or Path("~/.keras").expanduser()
        try:
            saved = json.loads((Path(home) / "keras.json").read_text())
        except (OSError, ValueError):
            return
        if isinstance(saved, dict):
            if saved.get("floatx") in _FLOATS:
                self.floatx = saved["floatx"]
            if isinstance(saved.get("epsilon"), float):
                self.epsilon = saved["epsilon"]
            if saved.get("image_data_format") in _LAYOUTS:
                self.image_data_format = saved["image_data_format"]


_settings = Settings()


@unique('always `"tensorflow"`', keras="keras.backend.backend")
def backend():
    """Name the library that runs the ops.

    Returns
    -------
    str
        ``"tensorflow"``.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.backend()
    'tensorflow'
    """
    return "tensorflow"


@unique("a setting of this module", keras="keras.config.floatx")
def floatx():
    """Return the default dtype of tensors and variables.

    Returns
    -------
    str
        ``"float16"``, ``"float32"`` (the default) or ``"float64"``.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.floatx()
    'float32'
    """
    return _settings.floatx


@unique("a setting of this module", keras="keras.config.set_floatx")
def set_floatx(value):
    """Set the default dtype of tensors and variables, for all threads.

    Parameters
    ----------
    value : str
        ``"float16"``, ``"float32"`` or ``"float64"``.

    Raises
    ------
    ValueError
        For any other value.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.set_floatx("float64")
    >>> backend.zeros(2).dtype
    tf.float64
    >>> backend.set_floatx("float32")
    """
    if value not in _FLOATS:
        raise ValueError(f"floatx is one of {', '.join(_FLOATS)}, not {value!r}")
    _settings.floatx = str(value)


@unique("a setting of this module", keras="keras.config.epsilon")
def epsilon():
    """Return the small number that keeps divisions and logarithms finite.

    Returns
    -------
    float

    Examples
    --------
    >>> from fastops import backend
    >>> backend.epsilon()
    1e-07
    """
    return _settings.epsilon


@unique("a setting of this module", keras="keras.config.set_epsilon")
def set_epsilon(value):
    """Set the small number that keeps divisions and logarithms finite, for all threads.

    Parameters
    ----------
    value : float

    Examples
    --------
    >>> from fastops import backend
    >>> backend.set_epsilon(1e-5)
    >>> backend.epsilon()
    1e-05
    >>> backend.set_epsilon(1e-7)
    """
    _settings.epsilon = value


@unique("a setting of this module", keras="keras.config.image_data_format")
def image_data_format():
    """Return the data format that functions use by default.

    Returns
    -------
    str
        ``"channels_last"`` (the default) or ``"channels_first"``.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.image_data_format()
    'channels_last'
    """
    return _settings.image_data_format


@unique("a setting of this module", keras="keras.config.set_image_data_format")
def set_image_data_format(data_format):
    """Set the data format that functions use by default, for all threads.

    Parameters
    ----------
    data_format : str
        ``"channels_last"`` or ``"channels_first"``.

    Raises
    ------
    ValueError
        For any other value.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.set_image_data_format("channels_first")
    >>> backend.image_data_format()
    'channels_first'
    >>> backend.set_image_data_format("channels_last")
    """
    if data_format not in _LAYOUTS:
        raise ValueError(f"data_format is one of {', '.join(_LAYOUTS)}, not {data_format!r}")
    _settings.image_data_format = str(data_format)


@contextlib.contextmanager
def scope(*, floatx=None, epsilon=None, image_data_format=None, learning_phase=None):
    """Use other settings within a ``with`` statement.

    Parameters
    ----------
    floatx : str, optional
        A value for `set_floatx`.
    epsilon : float, optional
        A value for `set_epsilon`.
    image_data_format : str, optional
        A value for `set_image_data_format`.
    learning_phase : {0, 1}, optional
        A value for `set_learning_phase`.

    Raises
    ------
    ValueError
        For a value that the setting does not take.

    Notes
    -----
    All settings except the learning phase belong to the process, as in Keras: other threads see
    them too.

    Examples
    --------
    >>> from fastops import backend
    >>> with backend.scope(floatx="float64", image_data_format="channels_first"):
    ...     print(backend.floatx(), backend.image_data_format())
    float64 channels_first
    >>> backend.floatx()
    'float32'
    """
    before = vars(_settings).copy()
    phase = contextlib.nullcontext() if learning_phase is None else phase_scope(learning_phase)
    try:
        if floatx is not None:
            set_floatx(floatx)
        if epsilon is not None:
            set_epsilon(epsilon)
        if image_data_format is not None:
            set_image_data_format(image_data_format)
        with phase:
            yield
    finally:
        vars(_settings).update(before)


def settings():
    """Return all settings, without the phases of graphs."""
    return _settings.floatx, _settings.epsilon, _settings.image_data_format, _eager.phase


def layout_of(data_format):
    """Return a data format, by default that of the settings. Raise ValueError for unknown ones."""
    if data_format is None:
        return _settings.image_data_format
    if data_format not in _LAYOUTS:
        raise ValueError(f"Unknown data_format: {data_format}")
    return data_format


@unique("a cast to the setting", tensorflow="tf.cast", keras="keras.ops.cast")
def cast_to_floatx(x):
    """Cast to the dtype `floatx`.

    Parameters
    ----------
    x : tensor, variable, sparse tensor or array_like

    Returns
    -------
    tensor or ndarray
        An array, if `x` is not a tensor.

    Examples
    --------
    >>> import numpy as np
    >>> from fastops import backend
    >>> backend.cast_to_floatx(np.array([1, 2]))
    array([1., 2.], dtype=float32)
    """
    if isinstance(x, (tf.Tensor, tf.Variable, tf.SparseTensor)):
        return below.cast(x, _settings.floatx)
    return np.asarray(x, dtype=_settings.floatx)


# Counters ------------------------------------------------------------------------------------


class _EagerState(threading.local):
    """The state of a thread for its eager calls."""

    def __init__(self):
        self.uids = collections.defaultdict(int)
        self.phase = None


_eager = _EagerState()
_uids_of_graphs: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


@unique("numbers for names, separate for each graph")
def get_uid(prefix=""):
    """Return how often this function has been called with a prefix.

    Parameters
    ----------
    prefix : str, default ""

    Returns
    -------
    int
        1 for the first call. Each graph has its own counts, and so has the eager code of each
        thread.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.reset_uids()
    >>> backend.get_uid("dense"), backend.get_uid("dense"), backend.get_uid("lstm")
    (1, 2, 1)
    """
    if tf.executing_eagerly():
        uids = _eager.uids
    else:
        graph = tf.compat.v1.get_default_graph()
        uids = _uids_of_graphs.setdefault(graph, collections.defaultdict(int))
    uids[prefix] += 1
    return uids[prefix]


@unique("numbers for names, separate for each graph")
def reset_uids():
    """Make `get_uid` begin at 1 again.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.reset_uids()
    """
    _eager.uids.clear()
    _uids_of_graphs.clear()


_cleared: list[Callable[[], None]] = []
"""The functions that `clear_session` calls."""


def on_clear(function):
    """Register a function that `clear_session` calls."""
    _cleared.append(function)
    return function


@unique("a reset of this module's state", keras="keras.backend.clear_session")
def clear_session():
    """Drop what this module holds: counters, the learning phase, the graph of placeholders.

    Notes
    -----
    This also replaces TensorFlow's default graph and empties TensorFlow's kernel cache. It does not
    clear Keras's own state: `keras.backend.clear_session` does that.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.clear_session()
    >>> backend.learning_phase()
    0
    """
    tf.compat.v1.reset_default_graph()
    reset_uids()
    _eager.phase = None
    _phases_of_graphs.clear()
    for function in _cleared:
        function()
    if tf.executing_eagerly():
        _context.context().clear_kernel_cache()


_manual = [False]


@unique("a setting for graphs that a session runs; other variables have a value from the beginning")
def manual_variable_initialization(value):
    """Set whether programs themselves initialise variables in graphs of `tf.compat.v1`.

    Parameters
    ----------
    value : bool

    Examples
    --------
    >>> from fastops import backend
    >>> backend.manual_variable_initialization(False)
    """
    _manual[0] = value


@unique("`tf.name_scope` under this name", tensorflow="tf.name_scope", keras="keras.name_scope")
def name_scope(name):
    """Name the ops of a graph within a scope.

    Parameters
    ----------
    name : str

    Returns
    -------
    context manager

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import backend
    >>> with backend.name_scope("outer"):
    ...     tf.Variable(1.0, name="inner").name
    'outer/inner:0'
    """
    return tf.name_scope(name)


def leaves_initialization():
    """Tell whether programs initialise variables in graphs themselves."""
    return _manual[0]


# The learning phase ------------------------------------------------------------------------------

_phases_of_graphs: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _check(value):
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    return value


@unique(
    "a setting of this module",
    keras="keras.layers.Layer.__call__",
    differs="a layer gets `training` as an argument",
)
def learning_phase():
    """Tell whether layers are in training.

    Returns
    -------
    int or tensor
        1 for training, otherwise 0 (the default). In a graph of `tf.compat.v1` for which it was not
        set, a placeholder of dtype bool, which is false unless it is fed.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.learning_phase()
    0
    """
    if not tf.compat.v1.executing_eagerly_outside_functions():
        graph = tf.compat.v1.get_default_graph()
        if graph not in _phases_of_graphs:
            with tf.name_scope(""):
                made = tf.compat.v1.placeholder_with_default(
                    False, shape=(), name="keras_learning_phase"
                )
            # A weak reference: the tensor keeps its graph alive, which is the key.
            _phases_of_graphs[graph] = weakref.ref(made)
        phase = _phases_of_graphs[graph]
        return phase() if isinstance(phase, weakref.ref) else phase
    return 0 if _eager.phase is None else _eager.phase


def _set_phase(value):
    if tf.compat.v1.executing_eagerly_outside_functions():
        _eager.phase = value
    else:
        _phases_of_graphs[tf.compat.v1.get_default_graph()] = value


@unique(
    "a setting of this module",
    keras="keras.layers.Layer.__call__",
    differs="a layer gets `training` as an argument",
)
def set_learning_phase(value):
    """Set whether layers are in training, for this thread or for the graph that is being built.

    Parameters
    ----------
    value : {0, 1}

    Raises
    ------
    ValueError
        For any other value.

    Warns
    -----
    UserWarning
        It is deprecated: pass the argument ``training`` to layers.

    Examples
    --------
    >>> import warnings
    >>> from fastops import backend
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     backend.set_learning_phase(1)
    >>> backend.learning_phase()
    1
    >>> backend.clear_session()
    """
    warnings.warn(
        "`set_learning_phase` is deprecated: give layers and models their `training` argument.",
        stacklevel=2,
    )
    _set_phase(_check(value))


@contextlib.contextmanager
def phase_scope(value):
    """Set the learning phase within a ``with`` statement, without a warning."""
    _check(value)
    graph = tf.compat.v1.get_default_graph()
    before, of_graph = _eager.phase, _phases_of_graphs.get(graph)
    try:
        _set_phase(value)
        yield
    finally:
        _eager.phase = before
        if of_graph is None:
            _phases_of_graphs.pop(graph, None)
        else:
            _phases_of_graphs[graph] = of_graph


@unique(
    "a setting of this module",
    keras="keras.layers.Layer.__call__",
    differs="a layer gets `training` as an argument",
)
@contextlib.contextmanager
def learning_phase_scope(value):
    """Set whether layers are in training within a ``with`` statement.

    Parameters
    ----------
    value : {0, 1}

    Raises
    ------
    ValueError
        For any other value.

    Warns
    -----
    UserWarning
        It is deprecated: pass the argument ``training`` to layers.

    Examples
    --------
    >>> import warnings
    >>> from fastops import backend
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with backend.learning_phase_scope(1):
    ...         print(backend.learning_phase())
    1
    >>> backend.learning_phase()
    0
    """
    warnings.warn(
        "`learning_phase_scope` is deprecated: give layers and models their `training` argument.",
        stacklevel=3,
    )
    with phase_scope(value):
        yield
