"""The class of iterators of datasets that make their resource when it is read."""

from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from fastops._specialize.signatures import know_iterator


class LazyIterator(OwnedIterator):
    """An iterator that takes elements without TensorFlow's iterator until that is needed.

    Derived classes define the property `_iterator_resource`, which makes it. TensorFlow reads this
    attribute wherever it uses an iterator.
    """


def named_like(base):
    """Return a decorator that gives a class the names of one of TensorFlow's classes."""

    def name(kind):
        kind.__name__, kind.__qualname__ = base.__name__, base.__qualname__
        kind.__module__ = base.__module__
        return kind

    return name


know_iterator(LazyIterator)
