"""The paths of calls of the backend: an alias is a single op, other functions run only kernels."""

import inspect
import pickle
import types

import numpy as np
import pytest
import tensorflow as tf
from backend.backend_cases import world
from fastops_bench.backend_calls import CALLS

import fastops
from fastops import backend, ops

ALIASES = [
    description.name
    for description in backend.describe().values()
    if description.category == "alias"
]

ELSEWHERE = {
    "moving_average_update": "for each of two dtypes, TensorFlow makes the first call",
    "random_normal_variable": "TensorFlow makes variables until two of a kind are known",
    "random_uniform_variable": "TensorFlow makes variables until two of a kind are known",
    "variable": "TensorFlow makes variables until two of a kind are known",
    "zeros": "TensorFlow makes variables until two of a kind are known",
    "ones": "TensorFlow makes variables until two of a kind are known",
    "eye": "TensorFlow makes variables until two of a kind are known",
}
"""Functions whose third call may still run an op in TensorFlow, with the reason."""


@pytest.mark.parametrize("name", ALIASES)
def test_an_alias_is_its_op(name, fresh):
    alias = getattr(backend, name)
    op_name = backend.describe(name).op
    assert alias.op is getattr(fastops.raw_ops, op_name)
    assert isinstance(alias, types.FunctionType)  # by its `__class__`
    assert not hasattr(type(alias), "__code__")
    inputs = {**world(), "K": backend}
    eval(CALLS[name], inputs)
    fastops.reset_stats()
    eval(CALLS[name], inputs)
    assert list(fastops.stats().ops) == [op_name]
    assert fastops.stats().direct == 1


@pytest.mark.parametrize("name", sorted(CALLS.keys() - set(ALIASES) - ELSEWHERE.keys()))
def test_calls_run_only_kernels(name, fresh):
    inputs = {**world(), "K": backend}
    for _ in range(3):
        eval(CALLS[name], inputs)
    fastops.reset_stats()
    eval(CALLS[name], inputs)
    assert not {
        name: counts.reasons for name, counts in fastops.stats().ops.items() if counts.reasons
    }


def test_an_alias_takes_positional_and_keyword_arguments(fresh):
    x = tf.constant([[1.0, 2.0]])
    expected = ops.expand_dims(input=x, axis=0).numpy().tolist()
    for _ in range(2):
        assert backend.expand_dims(x, 0).numpy().tolist() == expected
        assert backend.expand_dims(x, axis=0).numpy().tolist() == expected
        assert backend.expand_dims(axis=0, x=x).numpy().tolist() == expected
        assert backend.expand_dims(**{"".join("x"): x, "".join(["ax", "is"]): 0}).shape == (1, 1, 2)
    assert backend.expand_dims(x).shape == (1, 2, 1)
    for wrong in (
        lambda: backend.expand_dims(),
        lambda: backend.expand_dims(x, 0, 1),
        lambda: backend.expand_dims(x, x=x),
        lambda: backend.expand_dims(x, other=0),
    ):
        with pytest.raises(TypeError, match="expand_dims"):
            wrong()


def test_an_alias_looks_like_a_function_to_inspect():
    assert str(inspect.signature(backend.expand_dims)) == "(x, axis=-1)"
    assert inspect.isfunction(backend.exp)
    assert backend.exp.__name__ == "exp"
    assert "An alias of the op Exp" in backend.exp.__doc__
    assert pickle.loads(pickle.dumps(backend.exp)) is backend.exp
    assert backend.exp.__module__ == "fastops._backend.elementwise"


def test_without_install_nothing_of_tensorflow_is_replaced():
    assert not fastops.is_installed()
    backend.sum(tf.constant([1.0]))
    assert tf.reduce_sum.__class__ is types.FunctionType
    assert type(tf.reduce_sum) is types.FunctionType


def test_under_install():
    x = tf.constant([[1.0, -2.0]])
    expected = backend.relu(x, max_value=0.5).numpy().tolist()
    with fastops.accelerated():
        for _ in range(3):
            assert backend.relu(x, max_value=0.5).numpy().tolist() == expected
            assert backend.exp(x).numpy().tolist() == tf.exp(x).numpy().tolist()


def test_dispatchers_of_users():
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor

    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def masked(function, x):
        return Masked(function(x.values))

    x = Masked(tf.constant([1.0, 4.0]))
    try:
        assert backend.sqrt(x.values).numpy().tolist() == [1.0, 2.0]
        assert backend.exp(x).values.numpy().tolist() == tf.exp(x.values).numpy().tolist()
        assert backend.square(x).values.numpy().tolist() == [1.0, 16.0]
    finally:  # otherwise calls of these functions would not be replayed in later tests
        tf.experimental.unregister_dispatch_for(masked)


def test_ragged_tensors():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    assert backend.sum(x, axis=1).numpy().tolist() == [3.0, 3.0]
    assert backend.exp(x).to_list() == tf.exp(x).to_list()
    assert backend.concatenate([x, x], axis=1).to_list() == [[1.0, 2.0, 1.0, 2.0], [3.0, 3.0]]
    assert not backend.is_sparse(x)


def test_another_device():
    x = tf.constant([1.0, 2.0])
    with tf.device("/cpu:0"):
        assert backend.exp(x).device.endswith("CPU:0")
        image, kernel = np.ones([1, 3, 3, 2], np.float32), np.ones([1, 1, 2, 1], np.float32)
        assert backend.conv2d(image, kernel).shape == (1, 3, 3, 1)


def test_mixed_dtypes_are_errors():
    for call in (backend.maximum, backend.equal, backend.dot):
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
            call(tf.constant([[1.0]]), tf.constant([[1]]))


def test_a_convolution_of_too_few_axes_does_not_end_the_process():
    kernel = tf.ones([3, 3, 3, 4])
    with pytest.raises(ValueError, match="x must have 4 axes, not 2"):
        backend.conv2d(tf.ones([2, 3]), kernel)
