"""Layers, models and losses of tf_keras whose calls are recorded."""

from install.models.tf_keras_programs import MODELS as PROGRAMS
from install.models.tf_keras_programs import L, tf_keras

from guards.corpus import IMAGE, LINE, ROW, VOLUME, floats, integers, signed
from guards.fuzz import Subject

LAYERS = {
    "Activation": (lambda: L.Activation("relu"), ROW),
    "ELU": (L.ELU, ROW),
    "LeakyReLU": (L.LeakyReLU, ROW),
    "PReLU": (L.PReLU, ROW),
    "ReLU": (L.ReLU, ROW),
    "Softmax": (L.Softmax, ROW),
    "ThresholdedReLU": (L.ThresholdedReLU, ROW),
    "AdditiveAttention": (L.AdditiveAttention, [LINE, LINE]),
    "Attention": (L.Attention, [LINE, LINE]),
    "MultiHeadAttention": (lambda: L.MultiHeadAttention(2, 4), (LINE, LINE)),
    "Conv1D": (lambda: L.Conv1D(2, 3), LINE),
    "Conv1DTranspose": (lambda: L.Conv1DTranspose(2, 3), LINE),
    "Conv2D": (lambda: L.Conv2D(2, 3, activation="relu"), IMAGE),
    "Conv2DTranspose": (lambda: L.Conv2DTranspose(2, 3), IMAGE),
    "Conv3D": (lambda: L.Conv3D(2, 2), VOLUME),
    "Conv3DTranspose": (lambda: L.Conv3DTranspose(2, 2), VOLUME),
    "DepthwiseConv1D": (lambda: L.DepthwiseConv1D(2), LINE),
    "DepthwiseConv2D": (lambda: L.DepthwiseConv2D(2), IMAGE),
    "SeparableConv1D": (lambda: L.SeparableConv1D(2, 2), LINE),
    "SeparableConv2D": (lambda: L.SeparableConv2D(2, 2), IMAGE),
    "LocallyConnected1D": (lambda: L.LocallyConnected1D(2, 2), LINE),
    "Dense": (lambda: L.Dense(3, activation="gelu"), ROW),
    "EinsumDense": (lambda: L.EinsumDense("ab,bc->ac", 3), ROW),
    "Embedding": (lambda: L.Embedding(4, 3), (2, 3)),
    "Identity": (L.Identity, ROW),
    "Masking": (L.Masking, LINE),
    "Add": (L.Add, [ROW, ROW]),
    "Average": (L.Average, [ROW, ROW]),
    "Concatenate": (L.Concatenate, [ROW, ROW]),
    "Dot": (lambda: L.Dot(1), [ROW, ROW]),
    "Maximum": (L.Maximum, [ROW, ROW]),
    "Minimum": (L.Minimum, [ROW, ROW]),
    "Multiply": (L.Multiply, [ROW, ROW]),
    "Subtract": (L.Subtract, [ROW, ROW]),
    "BatchNormalization": (L.BatchNormalization, ROW),
    "GroupNormalization": (lambda: L.GroupNormalization(2), ROW),
    "LayerNormalization": (L.LayerNormalization, ROW),
    "SpectralNormalization": (lambda: L.SpectralNormalization(L.Dense(3)), ROW),
    "UnitNormalization": (L.UnitNormalization, ROW),
    "AveragePooling1D": (lambda: L.AveragePooling1D(2), LINE),
    "AveragePooling2D": (lambda: L.AveragePooling2D(2), IMAGE),
    "GlobalAveragePooling1D": (L.GlobalAveragePooling1D, LINE),
    "GlobalMaxPooling2D": (L.GlobalMaxPooling2D, IMAGE),
    "MaxPooling1D": (lambda: L.MaxPooling1D(2), LINE),
    "MaxPooling2D": (lambda: L.MaxPooling2D(2), IMAGE),
    "MaxPooling3D": (lambda: L.MaxPooling3D(2), VOLUME),
    "CategoryEncoding": (lambda: L.CategoryEncoding(4), (2, 3)),
    "Discretization": (lambda: L.Discretization([0.2, 0.6]), ROW),
    "Hashing": (lambda: L.Hashing(3), (2, 3)),
    "CenterCrop": (lambda: L.CenterCrop(3, 3), IMAGE),
    "Resizing": (lambda: L.Resizing(3, 3), IMAGE),
    "Normalization": (lambda: L.Normalization(mean=1.0, variance=2.0), ROW),
    "Rescaling": (lambda: L.Rescaling(2.0, 1.0), ROW),
    "ActivityRegularization": (lambda: L.ActivityRegularization(0.1), ROW),
    "AlphaDropout": (lambda: L.AlphaDropout(0.5), ROW),
    "Dropout": (lambda: L.Dropout(0.5), ROW),
    "GaussianDropout": (lambda: L.GaussianDropout(0.5), ROW),
    "GaussianNoise": (lambda: L.GaussianNoise(0.5), ROW),
    "SpatialDropout2D": (lambda: L.SpatialDropout2D(0.5), IMAGE),
    "Cropping2D": (lambda: L.Cropping2D(1), IMAGE),
    "Flatten": (L.Flatten, LINE),
    "Permute": (lambda: L.Permute((2, 1)), LINE),
    "RepeatVector": (lambda: L.RepeatVector(2), ROW),
    "Reshape": (lambda: L.Reshape((2, 2)), ROW),
    "UpSampling2D": (L.UpSampling2D, IMAGE),
    "ZeroPadding2D": (L.ZeroPadding2D, IMAGE),
    "Bidirectional": (lambda: L.Bidirectional(L.LSTM(2)), LINE),
    "ConvLSTM1D": (lambda: L.ConvLSTM1D(2, 2), (1, 3, 6, 2)),
    "GRU": (lambda: L.GRU(2), LINE),
    "LSTM": (lambda: L.LSTM(2), LINE),
    "RNN": (lambda: L.RNN(L.SimpleRNNCell(2)), LINE),
    "SimpleRNN": (lambda: L.SimpleRNN(2), LINE),
    "StackedRNNCells": (lambda: L.RNN(L.StackedRNNCells([L.GRUCell(2), L.LSTMCell(2)])), LINE),
    "TimeDistributed": (lambda: L.TimeDistributed(L.Dense(2)), LINE),
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
