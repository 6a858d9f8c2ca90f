"""`fastops.profile` and `fastops.explain`: what measures calls, of a block and of a function."""

from contextlib import contextmanager

from fastops._core.measuring import Recorder
from fastops._install.models import observers as models
from fastops._plans.observers import observe_all, observed
from fastops._reports.frames import Frames
from fastops._reports.profile import Explanation, Profile


def start(*, frames=False):
    """Begin a `Profile` of this thread, and of all threads that start later, without an end."""
    recorder, noted = Recorder(), Frames() if frames else None
    recorder.open(new_threads=True, keep=True)
    profile = Profile(recorder, observe_all(), models.observe_all(), noted)
    if noted:
        noted.open()
    return profile


@contextmanager
def _recorded(noted=None):
    """Record the calls of a block; yield what a `Profile` is made of."""
    recorder = Recorder()
    with observed() as functions, models.observed() as methods:
        recorder.open(keep=True)
        try:
            yield recorder, functions, methods
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
        Whether to note the calls of Python's functions in this thread, too: `Profile.to_html` and
        `Profile.to_chrome_trace` then show what is above the ops. Noting a call takes a tenth of
        a microsecond or so, which is in all times but those of the picture. Nothing is noted
        where somebody else, as a debugger, has set a profile function.

    Yields
    ------
    Profile
        What was found, up to the moment when it is read.

    Notes
    -----
    It concerns the thread that opens it, and looks at what the program does as it is: under
    `install` that is every op the program runs, else the calls of `fastops.ops`. One call counts
    once, however many of TensorFlow's functions it comes through. Blocks nest; the outer one has
    the calls of the inner one, too. Where no profile is open nothing is measured.

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
    with _recorded(noted) as found:
        report = Profile(*found, noted)
        if noted:
            noted.open()
        yield report


def explain(function, /, *args, **kwargs):
    """Run a function and tell which path its calls of ops took, why, and where the time went.

    Parameters
    ----------
    function : callable
        What to run, once. What it raises is not caught.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    Explanation
        The `Profile` of the run, with the function's result.

    See Also
    --------
    profile : the same for a block, where the details are told; with ``frames=True`` its picture
        has the functions of Python that are above the ops, which are one bar here.

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
    with _recorded() as found:
        result = function(*args, **kwargs)
    return Explanation(*found, result)
