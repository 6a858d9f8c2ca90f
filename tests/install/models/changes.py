"""Changes of models that are the same for Keras and tf_keras."""

import sys

import tensorflow as tf
from install.models.keras_programs import floats


def library(model):
    """Return the package of a model: Keras or tf_keras."""
    return sys.modules[type(model).__module__.partition(".")[0]]


def first(model):
    return model.layers[0]


def assign(model):
    first(model).kernel.assign(first(model).kernel * 2)


def set_weights(model):
    model.set_weights([weight * 0.5 for weight in model.get_weights()])


def freeze(model):
    model.trainable = False


def add_a_layer(model):
    model.add(library(model).layers.Dense(2))


def remove_a_layer(model):
    model.pop()


def no_bias(model):
    first(model).use_bias = False


def no_activation(model):
    first(model).activation = None


def call_of_an_instance(model):
    first(model).call = lambda x: tf.zeros((2, 8))


def compiled(model):
    model.compile("sgd", "mse")


def fitted(model):
    model.compile("sgd", "mse")
    model.fit(floats(4, 4), floats(4, 3, seed=1), verbose=0)


def another_class(model):
    class Doubled(library(model).layers.Dense):
        def call(self, x):
            return 2 * super().call(x)

    first(model).__class__ = Doubled


def another_activation(model):
    first(model).activation = library(model).activations.tanh


def regularize(model):
    first(model).activity_regularizer = library(model).regularizers.L2(0.1)


def kernel_regularizer(model):
    first(model).kernel_regularizer = library(model).regularizers.L2(0.1)


def state_of_the_instance(model):
    vars(first(model))["activation"] = library(model).activations.sigmoid


def another_dict(model):
    first(model).__dict__ = dict(vars(first(model)), activation=library(model).activations.sigmoid)
