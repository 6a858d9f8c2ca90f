"""Programs of the kinds that users write: models, layers, losses and metrics of their own.

Each function makes the objects of a program, and returns a `Program`.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


@dataclass
class Program:
    """The calls of a program.

    Attributes
    ----------
    call : callable
        Calls the model, and returns its result.
    step : callable
        Makes a training step, and returns what it changes.
    subjects : list of tuple
        Pairs of an object of a class of the program, and the name of a method that is recorded.
    """

    call: Callable
    step: Callable
    subjects: list = field(default_factory=list)


def floats(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def integers(*shape, most=5, seed=0):
    return tf.constant(np.random.default_rng(seed).integers(0, most, size=shape).astype(np.int32))


def trained(model, loss_of, optimizer=None):
    """Return a training step: a tape, its gradients, and the step of an optimizer."""
    optimizer = optimizer or keras.optimizers.Adam(1e-3)

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of()
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return [loss, *variables]

    return step


# ---------------------------------------------------------------------------------------------
# Reinforcement learning
# ---------------------------------------------------------------------------------------------


class Actor(keras.Model):
    def __init__(self, actions, hidden=(32, 32), name="actor"):
        super().__init__(name=name)
        self.hidden_layers = [layers.Dense(units, activation="tanh") for units in hidden]
        self.mean = layers.Dense(actions)
        self.log_std = self.add_weight(shape=(actions,), initializer="zeros", name="log_std")

    def call(self, states):
        x = states
        for layer in self.hidden_layers:
            x = layer(x)
        mean = self.mean(x)
        std = tf.exp(tf.clip_by_value(self.log_std, -5.0, 2.0))
        return mean, tf.broadcast_to(std, tf.shape(mean))


class Critic(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.fc1 = layers.Dense(32, activation="relu")
        self.fc2 = layers.Dense(32, activation="relu")
        self.value = layers.Dense(1)

    def call(self, state, action=None):
        x = state if action is None else tf.concat([state, action], axis=-1)
        return tf.squeeze(self.value(self.fc2(self.fc1(x))), axis=-1)


def log_probability(mean, std, actions):
    return tf.reduce_sum(
        -0.5 * (((actions - mean) / std) ** 2 + 2.0 * tf.math.log(std) + np.log(2.0 * np.pi)),
        axis=-1,
    )


def ppo():
    actor, critic = Actor(3), Critic()
    states, actions, returns, old = floats(8, 4), floats(8, 3), floats(8), floats(8, seed=2)
    actor(states), critic(states)
    optimizer = keras.optimizers.Adam(1e-3)

    def step():
        with tf.GradientTape() as tape:
            mean, std = actor(states)
            values = critic(states)
            ratio = tf.exp(log_probability(mean, std, actions) - old)
            advantages = returns - tf.stop_gradient(values)
            clipped = tf.clip_by_value(ratio, 0.8, 1.2) * advantages
            policy = -tf.reduce_mean(tf.minimum(ratio * advantages, clipped))
            loss = policy + 0.5 * tf.reduce_mean(tf.square(returns - values))
        variables = actor.trainable_variables + critic.trainable_variables
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 0.5)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return [loss, *variables]

    return Program(lambda: (actor(states), critic(states)), step, [(actor, "__call__")])


class DuelingNetwork(keras.Model):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.features = keras.Sequential([layers.Dense(u, "relu") for u in config["units"]])
        self.advantage = layers.Dense(config["actions"])
        self.state_value = layers.Dense(1)

    def call(self, inputs, training=None):
        x = self.features(inputs, training=training)
        advantage, value = self.advantage(x), self.state_value(x)
        return value + (advantage - tf.reduce_mean(advantage, axis=1, keepdims=True))


def dueling():
    network = DuelingNetwork({"units": [32, 32], "actions": 4})
    target = DuelingNetwork({"units": [32, 32], "actions": 4})
    states, actions, rewards = floats(16, 6), integers(16, most=4), floats(16)
    network(states), target(states)
    loss_function = keras.losses.Huber()

    def loss():
        values = rewards + 0.99 * tf.reduce_max(target(states), axis=1)
        chosen = tf.reduce_sum(network(states) * tf.one_hot(actions, 4), axis=1)
        return loss_function(values, chosen)

    return Program(lambda: network(states), trained(network, loss), [(network, "__call__")])


# ---------------------------------------------------------------------------------------------
# Generative models
# ---------------------------------------------------------------------------------------------


class Sampling(layers.Layer):
    """Samples with a generator of seeds, as in the examples of Keras."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        mean, log_var = inputs
        batch = ops.shape(mean)[0]
        dim = ops.shape(mean)[1]
        epsilon = keras.random.normal(shape=(batch, dim), seed=self.seed_generator)
        return mean + ops.exp(0.5 * log_var) * epsilon


class Encoder(layers.Layer):
    def __init__(self, latent=2, hidden=16, name="encoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self.proj = layers.Dense(hidden, activation="relu")
        self.mean, self.log_var, self.sampling = layers.Dense(latent), layers.Dense(latent), None
        self.sampling = Sampling()

    def call(self, inputs):
        x = self.proj(inputs)
        mean, log_var = self.mean(x), self.log_var(x)
        return mean, log_var, self.sampling((mean, log_var))


class Decoder(layers.Layer):
    def __init__(self, size, hidden=16, name="decoder", **kwargs):
        super().__init__(name=name, **kwargs)
        self.proj = layers.Dense(hidden, activation="relu")
        self.out = layers.Dense(size, activation="sigmoid")

    def call(self, inputs):
        return self.out(self.proj(inputs))


class Autoencoder(keras.Model):
    def __init__(self, size=8, adds_loss=False, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder, self.adds_loss = Encoder(), Decoder(size), adds_loss

    def call(self, inputs):
        mean, log_var, z = self.encoder(inputs)
        reconstruction = self.decoder(z)
        kl = -0.5 * ops.mean(log_var - ops.square(mean) - ops.exp(log_var) + 1)
        if self.adds_loss:
            self.add_loss(kl)
            return reconstruction
        return reconstruction, kl


def vae():
    model, x = Autoencoder(), floats(8, 8)
    model(x)

    def loss():
        reconstruction, kl = model(x)
        return tf.reduce_mean(tf.square(x - reconstruction)) + kl

    return Program(lambda: model(x), trained(model, loss), [(model, "__call__")])


def vae_with_add_loss():
    model, x = Autoencoder(adds_loss=True), floats(8, 8)
    model(x)

    def loss():
        return tf.reduce_mean(tf.square(x - model(x))) + sum(model.losses)

    return Program(lambda: model(x), trained(model, loss), [(model, "__call__")])


class Coupling(layers.Layer):
    """A layer of a normalizing flow (RealNVP)."""

    def __init__(self, size, units=16):
        super().__init__()
        self.scale = [layers.Dense(units, "relu"), layers.Dense(size, "tanh")]
        self.shift = [layers.Dense(units, "relu"), layers.Dense(size, "linear")]

    def call(self, x):
        s, t = x, x
        for one, other in zip(self.scale, self.shift, strict=True):
            s, t = one(s), other(t)
        return s, t


class Flow(keras.Model):
    def __init__(self, couplings=4):
        super().__init__()
        self.number = couplings
        self.masks = np.array([[0, 1], [1, 0]] * (couplings // 2), dtype="float32")
        self.couplings = [Coupling(2) for _ in range(couplings)]

    def call(self, x, training=True):
        log_det = 0.0
        direction = -1 if training else 1
        for i in range(self.number)[::direction]:
            masked = x * self.masks[i]
            reverse = 1 - self.masks[i]
            s, t = self.couplings[i](masked)
            s, t = s * reverse, t * reverse
            gate = (direction - 1) / 2
            x = reverse * (x * tf.exp(direction * s) + direction * t * tf.exp(gate * s)) + masked
            log_det += gate * tf.reduce_sum(s, axis=1)
        return x, log_det


def flow():
    model, x = Flow(), floats(8, 2)
    model(x)

    def loss():
        y, log_det = model(x, training=True)
        return -tf.reduce_mean(-0.5 * tf.reduce_sum(y**2, axis=1) + log_det)

    return Program(lambda: model(x), trained(model, loss), [(model, "__call__")])


# ---------------------------------------------------------------------------------------------
# Images and sequences
# ---------------------------------------------------------------------------------------------


@dataclass
class BlockConfig:
    filters: int = 8
    stride: int = 1
    reduction: int = 4
    residual: bool = True


class SqueezeExcite(layers.Layer):
    def __init__(self, channels, reduction=4, **kwargs):
        super().__init__(**kwargs)
        self.pool = layers.GlobalAveragePooling2D(keepdims=True)
        self.reduce = layers.Dense(channels // reduction, activation="relu")
        self.expand = layers.Dense(channels, activation="sigmoid")

    def call(self, inputs):
        return inputs * self.expand(self.reduce(self.pool(inputs)))


class ResidualBlock(layers.Layer):
    def __init__(self, config: BlockConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.conv1 = layers.Conv2D(config.filters, 3, config.stride, "same", use_bias=False)
        self.conv2 = layers.Conv2D(config.filters, 3, padding="same", use_bias=False)
        self.bn1, self.bn2 = layers.BatchNormalization(), layers.BatchNormalization()
        self.se = SqueezeExcite(config.filters, config.reduction)
        self.shortcut = None

    def build(self, input_shape):
        if input_shape[-1] != self.config.filters or self.config.stride > 1:
            self.shortcut = layers.Conv2D(self.config.filters, 1, self.config.stride)
        super().build(input_shape)

    def call(self, x, training=False):
        y = tf.nn.relu(self.bn1(self.conv1(x), training=training))
        y = self.se(self.bn2(self.conv2(y), training=training))
        shortcut = self.shortcut(x) if self.shortcut is not None else x
        if self.config.residual:
            y = y + shortcut
        return tf.nn.relu(y)


class ResidualNetwork(keras.Model):
    def __init__(self, configs, classes=5):
        super().__init__()
        self.blocks = [ResidualBlock(config, name=f"block{i}") for i, config in enumerate(configs)]
        self.pool, self.head = layers.GlobalAveragePooling2D(), layers.Dense(classes)

    def call(self, x, training=None):
        for block in self.blocks:
            x = block(x, training=training)
        return self.head(self.pool(x))


def residual():
    model = ResidualNetwork([BlockConfig(), BlockConfig(8, 2), BlockConfig(16, 2)])
    x, y = floats(4, 8, 8, 3), integers(4)
    model(x)
    loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def loss():
        return loss_function(y, model(x, training=True))

    return Program(lambda: model(x), trained(model, loss), [(model, "__call__")])


class UNet(keras.Model):
    def __init__(self, widths=(4, 8)):
        super().__init__()
        self.down = [layers.Conv2D(w, 3, padding="same", activation="relu") for w in widths]
        self.pools = [layers.MaxPooling2D() for _ in widths]
        self.middle = layers.Conv2D(16, 3, padding="same", activation="relu")
        self.ups = [layers.Conv2DTranspose(w, 2, strides=2) for w in reversed(widths)]
        self.refine = [layers.Conv2D(w, 3, padding="same") for w in reversed(widths)]
        self.out = layers.Conv2D(1, 1)

    def call(self, x):
        skips = []
        for conv, pool in zip(self.down, self.pools, strict=True):
            x = conv(x)
            skips.append(x)
            x = pool(x)
        x = self.middle(x)
        for i, (up, skip) in enumerate(zip(self.ups, reversed(skips), strict=True)):
            x = layers.concatenate([up(x), skip])
            x = tf.nn.relu(self.refine[i](x))
        return self.out(x)


def unet():
    model, x = UNet(), floats(2, 8, 8, 1)
    model(x)

    def loss():
        return tf.reduce_mean(tf.abs(model(x) - x))

    return Program(lambda: model(x), trained(model, loss), [(model, "__call__")])


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = layers.Embedding(vocab_size, embed_dim)
        self.pos_emb = layers.Embedding(maxlen, embed_dim)

    def call(self, x):
        maxlen = ops.shape(x)[-1]
        positions = self.pos_emb(ops.arange(start=0, stop=maxlen, step=1))
        return self.token_emb(x) + positions


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads, embed_dim)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, "relu"), layers.Dense(embed_dim)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1, self.dropout2 = layers.Dropout(rate), layers.Dropout(rate)

    def call(self, inputs, training=False):
        attn_output = self.dropout1(self.att(inputs, inputs), training=training)
        out1 = self.layernorm1(inputs + attn_output)
        ffn_output = self.dropout2(self.ffn(out1), training=training)
        return self.layernorm2(out1 + ffn_output)


class Transformer(keras.Model):
    def __init__(self, blocks=2):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(6, 10, 8)
        self.blocks = [TransformerBlock(8, 2, 16) for _ in range(blocks)]
        self.pool, self.dropout = layers.GlobalAveragePooling1D(), layers.Dropout(0.1)
        self.out = layers.Dense(2)

    def call(self, x, training=False):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x, training=training)
        return self.out(self.dropout(self.pool(x), training=training))


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """The schedule of the transformer tutorial."""

    def __init__(self, d_model, warmup_steps=4000):
        super().__init__()
        self.d_model = tf.cast(d_model, tf.float32)
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = tf.cast(step, dtype=tf.float32)
        arg1 = tf.math.rsqrt(step)
        arg2 = step * (self.warmup_steps**-1.5)
        return tf.math.rsqrt(self.d_model) * tf.math.minimum(arg1, arg2)


def transformer():
    model, x, y = Transformer(), integers(4, 6, most=10), integers(4, most=2)
    model(x)
    optimizer = keras.optimizers.Adam(WarmUp(8), beta_2=0.98)
    loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def loss():
        return loss_function(y, model(x, training=True))

    return Program(lambda: model(x), trained(model, loss, optimizer), [(model, "__call__")])


class HandMadeAttention(layers.Layer):
    """Scaled dot product attention, written by hand."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.d_model = num_heads, d_model
        assert d_model % self.num_heads == 0
        self.depth = d_model // self.num_heads
        self.wq, self.wk, self.wv = (layers.Dense(d_model) for _ in range(3))
        self.dense = layers.Dense(d_model)

    def split_heads(self, x, batch_size):
        x = tf.reshape(x, (batch_size, -1, self.num_heads, self.depth))
        return tf.transpose(x, perm=[0, 2, 1, 3])

    @staticmethod
    def attend(q, k, v, mask=None):
        logits = tf.matmul(q, k, transpose_b=True)
        logits = logits / tf.math.sqrt(tf.cast(tf.shape(k)[-1], tf.float32))
        if mask is not None:
            logits += mask * -1e9
        weights = tf.nn.softmax(logits, axis=-1)
        return tf.matmul(weights, v), weights

    def call(self, v, k, q, mask=None):
        batch_size = tf.shape(q)[0]
        q = self.split_heads(self.wq(q), batch_size)
        k = self.split_heads(self.wk(k), batch_size)
        v = self.split_heads(self.wv(v), batch_size)
        attention, _ = self.attend(q, k, v, mask)
        attention = tf.transpose(attention, perm=[0, 2, 1, 3])
        return self.dense(tf.reshape(attention, (batch_size, -1, self.d_model)))


def attention():
    layer, x = HandMadeAttention(8, 2), floats(2, 5, 8)
    layer(x, x, x)

    def loss():
        return tf.reduce_mean(tf.square(layer(x, x, x)))

    return Program(lambda: layer(x, x, x), trained(layer, loss), [(layer, "__call__")])


class GruCell(layers.Layer):
    """A cell, written by hand, with a loop over time."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        size = input_shape[-1]
        self.w = self.add_weight(shape=(size, 3 * self.units), initializer="glorot_uniform")
        self.u = self.add_weight(shape=(self.units, 3 * self.units), initializer="orthogonal")
        self.b = self.add_weight(shape=(3 * self.units,), initializer="zeros")

    def cell(self, x, h):
        xz, xr, xh = tf.split(tf.matmul(x, self.w) + self.b, 3, axis=-1)
        uz, ur, uh = tf.split(tf.matmul(h, self.u), 3, axis=-1)
        z, r = tf.sigmoid(xz + uz), tf.sigmoid(xr + ur)
        return (1.0 - z) * tf.tanh(xh + r * uh) + z * h

    def call(self, inputs, state=None):
        h = tf.zeros((tf.shape(inputs)[0], self.units)) if state is None else state
        outputs = []
        for t in range(inputs.shape[1]):
            h = self.cell(inputs[:, t, :], h)
            outputs.append(h)
        return tf.stack(outputs, axis=1), h


def recurrent():
    layer, x = GruCell(6), floats(3, 4, 5)
    layer(x)

    def loss():
        outputs, state = layer(x)
        return tf.reduce_mean(tf.square(outputs)) + tf.reduce_mean(state)

    return Program(lambda: layer(x), trained(layer, loss), [(layer, "__call__")])


class SequenceEncoder(keras.Model):
    def __init__(self, vocabulary=12, units=8):
        super().__init__()
        self.embedding = layers.Embedding(vocabulary, units)
        self.gru = layers.GRU(units, return_sequences=True, return_state=True)

    def call(self, x, hidden=None):
        return self.gru(self.embedding(x), initial_state=hidden)


class BahdanauAttention(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.W1, self.W2, self.V = layers.Dense(units), layers.Dense(units), layers.Dense(1)

    def call(self, query, values):
        score = self.V(tf.nn.tanh(self.W1(tf.expand_dims(query, 1)) + self.W2(values)))
        attention_weights = tf.nn.softmax(score, axis=1)
        return tf.reduce_sum(attention_weights * values, axis=1), attention_weights


class SequenceDecoder(keras.Model):
    def __init__(self, vocabulary=12, units=8):
        super().__init__()
        self.embedding = layers.Embedding(vocabulary, units)
        self.attention = BahdanauAttention(units)
        self.gru = layers.GRU(units, return_sequences=True, return_state=True)
        self.fc = layers.Dense(vocabulary)

    def call(self, x, hidden, enc_output):
        context_vector, attention_weights = self.attention(hidden, enc_output)
        x = tf.concat([tf.expand_dims(context_vector, 1), self.embedding(x)], axis=-1)
        output, state = self.gru(x)
        output = tf.reshape(output, (-1, output.shape[2]))
        return self.fc(output), state, attention_weights


def translation():
    encoder, decoder = SequenceEncoder(), SequenceDecoder()
    source, target = integers(3, 5, most=12), integers(3, 4, most=12, seed=1)
    outputs, hidden = encoder(source)
    decoder(target[:, :1], hidden, outputs)
    loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    optimizer = keras.optimizers.Adam(1e-3)

    def loss_function(real, prediction):
        mask = tf.math.logical_not(tf.math.equal(real, 0))
        loss = loss_object(real, prediction)
        return tf.reduce_mean(loss * tf.cast(mask, dtype=loss.dtype))

    def step():
        loss = 0.0
        with tf.GradientTape() as tape:
            outputs, hidden = encoder(source)
            for t in range(1, target.shape[1]):
                predictions, hidden, _ = decoder(target[:, t - 1 : t], hidden, outputs)
                loss += loss_function(target[:, t], predictions)
        variables = encoder.trainable_variables + decoder.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return [loss, *variables]

    return Program(lambda: decoder(target[:, :1], hidden, outputs), step, [(decoder, "__call__")])


# ---------------------------------------------------------------------------------------------
# Graphs, experts, and other layers
# ---------------------------------------------------------------------------------------------


class Aggregation(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class GraphConvolution(layers.Layer):
    def __init__(self, units, aggregation=Aggregation.MEAN, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.units, self.aggregation = units, aggregation
        self.activation = keras.activations.get(activation)

    def build(self, input_shape):
        features = input_shape[0][-1]
        self.kernel = self.add_weight(shape=(features, self.units), name="kernel")
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, inputs):
        nodes, adjacency = inputs
        hidden = tf.matmul(adjacency, tf.matmul(nodes, self.kernel))
        if self.aggregation == Aggregation.MEAN:
            hidden = hidden / tf.reduce_sum(adjacency, axis=-1, keepdims=True)
        return self.activation(hidden + self.bias)


class GraphNetwork(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConvolution(8)
        self.conv2 = GraphConvolution(4, Aggregation.SUM, None)
        self.dropout = layers.Dropout(0.5)

    def call(self, inputs, training=False):
        x, a = inputs
        x = self.dropout(self.conv1([x, a]), training=training)
        return tf.nn.softmax(self.conv2([x, a]))


def graph():
    model, nodes = GraphNetwork(), floats(6, 5)
    adjacency = tf.constant(np.eye(6, dtype=np.float32) + np.eye(6, k=1, dtype=np.float32))
    model((nodes, adjacency))

    def loss():
        return -tf.reduce_mean(tf.math.log(model((nodes, adjacency), training=True)[:, 0]))

    return Program(lambda: model((nodes, adjacency)), trained(model, loss), [(model, "__call__")])


class Experts(keras.Model):
    def __init__(self, experts=3, units=6):
        super().__init__()
        self.num_experts = experts
        self.experts = [layers.Dense(units, activation="relu") for _ in range(experts)]
        self.gate = layers.Dense(experts, activation="softmax")
        for i in range(experts):
            setattr(self, f"out_{i}", layers.Dense(1))

    def call(self, x):
        gates = self.gate(x)
        parts = tf.stack([expert(x) for expert in self.experts], axis=1)
        mixed = tf.einsum("be,bec->bc", gates, parts)
        return tf.concat(
            [getattr(self, f"out_{i}")(mixed) for i in range(self.num_experts)], axis=-1
        )


def experts():
    model, x = Experts(), floats(4, 5)
    model(x)

    def loss():
        return tf.reduce_mean(tf.square(model(x) - 1.0))

    return Program(lambda: model(x), trained(model, loss), [(model.gate, "__call__")])


class NoisyDense(layers.Dense):
    """A layer that extends one of Keras's, and calls its method."""

    def __init__(self, units, scale=0.5, **kwargs):
        super().__init__(units, **kwargs)
        self.scale = scale

    def call(self, inputs, training=None):
        outputs = super().call(inputs)
        if training:
            outputs = outputs * self.scale
        return outputs


class DropPath(layers.Layer):
    """Stochastic depth."""

    def __init__(self, rate=0.2, **kwargs):
        super().__init__(**kwargs)
        self.drop_prob = rate
        self.seed_generator = keras.random.SeedGenerator(5)

    def call(self, x, training=None):
        if training:
            keep_prob = 1 - self.drop_prob
            shape = (tf.shape(x)[0],) + (1,) * (len(x.shape) - 1)
            random_tensor = keep_prob + keras.random.uniform(shape, seed=self.seed_generator)
            return (x / keep_prob) * tf.floor(random_tensor)
        return x


class HandMadeNormalization(layers.Layer):
    """Keeps averages in variables."""

    def __init__(self, momentum=0.9, epsilon=1e-3, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.epsilon = momentum, epsilon

    def build(self, input_shape):
        size = (input_shape[-1],)
        self.gamma = self.add_weight(shape=size, initializer="ones")
        self.beta = self.add_weight(shape=size, initializer="zeros")
        self.moving_mean = self.add_weight(shape=size, initializer="zeros", trainable=False)
        self.moving_var = self.add_weight(shape=size, initializer="ones", trainable=False)

    def call(self, x, training=False):
        if training:
            mean, var = tf.nn.moments(x, axes=[0])
            self.moving_mean.assign(self.moving_mean * self.momentum + mean * (1 - self.momentum))
            self.moving_var.assign(self.moving_var * self.momentum + var * (1 - self.momentum))
        else:
            mean, var = self.moving_mean, self.moving_var
        return self.gamma * (x - mean) / tf.sqrt(var + self.epsilon) + self.beta


def mixed():
    units = [NoisyDense(8, activation="relu"), HandMadeNormalization(), DropPath(), NoisyDense(2)]
    model, x, y = keras.Sequential([keras.Input((4,)), *units]), floats(8, 4), floats(8, 2)
    model(x)

    def loss():
        return tf.reduce_mean(tf.square(model(x, training=True) - y))

    return Program(lambda: model(x), trained(model, loss), [(model, "__call__")])


# ---------------------------------------------------------------------------------------------
# Modules of TensorFlow
# ---------------------------------------------------------------------------------------------


class ModuleDense(tf.Module):
    """The layer of TensorFlow's guide to modules."""

    def __init__(self, out_features, activation=tf.nn.relu, name=None):
        super().__init__(name=name)
        self.is_built, self.out_features, self.activation = False, out_features, activation

    def __call__(self, x):
        if not self.is_built:
            shape = [x.shape[-1], self.out_features]
            self.w = tf.Variable(tf.random.normal(shape, stddev=0.1, seed=3), name="w")
            self.b = tf.Variable(tf.zeros([self.out_features]), name="b")
            self.is_built = True
        y = tf.matmul(x, self.w) + self.b
        return self.activation(y) if self.activation is not None else y


class ModulePerceptron(tf.Module):
    def __init__(self, sizes, name=None):
        super().__init__(name=name)
        self.layers = [ModuleDense(size) for size in sizes[:-1]]
        self.layers.append(ModuleDense(sizes[-1], None))

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def module():
    model, x, y = ModulePerceptron([16, 16, 1]), floats(8, 4), floats(8, 1)
    model(x)
    optimizer = keras.optimizers.SGD(0.01)

    def loss():
        return tf.reduce_mean(tf.square(model(x) - y))

    return Program(lambda: model(x), trained(model, loss, optimizer))


class SineLayer(tf.Module):
    def __init__(self, inputs, outputs, w0=30.0):
        super().__init__()
        bound = math.sqrt(6.0 / inputs) / w0
        generator = np.random.default_rng(1)
        values = generator.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
        self.w, self.b, self.w0 = tf.Variable(values), tf.Variable(tf.zeros(outputs)), w0

    def __call__(self, x):
        return tf.sin(self.w0 * (x @ self.w + self.b))


class Siren(tf.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SineLayer(2, 16), SineLayer(16, 16, w0=1.0)
        self.out = SineLayer(16, 1, w0=1.0)

    def __call__(self, x):
        return self.out(self.second(self.first(x)))


def siren():
    model, x = Siren(), floats(16, 2)
    model(x)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x)))
        for variable, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            variable.assign_sub(0.01 * gradient)
        return [loss, *model.trainable_variables]

    return Program(lambda: model(x), step)


class LinearModel:
    """A plain class that holds variables and layers."""

    def __init__(self):
        self.hidden = layers.Dense(8, activation="relu")
        self.w = tf.Variable(tf.ones([8, 1]))
        self.b = tf.Variable(0.0)

    def __call__(self, x):
        return self.hidden(x) @ self.w + self.b

    @property
    def trainable_variables(self):
        return [*self.hidden.trainable_variables, self.w, self.b]


def plain():
    model, x = LinearModel(), floats(8, 4)
    model(x)

    def loss():
        return tf.reduce_mean(tf.square(model(x) - 1.0))

    return Program(
        lambda: model(x),
        trained(model, loss, keras.optimizers.SGD(0.01)),
        [(model.hidden, "__call__")],
    )


# ---------------------------------------------------------------------------------------------
# Losses and metrics
# ---------------------------------------------------------------------------------------------


class Contrastive(keras.losses.Loss):
    def __init__(self, margin=1.0, name="contrastive", **kwargs):
        super().__init__(name=name, **kwargs)
        self.margin = margin

    def call(self, y_true, y_pred):
        y_true = tf.cast(y_true, y_pred.dtype)
        square = tf.square(y_pred)
        margin_square = tf.square(tf.maximum(self.margin - y_pred, 0))
        return tf.reduce_mean(y_true * square + (1 - y_true) * margin_square, axis=-1)


class Smoothed(keras.losses.Loss):
    """Cross entropy with label smoothing, and a focal factor."""

    def __init__(self, classes, smoothing=0.1, gamma=2.0, reduction="sum_over_batch_size"):
        super().__init__(reduction=reduction)
        self.classes, self.smoothing, self.gamma = classes, smoothing, gamma

    def call(self, y_true, y_pred):
        labels = tf.one_hot(tf.cast(y_true, tf.int32), self.classes)
        labels = labels * (1.0 - self.smoothing) + self.smoothing / self.classes
        log_p = tf.nn.log_softmax(y_pred, axis=-1)
        focal = (1.0 - tf.exp(log_p)) ** self.gamma
        return -tf.reduce_sum(labels * focal * log_p, axis=-1)


def huber(delta=1.0):
    def loss(y_true, y_pred):
        error = y_true - y_pred
        small = tf.abs(error) <= delta
        return tf.where(small, tf.square(error) / 2, delta * (tf.abs(error) - 0.5 * delta))

    return loss


def losses():
    contrastive, smoothed = Contrastive(), Smoothed(4)
    wrapped = keras.src.losses.LossFunctionWrapper(huber(0.5))
    model, x = keras.Sequential([keras.Input((4,)), layers.Dense(4)]), floats(8, 4)
    same, labels, target = integers(8, 4, most=2), integers(8, most=4), floats(8, 4, seed=3)

    def loss():
        outputs = model(x)
        return contrastive(same, outputs) + smoothed(labels, outputs) + wrapped(target, outputs)

    return Program(loss, trained(model, loss), [(contrastive, "__call__"), (smoothed, "__call__")])


class F1(keras.metrics.Metric):
    def __init__(self, name="f1", threshold=0.5, **kwargs):
        super().__init__(name=name, **kwargs)
        self.threshold = threshold
        self.tp = self.add_weight(name="tp", initializer="zeros")
        self.fp = self.add_weight(name="fp", initializer="zeros")
        self.fn = self.add_weight(name="fn", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = tf.cast(y_true, tf.float32)
        y_pred = tf.cast(y_pred > self.threshold, tf.float32)
        if sample_weight is not None:
            y_true = y_true * sample_weight
        self.tp.assign_add(tf.reduce_sum(y_true * y_pred))
        self.fp.assign_add(tf.reduce_sum((1 - y_true) * y_pred))
        self.fn.assign_add(tf.reduce_sum(y_true * (1 - y_pred)))

    def result(self):
        precision = self.tp / (self.tp + self.fp + keras.config.epsilon())
        recall = self.tp / (self.tp + self.fn + keras.config.epsilon())
        return 2 * precision * recall / (precision + recall + keras.config.epsilon())

    def reset_state(self):
        for variable in self.variables:
            variable.assign(0.0)


class BinaryTruePositives(keras.metrics.Metric):
    """The metric of Keras's guide."""

    def __init__(self, name="binary_true_positives", **kwargs):
        super().__init__(name=name, **kwargs)
        self.true_positives = self.add_variable(shape=(), initializer="zeros", name="tp")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "bool")
        y_pred = ops.cast(y_pred, "bool")
        values = ops.logical_and(ops.equal(y_true, True), ops.equal(y_pred, True))
        values = ops.cast(values, self.dtype)
        if sample_weight is not None:
            sample_weight = ops.cast(sample_weight, self.dtype)
            values = values * ops.broadcast_to(sample_weight, ops.shape(values))
        self.true_positives.assign(self.true_positives + ops.sum(values))

    def result(self):
        return self.true_positives

    def reset_state(self):
        self.true_positives.assign(0)


def metrics():
    f1, positives = F1(), BinaryTruePositives()
    labels, scores = integers(16, most=2), tf.nn.sigmoid(floats(16))

    def step():
        f1.update_state(labels, scores)
        positives.update_state(labels, scores)
        return [f1.result(), positives.result(), *f1.variables, *positives.variables]

    def call():
        f1.reset_state()
        positives.reset_state()
        return step()

    return Program(call, step)


PROGRAMS = {
    function.__name__: function
    for function in (
        *(ppo, dueling, vae, vae_with_add_loss, flow, residual, unet, transformer, attention),
        *(recurrent, translation, graph, experts, mixed, module, siren, plain, losses, metrics),
    )
}
