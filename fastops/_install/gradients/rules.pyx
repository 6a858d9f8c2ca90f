# distutils: language = c++
"""What a tape does when it is asked for gradients.

For every recorded op, TensorFlow calls one Python function, which looks up the gradient function
registered for that op. Another stands in its place here. The rules in the modules beside,
by family, run, for the ops that programs differentiate most, the very ops that TensorFlow's
gradient functions run, so that values are the same to the last bit. Where nothing records what
they run, they leave out two things: they compute shapes and axes where TensorFlow runs ops to get
at them, and they do not compute a gradient that the tape will not look at.

Where an outer tape or an accumulator records what they run (`Step.recorded`), they leave out
nothing that it sees, and keep to the order. A tape adds up the gradients of a tensor in the order
of its walk, and that order depends on all records: a `Shape` of a watched tensor has no gradient,
but the walk waits for it. An op that takes integers alone, such as `BroadcastGradientArgs`, is
never recorded, and left out here, too.

A rule hands over to TensorFlow's function whatever is out of the ordinary: see `_gradient` for
what all rules ask for.
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
        Module and name of the gradient function of TensorFlow's that does the same.
    registered : callable or None
        That function, if it was the registered one.
    restated : bool
        Whether its code is the one that the rule restates, and the rule may run.
    any_grad : bool
        Whether gradients may be other things than tensors, and inputs of any kind.
    taken, left : int
        How often it ran, and how often it handed over.
    """


cdef dict _registrations = _tf_ops._gradient_registry._registry

cdef dict _rules = {}
RULES = _rules
"""Rules by the names of ops."""


cdef int register(str op_names, str stands_for, rule_t function, bint any_grad=False) except -1:
    """Enters a rule for some ops into the table."""
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
    """Let those rules run that still do what TensorFlow's functions do.

    Parameters
    ----------
    objection : callable
        Given the name of an op and the function, tells what is against it.
    guard : callable
        Given the function, returns the guard of a rule that restates it.
    """
    cdef Rule rule
    for op_name, rule in _rules.items():
        rule.restated = objection(op_name, rule.registered) is None
        if rule.restated and rule.guard is None:
            rule.guard = guard(rule.registered)


def reset_counters():
    """Sets the counters of all rules to zero."""
    cdef Rule rule
    for rule in _rules.values():
        rule.taken = rule.left = 0


# ---------------------------------------------------------------------------------------------
# The gradient of one recorded op
# ---------------------------------------------------------------------------------------------

def gradient_function(original):
    """Return what stands in the place of ``backprop._gradient_function``."""
    return replacing(original, _gradient_function)


cdef PyObject* _gradient_function(PyObject* callable, PyObject* const* args, size_t nargsf,
                                  PyObject* keywords) except NULL:
    # The op's name, attributes, number of inputs, inputs, outputs, gradients of the outputs,
    # inputs whose gradients nobody looks at, and a name scope.
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
    """What a rule makes of an op, if one may run."""
    cdef Step step
    cdef Rule rule
    cdef tuple held_attrs, held_inputs, held_outputs
    rule = _rules.get(op_name) if type(op_name) is str else None
    if (
        rule is None
        or not rule.restated
        # Somebody may have registered another function.
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
    except Exception:  # TensorFlow's function will say what is wrong
        result = TENSORFLOW
    if result is TENSORFLOW:
        rule.left += 1
    else:
        rule.taken += 1
    return result


cdef tuple _as_tuple(object values):
    """Values in a tuple, which nobody changes meanwhile. None where they are in something else."""
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
