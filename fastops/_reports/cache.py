"""The caches of prepared kernels: their sizes and their limit."""

from fastops._core.entries import bound
from fastops._core.preparing import flush
from fastops._reports import counters


def clear_cache():
    """Drop every prepared kernel, cached operation and recorded call.

    The next call of each key runs through TensorFlow and prepares its kernel anew.

    Examples
    --------
    >>> import fastops
    >>> fastops.clear_cache()
    >>> fastops.cache_info()["entries"]
    {}
    """
    flush()


def set_cache_size(entries_per_op):
    """Set how many prepared kernels an op may keep. The least recently used are dropped first.

    Parameters
    ----------
    entries_per_op : int
        At least 1. One entry is one combination of input dtypes, attribute values and device
        scope. The current entries are dropped.

    Raises
    ------
    ValueError
        If the number is not positive.

    Examples
    --------
    >>> import fastops
    >>> before = fastops.cache_info()["entries_per_op"]
    >>> fastops.set_cache_size(8)
    >>> fastops.cache_info()["entries_per_op"]
    8
    >>> fastops.set_cache_size(before)
    """
    bound(entries_per_op)
    flush()


def cache_info():
    """Return the sizes of the caches.

    Returns
    -------
    dict
        ``entries``: a dict from the name of an op to its number of entries; ``entries_per_op``: the
        maximum for each op.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> fastops.clear_cache()
    >>> _ = fastops.ops.neg(x=tf.constant(1.0)), fastops.ops.neg(x=tf.constant(1))
    >>> fastops.cache_info()["entries"]
    {'Neg': 2}
    """
    entries, bound = counters.cache_info()
    return {"entries": entries, "entries_per_op": bound}
