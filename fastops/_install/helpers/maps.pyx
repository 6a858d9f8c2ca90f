# distutils: language = c++
"""Answers for functions of TensorFlow that map functions of users over elements.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._situation cimport NO_PROMOTION, NO_STRATEGY, PLAIN, missing

from fastops._install import bodies as _bodies


cdef enum:
    _REQUIRED = PLAIN | NO_PROMOTION | NO_STRATEGY


cdef object _vectorized_map(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # fn, elems, fallback_to_while_loop=True, warn=True
    cdef PyObject* given[MAX_PARAMS]
    if not self.bind(args, n, keywords, given) or missing(_REQUIRED):
        return DECLINED
    if type(<object>given[2]) is not bool or type(<object>given[3]) is not bool:
        return DECLINED
    made = _bodies.vectorized_map(
        <object>given[0], <object>given[1], <object>given[2], <object>given[3]
    )
    return DECLINED if made is None else made[0]


register("helpers", "control_flow_ops.vectorized_map", _vectorized_map)
