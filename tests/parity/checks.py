"""Comparisons with TensorFlow, for an op with one combination of dtypes.

`values`, `gradients` and `graphs` return `Findings`; `compare_malformed` compares single calls.
"""

import dataclasses
import itertools
import re
from contextlib import contextmanager, nullcontext
from functools import cache, partial

import numpy as np
import tensorflow as tf
from support import Failure, difference, outcome
from tensorflow.python.eager import backprop_util
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.framework.ops import gradient_registry

import fastops
from fastops import _registry
from fastops._core import fallback
from fastops._dispatch import Op
from fastops._install.replacement import set_live
from fastops._reports import counters
from parity import cases, malformed, recipes
from parity.draw import PLAIN

reference = cache(fallback.reference)

ROUNDS = 6
"""How often to run a call in TensorFlow to find out whether its result varies."""

MANY_ROUNDS = 40
"""How often to run a call in TensorFlow if only rare runs vary: errors, and results that hardly
ever differ."""


@dataclasses.dataclass
class Findings:
    """The findings of a check for one op with one combination of dtypes.

    Attributes
    ----------
    check, op_name : str
        The check, and the op.
    types : dict of str to str
        The combination.
    cases : int
        The number of calls compared.
    paths : dict of str to int
        The paths of the second runs of successful calls: "direct", or path and reason.
    problems : list of str
        Differences and other problems.
    rejected : str
        The reason why all calls with these dtypes fail in TensorFlow, or "".
    """

    check: str
    op_name: str
    types: dict
    cases: int = 0
    paths: dict = dataclasses.field(default_factory=dict)
    problems: list = dataclasses.field(default_factory=list)
    rejected: str = ""

    def took(self, path):
        self.paths[path] = self.paths.get(path, 0) + 1


def begin(check, op_name, types):
    return Findings(check, op_name, {name: dtype.name for name, dtype in types.items()})


def call_and_path(op_name, arguments):
    """Call an op; return its result or exception, and its path: "direct", "capi:op", ..."""
    counters.reset_counters()
    return outcome(_registry.op(op_name), **arguments), last_path(op_name)


def last_path(op_name):
    """Return the path of the only call of an op since the counters were reset."""
    for name, direct, capi, _, reasons in counters.counters():
        if name == op_name:
            return "direct" if direct else f"{'capi' if capi else 'tensorflow'}:{'+'.join(reasons)}"
    return "none"


def state(case):
    """Return the present values of the variables and tables of a case."""
    values, tables = [], []
    for variable in case.draw.variables:
        handle = variable.handle
        tf.raw_ops.DisableCopyOnRead(resource=handle)  # TensorFlow cannot copy quantized tensors
        values.append(tf.raw_ops.ReadVariableOp(resource=handle, dtype=variable.dtype))
    for table in case.draw.tables:
        keys, found = table.export()
        order = np.array(sorted(range(len(keys)), key=keys.numpy().__getitem__), np.int32)
        tables.append((tf.gather(keys, order), tf.gather(found, order)))
    return values, tables


def compare(case, *others):
    """Compare a case with TensorFlow; `others` are the same case, made again if it has state.

    TensorFlow also makes the first of these calls. The tasks of the second call run in this thread,
    those of the third in TensorFlow's threads.

    Returns
    -------
    problem : str or None
        The difference, if there is one.
    path : str or None
        The path of the last call; `None` if TensorFlow raises.
    """
    theirs = reference(case.op_name)
    want = outcome(theirs, **case.arguments)
    want_state = state(case)
    path = None
    for other, threads in zip(others, ("auto", "caller", "pool"), strict=False):
        with fastops.options(threads=threads):
            got, path = call_and_path(case.op_name, other.arguments)
        problem = discrepancy(case.op_name, got, want) or difference(state(other), want_state)
        again = partial(outcome, theirs, **case.arguments)
        if problem and not excusable(case.op_name, got, want, again):
            return problem, path
        drawn = recipes.DRAWN.get(case.op_name)
        for result in (got, want) if drawn else ():
            if not isinstance(result, Failure) and not drawn.fulfilled(case.arguments, result):
                return f"not a possible draw: {result}", path
    return None, None if isinstance(want, Failure) else path


def discrepancy(op_name, got, want):
    """Describe how two results of an op differ; `None` if only random numbers differ."""
    drawn = recipes.DRAWN.get(op_name)
    if drawn is None or isinstance(got, Failure) or isinstance(want, Failure):
        return difference(got, want)
    return difference(drawn.settled(got), drawn.settled(want))


def excusable(op_name, got, want, again):
    """Tell whether TensorFlow's own runs have the same difference; `again` makes a run."""
    if isinstance(got, Failure) and isinstance(want, Failure) and settled(got) == settled(want):
        return True
    theirs = (again() for _ in itertools.count())
    if isinstance(got, Failure) and isinstance(want, Failure):
        # If there are several mistakes, the one that TensorFlow names may depend on the order of a
        # hash map, which varies.
        return any(difference(got, run) is None for run in itertools.islice(theirs, MANY_ROUNDS))
    runs = [want, *itertools.islice(theirs, ROUNDS)]
    if any(isinstance(result, Failure) for result in (got, *runs)):
        return any(discrepancy(op_name, got, run) is None for run in runs)
    unstable = recipes.UNSTABLE.get(op_name)
    return unstable is not None and unstable.covers(got, runs)


def settled(failure):
    """Return a failure without the parts of the message whose order or spacing varies."""

    def in_order(match):
        return f"{match[1]}[{sorted(match[2].split(', '))}]"

    message = re.sub(r"(with these attrs: )\[([^]]*)\]", in_order, failure.message)
    # If several attributes are wrong, or several nodes fail, TensorFlow names any of them.
    message = re.sub(r"for attr '\w+' of \w+ (is not in|must be) .*", "", message)
    message = re.sub(r"\b(gradient_tape/)+", "", message)
    return failure._replace(message=re.sub(r"\s+", "", message))


def values(op_name, types, thorough=False):
    """Compare every case of an op with these dtypes: values, structure, device, state, path."""
    findings = begin("values", op_name, types)
    findings.rejected = cases.rejection(op_name, types) or ""
    succeeded = False
    for mode in cases.modes(op_name, types):
        for same in same_cases(op_name, types, mode, thorough):
            problem, path = compare(*same)
            findings.cases += 1
            if path is not None:
                findings.took(path)
                succeeded = True
            elif problem is None and mode == PLAIN and not findings.rejected:
                error = outcome(reference(op_name), **same[0].arguments)
                problem = f"the recipe's call is not valid: {error}"[:400]
            if problem:
                findings.problems.append(f"{same[0]}: {problem}")
    if findings.rejected and succeeded:
        findings.problems.append(f"{op_name} {findings.types}: listed as rejected, but runs")
    if not findings.cases and not findings.rejected:
        findings.problems.append(f"{op_name} {findings.types}: the recipe yields no call")
    return findings


def same_cases(op_name, types, mode, thorough, more=0):
    """Yield each case several times, made again if it has state that a call changes.

    With `more`, a case with state is made so many more times.
    """

    def calls():
        return cases.calls(op_name, types, mode, thorough)

    times = 4 if thorough else 3
    if _registry.op(op_name).record.handles:
        yield from zip(*(calls() for _ in range(times + more)), strict=True)
    else:
        yield from ((case,) * times for case in calls())


# ---------------------------------------------------------------------------------------------
# Gradients
# ---------------------------------------------------------------------------------------------


def has_gradient(op_name):
    """Tell whether TensorFlow has a gradient function for an op, or has registered None."""
    try:
        return gradient_registry.lookup(op_name) is not None
    except LookupError:
        return False


def gradients(op_name, types, thorough=False):
    """Compare first and second gradients and the jvp of the plain cases of an op."""
    findings = begin("gradients", op_name, types)
    if not has_gradient(op_name) or cases.rejection(op_name, types) is not None:
        return findings
    op, theirs = _registry.op(op_name), reference(op_name)
    fatal, _ = recipes.NOT_DIFFERENTIATED.get(op_name, (None, ""))
    for one, warm, other in same_cases(op_name, types, PLAIN, thorough=False):
        if not sources(one) or (findings.cases >= MOST_DIFFERENTIATED and not thorough):
            continue
        if fatal and fatal(one.arguments):
            continue
        outcome(op, **warm.arguments)
        for derive in DERIVATIVES if thorough or not findings.cases else DERIVATIVES[:1]:
            want = outcome(partial(derive, theirs, one))

            def ours(**arguments):
                counters.reset_counters()
                try:
                    return op(**arguments)
                finally:
                    findings.took(last_path(op_name))

            got = outcome(partial(derive, ours, other))
            if op_name in recipes.DRAWN:
                got, want = outlined(got), outlined(want)
            problem = difference(got, want)
            if isinstance(got, Failure) and isinstance(want, Failure):
                problem = difference(settled(got), settled(want))
            if problem and not varies(partial(derive, theirs, one), want):
                findings.problems.append(f"{one}: {derive.__name__}: {problem}")
        findings.cases += 1
    return findings


MOST_DIFFERENTIATED = 2
"""How many cases of a combination have their gradients compared in a short run."""


def sources(case):
    """Return the inputs by which a call can be differentiated: float tensors and variables."""
    tensors = [
        tensor
        for tensor in tf.nest.flatten(case.arguments)
        if isinstance(tensor, tf.Tensor) and (tensor.dtype.is_floating or tensor.dtype.is_complex)
    ]
    return tensors + [variable for variable in case.draw.variables if differentiable(variable)]


def differentiable(tensor):
    return backprop_util.IsTrainable(tensor) and tensor.dtype not in (tf.resource, tf.variant)


def second_gradient(function, case):
    """Return the gradients of a call with respect to its sources, and their gradients."""
    by = sources(case)
    with tf.GradientTape(watch_accessed_variables=False) as outer:
        outer.watch(by)
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(by)
            result = tf.nest.flatten(function(**case.arguments))
        first = inner.gradient([output for output in result if differentiable(output)], by)
    again = [gradient for gradient in first if gradient is not None]
    return first, outer.gradient(again, by) if again else None


def jvp(function, case):
    """Return the forward derivative of a call, with tangents of ones."""
    by = sources(case)
    with tf.autodiff.ForwardAccumulator(by, [tf.ones_like(source) for source in by]) as forward:
        result = tf.nest.flatten(function(**case.arguments))
        return [forward.jvp(output) for output in result if differentiable(output)]


DERIVATIVES = (second_gradient, jvp)


def outlined(derivatives):
    """Return derivatives without their values."""
    if isinstance(derivatives, Failure):
        return derivatives
    return tf.nest.map_structure(
        lambda derivative: (
            derivative
            if derivative is None
            else (derivative.dtype, derivative.shape, derivative.device)
        ),
        derivatives,
    )


def varies(program, want):
    """Tell whether the result of a program varies in TensorFlow itself."""
    return any(difference(outcome(program), want) for _ in range(ROUNDS))


# ---------------------------------------------------------------------------------------------
# Graphs
# ---------------------------------------------------------------------------------------------


def graphs(op_name, types, thorough=False):
    """Compare the nodes that an op builds in a function, for all ways to call it or the first.

    Sizes and values of tensors do not affect a node.
    """
    findings = begin("graphs", op_name, types)
    op, theirs = _registry.op(op_name), reference(op_name)
    ways = set()
    for case in cases.calls(op_name, types):
        if cases.rejection(op_name, types) is not None or (findings.cases and not thorough):
            break
        way = repr({name: described(value) for name, value in case.arguments.items()})
        if way in ways:
            continue
        ways.add(way)
        want, got = built(theirs, case.arguments), built(op, case.arguments)
        findings.cases += 1
        if got != want:
            findings.problems.append(f"{case}: built\n{got}\nnot\n{want}")
    return findings


def described(value):
    """Return the parts of an argument that affect a node."""
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    return tf.Tensor if isinstance(value, tf.Tensor) else value


def built(function, arguments):
    """Return the graph of a function that makes a call, and the results of the call in it."""
    with FuncGraph("f").as_default() as graph:
        symbolic = tf.nest.map_structure(
            lambda value: (
                tf.compat.v1.placeholder(value.dtype, value.shape)
                if isinstance(value, tf.Tensor)
                else value
            ),
            arguments,
        )
        result = outcome(function, **symbolic)
        structure = tf.nest.map_structure(repr, result)
    return graph.as_graph_def(), type(result).__name__, structure


# ---------------------------------------------------------------------------------------------
# Malformed calls
# ---------------------------------------------------------------------------------------------


@contextmanager
def at_once(op_name):
    """Yield an op without keys whose first call may be direct, as under `install`."""
    set_live(True)
    try:
        yield Op(op_name)
    finally:
        set_live(False)


def compare_malformed(op_name, call, progress=lambda arm: None, *, first=False):
    """Compare a malformed call with TensorFlow; return the difference, and whether it raises.

    With `first`, the call is also made as the first call of an op, as under `install`.
    """
    theirs = reference(op_name)
    progress("tensorflow")
    again = partial(outcome, partial(call.of, theirs))
    want = again()
    left = outcome(call.state)
    # From the second call on, fastops may run the call on another path than TensorFlow's own.
    ways = [at_once] * first + [lambda op_name: nullcontext(_registry.op(op_name))] * 2
    for way in ways:
        progress("fastops")
        with way(op_name) as op:
            got = outcome(partial(call.of, op))
        problem = unlike(op_name, got, want, again)
        leaks = any(mistake.endswith("a huge integer") for mistake in call.mistakes)
        if leaks and isinstance(got, Failure) and isinstance(want, Failure):
            continue  # TensorFlow continues with an exception set, so either error may be raised
        if problem:
            return problem, isinstance(want, Failure)
        problem = difference(outcome(call.state), left)
        if problem and not leaves_it_to_chance(call, again, left):
            return f"values of the variables: {problem}", isinstance(want, Failure)
        if way is not at_once and isinstance(got, Failure) and op_name not in recipes.RECIPES:
            break  # the next call would fall back, too
    return None, isinstance(want, Failure)


def unlike(op_name, got, want, again):
    """Describe how the results of a malformed call differ; `None` if that is excusable.

    `again` repeats the call in TensorFlow, with the original state.
    """
    try:
        problem = discrepancy(op_name, got, want)
    except (ValueError, tf.errors.InvalidArgumentError):
        # NumPy has no array of such a shape, not even an empty one.
        problem = None if (got.dtype, got.shape) == (want.dtype, want.shape) else "another shape"
    undefined = op_name in malformed.UNDEFINED and type(got) is type(want)
    if not problem or undefined or excusable(op_name, got, want, again):
        return None
    return None if shows_memory(want, again) else problem


def shows_memory(want, again):
    """Tell whether TensorFlow's result depends on the values in freed memory."""
    held = []
    for value in range(1, MANY_ROUNDS + 1):
        dropped = [tf.fill([2**n], value / 7) for n in range(12)]
        held += dropped[::value]
        del dropped
        if difference(again(), want):
            return True
    return False


def leaves_it_to_chance(call, again, left):
    """Tell whether the variables have varying values after repeated calls in TensorFlow."""
    for _ in range(ROUNDS):
        again()
        if difference(outcome(call.state), left):
            return True
    return False
