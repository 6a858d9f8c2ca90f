# distutils: language = c++
"""Stand-ins for the functions with which TensorFlow walks over tapes.

For every recorded op, TensorFlow calls one Python function, which looks up the gradient function
that is registered for the op. The stand-in runs a rule instead, if there is one. For the records
that fastops makes, the rule runs without the stand-in, and a gradient function without a rule is
replayed.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._autodiff.op_gradients cimport gradients_by_function, gradients_by_replay
from fastops._autodiff.rules cimport gradients_by_rule, gradients_of_record
from fastops._autodiff.tape cimport walk_of_runtime as _walk_over
from fastops._core.declined cimport DECLINED
from fastops._core.tapes cimport compute_gradients_by
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._cpp.tape cimport TapeRecord
from fastops._install.replacement cimport (
    Replacement, call_original, goes_to, live, replacing,
)

from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.pywrap_tfe import TFE_Py_RegisterGradientFunction as _register

from fastops._core.reasons import text_of as _text_of

cdef str _ARGUMENTS = _text_of("walk_arguments")


def _type_of_tapes():
    """Return the type of the runtime's tapes, which has no public name."""
    tape = _pywrap_tfe.TFE_Py_TapeSetNew(False, False)
    _pywrap_tfe.TFE_Py_TapeSetRemove(tape)
    return type(tape)


cdef object _RuntimeTape = _type_of_tapes()
cdef object _registered = None  # TensorFlow's function, or the stand-in


def walk_of_runtime(original):
    """Return the stand-in for ``pywrap_tfe.TFE_Py_TapeGradient``.

    TensorFlow calls that function in all cases that the stand-ins for the methods of tapes leave to
    it.
    """
    return replacing(original, _walk_of_runtime)


cdef PyObject* _walk_of_runtime(PyObject* callable, PyObject* const* args, size_t nargsf,
                                PyObject* keywords) except NULL:
    # args: the runtime's tape, targets, sources, and so on
    cdef Replacement self = <Replacement>callable
    cdef Py_ssize_t i, n = PyVectorcall_NARGS(nargsf)
    if n == 0 or type(<object>args[0]) is not _RuntimeTape or keywords != NULL:
        return call_original(self, args, nargsf, keywords)
    result = _walk_over(self.original, _ARGUMENTS, tuple([<object>args[i] for i in range(n)]))
    Py_INCREF(result)
    return <PyObject*>result


def gradient_function(original):
    """Return the stand-in for ``backprop._gradient_function``."""
    return replacing(original, _gradient_function)


def register(function):
    """Have tapes call a function for the gradients of ops.

    Parameters
    ----------
    function : callable
        TensorFlow's function, or the stand-in. With the stand-in, fastops makes the records of the
        ops that it runs.
    """
    global _registered
    _registered = function
    _register(function)
    if isinstance(function, Replacement):
        compute_gradients_by(_gradient_of_record)
    else:
        compute_gradients_by(NULL)


cpdef bint runs_rules() except -1:
    """Tell whether the rules run without a call of the stand-in.

    While calls are verified, the stand-in has to be called.
    """
    return (
        live
        and isinstance(_registered, Replacement)
        and goes_to(<Replacement>_registered, _gradient_function)
    )


cdef PyObject* _gradient_of_record(TapeRecord* record, PyObject** grads, int num_grads,
                                   const vector[int64_t]& unneeded) except NULL:
    maker = <object>record.attrs
    if type(maker) is not tuple:
        custom = maker.made([<object>record.inputs()[i] for i in range(record.num_inputs)])
        result = custom(*[<object>grads[i] for i in range(num_grads)])
        Py_INCREF(result)
        return <PyObject*>result
    if runs_rules():
        result = gradients_of_record(record, grads, num_grads, unneeded)
        if result is DECLINED:
            result = gradients_by_replay(
                (<Replacement>_registered).original, record, grads, num_grads, unneeded
            )
    else:
        result = gradients_by_function(_registered, record, grads, num_grads, unneeded)
    Py_INCREF(result)
    return <PyObject*>result


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
