"""A call whose key differs from a known key only in the length of a list is direct at once."""

import numpy as np
import pytest
import tensorflow as tf
from support import (
    DIRECT,
    FIRST,
    Failure,
    assert_same,
    assert_same_outcome,
    check,
    floats,
    took,
)
from tensorflow.python.eager import context

import fastops
from fastops import ops

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]


def rows(count, dtype=tf.float32):
    return [tf.constant(row, dtype) for row in floats(count, 3)]


LISTS = {
    "Pack": lambda n: {"values": rows(n), "axis": 1},
    "AddN": lambda n: {"inputs": rows(n)},
    "ConcatV2": lambda n: {"values": rows(n), "axis": tf.constant(0)},
    "Unpack": lambda n: {"value": tf.constant(floats(2, n)), "num": n, "axis": 1},
    "Split": lambda n: {
        "axis": tf.constant(0),
        "value": tf.constant(floats(4 * n)),
        "num_split": n,
    },
}


@pytest.mark.parametrize("op_name", LISTS)
def test_a_new_length_is_direct_at_once(op_name):
    check(op_name, first=FIRST, **LISTS[op_name](3))
    for length in (2, 5, 40, 300):
        check(op_name, first=DIRECT, **LISTS[op_name](length))


def test_gradients_of_calls_with_a_new_length():
    weights = tf.constant(floats(3))
    for length in (3, 7):
        values = rows(length)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(values)
            packed = ops.pack(values=values, axis=0)
            want = tf.raw_ops.Pack(values=values, axis=0)
            targets = [tf.reduce_sum(target * weights, 1) for target in (packed, want)]
        assert_same(tape.gradient(targets[0], values), tape.gradient(targets[1], values))
    assert fastops.stats().ops["Pack"].reasons == {"first_call": 1}


def test_any_other_difference_makes_a_new_key():
    took(ops.pack, values=rows(3), axis=0)
    assert took(ops.pack, values=rows(4), axis=1)[1] == FIRST
    assert took(ops.pack, values=rows(4, tf.float64), axis=0)[1] == FIRST
    with tf.device("CPU:0"):
        assert took(ops.pack, values=rows(4), axis=0)[1] == FIRST
    with fastops.options(onednn="off"):
        assert took(ops.pack, values=rows(4), axis=0)[1] == FIRST
    assert took(ops.pack, values=rows(4), axis=0)[1] == DIRECT


def test_an_integer_attribute_that_is_not_a_length():
    x = tf.constant(floats(1, 2, 2, 4))
    assert took(ops.depth_to_space, input=x, block_size=2)[1] == FIRST
    x = tf.constant(floats(1, 2, 2, 9))
    assert took(ops.depth_to_space, input=x, block_size=3)[1] == FIRST


def test_lists_of_several_dtypes_are_new_keys():
    took(ops.identity_n, input=rows(2))
    assert took(ops.identity_n, input=rows(3))[1] == FIRST


@pytest.mark.parametrize(
    ("op_name", "known", "arguments"),
    [
        ("ConcatV2", LISTS["ConcatV2"](3), {"values": rows(1), "axis": tf.constant(0)}),
        ("AddN", LISTS["AddN"](3), {"inputs": []}),
        ("AddN", LISTS["AddN"](3), {"inputs": [*rows(2), tf.constant(1)]}),
        ("AddN", LISTS["AddN"](3), {"inputs": [*rows(2), tf.constant(1.0)]}),
        ("Pack", LISTS["Pack"](3), {"values": [*rows(3), tf.constant(1.0)], "axis": 1}),
        ("Split", LISTS["Split"](2), {**LISTS["Split"](2), "num_split": 3}),
        ("Split", LISTS["Split"](2), {**LISTS["Split"](2), "num_split": 0}),
        ("Unpack", LISTS["Unpack"](2), {**LISTS["Unpack"](2), "num": 3}),
        ("Unpack", LISTS["Unpack"](2), {**LISTS["Unpack"](2), "num": -1}),
        ("Unpack", LISTS["Unpack"](2), {**LISTS["Unpack"](2), "num": 1 << 40}),
    ],
)
def test_calls_that_tensorflow_rejects_are_rejected(op_name, known, arguments):
    for _ in range(2):
        getattr(fastops.raw_ops, op_name)(**known)
    assert isinstance(assert_same_outcome(op_name, **arguments), Failure)


def test_calls_fall_back_while_tensorflow_collects_graphs():
    context.context().clear_kernel_cache()
    took(ops.add_n, inputs=rows(3))
    context.context().enable_graph_collection()
    try:
        assert took(ops.add_n, inputs=rows(4))[1] == FIRST
        assert context.context().export_run_metadata().function_graphs
    finally:
        context.context().disable_graph_collection()
    assert took(ops.add_n, inputs=rows(5))[1] == DIRECT


def test_a_new_length_after_a_failed_call_falls_back():
    with pytest.raises(tf.errors.InvalidArgumentError):
        ops.add_n(inputs=[tf.ones(2), tf.ones(3)])
    assert took(ops.add_n, inputs=rows(4))[1] == FIRST


def test_empty_results_and_many_sizes():
    for shape in ((0,), (), (2, 0)):
        values = [tf.zeros(shape)] * 4
        assert_same(ops.pack(values=values, axis=0), tf.raw_ops.Pack(values=values, axis=0))
    assert np.shape(ops.pack(values=values * 3, axis=0)) == (12, 2, 0)
