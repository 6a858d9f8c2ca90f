# distutils: language = c++
"""Elements that consist of rows of tensors in memory, made without the iterators of datasets.

`Rows` knows which rows the elements of a dataset consist of, and in which order. `RowElements`
makes the elements of one iterator. See `_cpp/rows.h`.
"""

cimport cython
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t

from fastops._cpp.handle cimport HostTensor
from fastops._cpp.rows cimport IsInputOf, RowReader, RowSource, SeedLog
from fastops._dispatch cimport runtime
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

import threading

handing_over = threading.RLock()
"""Held while an iterator of TensorFlow draws the seeds that a `RowElements` has drawn. No other
seeds may be drawn then."""

cdef int _num_handing_over = 0  # guarded by the lock; reading it takes only the GIL


@cython.final
cdef class Rows:
    """Which rows of tensors in memory the elements of a dataset consist of. See `rows_of`."""

    def dtypes(self):
        """Return the numbers of the dtypes of an element's tensors."""
        cdef size_t i
        columns = &deref(self.source).columns()
        return [<int>deref(columns)[i].dtype() for i in range(columns.size())]

    def shapes(self):
        """Return the shapes of an element's tensors; the size of a batch is None."""
        cdef size_t i
        cdef int axis
        cdef const Tensor* column
        shapes = []
        columns = &deref(self.source).columns()
        for i in range(columns.size()):
            column = &deref(columns)[i]
            sizes = [column.dim_size(axis) for axis in range(1, column.dims())]
            shapes.append([None, *sizes] if deref(self.source).batched() else sizes)
        return shapes


def rows_of(variant):
    """Return the `Rows` of a dataset, given its variant tensor.

    None stands for a dataset whose elements are not rows of tensors in memory, or are in an order
    that is not known here.
    """
    cdef const Tensor* tensor = HostTensor(<PyObject*>variant)
    cdef Rows rows = Rows.__new__(Rows)
    rows.source.reset(new RowSource())
    if tensor == NULL or not RowSource.Read(deref(tensor), runtime().host, rows.source.get()):
        return None
    return rows


def is_input_of(input_variant, variant):
    """Tell whether a dataset is the only input of another one, given their variant tensors."""
    cdef const Tensor* inner = HostTensor(<PyObject*>input_variant)
    cdef const Tensor* outer = HostTensor(<PyObject*>variant)
    return inner != NULL and outer != NULL and IsInputOf(deref(inner), deref(outer))


@cython.final
cdef class RowElements:
    """The elements of one iterator.

    Parameters
    ----------
    rows : Rows
        The rows that the elements consist of.
    mapped : MappedFunctions or None
        The functions that are mapped over them.
    """

    def __init__(self, Rows rows not None, MappedFunctions mapped=None):
        self.mapped = mapped
        source = rows.source.get()
        with handing_over:
            self.reader.reset(new RowReader(source.plan(), source.columns(), source.batched()))

    cdef list take(self):
        cdef list tensors
        if self.mapped is None:
            return self._next_rows()
        with self.mapped.lock:
            if self.is_for_tensorflow():
                return None
            tensors = self._next_rows()
            if tensors is not None:
                tensors = self.mapped.results(tensors)
                self.withdrawn = tensors is None
            return tensors

    cdef bint is_for_tensorflow(self) noexcept:
        return self.handed_over or (
            self.mapped is not None and (self.withdrawn or self.mapped.declined)
        )

    cdef list _next_rows(self):
        if _num_handing_over:
            with handing_over:  # maybe these elements are being handed over
                return None if self.handed_over else deref(self.reader).Take()
        return deref(self.reader).Take()

    def handed_to(self, make, take):
        """Make TensorFlow's iterator, and let it give the elements that were taken here.

        Its shuffled datasets draw the same seeds as here. Then their generators get the states
        again that they have now.

        Parameters
        ----------
        make : callable
            Makes the iterator.
        take : callable
            Given the iterator, takes an element or finds that it has ended.
        """
        global _num_handing_over
        cdef int64_t element
        cdef SeedLog* log = deref(self.reader).log()
        with handing_over:
            _num_handing_over += 1
            log.Keep()
            try:
                log.Restore(-1)
                made = make()
                for element in range(log.elements() - self.withdrawn):
                    log.Restore(element)
                    take(made)
                self.handed_over = True
            finally:
                log.SetKept()
                _num_handing_over -= 1
        return made

    def untouched(self):
        """Tell whether no element was taken yet."""
        return deref(self.reader).log().elements() == 0
