"""What verification has found so far: how many calls were compared, which were not, and why."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class VerificationReport:
    """What `fastops.install(verify=...)` has compared.

    Attributes
    ----------
    mode : {None, "raise", "warn"}
        What a difference leads to, `None` while nothing is verified.
    every : int
        One in how many calls of each replacement is verified.
    compared : dict of str to int
        By layer, how many calls were made both ways and compared.
    left : dict of str to int
        By layer, how many calls were TensorFlow's anyway, so that there was nothing to compare.
    skipped : dict of str to int
        How many calls could not be made both ways, by the reason.
    differences : tuple of str
        What was found, the first hundred.
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


MOST_DIFFERENCES = 100


class Results:
    """Counts. Of threads that count at once, one may be lost."""

    def __init__(self):
        self.mode, self.every = None, 1
        self.reset()

    def reset(self):
        """Begin anew."""
        self.compared, self.left, self.skipped = Counter(), Counter(), Counter()
        self.differences = []

    def report(self):
        """Return them as they are now."""
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
    """Tell what `fastops.install(verify=...)` has compared in this process, and what it found.

    Returns
    -------
    VerificationReport
        The counts since verification began; they stay when it ends.

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
"""What `install` does where it is not told: what ``FASTOPS_VERIFY`` says."""


def set_default(mode, every):
    """Set what `install` does where it is not told."""
    global _default
    _default = mode, every


def chosen(verify, every):
    """Return mode and number for what `install` was given.

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
