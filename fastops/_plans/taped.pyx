# distutils: language = c++
"""Calls of traced functions that tapes record.

For such a call TensorFlow runs a forward function, which also returns what the backward function
needs, and records the backward function on the tapes. TensorFlow makes both functions in the first
such call. Later calls run them from here: as plans, if they have plans
(`fastops._plans.runtime_function`). What tapes record is the same.
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from libcpp.vector cimport vector

from fastops._core.declined cimport DECLINED
from fastops._core.tapes cimport (
    free_recorded_function, new_recorded_function, record_custom,
)
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.tape cimport RecordedOp
from fastops._dispatch cimport tell_watchers
from fastops._situation cimport NO_STRATEGY, PLAIN, missing
from fastops._tf.eager cimport recording as taped

from tensorflow.python.eager import backprop_util as _backprop_util
from tensorflow.python.eager.polymorphic_function.polymorphic_function import (
    UnliftedInitializerVariable as _TracedVariable,
)
from tensorflow.python.framework import ops as _ops
from tensorflow.python.framework.indexed_slices import IndexedSlices as _IndexedSlices
from tensorflow.python.ops import array_ops as _array_ops, default_gradient as _default_gradient
from tensorflow.python.ops.gradients_util import (
    POSSIBLE_GRADIENT_TYPES_FIRST_ORDER as _FIRST_ORDER,
    POSSIBLE_GRADIENT_TYPES_HIGHER_ORDER as _HIGHER_ORDER,
)
from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _Variable
from tensorflow.python.pywrap_tfe import (
    TFE_Py_PackJVPs as _tangents_of,
    TFE_Py_TapeSetPossibleGradientTypes as _possible_gradient_types,
)

from fastops._plans.packing import packer as _packer

cdef str _ATTRIBUTE = "_fastops_taped"
cdef tuple _KEY = (False, ())  # TensorFlow's, for a call that no forward accumulator watches
cdef int _REQUIRED = PLAIN | NO_STRATEGY


cdef list _outputs_of(functions):
    """Return the symbolic outputs of a forward function.

    Its graph may have more: TensorFlow adds those that another backward function captures.
    """
    return functions._forward_graph.outputs[:len(functions._forward.function_type.flat_outputs)]


@cython.final
cdef class TapedFunction:
    """A traced function's forward and backward functions.

    Parameters
    ----------
    concrete : ConcreteFunction
        The trace.
    functions : _TapeGradientFunctions
        TensorFlow's object with the functions. It has made them.
    """

    cdef const RecordedOp* op
    cdef object forward
    cdef readonly object backward
    cdef str name
    cdef object pack           # makes the function's result; None: it is the first tensor
    cdef object pack_gradients
    cdef int num_results
    cdef list captures         # by the backward function: indexes of the outputs, and tensors
    cdef vector[int] recorded  # which outputs of the forward function are recorded
    cdef vector[bint] trainable  # for each of these
    cdef readonly int num_gradients  # that the backward function takes

    def __init__(self, concrete, functions):
        cdef int index, num_trainable = 0
        backward, outputs = functions._backward, _outputs_of(functions)
        self.forward, self.backward = functions._forward, backward
        self.name = functions._forward.cached_definition.signature.name
        self.op = new_recorded_function(self.name)
        self.pack, self.pack_gradients = _packer(concrete), _packer(backward)
        self.num_results = len(concrete.function_type.flat_outputs)
        captured = backward.captured_inputs
        places = {id(tensor): index for index, tensor in enumerate(outputs)}
        self.captures = [places.get(id(capture), capture) for capture in captured]
        self.num_gradients = len(backward.inputs) - len(captured)
        for index, output in enumerate(outputs):
            trainable = bool(_backprop_util.IsTrainable(output))
            if num_trainable < self.num_gradients:
                self.recorded.push_back(index)
                self.trainable.push_back(trainable)
            num_trainable += trainable

    def __dealloc__(self):
        free_recorded_function(self.op)  # records have a reference to this object

    @staticmethod
    def fits(concrete, functions):
        """Tell whether the functions are ones that this class can run."""
        outputs = _outputs_of(functions)
        known = {id(output) for output in outputs}
        return bool(concrete.outputs) and not functions._num_forwardprop_outputs and not any([
            output.dtype._handle_data or output.dtype.name in ("resource", "variant")
            for output in outputs
        ]) and all([
            IsEagerTensor(<PyObject*>capture) or id(capture) in known
            for capture in functions._backward.captured_inputs
        ])

    cdef object run(self, list tensors):
        """Run the forward function, and record it."""
        cdef vector[PyObject*] inputs, kept, outputs
        cdef list results = self.forward.call_flat(*tensors)
        cdef Py_ssize_t i
        for i in range(PyList_GET_SIZE(tensors)):
            inputs.push_back(PyList_GET_ITEM(tensors, i))
        for capture in self.captures:
            kept.push_back(
                PyList_GET_ITEM(results, <int>capture) if type(capture) is int
                else <PyObject*>capture
            )
        for i in range(<Py_ssize_t>self.recorded.size()):
            outputs.push_back(PyList_GET_ITEM(results, self.recorded[i]))
        record_custom(
            self.op, self.name, self, False, kept.data(), <int>kept.size(), inputs.data(),
            <int>inputs.size(), outputs.data(), <int>outputs.size(),
        )
        return results[0] if self.pack is None else self.pack(results[:self.num_results])

    def made(self, list kept):
        """Return the gradient function of a call.

        Parameters
        ----------
        kept : list of EagerTensor
            What the backward function captures.
        """
        return BackwardCall(self, kept)


@cython.final
cdef class BackwardCall:
    """The gradient function of one call."""

    cdef TapedFunction function
    cdef list kept

    def __init__(self, TapedFunction function not None, list kept):
        self.function, self.kept = function, kept

    def __call__(self, *gradients):
        cdef TapedFunction function = self.function
        cdef list given = []
        backward = function.backward
        if not backward.outputs:
            return backward.structured_outputs
        for index, gradient in enumerate(gradients):
            if not function.trainable[<int>index]:
                continue
            if isinstance(gradient, _IndexedSlices):
                gradient = _ops.convert_to_tensor(gradient)
            elif gradient is None:
                like = backward.inputs[len(given)]
                gradient = _array_ops.zeros(*_default_gradient.shape_and_dtype(like))
            given.append(gradient)
            if len(given) >= function.num_gradients:
                break
        if taped() or missing(_REQUIRED):
            return backward._call_flat(given, self.kept)
        results = backward._inference_function.call_flat(*given, *self.kept)
        return results[0] if function.pack_gradients is None else function.pack_gradients(results)


cdef TapedFunction _taped_function(concrete, functions):
    """Return the `TapedFunction` of a trace; None if TensorFlow has to make the call."""
    if functions is None or functions._forward is None:
        return None
    taped_function = getattr(functions, _ATTRIBUTE, None)
    if taped_function is None:
        try:
            fits = TapedFunction.fits(concrete, functions)
            taped_function = TapedFunction(concrete, functions) if fits else DECLINED
        except Exception:  # TensorFlow makes the calls
            taped_function = DECLINED
        setattr(functions, _ATTRIBUTE, taped_function)
    return None if taped_function is DECLINED else taped_function


cdef object call_taped(object concrete, object given, object captured):
    """Run and record a call with flat tensors; `DECLINED` if TensorFlow has to make it."""
    cdef TapedFunction taped_function
    cdef list tensors, variables = []
    if type(given) is not list or type(captured) is not list or missing(_REQUIRED):
        return DECLINED
    tensors = <list>given + <list>captured
    for tensor in tensors:
        if not IsEagerTensor(<PyObject*>tensor):
            return DECLINED
    for reference in concrete._func_graph._weak_variables:
        variable = reference()
        if type(variable) is not _Variable and type(variable) is not _TracedVariable:
            return DECLINED
        variables.append(variable)
    # This must come first: it may be what has a tape record the call. TensorFlow may do it again.
    for variable in variables:
        tell_watchers(variable)
    indices, _ = _tangents_of(tensors)
    if indices:  # an accumulator watches the call: TensorFlow has other functions for it
        return DECLINED
    possible = _possible_gradient_types(tensors)
    if possible == _FIRST_ORDER:
        functions = concrete._first_order_tape_functions.get(_KEY)
    elif possible == _HIGHER_ORDER:
        functions = concrete._higher_order_tape_functions.get(_KEY)
    else:
        return DECLINED
    taped_function = _taped_function(concrete, functions)
    return DECLINED if taped_function is None else taped_function.run(tensors)
