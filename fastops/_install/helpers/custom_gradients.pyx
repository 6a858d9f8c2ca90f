# distutils: language = c++
"""Answer for the function behind `tf.custom_gradient`, which records a function of a user.

The answer takes TensorFlow's steps in TensorFlow's order. Structures of plain tensors are taken
apart here; TensorFlow's functions handle all others.

The first comment line of the answer lists the parameters of the function.
"""

cimport cython
from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._situation cimport EAGERLY, missing

from types import FunctionType

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import record
from tensorflow.python.framework import composite_tensor, composite_tensor_gradient, ops
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_array_ops
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.util import nest, tf_inspect

from fastops._autodiff.rules import leave_out
from fastops._install import restated
from fastops._install.helpers.pairs import unpacked

cdef bint _keeps_composites_only = (
    restated.variant("tensorflow.python.ops.custom_gradient:_eager_mode_decorator") == "later"
)
cdef type _tensor = EagerTensor
cdef type _function = FunctionType
cdef frozenset _LEAVES = frozenset([
    EagerTensor, ResourceVariable, bool, int, float, complex, str, bytes, type(None), tf.DType,
])


cdef list _flat(object structure):
    """Return the flat list of what TensorFlow differentiates in a structure."""
    kind = type(structure)
    if kind in _LEAVES:
        return [structure]
    if kind is tuple or kind is list:
        for item in structure:
            if type(item) not in _LEAVES:
                break
        else:
            return list(structure)
    return composite_tensor_gradient.get_flat_tensors_for_gradients(nest.flatten(structure))


cdef tuple _pair(object given):
    """Return the two items of a pair. The errors for other objects are those of Python."""
    if type(given) is tuple and len(<tuple>given) == 2:
        return <tuple>given
    return unpacked(given)


cdef list _others(object watcher, list inputs):
    """Return the trainable variables that the function has read, without those it was given."""
    watched = pywrap_tfe.TFE_Py_VariableWatcherWatchedVariables(watcher)
    if not watched:
        return []
    return [
        reference.deref()
        for reference in {variable.ref() for variable in watched}  # in this order, as TensorFlow
        if all([reference.deref() is not given for given in inputs])
    ]


cdef int _check(object gradient, list variables) except -1:
    """Raise TensorFlow's error if the gradient function must take variables, but does not."""
    if not variables and type(gradient) is _function and not gradient.__dict__:
        return 0
    signature = tf_inspect.getfullargspec(gradient)
    if (
        variables
        and "variables" not in signature.args
        and "variables" not in signature.kwonlyargs
        and not signature.varkw
    ):
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', "
            f"since function uses variables: {variables}"
        )
    return 0


cdef bint _keeps(object result) except -1:
    """Whether TensorFlow's record keeps the result of the user's function."""
    return not _keeps_composites_only or any([
        isinstance(part, composite_tensor.CompositeTensor) for part in nest.flatten(result)
    ])


cdef bint _fits(object slope, tuple kind) except -1:
    """Whether a gradient may have the dtype and shape of its tensor."""
    return type(slope) is not _tensor or (
        slope.dtype is kind[0] and slope._shape_tuple() == kind[1]
    )


@cython.final
cdef class UserBackward:
    """The gradient function that a tape records: passes gradients to that of a user.

    Parameters
    ----------
    gradient : callable
        The user's gradient function.
    result : object
        The result of the user's function; None if TensorFlow's record does not keep it.
    variables : list of tf.Variable
        The variables that the user's function has read.
    num_inputs : int
        The number of tensors among the arguments.
    inputs : list of tuple
        The dtype and shape of each tensor among the arguments.
    """

    cdef object gradient
    cdef object result
    cdef list variables
    cdef Py_ssize_t num_inputs
    cdef list inputs
    cdef object __weakref__

    def __call__(self, *gradients):
        cdef list flat
        cdef object given = gradients
        if self.result is not None and type(self.result) is not _tensor:
            given = composite_tensor_gradient.replace_flat_tensors_for_gradients(
                nest.flatten(self.result), gradients
            )
        for_variables = []
        if self.variables:
            for_inputs, for_variables = _pair(self.gradient(*given, variables=self.variables))
            if len(for_variables) != len(self.variables):
                raise ValueError(
                    "Must return gradient for each variable from @custom_gradient grad_fn."
                )
        else:
            for_inputs = self.gradient(*given)
        flat = _flat(for_inputs)
        if len(flat) != self.num_inputs:
            raise ValueError(
                f"custom_gradient function expected to return {self.num_inputs} gradients, but "
                f"returned {len(flat)} instead."
            )
        if not all([_fits(slope, self.inputs[i]) for i, slope in enumerate(flat)]):
            leave_out()
        return flat + for_variables


cdef object _run(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # f, args, kwargs
    cdef PyObject* values[MAX_PARAMS]
    cdef UserBackward backward
    cdef list inputs, outputs, variables
    cdef Py_ssize_t i
    if not self.bind(args, n, keywords, values) or missing(EAGERLY):
        return DECLINED
    function, positional, named = <object>values[0], <object>values[1], <object>values[2]
    if type(positional) is not tuple or type(named) is not dict:
        return DECLINED
    watcher = pywrap_tfe.TFE_Py_VariableWatcherNew()
    try:
        result, gradient = _pair(function(*positional, **named))
    finally:
        pywrap_tfe.TFE_Py_VariableWatcherRemove(watcher)
    inputs = _flat(positional)
    variables = _others(watcher, inputs + _flat(named) if named else inputs)
    _check(gradient, variables)
    outputs = [gen_array_ops.identity(tensor) for tensor in _flat(result)]
    backward = UserBackward.__new__(UserBackward)
    backward.gradient, backward.result = gradient, result if _keeps(result) else None
    backward.variables, backward.num_inputs = variables, len(inputs)
    inputs = inputs + variables
    for i in range(len(inputs)):
        if type(inputs[i]) is not _tensor:
            inputs[i] = ops.convert_to_tensor(inputs[i])
    backward.inputs = [(tensor.dtype, tensor._shape_tuple()) for tensor in inputs]
    record.record_operation(function.__name__, outputs, inputs, backward)
    if type(result) is _tensor:
        return outputs[0]
    return nest.pack_sequence_as(
        result,
        composite_tensor_gradient.replace_flat_tensors_for_gradients(nest.flatten(result), outputs),
    )


register("helpers", "custom_gradient._eager_mode_decorator", _run)
