"""A custom training loop over a dataset, with metrics that are made in each epoch.

With ``--traced=1`` a step is a traced function that takes the model and the optimizer as arguments.
"""

import keras
import tensorflow as tf
from keras import layers

from fastops_bench.programs.data import CLASSES, FEATURES, labeled_rows
from fastops_bench.programs.shared import Times, options

BATCH = 32


loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def loss(model, x, y, training):
    # Dropout makes a difference between training and inference.
    y_ = model(x, training=training)
    return loss_object(y_true=y, y_pred=y_)


def grad(model, inputs, targets):
    with tf.GradientTape() as tape:
        loss_value = loss(model, inputs, targets, training=True)
    return loss_value, tape.gradient(loss_value, model.trainable_variables)


def eager_step(model, optimizer, x, y):
    loss_value, grads = grad(model, x, y)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss_value


@tf.function
def traced_step(model, optimizer, x, y):
    loss_value, grads = grad(model, x, y)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss_value


def main():
    args = options("A custom training loop.", epochs=100, rows=600, traced=0)
    keras.utils.set_random_seed(args.seed)
    train, test = labeled_rows(args.rows, args.seed), labeled_rows(args.rows // 4, args.seed + 1)
    times = Times("step")
    train_dataset = tf.data.Dataset.from_tensor_slices(train).shuffle(args.rows).batch(BATCH)
    test_dataset = tf.data.Dataset.from_tensor_slices(test).batch(BATCH)
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(32, activation=tf.nn.relu),
            layers.Dense(32, activation=tf.nn.relu),
            layers.Dropout(0.1),
            layers.Dense(CLASSES),
        ]
    )
    optimizer = keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)
    train_step = traced_step if args.traced else eager_step
    results = []
    for _ in range(args.epochs):
        epoch_loss_avg = keras.metrics.Mean()
        epoch_accuracy = keras.metrics.SparseCategoricalAccuracy()
        steps = 0
        for x, y in train_dataset:
            loss_value = train_step(model, optimizer, x, y)
            epoch_loss_avg.update_state(loss_value)
            epoch_accuracy.update_state(y, model(x, training=True))
            steps += 1
        results += [epoch_loss_avg.result().numpy(), epoch_accuracy.result().numpy()]

        test_accuracy = keras.metrics.Accuracy()
        for x, y in test_dataset:
            logits = model(x, training=False)
            prediction = tf.math.argmax(logits, axis=1, output_type=tf.int64)
            test_accuracy(prediction, y)
        results.append(test_accuracy.result().numpy())
        times.lap(steps)
    times.report(results, model.get_weights())


if __name__ == "__main__":
    main()
