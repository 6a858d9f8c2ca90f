"""Functions that are replayed for NumPy arrays: their code converts the arrays before all else."""

import ast
import inspect
import sys
import textwrap

import pytest
from calls import find

from fastops._install.replay.functions import ARRAYS

pytestmark = pytest.mark.quick

READ_BY_HAND = {
    "tf.clip_by_norm": "it asks for the class",
    "tf.linalg.matvec": "`matmul` and `expand_dims` convert them",
    "tf.nn.embedding_lookup": "it asks for the dtype of the ids",
    "tf.nn.nce_loss": "it asks for the dtype of the labels",
    "tf.nn.sampled_softmax_loss": "it asks for the dtype of the labels",
    "tf.nn.sigmoid_cross_entropy_with_logits": "it asks whether they are None",
    "tf.tensordot": "functions in it have parameters of the same names",
}


def uses(node, name):
    """Return the places in code where a name is read."""
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]


def is_conversion(call):
    return (
        ast.unparse(call.func) in ("ops.convert_to_tensor", "tensor_conversion.convert_to_tensor")
        and len(call.args) == 1
        and {keyword.arg for keyword in call.keywords} <= {"name"}
    )


def scoped(function, name):
    """Return the places where a name is read for a name scope, which reads no values."""
    return [
        use
        for block in ast.walk(function)
        if isinstance(block, ast.With)
        for item in block.items
        if isinstance(item.context_expr, ast.Call)
        and ast.unparse(item.context_expr.func).endswith("name_scope")
        for given in item.context_expr.args
        if isinstance(given, (ast.List, ast.Tuple))
        for use in uses(given, name)
    ]


def statements(block):
    """Yield the statements that run one after another, those in scopes included."""
    for statement in block:
        if isinstance(statement, ast.With):
            yield from (ast.Expr(item.context_expr) for item in statement.items)
            yield from statements(statement.body)
        else:
            yield statement


def converts(function, name):
    """Tell whether a function converts a parameter to a tensor before it uses it otherwise."""
    code = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    beside = scoped(code, name)
    for statement in statements(code.body):
        here = [use for use in uses(statement, name) if use not in beside]
        if not here:
            continue
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            [target] = statement.targets
            if is_conversion(statement.value) and statement.value.args[0] is here[0]:
                every = [use for use in uses(code, name) if use not in beside]
                return len(here) == 1 and (ast.unparse(target) == name or len(every) == 1)
        return passes_on(function, code, statement, here, beside, name)
    return False


def passes_on(function, code, statement, here, beside, name):
    """Tell whether a statement gives the parameter to a function that converts it."""
    every = [use for use in uses(code, name) if use not in beside]
    if len(every) != 1 or isinstance(statement, (ast.If, ast.For, ast.While, ast.Try)):
        return False
    for call in ast.walk(statement):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        callee = inspect.unwrap(vars(sys.modules[function.__module__])[call.func.id])
        parameters = list(inspect.signature(callee).parameters)
        for position, given in enumerate(call.args):
            if given is here[0]:
                return converts(callee, parameters[position])
        for keyword in call.keywords:
            if keyword.value is here[0]:
                return converts(callee, keyword.arg)
    return False


@pytest.mark.parametrize("title", sorted(set(ARRAYS) - set(READ_BY_HAND)))
def test_arrays_are_converted_first(title):
    function = inspect.unwrap(find(title))
    for name in ARRAYS[title].split():
        assert converts(function, name), name


def test_functions_that_read_an_array_are_found():
    def reads(x):
        if x.shape:
            return 1
        x = ops.convert_to_tensor(x)  # noqa: F821
        return x

    def asks_for_a_dtype(x):
        x = ops.convert_to_tensor(x, dtype="float32")  # noqa: F821
        return x

    def converts_in_a_branch(x, y):
        if y:
            x = ops.convert_to_tensor(x)  # noqa: F821
        return x

    for function in (reads, asks_for_a_dtype, converts_in_a_branch):
        assert not converts(function, "x")
