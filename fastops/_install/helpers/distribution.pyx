# distutils: language = c++
"""Distribution where nothing is distributed: the strategy that is in force by default.

The first line of each answer has the function's parameters.
"""

from cpython.object cimport PyObject

from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_None
from fastops._dispatch cimport eager
from fastops._install.helpers.answer cimport MAX_PARAMS, PASS, Answer, register
from fastops._install.helpers.structures cimport leaves_of
from fastops._tf.eager cimport recording

from tensorflow.python.distribute import distribute_lib as _distribute
from tensorflow.python.distribute.reduce_util import ReduceOp as _ReduceOp
from tensorflow.python.ops import gen_array_ops as _gen_array_ops
from tensorflow.python.util import nest as _nest


cdef object _Context = _distribute._DefaultReplicaContext
cdef object _Extended = _distribute._DefaultDistributionExtended
cdef frozenset _names = frozenset(member.value for member in _ReduceOp)


cdef object _all_reduce(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, reduce_op, value, options=None
    cdef PyObject* values[MAX_PARAMS]
    cdef list leaves
    if not self.bind(args, n, keywords, values) or values[3] != Py_None:
        return PASS
    context, operation = <object>values[0], <object>values[1]
    if type(context) is not _Context or type(context._strategy._extended) is not _Extended:
        return PASS
    if _distribute._get_per_thread_mode().replica_context is not context:
        return PASS
    if type(operation) is not _ReduceOp and not (
        type(operation) is str and (<str>operation).upper() in _names
    ):
        return PASS
    if not eager() or recording():
        return PASS
    leaves = leaves_of(<object>values[2], False)
    if not leaves:
        return PASS
    for leaf in leaves:
        if not IsEagerTensor(<PyObject*>leaf):
            return PASS
    # The sum or mean of one replica, by a function with a gradient of its own.
    copies = [_gen_array_ops.identity(leaf) for leaf in leaves]
    return _nest.pack_sequence_as(<object>values[2], copies)


register("ReplicaContextBase.all_reduce", _all_reduce)
