"""A Keras model, trained eagerly on handwritten digits.

This is a plain Keras program. ``python -m fastops examples/keras_digits.py`` runs it faster with
the same weights.
"""

import argparse
import hashlib
import time

import keras
import numpy as np
from sklearn.datasets import load_digits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=1500, help="how many images to learn from")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    keras.utils.set_random_seed(args.seed)
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    model = keras.Sequential(
        [
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dropout(0.1),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        run_eagerly=True,
    )
    shown = images[: args.images], labels[: args.images]
    begin = time.perf_counter()
    history = model.fit(*shown, epochs=args.epochs, batch_size=32, verbose=0)
    seconds = time.perf_counter() - begin
    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    _, accuracy = model.evaluate(images[1500:], labels[1500:], verbose=0)
    print("losses:", *map(repr, history.history["loss"]))
    print("accuracy:", accuracy)
    print("weights:", hashlib.sha256(weights).hexdigest())
    print(f"seconds: {seconds:.2f}")


if __name__ == "__main__":
    main()
