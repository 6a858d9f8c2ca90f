"""Layers, models and losses of tf_keras whose calls are recorded."""

from install.models.tf_keras_programs import MODELS as PROGRAMS
from install.models.tf_keras_programs import L, tf_keras

from guards.corpus import LINE, ROW, floats, integers, layers_of, signed
from guards.fuzz import Subject

LAYERS = layers_of(L) | {
    "ThresholdedReLU": (L.ThresholdedReLU, ROW),
    "LocallyConnected1D": (lambda: L.LocallyConnected1D(2, 2), LINE),
}
"""By the name of a class, a function that makes a layer, and the shapes of its inputs."""

OF_INTEGERS = {"CategoryEncoding", "Embedding", "Hashing"}

LOSSES = {
    name: getattr(tf_keras.losses, name)
    for name in (
        *("BinaryCrossentropy", "CategoricalCrossentropy", "CosineSimilarity", "Hinge", "Huber"),
        *("KLDivergence", "LogCosh", "MeanAbsoluteError", "MeanSquaredError", "Poisson"),
        "SparseCategoricalCrossentropy",
    )
}


def _layer(name):
    make, shapes = LAYERS[name]
    layer = make()
    made = integers if name in OF_INTEGERS else signed
    if isinstance(shapes, list):
        given = [[made(*shape) for shape in shapes]]
    elif isinstance(shapes[0], tuple):
        given = [made(*shape) for shape in shapes]
    else:
        given = [made(*shapes)]
    return Subject(layer, lambda: layer(*given))


def _model(name):
    model, x = PROGRAMS[name]()
    model(x)
    return Subject(model, lambda: model(x))


def _loss(name):
    loss = LOSSES[name]()
    sparse = name.startswith("Sparse")
    given = integers(2) if sparse else floats(2, 4), floats(2, 4)
    return Subject(loss, lambda: loss(*given))


SUBJECTS = {
    **{f"tf_keras layer {name}": (_layer, name) for name in LAYERS},
    **{f"tf_keras model {name}": (_model, name) for name in PROGRAMS},
    **{f"tf_keras loss {name}": (_loss, name) for name in LOSSES},
}
"""By title, the function that makes a `Subject`, and its arguments."""


def subject(title):
    """Return a new `Subject`."""
    make, build = SUBJECTS[title]
    return make(build)
