# distutils: language = c++
"""Call sites: places in the code of fastops that call an op with the same argument names."""

cimport cython
from cpython.object cimport PyObject

from fastops._cpp.python cimport PySequence_Fast_ITEMS, call_object
from fastops._dispatch cimport Op

import sys


@cython.final
cdef class CallSite:
    """A place in the code of fastops that calls an op: the op, and the names of the arguments.

    Each call site has an `Op` of its own, because an `Op` finds the key of its last call fastest.

    Parameters
    ----------
    op_name : str
        The name of the op in TensorFlow's registry.
    names : str
        The names of the arguments, separated by blanks.
    """

    def __init__(self, op_name, names):
        self.op = Op(op_name)
        self.names = tuple([sys.intern(name) for name in names.split()])

    cdef object run(self, tuple arguments):
        return call_object(
            <PyObject*>self.op, PySequence_Fast_ITEMS(<PyObject*>arguments), 0,
            <PyObject*>self.names,
        )
