"""Property-based tests: values, shapes, attributes and dtypes are drawn by hypothesis.

Each example takes a call of a recipe and replaces some arguments by others of the same kind. The
outcome must be the same as TensorFlow's.
"""

import numpy as np
import tensorflow as tf
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st
from support import Failure, outcome

from fastops import _registry
from fastops._core.fallback import reference
from parity import cases, checks
from parity.draw import constant
from parity.search import Bag

SIDES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
"""Shapes. Small ones are enough to reach nearly all branches of a kernel."""

REALS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e-40, 3e38]) | (
    st.floats(-100, 100, width=32)
)
ATTRS = {
    "int": st.integers(-2, 5),
    "float": REALS,
    "bool": st.booleans(),
    "string": st.text(max_size=3),
    "shape": st.none() | st.lists(st.none() | st.integers(-1, 4), max_size=4),
}
"""Values of attributes by kind, in addition to those that an OpDef lists."""

TRUSTED = {("RandomIndexShuffle", "rounds")}
"""Attributes that kernels do not check: with wrong values, they read out of bounds or never end."""


def elements(dtype):
    """Return a strategy for elements of a dtype."""
    if dtype == tf.string:
        return st.binary(max_size=4)
    if dtype.is_bool:
        return st.booleans()
    if dtype.is_integer:
        low, high = int(dtype.min), int(dtype.max)
        few = st.integers(max(low, -3), min(high, 5))
        # Integers are small, since they may be sizes. Calls with huge sizes are tested as malformed
        # calls.
        return few if dtype in (tf.int32, tf.int64) else few | st.sampled_from([low, high])
    if dtype.is_quantized:
        return st.integers(0, 7)
    if dtype.is_complex:
        return st.builds(complex, REALS, REALS)
    return REALS


@st.composite
def tensors(draw, like):
    """Draw a tensor with the dtype of another one, and often with its shape."""
    shape = draw(st.just(tuple(like.shape)) | SIDES)
    size = int(np.prod(shape))
    assume(size <= 1024)
    # A few values are repeated: lists of different values find no more errors, but are slow.
    few = draw(st.lists(elements(like.dtype), min_size=1, max_size=8))
    values = np.empty(size, object)
    values[:] = [few[i % len(few)] for i in range(size)]
    return constant(values.reshape(shape), like.dtype)


def attribute(attr):
    """Return a strategy for values of an attribute, or `None` if it has no other values."""
    kind = attr.type.removeprefix("list(").rstrip(")")
    if attr.allowed:
        values = st.sampled_from(attr.allowed)
    elif kind in ATTRS:
        values = ATTRS[kind]
    else:
        return None
    return st.lists(values, max_size=5) if attr.type.startswith("list(") else values


@st.composite
def changed(draw, op_name, arguments):
    """Draw a call in which some arguments are replaced."""
    record = _registry.op(op_name).record
    call = dict(arguments)
    for param in record.params:
        value = call.get(param.name)
        if not draw(st.booleans()):
            continue
        if isinstance(value, tf.Tensor) and value.dtype != tf.resource:
            call[param.name] = draw(tensors(value))
        elif param.is_input and isinstance(value, list):
            call[param.name] = [draw(tensors(item)) for item in value]
        elif not param.is_input and (op_name, param.op_def_name) not in TRUSTED:
            values = attribute(record.op_def.attr(param.op_def_name))
            if values is not None:
                call[param.name] = draw(values)
    return call


def with_state_of(case, call):
    """Return a call with the handles of another draw of the same case."""
    return {
        name: case.arguments[name]
        if isinstance(value, tf.Tensor) and value.dtype == tf.resource
        else value
        for name, value in call.items()
    }


def search(task, progress, report):
    """Compare examples of an op with TensorFlow: `task.start` is the seed, `stop` their number."""
    theirs = reference(task.op_name)
    combinations = [
        types
        for types in cases.combinations(task.op_name, thorough=True)
        if cases.rejection(task.op_name, types) is None
    ]

    def example(data):
        types = data.draw(st.sampled_from(combinations), label="dtypes")
        mode = data.draw(st.sampled_from(cases.modes(task.op_name, types)), label="values")
        trios = list(checks.same_cases(task.op_name, types, mode, thorough=False))
        index = data.draw(st.sampled_from(range(len(trios))), label="number of the recipe's call")
        trio = trios[index]
        call = data.draw(changed(task.op_name, trio[0].arguments), label="arguments")
        progress(task.start, repr(call)[:800], task.arm)
        if task.arm != "both":
            outcome(theirs if task.arm == "tensorflow" else _registry.op(task.op_name), **call)
            return

        def again():
            case = list(cases.calls(task.op_name, types, mode))[index]
            return outcome(theirs, **with_state_of(case, call))

        arms = [with_state_of(case, call) for case in trio]
        want = outcome(theirs, **arms[0])
        report(Bag(tried=1, raised=isinstance(want, Failure)))
        for ours in arms[1:]:
            got = outcome(_registry.op(task.op_name), **ours)
            problem = checks.unlike(task.op_name, got, want, again)
            if problem:
                raise AssertionError(problem)

    run = settings(
        max_examples=task.stop,
        deadline=None,
        database=None,
        print_blob=False,
        phases=[Phase.generate, *([Phase.shrink] if task.arm == "both" else [])],
        suppress_health_check=list(HealthCheck),
    )(seed(task.start)(given(data=st.data())(example)))
    try:
        run()
    except Exception as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        report(Bag(problems=[f"{task.op_name}, seed {task.start}: {error}\n{notes}"]))
