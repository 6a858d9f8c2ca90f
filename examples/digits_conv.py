"""A convolutional network that learns handwritten digits eagerly, in several libraries.

With ``--library fastops``, it uses the layers of layers.py. ``tf_keras`` and ``torch`` train the
same network with the same initial weights and batches. With fastops, losses and trained weights are
those of tf_keras to the last bit. The averages of batch normalization differ in the last digits,
because tf_keras's kernel updates them itself.
"""

import argparse
import hashlib
import statistics
import time

import numpy as np
from sklearn.datasets import load_digits

BATCH = 32
FILTERS = (16, 32)
MOMENTUM = 0.9
RATE = 0.002
TRAINED = 1536


def initial(seed):
    """Return the initial weights, layer by layer, in the layouts of TensorFlow's ops."""
    generator = np.random.default_rng(seed)
    weights, channels = [], 1
    for filters in FILTERS:
        deviation = (2 / (9 * channels)) ** 0.5
        kernel = generator.normal(0, deviation, (3, 3, channels, filters))
        weights += [kernel, np.zeros(filters), np.ones(filters), np.zeros(filters)]
        channels = filters
    features = 4 * 4 * channels
    weights += [generator.normal(0, features**-0.5, (features, 10)), np.zeros(10)]
    return [weight.astype(np.float32) for weight in weights]


class Fastops:
    """The network, made of the layers in layers.py."""

    def __init__(self, weights):
        from layers import Adam, BatchNormalization, Conv2D, Dense, Flatten, Network

        import fastops
        import fastops.backend as K  # noqa: N812

        fastops.install()  # accelerates the operators between layers, the tape, and gradients
        first, second = FILTERS
        self.network = Network(
            [
                Conv2D(first, 3, padding="same"),
                BatchNormalization(MOMENTUM, activation=K.relu),
                Conv2D(second, 3, stride=2, padding="same"),
                BatchNormalization(MOMENTUM, activation=K.relu),
                Flatten(),
                Dense(10),
            ],
            (8, 8, 1),
        )
        K.batch_set_value(list(zip(self.network.weights, weights, strict=True)))
        self.optimizer = Adam(self.network.weights, RATE)
        self.value, self.constant = K.get_value, K.constant

    def tensors(self, images, labels):
        return self.constant(images), self.constant(labels, "int32")

    def step(self, x, y):
        return self.network.train(self.optimizer, x, y)

    def answers(self, x):
        return self.value(self.network(x))

    def weights(self):
        return [self.value(weight) for weight in self.network.weights]


class Keras:
    """The network, made of tf_keras's layers."""

    def __init__(self, weights):
        import tensorflow as tf
        import tf_keras

        layers, (first, second) = tf_keras.layers, FILTERS
        self.tf, self.model = (
            tf,
            tf_keras.Sequential(
                [
                    layers.Conv2D(first, 3, padding="same"),
                    layers.BatchNormalization(momentum=MOMENTUM),
                    layers.ReLU(),
                    layers.Conv2D(second, 3, strides=2, padding="same"),
                    layers.BatchNormalization(momentum=MOMENTUM),
                    layers.ReLU(),
                    layers.Flatten(),
                    layers.Dense(10),
                ]
            ),
        )
        self.model.build((None, 8, 8, 1))
        for variable, value in zip(self.model.trainable_variables, weights, strict=True):
            variable.assign(value)
        self.optimizer = tf_keras.optimizers.Adam(RATE)
        self.loss = tf_keras.losses.sparse_categorical_crossentropy

    def tensors(self, images, labels):
        return self.tf.constant(images), self.tf.constant(labels, self.tf.int32)

    def step(self, x, y):
        variables = self.model.trainable_variables
        with self.tf.GradientTape() as tape:
            losses = self.loss(y, self.model(x, training=True), from_logits=True)
            loss = self.tf.reduce_mean(losses)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    def answers(self, x):
        return self.model(x, training=False).numpy()

    def weights(self):
        return [variable.numpy() for variable in self.model.trainable_variables]


class Torch:
    """The network, made of PyTorch's modules, with channels first and TensorFlow's padding."""

    def __init__(self, weights):
        import torch
        from torch import nn

        torch.set_num_threads(1)
        first, second = FILTERS
        self.torch, self.network = (
            torch,
            nn.Sequential(
                nn.Conv2d(1, first, 3, padding=1),
                nn.BatchNorm2d(first, eps=1e-3, momentum=1 - MOMENTUM),
                nn.ReLU(),
                nn.ZeroPad2d((0, 1, 0, 1)),
                nn.Conv2d(first, second, 3, stride=2),
                nn.BatchNorm2d(second, eps=1e-3, momentum=1 - MOMENTUM),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(16 * second, 10),
            ),
        )
        *convolutions, kernel, bias = weights
        kernel = kernel.reshape(4, 4, second, 10).transpose(3, 2, 0, 1).reshape(10, -1)
        values = [
            value.transpose(3, 2, 0, 1) if value.ndim == 4 else value for value in convolutions
        ]
        with torch.no_grad():
            for parameter, value in zip(
                self.network.parameters(), [*values, kernel, bias], strict=True
            ):
                parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))
        self.optimizer = torch.optim.Adam(self.network.parameters(), RATE, eps=1e-7)

    def tensors(self, images, labels):
        images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        return self.torch.from_numpy(images), self.torch.from_numpy(labels)

    def step(self, x, y):
        loss = self.torch.nn.functional.cross_entropy(self.network(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def answers(self, x):
        with self.torch.no_grad():
            answers = self.network.eval()(x).numpy()
        self.network.train()
        return answers

    def weights(self):
        return [weight.detach().numpy() for weight in self.network.parameters()]


LIBRARIES = {"fastops": Fastops, "tf_keras": Keras, "torch": Torch}


def train(library, epochs, seed):
    """Train a network; return the network, the mean loss of each epoch, and each step's seconds."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 8, 8, 1)
    model = LIBRARIES[library](initial(seed))
    generator = np.random.default_rng(seed)
    means, seconds = [], []
    for _ in range(epochs):
        losses = []
        for batch in generator.permutation(TRAINED).reshape(-1, BATCH):
            x, y = model.tensors(images[batch], labels[batch])
            begin = time.perf_counter()
            losses.append(model.step(x, y))
            seconds.append(time.perf_counter() - begin)
        means.append(
            float(np.mean([loss.detach() if library == "torch" else loss for loss in losses]))
        )
    x, _ = model.tensors(images[TRAINED:], labels[TRAINED:])
    right = float((model.answers(x).argmax(1) == labels[TRAINED:]).mean())
    return model, means, right, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=LIBRARIES, default="fastops")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    begin = time.perf_counter()
    model, losses, right, steps = train(args.library, args.epochs, args.seed)
    seconds = time.perf_counter() - begin
    weights = b"".join(map(np.ndarray.tobytes, model.weights()))
    print("losses:", *map(repr, losses))
    print(f"of {1797 - TRAINED} that it has not learnt from: {right:.1%} right")
    print("weights:", hashlib.sha256(weights).hexdigest())
    print(f"seconds: {seconds:.2f}, {statistics.median(steps) * 1e6:.0f} us a step")


if __name__ == "__main__":
    main()
