# distutils: language = c++
"""An op apart from its calls: how it is loaded, what Python sees of it, and its entries.

Several objects may stand for one op: each call site of a stand-in has one of its own. They share
the op's record and its table of entries.
"""

from copy import copy

from libc.stdlib cimport calloc, free

from fastops._core.reasons cimport NUM_REASONS
from fastops._cpp.opdef cimport kList, kNone, kTensor

from fastops._core import fallback as _fallback
from fastops._core.loading import LOCK
from fastops._core.record import record_of


records = {}
"""The records of the ops that were used, by name."""

cdef dict _tables = {}  # the tables of the ops that were called, by name
cdef list loaded = []


cdef int drop_entries() except -1:
    global _tables
    cdef BaseOp op
    _tables = {}
    for op in loaded:
        op.last = None
        op.table = _tables.setdefault(op.op_name, {})
    return 0


cdef class BaseOp(Schema):
    """The base class of `Op`."""

    def __dealloc__(self):
        free(self.calls_reason)

    cdef int load(self) except -1:
        with LOCK:
            if self.ready:
                return 0
            record = self.record
            if record.error is not None:
                raise copy(record.error)
            self.read(record)
            if self.calls_reason == NULL:
                self.calls_reason = <long long*>calloc(NUM_REASONS, sizeof(long long))
                if self.calls_reason == NULL:
                    raise MemoryError()
            self.table = _tables.setdefault(self.op_name, {})
            loaded.append(self)
            # Set these two last: other threads read them to see whether the op is loaded.
            self.num_params = len(self.keywords)
            self.ready = True
        return 0

    cdef object packed(self, list results, lengths):
        cdef int i = 0
        if self.facts.structure == kTensor:
            return results[0]
        if self.facts.structure == kNone:
            return None
        if self.facts.structure == kList:
            return results
        parts = []
        for length in lengths:
            if length is None:
                parts.append(results[i])
                i += 1
            else:
                parts.append(results[i:i + <int>length])
                i += <int>length
        if self.result_type is None:
            self.result_type = _fallback.result_type(self.op_name)
        return tuple.__new__(self.result_type, parts)

    @property
    def record(self):
        """fastops._core.record.OpRecord: the record of the op."""
        if self._record is None:
            op_record = records.get(self.op_name)
            if op_record is None:
                # `setdefault` is atomic: two threads that make the same record get the same one.
                op_record = records.setdefault(self.op_name, record_of(self.op_name))
            self._record = op_record
        return self._record

    @property
    def __name__(self):
        return self.record.name

    @property
    def __qualname__(self):
        return self.record.name

    @property
    def __module__(self):
        return self.record.module

    @property
    def __signature__(self):
        return self.record.signature()

    @property
    def never_direct(self):
        """str or None: why no call of this op may run its kernel directly."""
        return self.record.exclusion

    def __repr__(self):
        return f"<fastops op {self.op_name}>"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    # An op does not bind to an instance, like a builtin function. `inspect`, `pydoc` and type
    # checkers therefore treat it as a function.
    def __get__(self, instance, owner):
        return self
