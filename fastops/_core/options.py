"""`fastops.options`: the settings of a thread."""

import os
from contextlib import contextmanager
from dataclasses import dataclass

from fastops import _dispatch

_CHOICES = {
    "path": ("auto", "direct", "capi", "tensorflow"),
    "on_fallback": ("ignore", "warn", "log", "raise"),
    "onednn": ("auto", "off"),
}


@dataclass(frozen=True)
class EnvironmentVariable:
    """One ``FASTOPS_*`` variable: read once, when fastops is imported."""

    name: str
    default: str
    choices: tuple[str, ...] | None
    meaning: str

    @property
    def value(self):
        """What is in force: the variable's value, else its default."""
        return os.environ.get(self.name) or self.default


ENVIRONMENT = (
    EnvironmentVariable(
        "FASTOPS_PATH", "auto", _CHOICES["path"], "options(path=...) of every new thread"
    ),
    EnvironmentVariable(
        "FASTOPS_ON_FALLBACK",
        "ignore",
        _CHOICES["on_fallback"],
        "options(on_fallback=...) of every new thread",
    ),
    EnvironmentVariable(
        "FASTOPS_ONEDNN", "auto", _CHOICES["onednn"], "options(onednn=...) of every new thread"
    ),
    EnvironmentVariable(
        "FASTOPS_CACHE_SIZE", "256", None, "how many prepared kernels each op may keep"
    ),
    EnvironmentVariable(
        "FASTOPS_INSTALL", "0", ("0", "1"), "whether `import fastops` calls fastops.install()"
    ),
)


def _choose(setting, value, origin):
    return _one_of(_CHOICES[setting], value, origin)


def _one_of(choices, value, origin):
    if value not in choices:
        raise ValueError(f"{origin} must be one of {', '.join(choices)}, not {value!r}")
    return value


@contextmanager
def options(*, path=None, on_fallback=None, onednn=None):
    """Set how this thread's calls run, inside a ``with`` block.

    Parameters
    ----------
    path : {"auto", "direct", "capi", "tensorflow"}, optional
        Which paths a call may take. ``"auto"`` tries the prepared kernel, then TensorFlow's C
        API, then TensorFlow's own function. ``"direct"`` leaves out the second, ``"capi"`` the
        first, ``"tensorflow"`` both. Not given: as before.
    on_fallback : {"ignore", "warn", "log", "raise"}, optional
        What to do when a call cannot run its prepared kernel: nothing, warn with
        `FallbackWarning`, log a warning to the logger ``fastops.fallback``, or raise
        `FallbackError` before anything has run. The first call of a key, graph building and a
        `path` that was asked for are no fallbacks. Records of the log have the attributes ``op``,
        ``path``, ``reason`` (of `fastops.REASONS`) and ``detail`` (a text, or `None`).
    onednn : {"auto", "off"}, optional
        ``"auto"`` runs the kernels that this TensorFlow would run. ``"off"`` runs the plain ones
        even where it would run oneDNN's: bit for bit what TensorFlow computes under
        ``TF_ENABLE_ONEDNN_OPTS=0``, and much faster on small tensors. It concerns calls that run
        their kernel directly.

    Raises
    ------
    ValueError
        A value is not one of those listed.

    Notes
    -----
    Blocks nest. Other threads keep their own settings; what a new thread starts with is set by
    the environment, see ``python -m fastops config``.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> x = tf.constant([1.0, 2.0])
    >>> with fastops.options(path="tensorflow"):
    ...     fastops.ops.neg(x=x).numpy()
    array([-1., -2.], dtype=float32)
    """
    given = {"path": path, "on_fallback": on_fallback, "onednn": onednn}
    before = _dispatch.get_options()
    inside = before | {
        setting: _choose(setting, value, setting)
        for setting, value in given.items()
        if value is not None
    }
    _dispatch.set_options(**inside)
    try:
        yield
    finally:
        _dispatch.set_options(**before)


def set_everywhere(**settings):
    """Change settings of this thread, and of all threads that start later."""
    for default in (True, False):
        before = _dispatch.get_options(default=default)
        _dispatch.set_options(**before | settings, default=default)


def read_environment():
    """Apply the ``FASTOPS_*`` variables to this thread and to all new ones.

    Returns
    -------
    bool
        Whether TensorFlow's functions are to be replaced, too.
    """
    value = {variable.name: variable.value for variable in ENVIRONMENT}
    settings = {
        setting: _choose(setting, value[f"FASTOPS_{setting.upper()}"], f"FASTOPS_{setting.upper()}")
        for setting in _CHOICES
    }
    set_everywhere(**settings)
    try:
        set_cache_size(int(value["FASTOPS_CACHE_SIZE"]))
    except ValueError:
        size = value["FASTOPS_CACHE_SIZE"]
        raise ValueError(f"FASTOPS_CACHE_SIZE must be a positive number, not {size!r}") from None
    return _one_of(("0", "1"), value["FASTOPS_INSTALL"], "FASTOPS_INSTALL") == "1"


def clear_cache():
    """Drop every prepared kernel and cached operation.

    The next call of each key runs through TensorFlow and prepares its kernel anew.
    """
    _dispatch.clear_cache()


def set_cache_size(entries_per_op):
    """Set how many prepared kernels an op may keep; the least recently used go first.

    Parameters
    ----------
    entries_per_op : int
        At least 1. One entry is one combination of input dtypes, attribute values and device
        scope. The present entries are dropped.

    Raises
    ------
    ValueError
        The number is not positive.
    """
    _dispatch.set_cache_size(entries_per_op)


def cache_info():
    """Tell how full the caches are.

    Returns
    -------
    dict
        ``entries``: dict from op name to its number of entries; ``entries_per_op``: the bound.
    """
    entries, bound = _dispatch.cache_info()
    return {"entries": entries, "entries_per_op": bound}
