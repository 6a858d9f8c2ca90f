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

    one = SimpleNamespace()
    # Numbers, vectors, matrices, and batches of matrices.
    one.a, one.b = between(1, 2), between(1, 2)
    one.x, one.y = between(0.5, 3.5, k), between(0.5, 3.5, k)
    one.t, one.u = normal(k), between(0.05, 0.95, k)
    one.m, one.n, one.batch = normal(d, d), normal(d, d), normal(2, d, d)
    one.spd = tf.matmul(one.m, one.m, transpose_b=True) + d * tf.eye(d)
    one.lower = tf.linalg.cholesky(one.spd)
    one.cube = normal(2, d, k)
    one.i, one.j, one.long = whole(1, 9, k), whole(1, 9, k), whole(1, 9, k, dtype=np.int64)
    one.byte = whole(0, 200, k, dtype=np.uint8)
    one.p, one.q, one.mask = flags(k), flags(k), flags(d, d)
    one.z, one.zz, one.zm = complexes(k), complexes(k), complexes(d, d)
    one.array = rng.normal(size=k).astype(np.float32)
    # Indices: in a vector, in a matrix, of classes, of segments.
    one.at, one.places = whole(0, k, 2), whole(0, d, 2, 2)
    one.labels, one.ids = whole(0, d, d), tf.sort(whole(0, 3, k))
    one.targets = tf.nn.softmax(normal(d, d))
    one.seed = whole(0, 99, 2)
    # Strings.
    words = ["alpha", "be ta", "1 2", "d", "Ωmega", "z"]
    one.s = tf.constant([words[each] for each in rng.permutation(6)[:k]])
    one.digits = tf.strings.as_string(one.i)
    one.word = one.s[0]
    # Images, signals, inputs of convolutions.
    one.image, one.image2 = between(0, 1, side, side, 3), between(0, 1, side, side, 3)
    one.images = between(0, 1, 2, side, side, 3)
    one.pixels = whole(0, 256, side, side, 3, dtype=np.uint8)
    one.boxes = tf.constant([[0.1, 0.1, 0.6, 0.7], [0.2, 0.0, 0.9, 0.8], [0.0, 0.3, 0.5, 1.0]])
    one.scores = between(0, 1, 3)
    one.filters = normal(2, 2, 3, 4)
    one.volume, one.filters3 = normal(1, 4, side // 2, 4, 2), normal(2, 2, 2, 2, 3)
    one.steps, one.filters1 = normal(2, side, 3), normal(2, 3, 4)
    one.wave, one.waves = normal(length), normal(2, length)
    one.spectrum = complexes(length)
    # Composite tensors, and objects with state.
    one.sp, one.sp2 = sparse(d, d), sparse(d, d)
    one.r = tf.RaggedTensor.from_row_splits(normal(k), [0, 1, 1, k])
    one.r2 = one.r.with_values(normal(k))
    one.rs = tf.RaggedTensor.from_row_splits(one.s, [0, 2, k])
    one.slices = tf.IndexedSlices(normal(2, d), tf.constant([0, 2]), tf.constant([d, d]))
    one.v, one.w = tf.Variable(normal(k)), tf.Variable(normal(d, d))
    one.count = tf.Variable(0, dtype=tf.int64)
    one.g = tf.random.Generator.from_seed(number + 7)
    return vars(one)
