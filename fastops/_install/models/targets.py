"""Which methods of Keras's and tf_keras's objects are replayed."""

import sys
from functools import cache
from types import FunctionType

from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._install import restated
from fastops._install.keras.targets import source
from fastops._install.models import method, scopes
from fastops._install.models.library import OF_TENSORFLOW, OF_TRAINING, UNASKED, is_keras
from fastops._install.target import Target

RESTATED = "models"
"""What recordings know of Keras, beside what they find out: a key of `restated.table`."""

CONVERTING = "keras.src.layers.layer:Layer.__call__"
"""The original that makes tensors of arrays before all else, if it is as we know it."""

METHODS = {
    "layers.layer.Layer": "__call__",
    "losses.loss.Loss": "__call__",
    "optimizers.base_optimizer.BaseOptimizer": "apply",
    "backend.tensorflow.trainer.TensorFlowTrainer": "predict_step test_step train_step",
}
"""By class in ``keras.src``, their names; those of metrics come on top."""

OF_METRICS = ("reset_state", "result", "update_state")
"""What each metric defines, or inherits."""

OF_TF_KERAS = {"optimizers.optimizer.Optimizer": "apply_gradients"}
"""Likewise in ``tf_keras.src``."""


def targets():
    """Yield a target for each method."""
    yield from _of_keras()
    yield from _of_tf_keras()


def _of_keras():
    keras = source()
    if keras is None:
        return
    for title, names in METHODS.items():
        kind = _resolve(f"keras.src.{title}")
        for name in names.split():
            yield from _target(kind, name, _layer_call if kind is keras.Layer else _stand_in)
    for kind in _metrics(keras.metrics.Metric):
        for name in OF_METRICS:
            yield from _target(kind, name, _stand_in)


def _of_tf_keras():
    for title, name in OF_TF_KERAS.items():
        module, _, kind = f"tf_keras.src.{title}".rpartition(".")
        if hasattr(sys.modules.get(module), kind):
            yield from _target(getattr(sys.modules[module], kind), name, _optimizer)


def is_recorded_of_keras(target):
    """Tell whether a target is a method of Keras's, of whose code recordings find out the rest."""
    return target.layer == "models" and target.holder.__module__.startswith("keras.")


@cache
def _stand_in(original, _):
    """Return one replacement for ever: what it knows lasts from one installation to the next."""
    return method.Method(original, _by_class(UNASKED), *_ways())


@cache
def _layer_call(original, _):
    """Likewise for the method that calls a layer."""
    unasked = _joined(_by_class(UNASKED), _by_class(OF_TRAINING))
    converts = None if restated.changed(CONVERTING) else takes_arrays
    return method.Method(original, unasked, *_ways(), converts)


@cache
def _ways():
    """Return Keras's class of variables, and what it keeps for a thread."""
    keras = source()
    return keras.backend.Variable, scopes.OfKeras(keras)


def takes_arrays(layer):
    """Tell whether a layer's call makes tensors of arrays before all else."""
    return layer._convert_input_args or hasattr(layer, "_convert_inputs_to_tensors")


@cache
def _optimizer(original, _):
    """Likewise for the method by which an optimizer of tf_keras makes a step."""
    unasked, nothing = _by_class(OF_TENSORFLOW), scopes.Scopes()
    return method.Method(original, unasked, ResourceVariable, nothing, takes_zips=takes_zips)


def takes_zips(optimizer):
    """Tell whether an optimizer of tf_keras makes a list of what it is given before all else."""
    return not (optimizer._mesh or optimizer._run_with_dtensor)


def _target(kind, name, stand_in):
    if type(vars(kind).get(name)) is FunctionType:

        def make(original):
            return stand_in(original, id(original))  # replacements equal originals

        yield Target("models", f"{kind.__module__}.{kind.__name__}.{name}", kind, name, make)


def _metrics(base):
    """Return Keras's own metrics."""
    found = [base]
    for kind in found:  # which grows meanwhile
        found += [one for one in kind.__subclasses__() if is_keras(one) and one not in found]
    return found


def _resolve(title):
    module, _, name = title.rpartition(".")
    return getattr(sys.modules[module], name)


def _by_class(names):
    """Return a table of `library` by the classes themselves."""
    return {_resolve(title): set(one) for title, one in names.items()}


def _joined(one, other):
    return {kind: one.get(kind, set()) | other.get(kind, set()) for kind in {**one, **other}}
