# distutils: language = c++
"""The state of each thread: its settings and its observers."""

from fastops._cpp.options cimport (
    DefaultThread,
    OnFallback,
    Options,
    Path,
    ThisThread,
    Thread,
    Threads,
)


cdef Thread* this_thread() noexcept:
    return &ThisThread()


cdef Thread* default_thread() noexcept:
    return &DefaultThread()


def thread_number():
    """The number of this thread. It is unique for the life of the process."""
    return this_thread().number


_PATHS = ("auto", "direct", "capi", "tensorflow")
ON_FALLBACK = ("ignore", "warn", "log", "raise")
THREADS = ("auto", "caller", "pool")
ONEDNN = ("off", "auto")


cdef Options* _options(bint default) noexcept:
    return &(default_thread() if default else this_thread()).options


def get_options(*, default=False):
    """The settings of this thread (or those of a new one) as a dict of strings."""
    cdef Options* options = _options(default)
    return {
        "path": _PATHS[<int>options.path],
        "on_fallback": ON_FALLBACK[<int>options.on_fallback],
        "onednn": ONEDNN[options.onednn],
        "threads": THREADS[<int>options.threads],
    }


def set_options(*, path, on_fallback, onednn, threads, default=False):
    """Sets all settings of this thread (or those that new threads start with)."""
    cdef Options* options = _options(default)
    options.path = <Path><int>_PATHS.index(path)
    options.on_fallback = <OnFallback><int>ON_FALLBACK.index(on_fallback)
    options.onednn = ONEDNN.index(onednn)
    options.threads = <Threads><int>THREADS.index(threads)
