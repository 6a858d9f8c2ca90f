"""Holds the running TensorFlow against the one that the extension was compiled for."""

import importlib

REBUILD = (
    "pip install --no-build-isolation --force-reinstall --no-deps fastops"
    "  (in a checkout: pip install --no-build-isolation --editable .)"
)


def check():
    """Raise ImportError unless the extension was compiled for the running TensorFlow.

    Its C++ classes have no stable layout: another build would crash rather than fail.
    """
    if not _in_main_interpreter():  # TensorFlow would hang or abort the process
        raise ImportError("fastops, like TensorFlow, runs in the main interpreter only")
    import tensorflow as tf

    try:
        from fastops import _build_info
    except ImportError:
        raise ImportError(f"fastops is not compiled yet. Build it: {REBUILD}") from None
    built = (_build_info.TENSORFLOW_VERSION, _build_info.TENSORFLOW_BUILD)
    running = (tf.version.VERSION, tf.version.GIT_VERSION)
    if built != running:
        raise ImportError(
            f"fastops was compiled for TensorFlow {built[0]} ({built[1]}), but this is "
            f"TensorFlow {running[0]} ({running[1]}). Build it again: {REBUILD}"
        )


def _in_main_interpreter():
    for name in ("_interpreters", "_xxsubinterpreters"):  # before Python 3.13, the second
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return interpreters.get_current() == interpreters.get_main()
    return True
