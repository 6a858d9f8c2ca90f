"""Layers written with `fastops.backend`: dense, convolution, LSTM, normalization; and Adam.

The ops and their order are those of tf_keras, so that results can be compared. Arithmetic between
functions of the backend uses operators of tensors, which `fastops.install` accelerates. The tape is
the only thing used from TensorFlow itself: the backend's `gradients` is for graphs, as in Keras.
"""

import numpy as np
from tensorflow import GradientTape

import fastops.backend as K  # noqa: N812


def glorot(shape, generator):
    """Return a variable with a uniform Glorot initialization."""
    receptive = int(np.prod(shape[:-2]))
    limit = (6.0 / (receptive * (shape[-2] + shape[-1]))) ** 0.5
    return K.variable(generator.uniform(-limit, limit, shape))


class Layer:
    """A layer takes a tensor and returns a tensor. Its call does not assign variables.

    Attributes
    ----------
    weights : list of variable
        The variables that an optimizer changes.
    states : list of variable
        The variables that follow the batches, as moving averages with a momentum.
    seen : list of tensor
        The values of the last training batch, toward which the states move.
    """

    momentum = 0.99

    def __init__(self):
        self.weights, self.states, self.seen = [], [], []

    def build(self, sizes, generator):
        """Make the variables for inputs of some sizes; return the sizes of the results."""
        return sizes


class Dense(Layer):
    """A dense layer: matrix product and bias.

    Parameters
    ----------
    units : int
    activation : callable, optional
    """

    def __init__(self, units, activation=None):
        super().__init__()
        self.units, self.activation = units, activation

    def build(self, sizes, generator):
        self.weights = [glorot((sizes[-1], self.units), generator), K.zeros((self.units,))]
        return (*sizes[:-1], self.units)

    def __call__(self, x, training=False):
        kernel, bias = self.weights
        x = K.bias_add(K.dot(x, kernel), bias)
        return self.activation(x) if self.activation else x


class Conv2D(Layer):
    """A convolution of images, channels last, and bias.

    Parameters
    ----------
    filters : int
    size, stride : int
        The window and the stride of both axes.
    padding : {"valid", "same"}
    activation : callable, optional
    """

    def __init__(self, filters, size, stride=1, padding="valid", activation=None):
        super().__init__()
        self.filters, self.size, self.strides = filters, size, (stride, stride)
        self.padding, self.activation = padding, activation

    def build(self, sizes, generator):
        rows, columns, channels = sizes
        kernel = (self.size, self.size, channels, self.filters)
        self.weights = [glorot(kernel, generator), K.zeros((self.filters,))]
        lost = self.size - 1 if self.padding == "valid" else 0
        stride = self.strides[0]
        return (-(-(rows - lost) // stride), -(-(columns - lost) // stride), self.filters)

    def __call__(self, x, training=False):
        kernel, bias = self.weights
        x = K.bias_add(K.conv2d(x, kernel, self.strides, self.padding), bias)
        return self.activation(x) if self.activation else x


class BatchNormalization(Layer):
    """A normalization of channels: in training by the batch, otherwise by moving averages."""

    def __init__(self, momentum=0.99, epsilon=1e-3, activation=None):
        super().__init__()
        self.momentum, self.epsilon, self.activation = momentum, epsilon, activation

    def build(self, sizes, generator):
        self.weights = [K.ones(sizes[-1:]), K.zeros(sizes[-1:])]
        self.states = [K.zeros(sizes[-1:]), K.ones(sizes[-1:])]
        return sizes

    def __call__(self, x, training=False):
        gamma, beta = self.weights
        if training:
            axes = list(range(K.ndim(x) - 1))
            x, *self.seen = K.normalize_batch_in_training(x, gamma, beta, axes, self.epsilon)
        else:
            mean, variance = self.states
            x = K.batch_normalization(x, mean, variance, beta, gamma, epsilon=self.epsilon)
        return self.activation(x) if self.activation else x


class LSTM(Layer):
    """An LSTM, which returns the last output for a sequence, or all outputs.

    Parameters
    ----------
    units : int
    return_sequences : bool
    """

    def __init__(self, units, return_sequences=False):
        super().__init__()
        self.units, self.return_sequences = units, return_sequences

    def build(self, sizes, generator):
        times, features = sizes
        orthogonal, _ = np.linalg.qr(generator.normal(size=(4 * self.units, self.units)))
        bias = np.zeros(4 * self.units)
        bias[self.units : 2 * self.units] = 1.0  # the bias of the forget gate
        kernel = glorot((features, 4 * self.units), generator)
        self.weights = [kernel, K.variable(orthogonal.T), K.variable(bias)]
        self.step = K.replayable(self._step)
        return (times, self.units) if self.return_sequences else (self.units,)

    def _step(self, x, states):
        (hidden, carry), (kernel, recurrent, bias) = states, self.weights
        z = K.bias_add(K.dot(x, kernel) + K.dot(hidden, recurrent), bias)
        entering, kept, new, leaving = (
            z[:, at : at + self.units] for at in range(0, 4 * self.units, self.units)
        )
        carry = K.sigmoid(kept) * carry + K.sigmoid(entering) * K.tanh(new)
        hidden = K.sigmoid(leaving) * K.tanh(carry)
        return hidden, [hidden, carry]

    def __call__(self, x, training=False):
        start = K.constant(0.0, shape=(K.int_shape(x)[0], self.units))
        last, outputs, _ = K.rnn(
            self.step, x, [start, start], return_all_outputs=self.return_sequences
        )
        return outputs if self.return_sequences else last


class Flatten(Layer):
    """A layer that flattens each element of a batch into a row."""

    def build(self, sizes, generator):
        return (int(np.prod(sizes)),)

    def __call__(self, x, training=False):
        return K.batch_flatten(x)


class Network(Layer):
    """A sequence of layers.

    Parameters
    ----------
    layers : list of Layer
    sizes : tuple of int
        The sizes of the inputs, without the batch.
    seed : int
        The seed for the initial weights.
    """

    def __init__(self, layers, sizes, seed=0):
        generator = np.random.default_rng(seed)
        self.layers = layers
        for layer in layers:
            sizes = layer.build(sizes, generator)
        self.weights = [weight for layer in layers for weight in layer.weights]
        self.states = [state for layer in layers for state in layer.states]
        self.assess = K.replayable(self._assess)

    def __call__(self, x, training=False):
        for layer in self.layers:
            x = layer(x, training)
        return x

    def _assess(self, x, labels):
        """Return the mean crossentropy in training, and the values toward which the states move."""
        losses = K.sparse_categorical_crossentropy(labels, self(x, True), from_logits=True)
        return K.mean(losses), [value for layer in self.layers for value in layer.seen]

    def train(self, optimizer, x, labels):
        """Make a training step on a batch; return the mean crossentropy before it."""
        with GradientTape() as tape:
            loss, seen = self.assess(x, labels)
        optimizer.apply(tape.gradient(loss, self.weights))
        momenta = [layer.momentum for layer in self.layers for _ in layer.states]
        for state, value, momentum in zip(self.states, seen, momenta, strict=True):
            K.moving_average_update(state, value, momentum)
        return loss


class Adam:
    """The optimizer Adam, as in tf_keras.

    Parameters
    ----------
    weights : list of variable
    rate, beta_1, beta_2, epsilon : float
    """

    def __init__(self, weights, rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        self.weights, self.rate, self.epsilon = weights, rate, epsilon
        self.betas, self.steps = (beta_1, beta_2), 0
        self.moments = [(K.zeros(K.int_shape(w)), K.zeros(K.int_shape(w))) for w in weights]
        self.next = K.replayable(self._next)

    def _next(self, steps, gradients):
        """Return the new values of each weight and of its moments."""
        one, two = (1 - K.pow(K.constant(beta), steps) for beta in self.betas)
        rate, values = self.rate * K.sqrt(two) / one, []
        for weight, gradient, (m, v) in zip(self.weights, gradients, self.moments, strict=True):
            m = m + (gradient - m) * (1 - self.betas[0])
            v = v + (K.square(gradient) - v) * (1 - self.betas[1])
            values += [weight - m * rate / (K.sqrt(v) + self.epsilon), m, v]
        return values

    def apply(self, gradients):
        """Make a step, given a gradient for each weight."""
        self.steps += 1
        variables = [
            variable
            for weight, pair in zip(self.weights, self.moments, strict=True)
            for variable in (weight, *pair)
        ]
        values = self.next(K.constant(self.steps), gradients)
        for variable, value in zip(variables, values, strict=True):
            K.update(variable, value)
