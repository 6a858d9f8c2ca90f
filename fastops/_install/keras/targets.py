"""The patch points in Keras."""

import sys
from functools import cache, partial
from types import FunctionType

from fastops._install import upstream
from fastops._install.answer import Answer
from fastops._install.keras.functions import FUNCTIONS, HELPERS
from fastops._install.target import Target, claim, original_of, resolve

_ATTACHED = "backend batches calls dtypes kinds"
"""Modules of this package that look up names in Keras."""


def source():
    """Return ``keras.src`` if Keras is imported and its backend is TensorFlow; `None` otherwise."""
    if sys.modules.get("keras") is None:
        return None
    try:
        if upstream.look_up("keras.config.backend")() != "tensorflow":
            return None
        package = upstream.look_up("keras.src")
    except Exception as problem:
        upstream.leave_out("keras", "all", upstream.said(problem))
        return None
    for part in _ATTACHED.split():
        _attached(part, package)
    return package


def _attached(part, keras):
    """Return a module, after it has looked up its names in Keras; `None` if it cannot be used."""
    module = upstream.load(f"keras.{part}")
    if module is None:
        return None
    try:
        module.attach(keras)
    except Exception as problem:
        upstream.find_fault(f"keras.{part}", upstream.said(problem))
        return None
    return module


def functions():
    """Return the claims on Keras's functions, in the form that `everywhere` takes."""
    if source() is None:
        return {}
    claims = _of_backend()
    for answered in HELPERS:
        name = f"keras.src.{answered}"
        with upstream.contained("keras", name):
            holder, attribute = resolve(name)
            original = original_of(holder, attribute)
            if type(original) is FunctionType and _is_usable(answered) and _of_optree(holder):
                claim(claims, original, "keras", name, partial(Answer, name=answered))
    return claims


def _of_backend():
    """Return the claims on functions of Keras's backend."""
    title = "functions of the backend"
    public = upstream.load_for("public.targets", "keras", title)
    if public is None or upstream.load_for("keras.backend", "keras", title) is None:
        return {}
    return public.of_functions("keras", FUNCTIONS)


def _of_optree(holder):
    """Tell whether a module of Keras uses optree for structures, if it handles structures."""
    implementation = getattr(holder, "tree_impl", None)
    return implementation is None or implementation is upstream.look_up(
        "keras.src.tree.optree_impl"
    )


def _is_usable(answered):
    """Tell whether the answer for a function can be used here. If not, record the reason."""
    why = upstream.objection_to_registered("keras", answered)
    if why is not None:
        upstream.leave_out("keras", f"keras.src.{answered}", why)
    return why is None


def methods():
    """Yield a target for each method."""
    if source() is None:
        return
    yield from _batches()
    yield from _layers()


def _batches():
    batches = upstream.load_for("keras.batches", "keras", "batches")
    traced = upstream.load_for("traced", "keras", "batches")
    if batches is None or traced is None:
        return
    for answered, answer in batches.METHODS.items():
        name = f"keras.src.{answered}"
        with upstream.contained("keras", name):
            holder, attribute = resolve(name)
            if type(original_of(holder, attribute)) is FunctionType:
                make = partial(traced.PlainMethod, answer=answer, anywhere=True)
                yield Target("keras", name, holder, attribute, make)


def _layers():
    title = "keras.Layer.__call__"
    if upstream.load_for("keras.calls", "keras", title) is None:
        return
    with upstream.contained("keras", title):
        layer = upstream.look_up("keras.src.layers.layer.Layer")
        if type(original_of(layer, "__call__")) is FunctionType:
            yield Target("keras", title, layer, "__call__", _layer_call)


@cache
def _layer_call(original):
    """Return the replacement, always the same one, because replays refer to it."""
    return upstream.load("keras.calls").LayerCall(original)
