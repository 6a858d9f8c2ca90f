"""`fastops.options`: the settings of a thread."""

from contextlib import contextmanager

from fastops._core import threads as settings

CHOICES = {
    "path": ("auto", "direct", "capi", "tensorflow"),
    "on_fallback": ("ignore", "warn", "log", "raise"),
    "onednn": ("auto", "off"),
    "threads": ("auto", "caller", "pool"),
}
"""The settings, and what they may be."""


def choose(setting, value, origin):
    """Return the value of a setting, or raise an error that names where it came from."""
    return one_of(CHOICES[setting], value, origin)


def one_of(choices, value, origin):
    """Return the value, or raise an error if it is none of the choices."""
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
        ``TF_ENABLE_ONEDNN_OPTS=0``. It concerns calls that run their kernel directly.
    threads : {"auto", "caller", "pool"}, optional
        Where the tasks run that a kernel splits its work into: in the calling thread, or in
        TensorFlow's pool. The results have the same bytes. ``"auto"`` measures some calls of each
        key and size in both ways, and takes the faster one for the others. It concerns calls that
        run their kernel directly, and functions and sessions that run as plans.

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
