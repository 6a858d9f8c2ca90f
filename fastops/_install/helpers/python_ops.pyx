# distutils: language = c++
"""Answer for the function behind `tf.py_function`, which runs a Python function as an op.

Each eager call has a token of its own, and TensorFlow makes a kernel for it. The kernel calls
Python in the calling thread. The answer makes the same call of TensorFlow's Python, without the
kernel. If the function raises, or if its results do not fit, the op runs after all, with this
outcome in place of the function: so the error, its text and its traceback are TensorFlow's.

The first comment line of each answer lists the parameters of the function.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF

from fastops._core.declined cimport DECLINED
from fastops._cpp.vectorcall cimport EnableVectorcall, vectorcall_t
from fastops._dispatch cimport Op
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._situation cimport (
    EAGERLY, IN_ORDER, NO_CANCELLATION, NO_PROMOTION, ONLY_HOST, USUAL_DEVICE, missing,
)
from fastops._tf.eager cimport recording as taped

cdef extern from "Python.h":
    PyObject* PyObject_Call(PyObject*, PyObject*, PyObject*)
    void PyErr_Fetch(PyObject**, PyObject**, PyObject**)
    void PyErr_Restore(PyObject*, PyObject*, PyObject*)

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import execute as _tf_execute
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_script_ops, script_ops
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._core.tensors import alias_of as _alias_of

cdef enum:
    _REQUIRED = EAGERLY | IN_ORDER | ONLY_HOST | USUAL_DEVICE | NO_PROMOTION | NO_CANCELLATION

cdef Op _op = Op("EagerPyFunc")  # counts the calls
cdef frozenset _NUMBERS = frozenset([bool, int, float])
cdef type _array = np.ndarray
cdef type _scalar = np.generic
cdef object _dtype = tf.DType
cdef object _convert = tf.convert_to_tensor


class Token(str):
    """A token that keeps its function alive: the gradient function may look it up.

    Attributes
    ----------
    function : tensorflow.python.ops.script_ops.EagerFunc
        The function.
    """

    __slots__ = ("function",)


@cython.final
cdef class PythonOutcome:
    """Stands for a Python function in TensorFlow's registry: ends as its call has ended.

    A call adds no frame of its own to the traceback of the exception.
    """

    cdef vectorcall_t vectorcall
    cdef object __weakref__
    cdef PyObject* result     # null: the call has raised
    cdef PyObject* error[3]

    def __cinit__(self):
        self.vectorcall = _end
        self.result = NULL
        self.error[0] = self.error[1] = self.error[2] = NULL

    def __dealloc__(self):
        cdef int i
        Py_XDECREF(self.result)
        for i in range(3):
            Py_XDECREF(self.error[i])

    @property
    def __class__(self):
        return script_ops.EagerFunc  # the registry calls functions of other classes with arrays


cdef PyObject* _end(PyObject* callable, PyObject* const* args, size_t nargsf,
                    PyObject* keywords) noexcept:
    cdef PythonOutcome self = <PythonOutcome>callable
    cdef int i
    if self.result != NULL:
        Py_XINCREF(self.result)
        return self.result
    for i in range(3):
        Py_XINCREF(self.error[i])
    PyErr_Restore(self.error[0], self.error[1], self.error[2])
    return NULL


cdef bint _is_taken(object value) except -1:
    """Whether a value is an input that TensorFlow converts to a tensor in one way."""
    kind = type(value)
    if kind is EagerTensor or kind is ResourceVariable or kind in _NUMBERS:
        return True
    return (kind is _array or isinstance(value, _scalar)) and value.dtype.kind in "biuf"


cdef list _inputs(object values):
    """Return the values as tensors; None if there are others."""
    if type(values) is not list and type(values) is not tuple:
        return None
    for value in values:
        if not _is_taken(value):
            return None
    try:
        return [value if type(value) is EagerTensor else _convert(value) for value in values]
    except Exception:  # the original raises it again
        return None


cdef list _aliases(list tensors):
    """Return new tensors with the same buffers; None if one is not on the host, or is a handle."""
    cdef list aliases = []
    for tensor in tensors:
        alias = _alias_of(tensor)
        if alias is None:
            return None
        aliases.append(alias)
    return aliases


cdef list _dtypes(object given):
    """Return the dtypes of the results; None for other types."""
    cdef list dtypes = list(given) if isinstance(given, (list, tuple)) else [given]
    for dtype in dtypes:
        if type(dtype) is not _dtype or dtype._is_ref_dtype:
            return None
    return dtypes


cdef list _results(object outputs, list dtypes):
    """Return what the kernel makes of the outputs of its function; None if it would fail."""
    cdef Py_ssize_t i
    if outputs is None:
        outputs = []
    elif type(outputs) is EagerTensor:
        outputs = [outputs]
    elif type(outputs) is not list:
        return None
    if len(outputs) != len(dtypes):
        return None
    for i in range(len(dtypes)):
        if type(outputs[i]) is not EagerTensor or outputs[i].dtype is not dtypes[i]:
            return None
    return _aliases(outputs)


cdef object _run(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # func, inp, Tout, stateful=None, use_eager_py_func=False, is_grad_func=False, name=None
    cdef PyObject* given[MAX_PARAMS]
    cdef PythonOutcome outcome
    cdef list inputs, aliases, dtypes
    if not self.bind(args, n, keywords, given) or missing(_REQUIRED):
        return DECLINED
    function, name = <object>given[0], <object>given[6]
    if (
        <object>given[4] is not True
        or type(<object>given[5]) is not bool
        or not callable(function)
        or not (name is None or type(name) is str)
    ):
        return DECLINED
    dtypes = _dtypes(<object>given[2])
    if dtypes is None:
        return DECLINED
    inputs = _inputs(<object>given[1])
    aliases = None if inputs is None else _aliases(inputs)
    if aliases is None:
        return DECLINED
    wrapped = script_ops.EagerFunc(
        script_ops.autograph.do_not_convert(function), dtypes, <object>given[5]
    )
    token = script_ops._py_funcs._next_unique_token()
    call = (None, token, aliases)
    outcome = PythonOutcome.__new__(PythonOutcome)
    outcome.result = PyObject_Call(<PyObject*>wrapped, <PyObject*>call, NULL)
    if outcome.result == NULL:
        PyErr_Fetch(&outcome.error[0], &outcome.error[1], &outcome.error[2])
    results = None if outcome.result == NULL else _results(<object>outcome.result, dtypes)
    if results is None:
        script_ops._py_funcs._funcs[token] = outcome
        results = gen_script_ops.eager_py_func(
            input=inputs, token=token, is_async=False, Tout=dtypes, name=name
        )
    else:
        if not _op.ready:
            _op.load()  # late: an import of fastops loads no op
        _op.calls_direct += 1
        if taped():
            token = Token(token)
            token.function = script_ops._py_funcs._funcs[str(token)] = wrapped
            attrs = ("token", token, "is_async", False, "Tout", dtypes)
            _tf_execute.record_gradient("EagerPyFunc", inputs, attrs, results)
    return results if isinstance(<object>given[2], (list, tuple)) else results[0]


cdef int _enable() except -1:
    cdef PythonOutcome outcome = PythonOutcome.__new__(PythonOutcome)
    EnableVectorcall(
        <PyTypeObject*>PythonOutcome, <char*>&outcome.vectorcall - <char*><void*>outcome
    )
    return 0


_enable()
register("helpers", "script_ops._internal_py_func", _run)
