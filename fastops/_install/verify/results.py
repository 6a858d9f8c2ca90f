"""The results of verification: how many calls were compared, which were not, and why."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class VerificationReport:
    """The results of `fastops.install(verify=...)`.

    Attributes
    ----------
    mode : {None, "raise", "warn"}
        The reaction to a difference. `None` while nothing is verified.
    every : int
        With a number n, one in n calls of each replacement is verified.
    compared : dict of str to int
        By layer, how many calls were made both by fastops and by TensorFlow, and compared.
    left : dict of str to int
        By layer, how many calls fell back to TensorFlow, so that there was nothing to compare.
    skipped : dict of str to int
        By reason, how many calls could not be made twice.
    differences : tuple of str
        The first hundred differences.
    """

    mode: str | None
    every: int
    compared: dict = field(default_factory=dict)
    left: dict = field(default_factory=dict)
    skipped: dict = field(default_factory=dict)
    differences: tuple = ()

    __module__ = "fastops"

    def __str__(self):
        total = sum(self.compared.values())
        layers = ", ".join(f"{name} {count}" for name, count in sorted(self.compared.items()))
        lines = [
            f"fastops verified {total} calls ({layers or 'none'}): "
            f"{len(self.differences)} differences; "
            f"{sum(self.skipped.values())} calls could not be compared"
        ]
        most = sorted(self.skipped.items(), key=lambda item: -item[1])
        lines += [f"  {count} x {why}" for why, count in most]
        return "\n".join(lines)


class Results:
    """The counters. They use no lock: if several threads count at once, a count may be lost."""

    def __init__(self):
        self.mode, self.every = None, 1
        self.reset()

    def reset(self):
        """Reset all counters."""
        self.compared, self.left, self.skipped = Counter(), Counter(), Counter()
        self.differences = []

    def report(self):
        """Return the current counts."""
        return VerificationReport(
            self.mode,
            self.every,
            dict(self.compared),
            dict(self.left),
            dict(self.skipped),
            tuple(self.differences),
        )


RESULTS = Results()


def verified():
    """Return the results of `fastops.install(verify=...)` in this process.

    Returns
    -------
    VerificationReport
        The counts since the start of the process. They are kept when verification ends.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> with fastops.accelerated(verify=True):
    ...     tf.constant([1.0]) + 1.0
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([2.], dtype=float32)>
    >>> fastops.verified().differences
    ()
    """
    return RESULTS.report()


_default: tuple[str | None, int] = (None, 1)
"""The mode and number that `install` uses by default, from ``FASTOPS_VERIFY``."""


def set_default(mode, every):
    """Set the mode and number that `install` uses by default."""
    global _default
    _default = mode, every


def chosen(verify, every):
    """Return the mode and the number for arguments of `install`.

    Examples
    --------
    >>> from fastops._install.verify.results import chosen
    >>> chosen(True, 10)
    ('raise', 10)
    """
    if verify is None:
        mode = _default[0]
    elif isinstance(verify, bool):
        mode = "raise" if verify else None
    elif verify in ("raise", "warn"):
        mode = verify
    else:
        raise ValueError(f'verify must be None, a bool, "raise" or "warn", not {verify!r}')
    every = _default[1] if every is None else every
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"verify_every must be a positive int, not {every!r}")
    return mode, every
