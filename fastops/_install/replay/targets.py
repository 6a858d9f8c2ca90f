"""The patch points: functions and methods of the running TensorFlow that are replayed."""

from functools import cache, partial

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.trackable.data_structures import ListWrapper

from fastops._install import upstream
from fastops._install.handlers import handlers
from fastops._install.lookups import is_upstream
from fastops._install.replay.functions import (
    ARRAYS,
    FREED,
    FUNCTIONS,
    METHODS,
    OBJECTS,
    WRITTEN_LATER,
)
from fastops._install.replay.replayed import Replayed
from fastops._install.target import Target, generated, in_full, original_of, places
from fastops._specialize.signatures import know_objects

_OF_NUMPY = (
    "tensorflow.python.ops.numpy_ops.np_dtypes._prefer_float32",
    "tensorflow.python.ops.numpy_ops.np_dtypes._allow_float64",
)

SETTINGS = {"tf.experimental.numpy": _OF_NUMPY, "tf.experimental.numpy.random": _OF_NUMPY}
"""By namespace, the settings that its functions read beside their arguments and the context."""


def functions():
    """Return the claims on functions to replay, in the form that `everywhere` takes.

    A function with two names is claimed by the first one.
    """
    claims = {}
    for namespace, names in FUNCTIONS.items():
        with upstream.contained("replayed", namespace):
            module, settings = upstream.check(in_full(namespace), "module"), _settings(namespace)
            for name in names.split():
                with upstream.contained("replayed", f"{namespace}.{name}"):
                    original, title = original_of(module, name), f"{namespace}.{name}"
                    make = partial(
                        _stand_in,
                        settings=settings,
                        arrays=places(original, title, ARRAYS.get(title, "")),
                        frees_sizes=title in FREED,
                    )
                    if title in WRITTEN_LATER and ".gen_" in original.__module__:
                        continue  # it is one op here, and has the stand-in of that op
                    if is_upstream(original):
                        claims.setdefault(id(original), ("replayed", title, make))
    return claims


def _settings(namespace):
    """Return the module and attribute of each setting that functions of a namespace read."""
    names = SETTINGS.get(namespace, ())
    for name in names:
        if upstream.kind_of(upstream.look_up(name)) not in ("bool", "NoneType"):
            raise upstream.MissingNameError("name_kind", f"{name} is not a bool or None")
    return tuple([upstream.resolve(name) for name in names])


def methods():
    """Yield a target for each method."""
    know_objects(dict(_objects()))
    for title, names in METHODS.items():
        kind = None
        with upstream.contained("replayed", title):
            kind = _class(title)
        for name in names.split() if kind is not None else ():
            holder = next((base for base in kind.__mro__ if name in vars(base)), None)
            if holder is not None and is_upstream(vars(holder)[name]):
                yield Target("replayed", f"{title}.{name}", holder, name, _stand_in)


def _objects():
    """Yield the classes of `OBJECTS`, each with the names as a set."""
    for title, names in OBJECTS.items():
        with upstream.contained("replayed", title):
            yield _class(title), frozenset(names.split())
    yield ListWrapper, frozenset()  # TensorFlow wraps lists that are attributes of these objects


def _class(title):
    kind = upstream.check(in_full(title), "class")
    return ResourceVariable if kind is tf.Variable else kind  # tf.Variable(...) makes these


@cache
def _stand_in(original, settings=(), arrays=(), frees_sizes=False):
    """Return the replacement, always the same one, so that it keeps recordings across installs."""
    return Replayed(
        original,
        generated,
        handlers(original),
        settings,
        arrays=arrays,
        frees_sizes=frees_sizes,
    )
