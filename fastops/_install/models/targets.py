"""Which methods of Keras's objects are replayed."""

import sys
from functools import cache
from types import FunctionType

from fastops._install import restated
from fastops._install.keras.targets import source
from fastops._install.models import method, scopes
from fastops._install.models.library import OF_TRAINING, UNASKED, is_keras
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


def targets():
    """Yield a target for each method."""
    keras = source()
    if keras is None:
        return
    method.attach(keras)
    scopes.attach(keras)
    for title, names in METHODS.items():
        kind = _resolve(f"keras.src.{title}")
        for name in names.split():
            yield from _target(kind, name)
    for kind in _metrics(keras.metrics.Metric):
        for name in OF_METRICS:
            yield from _target(kind, name)


@cache
def _stand_in(original, _, of_layers):
    """Return one replacement for ever: what it knows lasts from one installation to the next."""
    unasked = _by_class(UNASKED)
    if not of_layers:
        return method.Method(original, unasked)
    converts = None if restated.changed(CONVERTING) else takes_arrays
    return method.Method(original, _joined(unasked, _by_class(OF_TRAINING)), converts)


def takes_arrays(layer):
    """Tell whether a layer's call makes tensors of arrays before all else."""
    return layer._convert_input_args or hasattr(layer, "_convert_inputs_to_tensors")


def _target(kind, name):
    if type(vars(kind).get(name)) is FunctionType:

        def make(original, of_layers=kind.__name__ == "Layer"):
            return _stand_in(original, id(original), of_layers)  # replacements equal originals

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
