# distutils: language = c++
"""Functions of the backend that run exactly one op.

An op takes its arguments only by keyword, under the names in TensorFlow's registry. An `Alias` has
the names, positions and defaults of another function, and puts the arguments into the op's slots.
A call needs no Python frame.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.string cimport memset

from fastops._core.locals cimport promotes_no_dtypes
from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._dispatch cimport FASTOPS_MAX_PARAMS, Invocation, Op, begin, run_op
from fastops._install.intercept cimport dtype_bits, tensor_dtype
from fastops._install.public.lowering cimport is_tensor
from fastops._install.replacement cimport Replacement, call_original, enable

import inspect
import sys


@cython.final
@cython.no_gc_clear
cdef class Alias(Replacement):
    """An op with the parameters of a function.

    Parameters
    ----------
    original : callable
        The function with these parameters, written with TensorFlow's public functions. It gives the
        alias its name and docstring. It is the fallback for calls that the op cannot run: in
        graphs, with composite or symbolic tensors, and with wrong arguments.
    op : Op
        The op.
    params : dict of str to str
        By parameter of the op, the parameter of the function.
    constants : dict of str to object
        By parameter of the op, a constant argument.
    tensors : iterable of str
        The arguments that must be tensors or variables, since the function would convert other
        values in another way than the op.
    dtypes : iterable of tf.DType
        The dtypes of the first of `tensors` for which the function runs this op; empty for all.
    handlers : list of dict
        The handlers that users have registered for TensorFlow's function.

    Attributes
    ----------
    op : Op
        The object of `fastops.ops` that a call runs.
    """

    def __init__(self, original, Op op not None, params, constants=(), tensors=(), dtypes=(),
                 handlers=()):
        super().__init__(original)
        self.always = True
        self.op = op
        parameters = inspect.signature(original).parameters.values()
        self.names = tuple([sys.intern(parameter.name) for parameter in parameters])
        defaults = [parameter.default for parameter in parameters]
        self.defaults = tuple([value for value in defaults if value is not inspect.Parameter.empty])
        self.num_params = len(self.names)
        self.num_required = self.num_params - len(self.defaults)
        self.params = {source: to for to, source in params.items()}
        if set(self.params) != set(self.names) or self.num_params > MAX_PARAMS:
            raise ValueError(f"{original.__name__} does not give {op} all of its parameters")
        constants = dict(constants)
        self.constants = tuple(constants.items())
        for i, name in enumerate(self.names):
            if name in tensors:
                self.tensors |= <unsigned int>1 << <int>i
        self.lead = self.names.index(tensors[0]) if tensors else -1
        self.dtypes = dtype_bits(dtypes) if dtypes else 0
        self.handlers = tuple(handlers)
        self.num_handlers = tuple([len(of) for of in handlers])
        self.vectorcall = _first_call


cdef PyObject* _first_call(PyObject* callable, PyObject* const* args, size_t nargsf,
                           PyObject* keywords) except NULL:
    """Makes the first call: finds the slots of the arguments, for which the op must be loaded."""
    cdef Alias self = <Alias>callable
    self.op.load()
    for i, name in enumerate(self.names):
        self.slots[<int>i] = self.op.keywords.index(self.params[name])
    for i, (name, _) in enumerate(self.constants):
        self.constant_slots[<int>i] = self.op.keywords.index(name)
    self.constants = tuple([value for _, value in self.constants])
    self.num_slots = self.op.num_params
    self.vectorcall = _call
    return _call(callable, args, nargsf, keywords)


cdef PyObject* _call(PyObject* callable, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) except NULL:
    cdef Alias self = <Alias>callable
    cdef PyObject* slots[FASTOPS_MAX_PARAMS]
    cdef PyObject* values[MAX_PARAMS]
    cdef Invocation call
    cdef Py_ssize_t i, n = PyVectorcall_NARGS(nargsf)
    # Bind the arguments to the parameters.
    if n > self.num_params:
        return call_original(self, args, nargsf, keywords)
    for i in range(n):
        values[i] = args[i]
    if n != self.num_params or keywords != NULL:
        for i in range(n, self.num_params):
            values[i] = NULL
        if keywords != NULL and not _bind(self, args, n, keywords, values):
            return call_original(self, args, nargsf, keywords)
        for i in range(n, self.num_params):
            if values[i] == NULL:
                if i < self.num_required:
                    return call_original(self, args, nargsf, keywords)
                values[i] = PyTuple_GET_ITEM(self.defaults, i - self.num_required)
    # Fall back if the function would run something else than the op.
    if not promotes_no_dtypes() or self.tensors and not _fits(self, values):
        return call_original(self, args, nargsf, keywords)
    for i in range(PyTuple_GET_SIZE(self.handlers)):
        if len(<dict>self.handlers[i]) != self.num_handlers[i]:
            return call_original(self, args, nargsf, keywords)
    memset(slots, 0, self.num_slots * sizeof(PyObject*))
    for i in range(self.num_params):
        slots[self.slots[i]] = values[i]
    for i in range(PyTuple_GET_SIZE(self.constants)):
        slots[self.constant_slots[i]] = PyTuple_GET_ITEM(self.constants, i)
    begin(&call, <PyObject*>self.original, args, nargsf, keywords)
    return run_op(self.op, slots, &call)


cdef bint _bind(Alias self, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                PyObject** values) except -1:
    """Bind keyword arguments to parameters. False if they do not fit."""
    cdef Py_ssize_t i, j
    cdef PyObject* keyword
    for i in range(PyTuple_GET_SIZE(<object>keywords)):
        keyword = PyTuple_GET_ITEM(<object>keywords, i)
        for j in range(n, self.num_params):
            if keyword == PyTuple_GET_ITEM(self.names, j):
                break
        else:  # not interned, unknown, or passed twice
            for j in range(n, self.num_params):
                if <object>keyword == self.names[j]:
                    break
            else:
                return False
        if values[j] != NULL:
            return False
        values[j] = args[n + i]
    return True


cdef bint _fits(Alias self, PyObject** values) except -1:
    cdef int i
    for i in range(self.num_params):
        if (self.tensors >> i) & 1 and not is_tensor(values[i]):
            return False
    return self.dtypes == 0 or (
        (self.dtypes >> <int>tensor_dtype(values[self.lead])) & 1
    )


enable(Alias)
