"""Sampled losses, and the ops of their draws: replayed, with the draws of TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf
from calls import find, frames
from support import assert_same, floats

import fastops

pytestmark = [pytest.mark.usefixtures("fresh")]

CLASSES, ROWS, WIDTH, CALLS = 12, 6, 3, 8
LOSSES = {"contrastive": "nce_loss", "softmax": "sampled_softmax_loss"}


def weights(as_variables=True):
    make = tf.Variable if as_variables else tf.constant
    return {"weights": make(floats(CLASSES, WIDTH)), "biases": make(floats(CLASSES, seed=1))}


def labels(seed, rows=ROWS, number=1, dtype=np.int64):
    return np.random.default_rng(seed).integers(0, CLASSES, (rows, number)).astype(dtype)


def losses(name, *, options=None, shared=None, convert=tf.constant, dtype=np.int64, seed=3):
    """Set a global seed and return losses, which have different numbers of accidental hits."""
    loss, shared = getattr(tf.nn, LOSSES[name]), shared or weights()
    options = {"num_sampled": 5, "num_classes": CLASSES} | (options or {})
    tf.random.set_seed(seed)
    return [
        loss(
            **shared,
            labels=convert(labels(number, number=options.get("num_true", 1), dtype=dtype)),
            inputs=tf.constant(floats(ROWS, WIDTH, seed=number)),
            **options,
        )
        for number in range(CALLS)
    ]


def assert_replayed_alike(program, *names):
    """Compare a program with and without fastops, and assert that these losses are replayed."""
    want = program()
    with fastops.accelerated():
        for _ in range(3):
            assert_same(program(), want)
        for name in names:
            known = find(f"tf.nn.{LOSSES[name]}").describe()
            assert known["replayed"], known


@pytest.mark.parametrize("hits", [False, True])
@pytest.mark.parametrize("true", [1, 2])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, true, hits):
    options = {"num_true": true, "remove_accidental_hits": hits}
    assert_replayed_alike(lambda: losses(name, options=options), name)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("convert", [tf.constant, np.array])
def test_labels_of_other_kinds(name, dtype, convert):
    assert_replayed_alike(lambda: losses(name, convert=convert, dtype=dtype), name)


def test_lists_of_labels_are_tensorflows():
    def program():
        return losses("contrastive", convert=lambda rows: tf.constant(rows).numpy().tolist())

    with pytest.raises(AttributeError) as wanted:
        program()
    with fastops.accelerated(), pytest.raises(AttributeError) as caught:
        program()
    assert str(caught.value) == str(wanted.value)


@pytest.mark.parametrize("name", LOSSES)
def test_weights_in_parts_and_as_tensors(name):
    parts = weights() | {"weights": [tf.Variable(floats(4, WIDTH, seed=n)) for n in range(3)]}
    assert_replayed_alike(
        lambda: [*losses(name, shared=parts), *losses(name, shared=weights(False))], name
    )


@pytest.mark.parametrize("scope", [None, "/CPU:0"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name, scope):
    def program():
        shared = weights()
        tf.random.set_seed(5)
        results = []
        for number in range(CALLS):
            inputs = tf.constant(floats(ROWS, WIDTH, seed=number))
            with tf.device(scope), tf.GradientTape() as tape:
                tape.watch(inputs)
                loss = getattr(tf.nn, LOSSES[name])(
                    **shared,
                    labels=labels(number),
                    inputs=inputs,
                    num_sampled=5,
                    num_classes=CLASSES,
                    remove_accidental_hits=True,
                )
            grads = tape.gradient(loss, [inputs, *shared.values()])
            results.append([tf.convert_to_tensor(grad) for grad in grads])
            results.append([grad.indices for grad in grads[1:]])
            for variable, grad in zip(shared.values(), grads[1:], strict=True):
                variable.scatter_sub(grad)
        return [*results, *[variable.numpy() for variable in shared.values()]]

    assert_replayed_alike(program, name)


@pytest.mark.parametrize("seeds", [(None, None), (3, None), (3, 4), (None, 4)])
def test_seeds(seeds):
    """Draws by a seed of the program go on in TensorFlow's sequence."""
    of_all, of_call = seeds

    def program():
        if of_all is not None:
            tf.random.set_seed(of_all)
        elif of_call is not None:
            tf.random.set_seed(0)
        options = {"seed": of_call, "remove_accidental_hits": True}
        made = losses("softmax", options=options, seed=of_all or 0)
        return made if (of_all, of_call) != (None, None) else [value.shape for value in made]

    assert_replayed_alike(program, "softmax")


def test_values_that_were_drawn_before():
    """The number of accidental hits differs from call to call, without a draw in the call."""

    def program():
        results = []
        for number in range(CALLS):
            drawn = (
                tf.constant(np.random.default_rng(number).permutation(CLASSES)[:5]),
                tf.constant(np.full((ROWS, 1), 0.25, np.float32)),
                tf.constant(np.full(5, 0.5, np.float32)),
            )
            results += losses("softmax", options={"sampled_values": drawn})[:1]
        return results

    assert_replayed_alike(program, "softmax")


def test_replays_run_no_python_of_tensorflow():
    shared, options = weights(), {"num_sampled": 5, "num_classes": CLASSES}
    given = {"labels": tf.constant(labels(0)), "inputs": tf.constant(floats(ROWS, WIDTH))}
    with fastops.accelerated():
        tf.random.set_seed(3)
        for _ in range(4):
            tf.nn.nce_loss(**shared, **given, **options)
        assert frames(tf.nn.nce_loss, (), {**shared, **given, **options}) == []


def test_other_sizes_and_errors():
    def program():
        results = losses("softmax") + losses("softmax", options={"num_sampled": 7})
        shared = weights()
        for rows in (ROWS, ROWS, ROWS, 3, 1, ROWS):
            try:
                results.append(
                    tf.nn.sampled_softmax_loss(
                        **shared,
                        labels=tf.constant(labels(0, rows)),
                        inputs=tf.constant(floats(ROWS, WIDTH)),
                        num_sampled=5,
                        num_classes=CLASSES,
                    )
                )
            except tf.errors.OpError as error:
                results.append(type(error).__name__)
        return results

    assert_replayed_alike(program, "softmax")


# ---------------------------------------------------------------------------------------------
# Ops
# ---------------------------------------------------------------------------------------------


def test_seeds_that_no_kernel_reads_need_no_kernel():
    rows, drawn = tf.constant(labels(0)), tf.constant([1, 4, 6, 2, 0], tf.int64)

    def program():
        tf.random.set_seed(3)
        return [tf.nn.compute_accidental_hits(rows, drawn, 1) for _ in range(CALLS)] + [
            tf.raw_ops.ComputeAccidentalHits(
                true_classes=rows, sampled_candidates=drawn, num_true=1, seed=number, seed2=5
            )
            for number in range(CALLS)
        ]

    want = program()
    with fastops.accelerated():
        program()
        fastops.reset_stats()
        for got, expected in zip(program(), want, strict=True):
            assert_same(got, expected)
        seen = fastops.stats().ops["ComputeAccidentalHits"]
    assert (seen.direct, seen.capi, seen.tensorflow) == (2 * CALLS, 0, 0), seen


def test_draws_of_samplers_have_static_sizes():
    """The sizes of a draw do not depend on values, so a recording may have ops after the draw."""
    stand_in = find("tf.nn.nce_loss")
    shared, options = weights(), {"num_sampled": 5, "num_classes": CLASSES}
    given = {"labels": tf.constant(labels(0)), "inputs": tf.constant(floats(ROWS, WIDTH))}
    with fastops.accelerated():
        for _ in range(4):
            tf.nn.nce_loss(**shared, **given, **options)
        stand_in = find("tf.nn.nce_loss")
        assert not stand_in.describe()["reasons"], stand_in.describe()
