"""Requests to a Keras model, one row at a time: from an array, to features, to an array.

This is a plain Keras program that calls its model eagerly. ``python -m fastops
examples/online_request.py`` runs it faster with the same results. ``--library torch`` uses a model
of the same size in PyTorch.
"""

import argparse
import hashlib
import importlib
import time

import numpy as np

FIELDS = 16
UNITS = 64
BUCKETS = 32


def requests(number, seed):
    """Return rows of measurements, some of them missing."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(number, FIELDS)).astype(np.float32)
    rows[generator.random(rows.shape) < 0.1] = np.nan
    return rows


def serve_keras(seed):
    """Return a function that answers a request with Keras."""
    import keras
    import tensorflow as tf
    from keras import layers as L  # noqa: N812

    keras.utils.set_random_seed(seed)
    measured, bucket = keras.Input((3 * FIELDS,)), keras.Input((1,), dtype="int32")
    place = L.Flatten()(L.Embedding(BUCKETS, 8)(bucket))
    x = L.Concatenate()([measured, place])
    for _ in range(2):
        y = L.Dense(UNITS, activation="gelu")(x)
        x = L.LayerNormalization()(y)
    x = L.Add()([L.Dense(UNITS, activation="gelu")(x), x])
    model = keras.Model([measured, bucket], L.Dense(4, activation="softmax")(x))

    def answer(row):
        row = tf.convert_to_tensor(row[np.newaxis])
        missing = tf.math.is_nan(row)
        known = tf.where(missing, tf.zeros_like(row), row)
        scaled = tf.math.sign(known) * tf.math.log1p(tf.abs(known))
        features = tf.concat([known, scaled, tf.cast(missing, tf.float32)], axis=1)
        norm = tf.sqrt(tf.reduce_sum(tf.square(known), axis=1, keepdims=True))
        bucket = tf.minimum(tf.cast(norm * 4.0, tf.int32), BUCKETS - 1)
        chances = model([features, bucket])
        return tf.clip_by_value(chances[0], 1e-4, 1.0).numpy()

    return answer


def serve_torch(seed):
    """Return a function that answers a request with PyTorch."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(BUCKETS, 8)
            self.one, self.two = nn.Linear(3 * FIELDS + 8, UNITS), nn.Linear(UNITS, UNITS)
            self.norms = nn.ModuleList([nn.LayerNorm(UNITS), nn.LayerNorm(UNITS)])
            self.three, self.out = nn.Linear(UNITS, UNITS), nn.Linear(UNITS, 4)

        def forward(self, features, bucket):
            x = torch.cat([features, self.embed(bucket)[:, 0]], dim=1)
            for layer, norm in zip((self.one, self.two), self.norms, strict=True):
                x = norm(nn.functional.gelu(layer(x)))
            x = nn.functional.gelu(self.three(x)) + x
            return torch.softmax(self.out(x), dim=-1)

    model = Model().eval()

    @torch.no_grad()
    def answer(row):
        row = torch.as_tensor(row[np.newaxis])
        missing = torch.isnan(row)
        known = torch.where(missing, torch.zeros_like(row), row)
        scaled = torch.sign(known) * torch.log1p(torch.abs(known))
        features = torch.cat([known, scaled, missing.to(torch.float32)], dim=1)
        norm = torch.sqrt(torch.sum(torch.square(known), dim=1, keepdim=True))
        bucket = torch.clamp((norm * 4.0).to(torch.int32), max=BUCKETS - 1)
        return torch.clamp(model(features, bucket)[0], 1e-4, 1.0).numpy()

    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", choices=("keras", "torch"), default="keras")
    args = parser.parse_args()
    importlib.import_module(args.library)  # takes seconds, and is not measured
    rows = requests(args.requests, args.seed)
    begin = time.perf_counter()
    answer = (serve_keras if args.library == "keras" else serve_torch)(args.seed)
    answers, took = [], []
    for row in rows:
        arrived = time.perf_counter()
        answers.append(answer(row))
        took.append(time.perf_counter() - arrived)
    seconds = time.perf_counter() - begin
    whole = seconds / len(rows)
    # Leave out the first half, in which kernels are prepared and calls recorded.
    steady, last = np.percentile(took[len(took) // 2 :], [50, 99])
    print("answers:", hashlib.sha256(np.array(answers).tobytes()).hexdigest())
    print("choices:", *np.bincount(np.argmax(answers, axis=1), minlength=4))
    print(
        f"seconds: {seconds:.2f}, {whole * 1e6:.1f} us a request, "
        f"{steady * 1e6:.1f} us when steady, p99 {last * 1e6:.1f} us"
    )


if __name__ == "__main__":
    main()
