# distutils: language = c++
"""Rules that compute the gradients of recorded ops, and the table of them.

A tape walks backward over its records and needs the gradients of each recorded op. TensorFlow looks
up the gradient function that is registered for the op, and calls it. `gradients_by_rule` runs a
rule in its place, if there is one. The rules are in the modules `FAMILIES` of this package, for the
ops that programs differentiate most. They run the same ops as TensorFlow's gradient functions, so
results are the same to the last bit. If nothing records these ops, a rule saves work in two ways:
it computes shapes and axes for which TensorFlow runs ops, and it does not compute a gradient that
the tape does not use.

If an outer tape or an accumulator records the ops (`BackwardOp.recorded`), a rule runs all ops that
are recorded, in the same order as TensorFlow. A tape adds up the gradients of a tensor in the order
of its walk, and that order depends on all records: a `Shape` of a watched tensor has no gradient,
but the walk waits for it. An op that takes integers only, such as `BroadcastGradientArgs`, is never
recorded, so rules leave it out in this case, too.

A rule returns `DECLINED` for anything unusual. `gradients_by_rule` checks the conditions that all
rules share.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._autodiff.backward_op cimport BackwardOp
from fastops._core.declined cimport DECLINED
from fastops._core.tensors cimport local_tensor
from fastops._cpp.python cimport PySequence_Fast_ITEMS
from fastops._cpp.tape cimport TapeRecord
from fastops._situation cimport IN_ORDER, NO_PROMOTION, missing
from fastops._specialize.guards.names cimport holds
from fastops._tf.eager cimport recording

cdef extern from *:
    """
    static thread_local int fastops_walks = 0;
    static thread_local int fastops_odd_from = 0;
    """
    int walks "fastops_walks"        # how many walks run in this thread, each in the one before
    int odd_from "fastops_odd_from"  # from which of them on no rules run; 0: they run in all

from tensorflow.python.framework import ops as _tf_ops


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


cdef int register(str op_names, str stands_for, rule_t function, bint any_grad=False,
                  rule_t later=NULL) except -1:
    """Add a rule for some ops to the table. `later` is for the variant of later versions."""
    cdef Rule rule
    for op_name in op_names.split():
        rule = Rule.__new__(Rule)
        rule.function = rule.first = function
        rule.later = later
        rule.stands_for = f"tensorflow.python.ops.{stands_for}"
        rule.any_grad = any_grad
        entry = _registrations.get(op_name)
        registered = None if entry is None else entry["type"]
        if registered and f"{registered.__module__}.{registered.__name__}" == rule.stands_for:
            rule.entry = entry
            rule.registered = registered
        _rules[op_name] = rule
    return 0


def choose(objection, is_later, guard):
    """Enable the rules that mirror TensorFlow's current functions.

    Parameters
    ----------
    objection : callable
        Given the name of an op and the function, returns why the rule must not run, or None.
    is_later : callable
        Given the function, tells whether its code is the variant of later versions.
    guard : callable
        Given the function, returns the guard of the rule that mirrors it.
    """
    cdef Rule rule
    for op_name, rule in _rules.items():
        rule.restated = objection(op_name, rule.registered) is None
        if rule.later != NULL:
            rule.function = rule.later if is_later(rule.registered) else rule.first
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

cdef Rule _rule_for(object op_name):
    """Return the rule for an op; None if there is none, or if it must not run."""
    cdef Rule rule = _rules.get(op_name) if type(op_name) is str else None
    if (
        rule is None
        or odd_from
        or not rule.restated
        # Other code may have registered another function since.
        or _registrations.get(op_name) is not rule.entry
        or rule.entry.get("type") is not rule.registered
        or not holds(rule.guard)
    ):
        return None
    return rule


cdef object gradients_of_record(TapeRecord* record, PyObject** grads, int num_grads,
                                const vector[int64_t]& unneeded):
    """Return the gradients of a record by its op's rule; `DECLINED` if no rule handles it."""
    cdef BackwardOp op
    cdef Rule rule = _rule_for(<object>record.op_name)
    cdef size_t i
    if rule is None:
        return DECLINED
    op.inputs, op.num_inputs = record.inputs(), record.num_inputs if record.keeps_inputs else 0
    op.outputs, op.num_outputs = record.outputs(), record.num_outputs if record.keeps_outputs else 0
    op.grads, op.num_grads = grads, num_grads
    op.attrs = record.attrs
    op.unused = 0
    for i in range(unneeded.size()):
        if unneeded[i] < 64:
            op.unused |= (<unsigned long long>1) << <int>unneeded[i]
    return _apply(rule, &op)


cdef object gradients_by_rule(object op_name, object attrs, object inputs, object outputs,
                              object grads, object unused):
    """Return the gradients of an op by its rule; `DECLINED` if no rule handles it."""
    cdef BackwardOp op
    cdef Rule rule = _rule_for(op_name) if type(grads) is tuple else None
    cdef tuple held_attrs, held_inputs, held_outputs
    if rule is None:
        return DECLINED
    held_attrs = _as_tuple(attrs)
    held_inputs = _as_tuple(inputs)
    held_outputs = _as_tuple(outputs)
    if held_attrs is None or held_inputs is None or held_outputs is None:
        return DECLINED
    op.inputs = PySequence_Fast_ITEMS(<PyObject*>held_inputs)
    op.outputs = PySequence_Fast_ITEMS(<PyObject*>held_outputs)
    op.grads = PySequence_Fast_ITEMS(<PyObject*>grads)
    op.num_inputs = PyTuple_GET_SIZE(held_inputs)
    op.num_outputs = PyTuple_GET_SIZE(held_outputs)
    op.num_grads = PyTuple_GET_SIZE(grads)
    op.attrs = <PyObject*>held_attrs
    op.unused = 0
    if unused is not None:
        for i in unused:
            if i < 64:
                op.unused |= (<unsigned long long>1) << <int>i
    return _apply(rule, &op)


cdef object _apply(Rule rule, BackwardOp* op):
    """Return what the rule makes of an op, or `DECLINED`."""
    op.recorded = recording()
    if not rule.any_grad and not (
        _all_here(op.inputs, op.num_inputs)
        and _all_here(op.outputs, op.num_outputs)
        and _all_here(op.grads, op.num_grads)
    ):
        rule.left += 1
        return DECLINED
    if missing(IN_ORDER | NO_PROMOTION):
        rule.left += 1
        return DECLINED
    try:
        result = rule.function(op)
    except Exception:  # TensorFlow's function will raise the error
        result = DECLINED
    if result is DECLINED:
        rule.left += 1
    else:
        rule.taken += 1
    return result


cdef bint is_alike(object gradient, object tensor) except -1:
    return (
        gradient._datatype_enum() == tensor._datatype_enum()
        and gradient._shape_tuple() == tensor._shape_tuple()
    )


cdef void begin_walk(bint odd) noexcept:
    global walks, odd_from
    walks += 1
    if odd and odd_from == 0:
        odd_from = walks


cdef void end_walk() noexcept:
    global walks, odd_from
    if odd_from == walks:
        odd_from = 0
    walks -= 1


def leave_out():
    """Run no rules until the end of this thread's walk: a gradient is not as its tensor."""
    global odd_from
    if odd_from == 0:
        odd_from = walks


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
