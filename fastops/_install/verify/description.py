"""Describes a call that differs, for a message: its arguments, and how fastops handled it."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from fastops._install import intercept, traced
from fastops._install.models.method import RecordedMethod
from fastops._install.replay.replayed import Replayed
from fastops._specialize.policy import (
    MAX_SHOWN_ARGUMENTS,
    MAX_SHOWN_ITEMS,
    MAX_SHOWN_OPS,
    MAX_SHOWN_TEXT,
)


def describe(subject, args, kwargs):
    """Return lines for a message.

    Parameters
    ----------
    subject : fastops._install.verify.engine.Subject
        The replacement that was called.
    args, kwargs : tuple, dict
        The arguments.
    """
    shown = [_shown(value) for value in args]
    shown += [f"{name}={_shown(value)}" for name, value in kwargs.items()]
    if len(shown) > MAX_SHOWN_ARGUMENTS:
        shown[MAX_SHOWN_ARGUMENTS:] = ["..."]
    lines = [f"call: ({', '.join(shown)})"]
    lines += _made_by(subject.replacement, args)
    return "\n".join(f"  {line}" for line in lines)


def _made_by(replacement, args):
    kind = type(replacement)
    if kind is intercept.Generated:
        return [f"op: {replacement.op.op_name}"]
    if kind is RecordedMethod and args:
        return [_of_recording(entry) for entry in replacement.recordings(args[0])]
    if kind is Replayed:
        told = replacement.describe()
        return [f"{told['replayed']} signatures are replayed, of {told['seen']} seen once"]
    if kind is traced.FunctionCall and args:
        caller = getattr(args[0], "_fastops_caller", None)
        cases = () if caller is None else caller.describe()
        return [_of_case(case) for case in cases]
    return []


def _of_case(case):
    plan = f"a plan of {case['nodes']} nodes"
    by = plan if case["executor"] == "plan" else f"TensorFlow ({case['reason']})"
    return f"{by}: {case['arguments']}"


def _of_recording(entry):
    ops = entry["ops"]
    more = f", and {len(ops) - MAX_SHOWN_OPS} more" if len(ops) > MAX_SHOWN_OPS else ""
    return (
        f"recording: scopes {entry['scopes']!r}; {len(entry['places'])} places of the object are "
        f"compared, and the globals of {', '.join(entry['codes']) or 'nothing'}; "
        f"ops: {', '.join(ops[:MAX_SHOWN_OPS])}{more}"
    )


def _shown(value, depth=0):
    if isinstance(value, tf.Tensor):
        return f"<{value.dtype.name} {value.shape}>"
    if isinstance(value, BaseResourceVariable):
        return f"<variable {value.dtype.name} {value.shape}>"
    if isinstance(value, np.ndarray):
        return f"<array {value.dtype} {value.shape}>"
    if isinstance(value, list | tuple) and depth < 2:
        items = [_shown(item, depth + 1) for item in value[:MAX_SHOWN_ITEMS]]
        text = ", ".join(items + ["..."] * (len(value) > MAX_SHOWN_ITEMS))
        return f"[{text}]" if isinstance(value, list) else f"({text})"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        text = repr(value)
        return text if len(text) <= MAX_SHOWN_TEXT else text[:MAX_SHOWN_TEXT] + "..."
    return f"<{type(value).__name__}>"
