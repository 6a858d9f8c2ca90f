"""The exceptions that fastops defines. All others come from TensorFlow or Python."""


class DeprecatedOpError(NotImplementedError):
    """An op was called that TensorFlow has withdrawn, or that only TensorFlow 1 can run."""

    __module__ = "fastops"


class MissingOpError(NotImplementedError):
    """An op was called that the running TensorFlow does not have."""

    __module__ = "fastops"


class FallbackError(RuntimeError):
    """A call was not direct, and `fastops.options(on_fallback="raise")` is active."""

    __module__ = "fastops"


class FallbackWarning(UserWarning):
    """A call was not direct, and `fastops.options(on_fallback="warn")` is active."""

    __module__ = "fastops"


class VerificationError(RuntimeError):
    """A result differed from TensorFlow's, and `fastops.install(verify="raise")` is active."""

    __module__ = "fastops"


class VerificationWarning(UserWarning):
    """A result differed from TensorFlow's, and `fastops.install(verify="warn")` is active."""

    __module__ = "fastops"
