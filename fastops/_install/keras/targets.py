"""What is replaced of Keras."""

import sys
from functools import cache, partial
from types import FunctionType

from fastops._install import traced
from fastops._install.keras import backend, batches, calls, dtypes, helper, layers
from fastops._install.keras.functions import FUNCTIONS
from fastops._install.public.targets import of_functions
from fastops._install.target import Target, resolve


def source():
    """Return ``keras.src``, which TensorFlow imports, if it runs on it and has what is asked."""
    keras = sys.modules.get("keras")
    try:
        if keras is None or keras.config.backend() != "tensorflow":
            return None
        for module in (backend, batches, dtypes, helper, layers):
            module.attach(keras.src)
    except AttributeError:
        return None
    return keras.src


def functions():
    """Return what `everywhere` takes, for functions."""
    keras = source()
    if keras is None:
        return {}
    originals = of_functions("keras", FUNCTIONS)
    for answered in helper.HELPERS:
        name = f"keras.src.{answered}"
        holder, attribute = resolve(name)
        original = vars(holder).get(attribute)
        of_optree = getattr(holder, "tree_impl", None) in (None, keras.tree.optree_impl)
        if type(original) is FunctionType and of_optree:
            originals[id(original)] = "keras", name, partial(helper.Helper, name=answered)
    return originals


def methods():
    """Yield a target for each method."""
    if source() is None:
        return
    for answered in helper.METHODS:
        name = f"keras.src.{answered}"
        holder, attribute = resolve(name)
        if type(vars(holder).get(attribute)) is FunctionType:
            make = partial(helper.Helper, name=answered)
            yield Target("keras", name, holder, attribute, make)
    for answered, answer in batches.METHODS.items():
        name = f"keras.src.{answered}"
        holder, attribute = resolve(name)
        if type(vars(holder).get(attribute)) is FunctionType:
            make = partial(traced.Method, answer=answer, anywhere=True)
            yield Target("keras", name, holder, attribute, make)
    layer = source().layers.layer.Layer
    if type(vars(layer)["__call__"]) is FunctionType:
        yield Target("keras", "keras.Layer.__call__", layer, "__call__", _layer_call)


@cache
def _layer_call(original):
    """Return one replacement for ever: replays that stand above it know it."""
    calls.attach(source())
    return calls.LayerCall(original)
