"""Objects whose calls are recorded: layers, losses, metrics, optimizers, and code of users."""

import inspect

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L  # noqa: N812

from guards import declared, pure, settings, users
from guards.fuzz import Subject


def floats(*shape):
    values = np.random.default_rng(5).uniform(0.1, 0.9, size=shape)
    return tf.constant(values.astype(np.float32))


def signed(*shape):
    """Return floats of both signs: an activation such as LeakyReLU depends on the sign."""
    return floats(*shape) - 0.5


def integers(*shape, most=4):
    return tf.constant(np.random.default_rng(6).integers(0, most, size=shape).astype(np.int32))


ROW, LINE, IMAGE, VOLUME = (2, 4), (2, 6, 3), (2, 6, 6, 3), (1, 4, 4, 4, 2)


def layers_of(L):  # noqa: N803 - as layers are called everywhere
    """Return the layers that Keras and tf_keras both have, given the module of one of them."""
    return {
        "Activation": (lambda: L.Activation("relu"), ROW),
        "ELU": (L.ELU, ROW),
        "LeakyReLU": (L.LeakyReLU, ROW),
        "PReLU": (L.PReLU, ROW),
        "ReLU": (L.ReLU, ROW),
        "Softmax": (L.Softmax, ROW),
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
        "MaxPooling1D": (L.MaxPooling1D, LINE),
        "MaxPooling2D": (L.MaxPooling2D, IMAGE),
        "MaxPooling3D": (L.MaxPooling3D, VOLUME),
        "AveragePooling1D": (lambda: L.AveragePooling1D(2), LINE),
        "AveragePooling2D": (lambda: L.AveragePooling2D(2), IMAGE),
        "GlobalAveragePooling1D": (L.GlobalAveragePooling1D, LINE),
        "GlobalMaxPooling2D": (L.GlobalMaxPooling2D, IMAGE),
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


LAYERS = layers_of(L) | {
    "GroupQueryAttention": (lambda: L.GroupQueryAttention(4, 2, 1), (LINE, LINE)),
    "ReversibleEmbedding": (lambda: L.ReversibleEmbedding(4, 3), (2, 3)),
    "RMSNormalization": (L.RMSNormalization, ROW),
    "AdaptiveAveragePooling1D": (lambda: L.AdaptiveAveragePooling1D(2), LINE),
    "AdaptiveAveragePooling2D": (lambda: L.AdaptiveAveragePooling2D(2), IMAGE),
    "AdaptiveAveragePooling3D": (lambda: L.AdaptiveAveragePooling3D(2), VOLUME),
    "AdaptiveMaxPooling1D": (lambda: L.AdaptiveMaxPooling1D(2), LINE),
    "AdaptiveMaxPooling2D": (lambda: L.AdaptiveMaxPooling2D(2), IMAGE),
    "AdaptiveMaxPooling3D": (lambda: L.AdaptiveMaxPooling3D(2), VOLUME),
    "AveragePooling3D": (lambda: L.AveragePooling3D(2), VOLUME),
    "GlobalAveragePooling2D": (L.GlobalAveragePooling2D, IMAGE),
    "GlobalAveragePooling3D": (L.GlobalAveragePooling3D, VOLUME),
    "GlobalMaxPooling1D": (L.GlobalMaxPooling1D, LINE),
    "GlobalMaxPooling3D": (L.GlobalMaxPooling3D, VOLUME),
    "HashedCrossing": (lambda: L.HashedCrossing(3), [(2, 1), (2, 1)]),
    "Solarization": (lambda: L.Solarization(value_range=(0, 1)), IMAGE),
    "Equalization": (lambda: L.Equalization(value_range=(0, 1)), IMAGE),
    "RandomFlip": (L.RandomFlip, IMAGE),
    "RandomContrast": (lambda: L.RandomContrast(0.2, value_range=(0, 1)), IMAGE),
    "RandomRotation": (lambda: L.RandomRotation(0.2), IMAGE),
    "STFTSpectrogram": (lambda: L.STFTSpectrogram(frame_length=4, fft_length=4), (2, 16, 1)),
    "MelSpectrogram": (
        lambda: L.MelSpectrogram(
            fft_length=8,
            sequence_length=8,
            sequence_stride=4,
            num_mel_bins=3,
            sampling_rate=64,
            max_freq=32,
        ),
        (2, 16),
    ),
    "SpatialDropout1D": (lambda: L.SpatialDropout1D(0.5), LINE),
    "SpatialDropout3D": (lambda: L.SpatialDropout3D(0.5), VOLUME),
    "Cropping1D": (L.Cropping1D, LINE),
    "Cropping3D": (lambda: L.Cropping3D(1), VOLUME),
    "UpSampling1D": (L.UpSampling1D, LINE),
    "UpSampling3D": (L.UpSampling3D, VOLUME),
    "ZeroPadding1D": (L.ZeroPadding1D, LINE),
    "ZeroPadding3D": (L.ZeroPadding3D, VOLUME),
    "ConvLSTM2D": (lambda: L.ConvLSTM2D(2, 2), (1, 2, 4, 4, 2)),
    "ConvLSTM3D": (lambda: L.ConvLSTM3D(1, 2), (1, 2, 3, 3, 3, 1)),
}
"""By the name of a class, a function that makes a layer, and the shapes of its inputs."""
if hasattr(L, "TernaryDense"):  # since Keras 3.16
    LAYERS["TernaryDense"] = (lambda: L.TernaryDense(3), ROW)

OF_INTEGERS = {
    *("CategoryEncoding", "Embedding", "HashedCrossing", "Hashing", "ReversibleEmbedding"),
}

ELSEWHERE = {
    "Layer": "has no call",
    "Wrapper": "has no call",
    "InputLayer": "is not called",
    "Lambda": "is in `SUBJECTS`, with functions of a user",
    "LSTMCell": "is in LSTM",
    "GRUCell": "is in StackedRNNCells",
    "SimpleRNNCell": "is in RNN",
    "StringLookup": "looks up in tables",
    "IntegerLookup": "looks up in tables",
    "TextVectorization": "looks up in tables",
    "TFSMLayer": "runs a saved model",
    "FlaxLayer": "runs Flax",
    "JaxLayer": "runs JAX",
    "TorchModuleWrapper": "runs PyTorch",
    "Pipeline": "is its layers",
    "MaxNumBoundingBoxes": "takes bounding boxes",
    **dict.fromkeys(
        (
            *("AugMix", "AutoContrast", "ContrastLimitedAdaptiveHistogramEqualization", "CutMix"),
            *("MixUp", "RandAugment", "RandomBrightness", "RandomColorDegeneration"),
            *("RandomColorJitter", "RandomCrop", "RandomElasticTransform", "RandomErasing"),
            *("RandomGaussianBlur", "RandomGrayscale", "RandomHue", "RandomInvert"),
            *("RandomPerspective", "RandomPosterization", "RandomSaturation", "RandomSharpness"),
            *("RandomShear", "RandomTranslation", "RandomZoom"),
            *(["Mosaic"] if hasattr(L, "Mosaic") else []),  # since Keras 3.16
        ),
        "augments data for training, as the layers of its kind above do",
    ),
}
"""Classes of layers that are left out, with the reason."""

LOSSES = {
    name: kind
    for name, kind in sorted(vars(keras.losses).items())
    if inspect.isclass(kind) and name not in ("Loss", "CTC")
}

METRICS = {
    "AUC": lambda: keras.metrics.AUC(num_thresholds=5),
    "PrecisionAtRecall": lambda: keras.metrics.PrecisionAtRecall(0.5, num_thresholds=5),
    "RecallAtPrecision": lambda: keras.metrics.RecallAtPrecision(0.5, num_thresholds=5),
    "SensitivityAtSpecificity": lambda: keras.metrics.SensitivityAtSpecificity(0.5, 5),
    "SpecificityAtSensitivity": lambda: keras.metrics.SpecificityAtSensitivity(0.5, 5),
    "BinaryIoU": lambda: keras.metrics.BinaryIoU(threshold=0.5),
    "IoU": lambda: keras.metrics.IoU(num_classes=2, target_class_ids=[0]),
    "MeanIoU": lambda: keras.metrics.MeanIoU(num_classes=2),
    "OneHotIoU": lambda: keras.metrics.OneHotIoU(num_classes=4, target_class_ids=[0]),
    "OneHotMeanIoU": lambda: keras.metrics.OneHotMeanIoU(num_classes=4),
    "MeanMetricWrapper": lambda: keras.metrics.MeanMetricWrapper(keras.losses.mean_squared_error),
}
METRICS |= {
    name: kind
    for name, kind in sorted(vars(keras.metrics).items())
    if inspect.isclass(kind) and name not in METRICS and name != "Metric"
}

OPTIMIZERS = {
    name: kind
    for name, kind in sorted(vars(keras.optimizers).items())
    if inspect.isclass(kind)
    and name not in ("LossScaleOptimizer", "MultiOptimizer", "Optimizer", "OptimizerMap")
}

SCHEDULES = {
    "CosineDecay": lambda: keras.optimizers.schedules.CosineDecay(0.1, 10),
    "CosineDecayRestarts": lambda: keras.optimizers.schedules.CosineDecayRestarts(0.1, 10),
    "ExponentialDecay": lambda: keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5),
    "InverseTimeDecay": lambda: keras.optimizers.schedules.InverseTimeDecay(0.1, 10, 0.5),
    "PiecewiseConstantDecay": lambda: keras.optimizers.schedules.PiecewiseConstantDecay(
        [4, 8], [0.1, 0.2, 0.3]
    ),
    "PolynomialDecay": lambda: keras.optimizers.schedules.PolynomialDecay(0.1, 10),
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
    if name in ("HashedCrossing",):
        given = [tuple(given[0])]
    return Subject(layer, lambda: layer(*given))


def _loss(name):
    loss = LOSSES[name]()
    if name in ("SparseCategoricalCrossentropy", "CategoricalGeneralizedCrossEntropy", "Circle"):
        given = integers(2), floats(2, 4)
    else:
        given = tf.constant([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]), floats(2, 4)
    return Subject(loss, lambda: loss(*given))


def _metric(name):
    metric = METRICS[name]()
    hot = tf.constant([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    if name in ("Mean", "Sum"):
        given = [floats(2, 4)]
    elif name.startswith("Sparse"):
        given = [integers(2), floats(2, 4)]
    elif name in ("IoU", "MeanIoU"):
        given = [integers(8, most=2), integers(8, most=2)]
    else:
        given = [hot, floats(2, 4)]
    return Subject(metric, lambda: metric.update_state(*given), "update_state")


def _optimizer(make):
    optimizer = make()
    variables = [
        keras.Variable(np.ones((3, 2), np.float32)),
        keras.Variable(np.ones(2, np.float32)),
    ]
    optimizer.build(variables)
    given = [floats(3, 2), floats(2)]
    subject = Subject(optimizer, lambda: optimizer.apply(given), "apply")
    subject.variables = lambda: [*optimizer.variables, *variables]
    return subject


def _declared(name):
    layer = declared.reader(name)
    x = floats(2, 4)
    return Subject(layer, lambda: layer(x), modules=(declared, settings))


def _undeclared(name):
    layer = declared.undeclared_reader(name)
    x = floats(2, 4)
    return Subject(layer, lambda: layer(x), modules=(declared, settings))


def _of_user(name):
    layer = users.Doubled(4) if name == "extends" else users.reader(name)
    x = floats(2, 4)
    subject = Subject(layer, lambda: layer(x), modules=(users,))
    if name != "extends":
        subject.variables = lambda: [*layer.variables, layer.generator.state]
    return subject


def _module(name):
    module = users.reader(name, users.BaseModule)
    x = floats(2, 4)
    subject = Subject(module, lambda: module(x), modules=(users,))
    # The states of generators are not among the variables of a module.
    subject.variables = lambda: [*module.variables, module.seeds.state, module.generator.state]
    return subject


def _lambda(name):
    layer = L.Lambda(pure.READS[name])
    x = floats(2, 4)
    return Subject(layer, lambda: layer(x), modules=(pure, settings))


SUBJECTS = {
    **{f"layer {name}": (_layer, name) for name in LAYERS},
    **{f"loss {name}": (_loss, name) for name in LOSSES},
    **{f"metric {name}": (_metric, name) for name in METRICS},
    **{f"optimizer {name}": (_optimizer, kind) for name, kind in OPTIMIZERS.items()},
    **{
        f"schedule {name}": (_optimizer, lambda make=make: keras.optimizers.SGD(make()))
        for name, make in SCHEDULES.items()
    },
    **{f"declared {name}": (_declared, name) for name in declared.READS},
    **{f"undeclared {name}": (_undeclared, name) for name in declared.READS},
    **{f"user {name}": (_of_user, name) for name in (*users.READS, "super", "extends")},
    **{f"module {name}": (_module, name) for name in (*users.READS, "super")},
    **{f"lambda {name}": (_lambda, name) for name in pure.READS},
}
"""By title, the function that makes a `Subject`, and its arguments."""


def subject(title):
    """Return a new `Subject`."""
    make, build = SUBJECTS[title]
    return make(build)
