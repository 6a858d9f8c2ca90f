"""The patch points: methods of objects that are replayed, and calls of users' modules."""

import sys
from functools import cache
from types import FunctionType

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._install import restated, upstream
from fastops._install.keras.targets import source
from fastops._install.models import method, modules, scopes
from fastops._install.models.library import (
    NAMES,
    OF_TENSORFLOW,
    OF_TF_KERAS_LAYERS,
    OF_TRAINING,
    UNASKED,
)
from fastops._install.target import Target, original_of
from fastops._specialize.libraries import is_keras
from fastops._specialize.recording.plain import OF_GENERATORS

CONVERTING = "keras.src.layers.layer:Layer.__call__"
"""The original that first converts arrays to tensors, if `restated` knows its code."""

LAYER = "layers.layer.Layer"
LOSS = "losses.loss.Loss"
OPTIMIZER = "optimizers.base_optimizer.BaseOptimizer"

METHODS = {
    LAYER: "__call__",
    LOSS: "__call__",
    OPTIMIZER: "apply",
    "models.model.Trainer": "predict_step test_step train_step",
}
"""By class in ``keras.src``, the names of its methods. Methods of metrics are added to these."""

_FLOATS = frozenset({"bfloat16", "float16", "float32", "float64"})
"""The dtypes of losses whose calls convert arrays to the dtype. Integers are cast instead."""

OF_METRICS = ("reset_state", "result", "update_state")
"""The methods that each metric defines or inherits."""

PROPERTIES = ("variables", "trainable_variables", "non_trainable_variables")
"""The properties of modules that search what a module holds for variables."""

OF_TF_KERAS = {
    "engine.base_layer.Layer": "__call__",
    "engine.training.Model": "__call__",
    "losses.Loss": "__call__",
    "optimizers.optimizer.Optimizer": "apply_gradients",
}
"""By class in ``tf_keras.src``, the name of its method."""


def targets():
    """Yield a target for each method."""
    yield from of_keras()
    yield from of_tf_keras()


def of_keras():
    """Yield a target for each method of Keras's objects."""
    keras = source()
    if keras is None:
        return
    _ways(*_state())  # raises if Keras does not have them: then there are no targets
    for title, names in METHODS.items():
        stand_in = {LAYER: _layer_call, LOSS: _loss, OPTIMIZER: _apply}.get(title, _stand_in)
        for name in names.split():
            with upstream.contained("models", f"keras.src.{title}.{name}"):
                yield from _target(
                    _class(f"keras.src.{title}"), name, stand_in, f"keras.src.{title}"
                )
    with upstream.contained("models", "metrics"):
        for kind in _metrics(_class("keras.src.metrics.metric.Metric")):
            for name in OF_METRICS:
                yield from _target(kind, name, _stand_in)


def of_tf_keras():
    """Yield a target for each method of tf_keras's objects."""
    if sys.modules.get("tf_keras") is None:
        return
    for title, name in OF_TF_KERAS.items():
        with upstream.contained("models", f"tf_keras.src.{title}.{name}"):
            kind = _class(f"tf_keras.src.{title}")
            original_of(kind, name)
            if name == "apply_gradients":
                stand_in = _optimizer
            else:
                _scopes_of_tf_keras(*_state_of_tf_keras())  # raises if it is not as expected
                stand_in = _loss_of_tf_keras if title == "losses.Loss" else _layer_of_tf_keras
            yield from _target(kind, name, stand_in)


def of_modules():
    """Yield a target for each property of modules, and those for calls of users' modules."""
    yield Target("modules", "tf.Module.__call__", modules, "call", _module, announce=modules.follow)
    yield Target("modules", "tf.Module.__init__", tf.Module, "__init__", modules.stand_in_for_init)
    for name in PROPERTIES:
        yield Target("modules", f"tf.Module.{name}", tf.Module, name, _property)


def of_generators():
    """Yield a target for each method of generators that draws numbers."""
    for name in sorted(OF_GENERATORS):
        title = f"tf.random.Generator.{name}"
        yield Target("modules", title, tf.random.Generator, name, _draw)


def _module(original):
    return _of_modules(original, id(original), "__call__")


def _draw(original):
    return _of_modules(original, id(original))


def _property(original):
    replacement = property(_of_modules(original.fget, id(original.fget)))
    if hasattr(replacement, "__set_name__"):  # its errors show the name
        replacement.__set_name__(tf.Module, original.fget.__name__)
    return replacement


@cache
def _of_modules(original, _, written=None):
    """Return the replacement of a method of modules or generators, always the same one."""
    return method.RecordedMethod(
        original,
        _joined(_items(OF_TENSORFLOW)),
        ResourceVariable,
        scopes.OfModules(_scopes_of_keras),
        written=written,
    )


def _scopes_of_keras():
    """Return Keras's `Scopes`; None if Keras has another backend than TensorFlow."""
    return None if source() is None else _ways(*_state())[1]


def _class(name):
    """Return a class by its name. Raise `MissingNameError` if the name is not a class."""
    return upstream.check(name, "class")


def _stand_in(original):
    # The cache needs the identity: a replacement compares equal to its original.
    return _made(original, id(original), _items(UNASKED), _state())


def _layer_call(original):
    converts = None if restated.changed(CONVERTING) else takes_arrays
    unasked = _items(UNASKED) + _items(OF_TRAINING)
    return _made(original, id(original), unasked, _state(), converts)


def _loss(original):
    converts = None if restated.changed("losses") else _DtypesOfLosses(_class(f"keras.src.{LOSS}"))
    return _made(original, id(original), _items(UNASKED), _state(), converts, converted=2)


def _apply(original):
    return _made(original, id(original), _items(UNASKED), _state(), takes_plain=True)


@cache
def _made(original, _, unasked, state, converts=None, converted=None, takes_plain=False):
    """Return the replacement, always the same one, so that it keeps recordings across installs."""
    return method.RecordedMethod(
        original,
        _joined(unasked),
        *_ways(*state),
        converts,
        names=_joined(_items(NAMES)),
        converted=converted,
        takes_plain=takes_plain,
    )


def _state():
    """Return Keras's class of variables, and the module with its settings for a thread."""
    return (
        _class("keras.src.backend.Variable"),
        upstream.look_up("keras.src.backend.common.global_state"),
    )


@cache
def _ways(variable, state):
    """Return Keras's class of variables, and its `Scopes`."""
    return variable, scopes.OfKeras(state, _class(f"keras.src.{LAYER}"))


def takes_arrays(layer):
    """Tell whether a layer's call first converts arrays to tensors."""
    return layer._convert_input_args or hasattr(layer, "_convert_inputs_to_tensors")


class _DtypesOfLosses:
    """Tells to which dtype a loss first converts the arrays among its arguments.

    Parameters
    ----------
    kind : type
        Keras's class of losses.
    """

    def __init__(self, kind):
        self._dtype = vars(kind)["dtype"]

    def __call__(self, loss):
        if type(loss).dtype is not self._dtype:
            return False
        return loss.dtype in _FLOATS and loss.dtype

    def __eq__(self, other):
        return type(other) is _DtypesOfLosses and other._dtype is self._dtype

    def __hash__(self):
        return hash(self._dtype)


def _optimizer(original):
    return _made_of_tf_keras(original, id(original), _items(OF_TENSORFLOW))


@cache
def _made_of_tf_keras(original, _, unasked):
    """Return the replacement of an optimizer's step method, always the same one."""
    nothing = scopes.Scopes()
    return method.RecordedMethod(
        original, _joined(unasked), ResourceVariable, nothing, takes_zips=takes_zips
    )


def _layer_of_tf_keras(original):
    unasked = _items(OF_TF_KERAS_LAYERS)
    return _call_of_tf_keras(original, id(original), unasked, _state_of_tf_keras(), takes_inputs)


def _loss_of_tf_keras(original):
    unasked = _items(OF_TF_KERAS_LAYERS)
    return _call_of_tf_keras(original, id(original), unasked, _state_of_tf_keras())


@cache
def _call_of_tf_keras(original, _, unasked, state, converts=None):
    """Return the replacement of a call of tf_keras's objects, always the same one."""
    return method.RecordedMethod(
        original,
        _joined(unasked),
        ResourceVariable,
        _scopes_of_tf_keras(*state),
        converts,
        converted=1,
    )


def _state_of_tf_keras():
    """Return the modules in which tf_keras keeps settings for a thread, and its class of layers."""
    return (
        upstream.look_up("tf_keras.src.engine.base_layer_utils"),
        upstream.look_up("tf_keras.src.backend"),
        upstream.look_up("tf_keras.src.mixed_precision.autocast_variable"),
        _class("tf_keras.src.engine.base_layer.Layer"),
    )


@cache
def _scopes_of_tf_keras(*state):
    return scopes.OfTfKeras(*state)


def takes_inputs(layer):
    """Tell whether a layer of tf_keras first converts its inputs to tensors: each of them does."""
    return True


def takes_zips(optimizer):
    """Tell whether an optimizer of tf_keras first converts its argument to a list."""
    return not (optimizer._mesh or optimizer._run_with_dtensor)


def _target(kind, name, stand_in, title=None):
    """Yield the target for a method. The default title of the class is its own name."""
    if type(vars(kind).get(name)) is FunctionType:
        title = title or f"{kind.__module__}.{kind.__name__}"
        yield Target("models", f"{title}.{name}", kind, name, stand_in)


def _metrics(base):
    """Return Keras's own metrics."""
    kinds = [base]
    for kind in kinds:  # the loop itself appends to this list
        kinds += [
            subclass
            for subclass in kind.__subclasses__()
            if is_keras(subclass) and subclass not in kinds
        ]
    return kinds


def _items(names):
    """Return a table of `library` as a tuple, with classes in place of their names.

    A missing class is skipped. Guards then compare more attributes than necessary.
    """
    pairs = []
    for name, attributes in names.items():
        if upstream.objection_to(name, "class") is None:
            pairs.append((upstream.look_up(name), frozenset(attributes)))
    return tuple(pairs)


def _joined(items):
    joined = {}
    for kind, attributes in items:
        joined.setdefault(kind, set()).update(attributes)
    return joined
