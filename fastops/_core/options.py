"""`fastops.options`, which changes the settings of a thread."""

from contextlib import contextmanager

from fastops._core import threads as settings

CHOICES = {
    "path": ("auto", "direct", "capi", "tensorflow"),
    "on_fallback": ("ignore", "warn", "log", "raise"),
    "onednn": ("auto", "off"),
    "threads": ("auto", "caller", "pool"),
}
"""The settings and their allowed values."""


def choose(setting, value, origin):
    """Return the value of a setting, or raise an error that names its origin."""
    return one_of(CHOICES[setting], value, origin)


def one_of(choices, value, origin):
    """Return the value, or raise an error if it is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{origin} must be one of {', '.join(choices)}, not {value!r}")
    return value


@contextmanager
def options(*, path=None, on_fallback=None, onednn=None, threads=None):
    """Set how this thread's calls run, inside a ``with`` block.

    Parameters
    ----------
    path : {"auto", "direct", "capi", "tensorflow"}, optional
        Which paths a call may take. ``"auto"`` tries the prepared kernel, then TensorFlow's C
        API, then TensorFlow's own function. ``"direct"`` skips the C API, ``"capi"`` skips the
        prepared kernel, and ``"tensorflow"`` skips both. If not given, the setting stays as it is.
    on_fallback : {"ignore", "warn", "log", "raise"}, optional
        What to do when a call cannot run its prepared kernel: nothing, warn with
        `FallbackWarning`, log a warning to the logger ``fastops.fallback``, or raise
        `FallbackError` before anything has run. The first call of a key, calls while a graph is
        built, and calls whose path was set by `path` do not count as fallbacks. Log records have
        the attributes ``op``, ``path``, ``reason`` (a name in `fastops.REASONS`) and ``detail``
        (a string or `None`).
    onednn : {"auto", "off"}, optional
        ``"auto"`` runs the kernels that this TensorFlow would run. ``"off"`` runs the plain
        kernels even if TensorFlow would run oneDNN's. The results are bit for bit those of
        TensorFlow under ``TF_ENABLE_ONEDNN_OPTS=0``. The setting applies to calls that run their
        kernel directly.
    threads : {"auto", "caller", "pool"}, optional
        Where the tasks of a kernel run: in the calling thread or in TensorFlow's thread pool. The
        results have the same bytes. ``"auto"`` measures some calls of each key and size in both
        ways, and uses the faster one for the other calls. The setting applies to calls that run
        their kernel directly, and to functions and sessions that run as plans.

    Raises
    ------
    ValueError
        A value is not one of those listed.

    Notes
    -----
    Blocks nest. Other threads keep their own settings. The environment sets the settings that new
    threads start with; see ``python -m fastops config``.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> x = tf.constant([1.0, 2.0])
    >>> with fastops.options(path="tensorflow"):
    ...     fastops.ops.neg(x=x).numpy()
    array([-1., -2.], dtype=float32)
    """
    given = {"path": path, "on_fallback": on_fallback, "onednn": onednn, "threads": threads}
    before = settings.get_options()
    inside = before | {
        setting: choose(setting, value, setting)
        for setting, value in given.items()
        if value is not None
    }
    settings.set_options(**inside)
    try:
        yield
    finally:
        settings.set_options(**before)


def set_everywhere(**changes):
    """Change settings of this thread, and of all threads that start later."""
    for default in (True, False):
        before = settings.get_options(default=default)
        settings.set_options(**before | changes, default=default)
