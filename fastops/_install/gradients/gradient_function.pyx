# distutils: language = c++
"""Stand-in for the function that a tape calls for the gradient of each recorded op.

For every recorded op, TensorFlow calls one Python function, which looks up the gradient function
that is registered for the op. The stand-in runs a rule instead, if there is one.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from fastops._autodiff.rules cimport gradients_by_rule
from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._install.replacement cimport Replacement, call_original, live, replacing


def gradient_function(original):
    """Return the stand-in for ``backprop._gradient_function``."""
    return replacing(original, _gradient_function)


cdef PyObject* _gradient_function(PyObject* callable, PyObject* const* args, size_t nargsf,
                                  PyObject* keywords) except NULL:
    # args: op name, attributes, number of inputs, inputs, outputs, gradients of the outputs, inputs
    # whose gradients the tape does not use, and a name scope.
    cdef Replacement self = <Replacement>callable
    if keywords == NULL and PyVectorcall_NARGS(nargsf) == 8 and live:
        result = gradients_by_rule(
            <object>args[0], <object>args[1], <object>args[3], <object>args[4],
            <object>args[5], <object>args[6],
        )
        if result is not DECLINED:
            Py_INCREF(result)
            return <PyObject*>result
    return call_original(self, args, nargsf, keywords)
