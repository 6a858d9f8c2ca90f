# distutils: language = c++
"""Notes which sizes of tensors Python reads in a recorded call.

While a call is recorded, `tf.Tensor.shape` is a `tf.TensorShape` whose sizes are `NotedSizes`: a
tuple that notes which of its items are read. The number of sizes is not noted. A recording holds
for all batch sizes if its code has read no size that depends on the batch size (`recording.py`).
"""

import dis
import sys
from functools import lru_cache

from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape

from fastops._core import bytecode
from fastops._core.tensors import note_sizes as _note_sizes, noted_sizes as _noted_sizes
from fastops._specialize.guards.names import original_of as _original_of
from fastops._specialize.policy import MAX_CODES
from fastops._specialize.recording.instructions import SILENT as _SILENT
from fastops._specialize.recording.witness import unwitnessed as _unwitnessed

cdef object _new = object.__new__


class NotedSizes(tuple):
    """The sizes of a tensor, which note the reads of them until the recording ends.

    The attributes of an instance are ``reads``, a `SizeReads`, and ``tensor``.
    """

    def __getitem__(self, key):
        chosen = tuple.__getitem__(self, key)
        numbers = range(len(self))[key]
        _note(self, numbers if isinstance(key, slice) else (numbers,))
        return chosen

    def __iter__(self):
        if vars(self):
            try:
                axes = _unwitnessed(_axes_taken, sys._getframe(), self)
            except Exception:  # for example, something else is in the place of a spec
                axes = None
            _note(self, axes)
        return tuple.__iter__(self)

    def __contains__(self, item):
        if item is not None:  # a tensor has no unknown size
            _note(self, None)
        return tuple.__contains__(self, item)

    def __reduce_ex__(self, protocol):
        _note(self, None)
        return tuple, (list(tuple.__iter__(self)),)


def _noting(name):
    method = getattr(tuple, name)

    def noted(self, *args):
        _note(self, None)
        return method(self, *args)

    return noted


for _name in (
    *("__add__", "__eq__", "__ge__", "__gt__", "__hash__", "__le__", "__lt__", "__mul__", "__ne__"),
    *("__repr__", "__rmul__", "count", "index"),
):
    setattr(NotedSizes, _name, _noting(_name))


def _radd(self, other):
    if not isinstance(other, tuple):
        return NotImplemented
    _note(self, None)
    return other + tuple(tuple.__iter__(self))


NotedSizes.__radd__ = _radd  # so that CPython does not join the two without a note


def _axes_taken(frame, sizes):
    """Return the axes by which code may decide that takes all sizes; None for all of them."""
    if any([frame.f_code is code for code in _code_of_shapes()]):
        frame = frame.f_back
    item = _item_after(frame.f_code, frame.f_lasti)
    if item is not None:  # for example, `shape.as_list()[-1]`
        return (item,) if -len(sizes) <= item < len(sizes) else None
    return vars(sizes)["reads"].axes_of(frame, len(sizes))


cdef list _code_of_shapes():
    """Return the code of methods that take all sizes of a shape for their callers."""
    methods = [_original_of(vars(_TensorShape)[name]) for name in ("as_list", "__iter__")]
    return [getattr(method, "__code__", None) for method in methods]


@lru_cache(maxsize=MAX_CODES)
def _item_after(code, at):
    """Return the index of the item that code takes of the list from `TensorShape.as_list`, or None.

    `at` is the offset of the instruction that runs. Only a call of this method counts, as other
    calls may put the sizes in another order.
    """
    if not bytecode.REVIEWED:
        return None
    listed = [one for one in dis.get_instructions(code) if one.opname not in _SILENT]
    now = next((i for i, one in enumerate(listed) if one.offset == at), 0)
    if now == 0 or now + 2 >= len(listed):
        return None
    method, call, index, taking = [listed[now + i] for i in range(-1, 3)]
    lists = method.opname in ("LOAD_METHOD", "LOAD_ATTR") and method.argval == "as_list"
    calls = call.opname in ("CALL", "CALL_METHOD") and call.arg == 0
    loads = index.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and type(index.argval) is int
    takes = taking.opname == "BINARY_SUBSCR" or (
        taking.opname == "BINARY_OP" and taking.arg == bytecode.SUBSCRIPT
    )
    return index.argval if lists and calls and loads and takes else None


cdef int _note(sizes, axes) except -1:
    attributes = vars(sizes)
    if attributes:
        attributes["reads"].note(attributes["tensor"], axes)
    return 0


class SizeReads:
    """The reads of sizes in a recorded call.

    Parameters
    ----------
    axes_of : callable
        Given the frame of code that takes all sizes of a tensor, and their number, returns the axes
        by which this code may decide; None for all of them.

    Attributes
    ----------
    noted : list of tuple
        The tensor, and the axes; None for all of them.
    native : set of tuple
        What `fastops._core.tensors.noted_sizes` returns.
    """

    def __init__(self, axes_of):
        self.axes_of, self.noted, self.native = axes_of, [], set()
        self.shapes, self.made = [], []

    def start(self):
        """Start to note the reads of compiled code."""
        _note_sizes()

    def stop(self):
        """Stop noting."""
        self.native = _noted_sizes()
        for shape in self.shapes:
            if type(shape._dims) is NotedSizes:
                shape._dims = tuple(tuple.__iter__(shape._dims))
        for sizes in self.made:
            vars(sizes).clear()
        self.shapes, self.made = [], []

    def note(self, tensor, axes):
        """Note a read."""
        self.noted.append((tensor, None if axes is None else tuple(axes)))

    def watched_sizes(self, tensor, sizes):
        """Return the sizes of a tensor, given as a tuple: reads of them are noted."""
        if not sizes:  # TensorFlow recognizes scalars by the identity of the empty tuple
            return sizes
        watched = tuple.__new__(NotedSizes, sizes)
        vars(watched).update(reads=self, tensor=tensor)
        self.made.append(watched)
        return watched

    def watched_shape(self, tensor, shape):
        """Return a `TensorShape` for a tensor, given its own: reads of it are noted."""
        if type(shape) is not _TensorShape or type(shape._dims) is not tuple:
            self.note(tensor, None)
            return shape
        watched = _new(_TensorShape)
        watched._dims = self.watched_sizes(tensor, shape._dims)
        self.shapes.append(watched)
        return watched
