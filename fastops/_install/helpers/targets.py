"""What is replaced of TensorFlow's helpers: the functions and methods that the data names."""

import sys
from functools import partial
from types import FunctionType

from fastops._install.helpers import attributes
from fastops._install.helpers.answer import Answer
from fastops._install.helpers.functions import HELPERS, METHODS, STANDARD, TF_KERAS
from fastops._install.target import Target, signature


def functions():
    """Return what `everywhere` takes, for functions."""
    originals = {}
    for helper in HELPERS:
        module_name, _, attribute = helper.name.rpartition(".")
        module = sys.modules[f"tensorflow.python.{module_name}"]
        original = vars(module).get(attribute)
        if type(original) is FunctionType and signature(original) == helper.signature:
            name = f"{module_name.rpartition('.')[2]}.{attribute}"
            originals[id(original)] = "helpers", name, partial(Answer, name=name)
    return originals


def methods():
    """Yield a target for each method, and for what a property calls."""
    yield from _methods("tensorflow.python.", METHODS)
    yield from _methods("", STANDARD)
    if _tf_keras():
        yield from _methods("tf_keras.src.", TF_KERAS)


def _tf_keras():
    """Tell whether tf_keras was imported, and make its classes known."""
    try:
        source = sys.modules["tf_keras"].src
        attributes.attach(
            source.engine.base_layer.Layer,
            source.engine.training.Model,
            source.utils.object_identity.ObjectIdentityDictionary,
        )
    except (AttributeError, KeyError):
        return False
    return True


def _methods(package, helpers):
    for helper in helpers:
        module_name, kind, attribute = helper.name.rsplit(".", 2)
        holder = vars(sys.modules[package + module_name])[kind]
        original = vars(holder).get(attribute)
        name = f"{kind}.{attribute}"
        make, function = partial(Answer, name=name), original
        if type(original) is property:
            make, function = partial(_property, make), original.fget
        if type(function) is FunctionType and signature(function) == helper.signature:
            yield Target("helpers", name, holder, attribute, make)


def _property(make, original):
    return property(make(original.fget), original.fset, original.fdel, original.__doc__)
