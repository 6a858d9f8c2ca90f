"""Errors of fastops' own; every other comes from TensorFlow or Python."""


class DeprecatedOpError(NotImplementedError):
    """An op was called that TensorFlow has withdrawn, or that only TensorFlow 1 can run."""

    __module__ = "fastops"


class MissingOpError(NotImplementedError):
    """An op was called that the running TensorFlow does not have."""

    __module__ = "fastops"


class FallbackError(RuntimeError):
    """A call did not take the direct path, and `fastops.options(on_fallback="raise")` holds."""

    __module__ = "fastops"


class FallbackWarning(UserWarning):
    """A call did not take the direct path, and `fastops.options(on_fallback="warn")` holds."""

    __module__ = "fastops"


class VerificationError(RuntimeError):
    """A call did not give what TensorFlow gives, and `fastops.install(verify="raise")` holds."""

    __module__ = "fastops"


class VerificationWarning(UserWarning):
    """A call did not give what TensorFlow gives, and `fastops.install(verify="warn")` holds."""

    __module__ = "fastops"
