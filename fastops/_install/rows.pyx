# distutils: language = c++
"""Elements that consist of rows of tensors in memory, made without the iterators of datasets.

`Rows` knows which rows the elements of a dataset consist of, and in which order. `RowElements`
makes the elements of one iterator. See `_cpp/rows.h`.
"""

cimport cython
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport INT64_MAX, int64_t

from fastops._cpp.handle cimport HostTensor
from fastops._cpp.rows cimport RowReader, RowSource, Search, SeedLog, kEnd, kOthersDraw
from fastops._dispatch cimport runtime
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

import threading
from contextlib import nullcontext

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
        """Return the shapes of an element's tensors; the size of a batch is None.

        If functions are mapped, these are the shapes of the elements that the first one takes.
        """
        cdef size_t i
        cdef int axis
        cdef const Tensor* column
        cdef bint batched = deref(self.source).batched()
        shapes = []
        functions = &deref(self.source).functions()
        if functions.size():
            batched = deref(functions)[0].batched
        columns = &deref(self.source).columns()
        for i in range(columns.size()):
            column = &deref(columns)[i]
            sizes = [column.dim_size(axis) for axis in range(1, column.dims())]
            shapes.append([None, *sizes] if batched else sizes)
        return shapes

    def functions(self):
        """Return the mapped functions in their order: names, and whether they take single rows.

        The results of functions that take single rows are batched. The others take elements.
        """
        cdef size_t i
        cdef bint batched = deref(self.source).batched()
        functions = &deref(self.source).functions()
        return [
            (deref(functions)[i].name.decode(), batched and not deref(functions)[i].batched)
            for i in range(functions.size())
        ]

    @property
    def draws_first(self):
        """Whether all seeds are drawn when an iterator is made."""
        return deref(self.source).draws_first()


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
        self.mapped, self.draws_first = mapped, rows.draws_first
        source = rows.source.get()
        with handing_over:
            self.reader.reset(new RowReader(source.plan(), source.columns(), source.batched()))
        if self.mapped is not None and not self.draws_first:
            deref(self.reader).log().ForbidOthers()

    cdef list take(self):
        if self.mapped is None:
            return self._next_rows()
        with self.mapped.lock:
            return None if self.is_for_tensorflow() else self._next_mapped()

    cdef bint is_for_tensorflow(self) noexcept:
        return self.handed_over or self.interrupted or (
            self.mapped is not None and (self.withdrawn or self.mapped.declined)
        )

    cdef list _next_rows(self):
        if _num_handing_over:
            with handing_over:  # maybe these elements are being handed over
                return None if self.handed_over else deref(self.reader).Take()
        return deref(self.reader).Take()

    cdef list _next_mapped(self):
        cdef Search found
        with handing_over:  # no generator of seeds is set back meanwhile
            if self.handed_over:
                return None
            found = deref(self.reader).Next()
        self.interrupted = found == kOthersDraw
        if found == kEnd or self.interrupted:
            return None
        results = self.mapped.results(self.reader.get())
        self.withdrawn = results is None
        return results

    @property
    def lock(self):
        """A context manager: inside, no other thread makes an element by mapped functions."""
        return nullcontext() if self.mapped is None else self.mapped.lock

    def handed_to(self, make, take):
        """Make TensorFlow's iterator, and let it give the elements that were taken here.

        Its shuffled datasets draw the same seeds as here. Then their generators get the states
        again that they have now. If functions are mapped, TensorFlow's iterator has threads, which
        draw seeds ahead of time. Then the generators are not set in between: these elements have
        drawn all seeds one after the other.

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
        cdef bint in_threads = self.mapped is not None and not self.draws_first
        with handing_over:
            _num_handing_over += 1
            log.Keep()
            try:
                log.Restore(INT64_MAX if in_threads else -1)
                made = make()
                for element in range(log.elements() - self.withdrawn):
                    if not in_threads:
                        log.Restore(element)
                    take(made)
                self.handed_over = True
            finally:
                log.SetKept(in_threads)
                _num_handing_over -= 1
        return made

    def untouched(self):
        """Tell whether no element was taken yet."""
        return deref(self.reader).log().elements() == 0
