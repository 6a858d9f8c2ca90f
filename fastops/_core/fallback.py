"""TensorFlow's own functions for ops, and reports about fallbacks to them.

These functions define the meaning of every call. The fast paths must do the same as they do.
"""

import inspect
import logging
import sys
import warnings
from functools import cache

import tensorflow as tf
from tensorflow.python.framework import _pywrap_python_op_gen

from fastops._core import opdef
from fastops._core.errors import FallbackError, FallbackWarning
from fastops._core.tables import index

LOG = logging.getLogger("fastops.fallback")

_PLUGIN_MARK = "_IS_TENSORFLOW_PLUGIN"


def raw_name(op_name):
    """Return the attribute of `tf.raw_ops`, and so of `fastops.raw_ops`, for an op's name."""
    return index.RAW_NAMES.get(op_name) or op_name.replace(">", "_")


def reference(op_name):
    """Return TensorFlow's generated function for an op, in its keyword-only form.

    Parameters
    ----------
    op_name : str
        Name of a registered op, such as ``"AddV2"``.

    Returns
    -------
    callable
        ``tf.raw_ops.AddV2``; for an op that is not exported there, the same function from the
        module or custom-op library that defines it. An op that TensorFlow ships without any
        Python function gets one from TensorFlow's own generator.
    """
    attribute = raw_name(op_name)
    function = getattr(tf.raw_ops, attribute, None)
    if function is not None:
        return getattr(function, "original", function)  # `fastops.install` may have replaced it
    for name, module in list(sys.modules.items()):
        if name.rpartition(".")[2].startswith("gen_") or _PLUGIN_MARK in vars(module or object()):
            function = vars(module).get(attribute)
            if function is not None:
                return function
    return _generate(op_name)


@cache
def _generate(op_name):
    from tensorflow.core.framework import op_def_pb2

    op_list = op_def_pb2.OpList()
    op_list.op.add().CopyFrom(opdef.registered_proto(op_name))
    source = _pywrap_python_op_gen.GetPythonWrappers(op_list.SerializeToString())
    namespace = {"__name__": f"fastops.generated.{op_name}"}
    exec(source, namespace)  # the text that tf.load_op_library would execute
    return namespace[raw_name(op_name)]


def result_type(op_name):
    """Return the namedtuple class of the results of an op with several outputs."""
    return inspect.unwrap(reference(op_name)).__globals__[f"_{raw_name(op_name)}Output"]


def kernel_error_prefix(op_name, attrs):
    """Return TensorFlow's prefix of a kernel's error message.

    TensorFlow runs an eager op inside a function, and the prefix names a node of that function. The
    name has the lengths of lists of results.

    Parameters
    ----------
    op_name : str
        Name of a registered op.
    attrs : dict
        The explicit attributes of the call, by their names in the OpDef.
    """
    device = tf.config.list_logical_devices("CPU")[0].name
    values = [(name, attrs[name]) for name in _lists(op_name) if name in attrs]
    lists = "".join(
        f"_{name}_{value if isinstance(value, int) else len(value)}" for name, value in values
    )
    return f"{{{{function_node __wrapped__{op_name}{lists}_device_{_full_name(device)}}}}} "


@cache
def _lists(op_name):
    """Return the attributes that determine the lengths of lists of results."""
    outputs = opdef.registered(op_name).outputs
    return sorted({output.number_attr or output.type_list_attr for output in outputs} - {""})


def _full_name(device):
    spec = tf.DeviceSpec.from_string(device)
    return spec.replace(
        job=spec.job or "localhost", replica=spec.replica or 0, task=spec.task or 0
    ).to_string()


def report(op_name, path, reason, text, detail, how):
    """Report a call that did not take the direct path, as `on_fallback` is set."""
    explained = text if detail is None else f"{text}: {detail}"
    message = f"{op_name} ran through {path!r} instead of its kernel: {explained} [{reason}]"
    if how == "raise":
        raise FallbackError(message)
    if how == "warn":
        warnings.warn(message, FallbackWarning, stacklevel=2)
    else:
        fields = {"op": op_name, "path": path, "reason": reason, "detail": detail}
        LOG.warning(message, extra=fields, stacklevel=2)
