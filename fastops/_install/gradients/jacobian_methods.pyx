# distutils: language = c++
"""Stand-ins for the methods ``jacobian`` and ``batch_jacobian`` of ``tf.GradientTape``.

`fastops._install.jacobians` computes the results. The comment in `_answer` lists the parameters of
both methods.
"""

from cpython.object cimport PyObject, Py_TYPE

from fastops._core.declined cimport DECLINED
from fastops._core.preparing cimport flushes
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._install.answer cimport MAX_PARAMS, Answer, register

from functools import partial as _partial

from tensorflow.python.eager.backprop import GradientTape as _GradientTape

from fastops._install import jacobians as _jacobians


cdef unsigned long long _known_after = flushes


cdef object _answer(object method, Answer self, PyObject* const* args, Py_ssize_t n,
                    PyObject* keywords):
    # self, target, sources, unconnected_gradients=UnconnectedGradients.NONE,
    # parallel_iterations=None, experimental_use_pfor=True
    global _known_after
    cdef PyObject* given[MAX_PARAMS]
    if (
        not self.bind(args, n, keywords, given)
        or <PyObject*>Py_TYPE(<object>given[0]) != <PyObject*>_GradientTape
        or not IsEagerTensor(given[1])
        or <object>given[4] is not None
        or <object>given[5] is not True
    ):
        return DECLINED
    if _known_after != flushes:
        _known_after = flushes
        _jacobians.forget()
    tape, target, sources, unconnected = (
        <object>given[0], <object>given[1], <object>given[2], <object>given[3]
    )
    call = _partial(self.original, tape, target, sources, unconnected)
    return method(call, tape, target, sources, unconnected)


cdef object _jacobian(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    return _answer(_jacobians.jacobian, self, args, n, keywords)


cdef object _batch_jacobian(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    return _answer(_jacobians.batch_jacobian, self, args, n, keywords)


register("gradients", "tf.GradientTape.jacobian", _jacobian)
register("gradients", "tf.GradientTape.batch_jacobian", _batch_jacobian)

METHODS = tuple([
    (name, _partial(Answer, name=f"tf.GradientTape.{name}"))
    for name in ("jacobian", "batch_jacobian")
])
