# distutils: language = c++
"""Stand-in for the function that a tape calls for the gradient of each recorded op.

For every recorded op, TensorFlow calls one Python function, which looks up the gradient function
that is registered for the op. The stand-in calls a rule instead, if there is one. The rules are in
the other modules of this package, by family, for the ops that programs differentiate most. They run
the same ops as TensorFlow's gradient functions, so results are the same to the last bit. If nothing
records these ops, a rule saves work in two ways: it computes shapes and axes for which TensorFlow
runs ops, and it does not compute a gradient that the tape does not use.

If an outer tape or an accumulator records the ops (`Step.recorded`), a rule runs all ops that are
recorded, in the same order as TensorFlow. A tape adds up the gradients of a tensor in the order of
its walk, and that order depends on all records: a `Shape` of a watched tensor has no gradient, but
the walk waits for it. An op that takes integers only, such as `BroadcastGradientArgs`, is never
recorded, so rules leave it out in this case, too.

A rule returns TENSORFLOW for anything unusual. `_gradient` checks the conditions that all rules
share.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_SIZE

from fastops._core.tensors cimport local_tensor
from fastops._cpp.python cimport PySequence_Fast_ITEMS, PyVectorcall_NARGS
from fastops._dispatch cimport in_order
from fastops._install.gradients.step cimport Step
from fastops._specialize.guards.names cimport holds
from fastops._install.intercept cimport promotes_no_dtypes
from fastops._install.replacement cimport Replacement, call_original, live, replacing
from fastops._tf.eager cimport recording

from tensorflow.python.framework import ops as _tf_ops


TENSORFLOW = object()


# ---------------------------------------------------------------------------------------------
# The table of rules
# ---------------------------------------------------------------------------------------------

@cython.final
cdef class Rule:
    """The gradient of an op.

    Attributes
    ----------
    stands_for : str
        Module and name of TensorFlow's gradient function that the rule mirrors.
    registered : callable or None
        That function, if it was registered when the rule was made.
    restated : bool
        Whether that function has the code that the rule mirrors. Only then may the rule run.
    any_grad : bool
        Whether inputs and gradients may be of any type.
    taken, left : int
        How many calls the rule handled, and how many fell back to TensorFlow.
    """


cdef dict _registrations = _tf_ops._gradient_registry._registry

cdef dict _rules = {}
RULES = _rules
"""The rules, by names of ops."""


cdef int register(str op_names, str stands_for, rule_t function, bint any_grad=False) except -1:
    """Add a rule for some ops to the table."""
    cdef Rule rule
    for op_name in op_names.split():
        rule = Rule.__new__(Rule)
        rule.function = function
        rule.stands_for = f"tensorflow.python.ops.{stands_for}"
        rule.any_grad = any_grad
        entry = _registrations.get(op_name)
        registered = None if entry is None else entry["type"]
        if registered and f"{registered.__module__}.{registered.__name__}" == rule.stands_for:
            rule.entry = entry
            rule.registered = registered
        _rules[op_name] = rule
    return 0


def choose(objection, guard):
    """Enable the rules that mirror TensorFlow's current functions.

    Parameters
    ----------
    objection : callable
        Given the name of an op and the function, returns why the rule must not run, or None.
    guard : callable
        Given the function, returns the guard of the rule that mirrors it.
    """
    cdef Rule rule
    for op_name, rule in _rules.items():
        rule.restated = objection(op_name, rule.registered) is None
        if rule.restated and rule.guard is None:
            rule.guard = guard(rule.registered)


def reset_counters():
    """Set the counters of all rules to zero."""
    cdef Rule rule
    for rule in _rules.values():
        rule.taken = rule.left = 0


# ---------------------------------------------------------------------------------------------
# The gradient of one recorded op
# ---------------------------------------------------------------------------------------------

def gradient_function(original):
    """Return the stand-in for ``backprop._gradient_function``."""
    return replacing(original, _gradient_function)


cdef PyObject* _gradient_function(PyObject* callable, PyObject* const* args, size_t nargsf,
                                  PyObject* keywords) except NULL:
    # args: op name, attributes, number of inputs, inputs, outputs, gradients of the outputs, inputs
    # whose gradients the tape does not use, and a name scope.
    cdef Replacement self = <Replacement>callable
    if keywords == NULL and PyVectorcall_NARGS(nargsf) == 8 and live:
        result = _gradient(
            <object>args[0], <object>args[1], <object>args[3], <object>args[4],
            <object>args[5], <object>args[6],
        )
        if result is not TENSORFLOW:
            Py_INCREF(result)
            return <PyObject*>result
    return call_original(self, args, nargsf, keywords)


cdef object _gradient(object op_name, object attrs, object inputs, object outputs, object grads,
                      object unused):
    """Return the gradients of an op by its rule; TENSORFLOW if no rule handles it."""
    cdef Step step
    cdef Rule rule
    cdef tuple held_attrs, held_inputs, held_outputs
    rule = _rules.get(op_name) if type(op_name) is str else None
    if (
        rule is None
        or not rule.restated
        # Other code may have registered another function since.
        or _registrations.get(op_name) is not rule.entry
        or rule.entry.get("type") is not rule.registered
        or type(grads) is not tuple
        or not holds(rule.guard)
    ):
        return TENSORFLOW
    held_attrs = _as_tuple(attrs)
    held_inputs = _as_tuple(inputs)
    held_outputs = _as_tuple(outputs)
    if held_attrs is None or held_inputs is None or held_outputs is None:
        return TENSORFLOW
    step.inputs = PySequence_Fast_ITEMS(<PyObject*>held_inputs)
    step.outputs = PySequence_Fast_ITEMS(<PyObject*>held_outputs)
    step.grads = PySequence_Fast_ITEMS(<PyObject*>grads)
    step.num_inputs = PyTuple_GET_SIZE(held_inputs)
    step.num_outputs = PyTuple_GET_SIZE(held_outputs)
    step.num_grads = PyTuple_GET_SIZE(grads)
    step.attrs = <PyObject*>held_attrs
    step.unused = 0
    if unused is not None:
        for i in unused:
            if i < 64:
                step.unused |= (<unsigned long long>1) << <int>i
    step.recorded = recording()
    if not rule.any_grad and not (
        _all_here(step.inputs, step.num_inputs)
        and _all_here(step.outputs, step.num_outputs)
        and _all_here(step.grads, step.num_grads)
    ):
        rule.left += 1
        return TENSORFLOW
    if not in_order() or not promotes_no_dtypes():
        rule.left += 1
        return TENSORFLOW
    try:
        result = rule.function(&step)
    except Exception:  # TensorFlow's function will raise the error
        result = TENSORFLOW
    if result is TENSORFLOW:
        rule.left += 1
    else:
        rule.taken += 1
    return result


cdef tuple _as_tuple(object values):
    """Return a list or tuple as a tuple, which cannot change; None for other types."""
    if type(values) is tuple:
        return <tuple>values
    if type(values) is list:
        return tuple(<list>values)
    return () if values is None else None


cdef bint _all_here(PyObject** values, Py_ssize_t size) noexcept:
    cdef Py_ssize_t i
    for i in range(size):
        if values[i] != <PyObject*>None and local_tensor(values[i]) == NULL:
            return False
    return True
