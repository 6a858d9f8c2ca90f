"""The inputs of recipes: small tensors, in three sets.

The first two sets differ only in values; the third also has other shapes.
"""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

SETS = 3


def world(number=0):
    """Return new inputs of a set, by name, since calls may change those with state."""
    k, d, side, length = (4, 3, 8, 64) if number < 2 else (6, 4, 12, 96)
    rng = np.random.default_rng(number)

    def between(low, high, *shape):
        return tf.constant(rng.uniform(low, high, shape).astype(np.float32))

    def normal(*shape):
        return tf.constant(rng.normal(size=shape).astype(np.float32))

    def whole(low, high, *shape, dtype=np.int32):
        return tf.constant(rng.integers(low, high, shape).astype(dtype))

    def flags(*shape):
        drawn = rng.random(shape) < 0.5
        drawn.flat[0], drawn.flat[-1] = True, False
        return tf.constant(drawn)

    def complexes(*shape):
        return tf.complex(normal(*shape), normal(*shape))

    def sparse(*shape):
        indices = np.argwhere(rng.random(shape) < 0.6)
        indices = indices if len(indices) else np.zeros([1, len(shape)], np.int64)
        return tf.SparseTensor(indices, normal(len(indices)), shape)

    inputs = SimpleNamespace()
    # Numbers, vectors, matrices, and batches of matrices.
    inputs.a, inputs.b = between(1, 2), between(1, 2)
    inputs.x, inputs.y = between(0.5, 3.5, k), between(0.5, 3.5, k)
    inputs.t, inputs.u = normal(k), between(0.05, 0.95, k)
    inputs.m, inputs.n, inputs.batch = normal(d, d), normal(d, d), normal(2, d, d)
    inputs.spd = tf.matmul(inputs.m, inputs.m, transpose_b=True) + d * tf.eye(d)
    inputs.lower = tf.linalg.cholesky(inputs.spd)
    inputs.cube = normal(2, d, k)
    inputs.i, inputs.j, inputs.long = whole(1, 9, k), whole(1, 9, k), whole(1, 9, k, dtype=np.int64)
    inputs.byte = whole(0, 200, k, dtype=np.uint8)
    inputs.p, inputs.q, inputs.mask = flags(k), flags(k), flags(d, d)
    inputs.z, inputs.zz, inputs.zm = complexes(k), complexes(k), complexes(d, d)
    inputs.array = rng.normal(size=k).astype(np.float32)
    # Indices: in a vector, in a matrix, of classes, of segments.
    inputs.at, inputs.places = whole(0, k, 2), whole(0, d, 2, 2)
    inputs.labels, inputs.ids = whole(0, d, d), tf.sort(whole(0, 3, k))
    inputs.targets = tf.nn.softmax(normal(d, d))
    inputs.seed = whole(0, 99, 2)
    # Strings.
    words = ["alpha", "be ta", "1 2", "d", "Ωmega", "z"]
    inputs.s = tf.constant([words[each] for each in rng.permutation(6)[:k]])
    inputs.digits = tf.strings.as_string(inputs.i)
    inputs.word = inputs.s[0]
    # Images, signals, inputs of convolutions.
    inputs.image, inputs.image2 = between(0, 1, side, side, 3), between(0, 1, side, side, 3)
    inputs.images = between(0, 1, 2, side, side, 3)
    inputs.pixels = whole(0, 256, side, side, 3, dtype=np.uint8)
    inputs.boxes = tf.constant([[0.1, 0.1, 0.6, 0.7], [0.2, 0.0, 0.9, 0.8], [0.0, 0.3, 0.5, 1.0]])
    inputs.scores = between(0, 1, 3)
    inputs.filters = normal(2, 2, 3, 4)
    inputs.volume, inputs.filters3 = normal(1, 4, side // 2, 4, 2), normal(2, 2, 2, 2, 3)
    inputs.steps, inputs.filters1 = normal(2, side, 3), normal(2, 3, 4)
    inputs.wave, inputs.waves = normal(length), normal(2, length)
    inputs.spectrum = complexes(length)
    # Composite tensors, and objects with state.
    inputs.sp, inputs.sp2 = sparse(d, d), sparse(d, d)
    inputs.r = tf.RaggedTensor.from_row_splits(normal(k), [0, 1, 1, k])
    inputs.r2 = inputs.r.with_values(normal(k))
    inputs.rs = tf.RaggedTensor.from_row_splits(inputs.s, [0, 2, k])
    inputs.slices = tf.IndexedSlices(normal(2, d), tf.constant([0, 2]), tf.constant([d, d]))
    inputs.v, inputs.w = tf.Variable(normal(k)), tf.Variable(normal(d, d))
    inputs.count = tf.Variable(0, dtype=tf.int64)
    inputs.g = tf.random.Generator.from_seed(number + 7)
    return vars(inputs)
