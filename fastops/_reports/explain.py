"""`fastops.profile` and `fastops.explain`: measure the calls of a block and of a function."""

from contextlib import contextmanager

from fastops._core.measuring import ProfileRecorder
from fastops._plans.observers import observe_all, observed
from fastops._reports.frames import Frames
from fastops._reports.profile import Explanation, Profile
from fastops._specialize import observers


def start(*, frames=False):
    """Start a `Profile` of this thread and of all threads that start later."""
    recorder, noted = ProfileRecorder(), Frames() if frames else None
    recorder.open(new_threads=True, keep=True)
    profile = Profile(recorder, observe_all(), observers.observe_all(), noted)
    if noted:
        noted.open()
    return profile


@contextmanager
def _recorded(noted=None):
    """Record the calls of a block; yield the constructor's arguments of a `Profile`."""
    recorder = ProfileRecorder()
    with observed() as functions, observers.observed() as replayable:
        recorder.open(keep=True)
        try:
            yield recorder, functions, replayable
        finally:
            if noted:
                noted.close()
            recorder.close()


@contextmanager
def profile(*, frames=False):
    """Measure the calls of a block: which path they took, why, and where the time went.

    Parameters
    ----------
    frames : bool
        Whether to note the calls of Python's functions in this thread, too. Then `Profile.to_html`
        and `Profile.to_chrome_trace` show the functions above the ops. Noting a call takes about a
        tenth of a microsecond. The picture subtracts this time; all other times include it. If
        another tool, such as a debugger, has set a profile function, nothing is noted.

    Yields
    ------
    Profile
        The measurements, up to the moment when they are read.

    Notes
    -----
    A profile measures only the thread that opens it. Under `install` it measures every op that the
    program runs, otherwise only the calls of `fastops.ops`. A call counts once, even if it passes
    through several of TensorFlow's functions. Blocks nest: the outer profile includes the calls of
    the inner one. While no profile is open, nothing is measured.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> x = tf.constant([1.0, 2.0])
    >>> with fastops.profile() as report:
    ...     for _ in range(10):
    ...         y = fastops.ops.softsign(features=x)
    >>> softsign = report.ops["Softsign"]
    >>> softsign.calls, softsign.direct, str(softsign.detours[0])
    (10, 9, '1 first_call')
    """
    noted = Frames() if frames else None
    with _recorded(noted) as arguments:
        report = Profile(*arguments, noted)
        if noted:
            noted.open()
        yield report


def explain(function, /, *args, **kwargs):
    """Run a function and tell which path its calls of ops took, why, and where the time went.

    Parameters
    ----------
    function : callable
        The function, which is run once. Its exceptions are not caught.
    *args, **kwargs
        The arguments of the function.

    Returns
    -------
    Explanation
        The `Profile` of the run, with the function's result.

    See Also
    --------
    profile : measures a block, and documents the details. With ``frames=True`` its picture shows
        the Python functions above the ops, which are one bar here.

    Notes
    -----
    Under `install`, the result has the recordings of Keras's objects, modules, generators and of
    public functions that the function calls: their ops, constants and guards, what had changed at
    the last miss, and why calls are not recorded. See `MethodProfile`.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> x = tf.constant([1.0, 2.0])
    >>> _ = fastops.explain(fastops.ops.softplus, features=x)
    >>> report = fastops.explain(fastops.ops.softplus, features=tf.cast(x, tf.float64))
    >>> str(report.ops["Softplus"].detours[0])
    '1 first_call (dtypes: float32 -> float64)'
    >>> report.result.dtype
    tf.float64
    """
    with _recorded() as arguments:
        result = function(*args, **kwargs)
    return Explanation(*arguments, result)
