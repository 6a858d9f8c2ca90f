"""The patch points: the helper functions and methods in the tables of `functions`."""

import sys
from functools import partial
from types import FunctionType

from fastops._install import upstream
from fastops._install.answer import Answer
from fastops._install.helpers.functions import HELPERS, METHODS, STANDARD, TF_KERAS, WRAPPER
from fastops._install.target import Target, claim, original_of, signature


def functions():
    """Return the claims on helper functions, in the form that `everywhere` takes."""
    claims = {}
    for helper in HELPERS:
        name = ".".join(helper.name.rsplit(".", 2)[1:])
        with upstream.contained("helpers", name):
            original = original_of(*upstream.resolve(f"tensorflow.python.{helper.name}"))
            if (
                is_usable(name)
                and type(original) is FunctionType
                and signature(original) == helper.signature
            ):
                claim(claims, original, "helpers", name, partial(Answer, name=name))
    return claims


def is_usable(name):
    """Tell whether the answer for a function can be used here. If not, record the reason."""
    why = upstream.objection_to_registered("helpers", name)
    if why is not None:
        upstream.leave_out("helpers", name, why)
    return why is None


def methods():
    """Yield a target for each method and property of TensorFlow and Python."""
    yield from _methods("tensorflow.python.", METHODS)
    yield from _methods("tensorflow.python.", (WRAPPER,), lambda _: _class_of_wrappers())
    yield from _methods("", STANDARD)


def of_tf_keras():
    """Yield a target for each method of tf_keras."""
    if sys.modules.get("tf_keras") is None:
        return
    attributes = upstream.load("helpers.attributes")
    with upstream.contained("helpers", "attributes of tf_keras's objects"):
        if attributes is not None:
            attributes.attach(upstream.look_up("tf_keras.src"))
        yield from _methods("tf_keras.src.", TF_KERAS)


def _holder(name):
    return upstream.resolve(name)[0]


def _class_of_wrappers():
    """Return the class of the results of `tf.TensorArray.write`, which TensorFlow makes once."""
    array = upstream.look_up("tensorflow.TensorArray")
    make = upstream.look_up("tensorflow.python.util.tf_should_use._get_wrapper")
    return type(make(object.__new__(array), None))


def _methods(package, helpers, holder_of=_holder):
    for helper in helpers:
        _, kind, attribute = helper.name.rsplit(".", 2)
        name = f"{kind}.{attribute}"
        with upstream.contained("helpers", name):
            holder = holder_of(f"{package}{helper.name}")
            original = original_of(holder, attribute)
            make, function = partial(Answer, name=name), original
            if type(original) is property:
                make, function = partial(_property, make), original.fget
            if (
                is_usable(name)
                and type(function) is FunctionType
                and signature(function) == helper.signature
            ):
                yield Target("helpers", name, holder, attribute, make)


def _property(make, original):
    return property(make(original.fget), original.fset, original.fdel, original.__doc__)
