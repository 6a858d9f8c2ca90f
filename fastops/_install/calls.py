"""Patch points for calls of ops: the dispatch call, the generated functions, and the operators."""

from functools import cache, partial

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.framework.tensor import Tensor

from fastops import _registry
from fastops._core import opdef
from fastops._core.fallback import raw_name
from fastops._core.tables import index, policy
from fastops._install import intercept, seeds
from fastops._install.dtypes import parse
from fastops._install.lookups import is_upstream
from fastops._install.operators import OPERATORS, WITH_BOOL, WITH_FLOAT, WITH_INT
from fastops._install.target import Target, gen_module


def _find(op_name):
    """Return the op for the name in a dispatch call, or `None` if it is not public."""
    if op_name.startswith("_") or opdef.registered(op_name) is None:
        return None
    return _registry.op(op_name)


def dispatch():
    """Yield the targets for the call by which generated functions run ops, and for its caches."""
    yield Target(
        "dispatch",
        "TFE_Py_FastPathExecute",
        pywrap_tfe,
        "TFE_Py_FastPathExecute",
        lambda original: intercept.FastPathExecute(original, _find),
    )
    yield Target(
        "dispatch",
        "TFE_ContextClearCaches",
        pywrap_tfe,
        "TFE_ContextClearCaches",
        seeds.clear_caches,
    )


@cache
def _generated(original, op_name, keyword_only):
    """Return the replacement, always the same one, so that another `install` takes less time."""
    return intercept.Generated(original, _registry.op(op_name), keyword_only=keyword_only)


def functions():
    """Return the claims on generated functions, in the form that `everywhere` takes.

    A function with two names is claimed by the first one.
    """
    claims = {}
    for name, op_name in index.NAMES.items():
        if op_name in policy.NEVER:  # the stand-in for the dispatch call counts these ops
            continue
        module = gen_module(op_name)
        for attribute, keyword_only in ((name, False), (raw_name(op_name), True)):
            original = vars(module).get(attribute) if module is not None else None
            if is_upstream(original) and id(original) not in claims:
                make = partial(_generated, op_name=op_name, keyword_only=keyword_only)
                shown = f"{module.__name__.rpartition('.')[2]}.{attribute}"
                claims[id(original)] = "functions", shown, make
    return claims


def operators():
    """Yield a target for each operator of tensors and variables."""
    for operator in OPERATORS:
        ops = {
            dtype: _registry.op(op_name)
            for names, op_name in operator.ops.items()
            for dtype in parse(names)
        }
        for reflected, name in enumerate(operator.names.split()):
            options = operator.options | {
                "floats": parse(WITH_FLOAT),
                "ints": parse(WITH_INT),
                "bools": parse(WITH_BOOL),
                "reflected": bool(reflected),
            }
            make = partial(intercept.Operator, ops=ops, **options)
            yield Target("operators", f"tf.Tensor.{name}", Tensor, name, make)
            if "compares" not in options:  # variables define comparisons differently
                make = partial(make, of_variables=True)
                yield Target("operators", f"tf.Variable.{name}", tf.Variable, name, make)
