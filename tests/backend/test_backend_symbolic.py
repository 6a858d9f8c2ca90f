"""Placeholders and functions of placeholders; symbolic tensors in models of tf_keras and Keras."""

import numpy as np
import pytest
import tensorflow as tf

from fastops import backend


def test_functions_of_placeholders():
    x, y = backend.placeholder((2, 3)), backend.placeholder(shape=(3, None), dtype="float32")
    product = backend.dot(x, y)
    assert backend.int_shape(product) == (2, None)
    hidden = backend.relu(product - 1.0, max_value=3.0)
    total, parts = backend.sum(hidden), tf.split(hidden, 2, axis=0)
    function = backend.function([x, y], {"total": total, "parts": parts})
    result = function([np.ones((2, 3)), np.ones((3, 4))])
    assert result["total"] == 16.0
    assert [tensor.shape for tensor in result["parts"]] == [(1, 4), (1, 4)]
    assert backend.function(product, hidden)(np.full((2, 2), 2.5)).tolist() == [[1.5] * 2] * 2


def test_symbols_have_the_attributes_of_symbolic_tensors():
    x = backend.placeholder((2, 3), name="x")
    assert backend.is_keras_tensor(x)
    assert (backend.ndim(x), backend.int_shape(x), backend.dtype(x)) == (2, (2, 3), "float32")
    assert repr(x) == "<Symbol x: shape=(2, 3), dtype=float32>"
    assert x[0].shape == (3,)
    assert (1.0 - x * 2.0 + x).shape == (2, 3)
    assert [tensor.shape for tensor in x] == [(3,), (3,)]
    with pytest.raises(TypeError, match="no value"):
        bool(x)
    with pytest.raises(TypeError, match="no length"):
        len(x)
    with pytest.raises(TypeError, match="cannot be iterated"):
        iter(backend.placeholder((None, 2)))
    with pytest.raises(ValueError, match="sparse and ragged"):
        backend.placeholder(sparse=True, ragged=True)
    with pytest.raises(ValueError, match="is not an input of the function"):
        backend.function([backend.placeholder((1,))], [x])([[1.0]])
    with pytest.raises(ValueError, match="length"):
        backend.function([x], [x])([1.0, 2.0])
    with pytest.raises(ValueError, match="contain no placeholder"):
        backend.function([], [tf.constant(1.0)])
    with pytest.raises(ValueError, match="`updates`"):
        backend.function([x], [x], updates=[1])
    with pytest.raises(ValueError, match="Session keyword"):
        backend.function([x], [x], feed_dict={})
    with pytest.raises(ValueError, match="symbolic tensor instance"):
        backend.is_keras_tensor(1)


def test_losses_of_symbols_know_their_logits():
    x = backend.placeholder((2, 3))
    target = np.eye(3, dtype=np.float32)[:2]
    loss = backend.categorical_crossentropy(tf.constant(target), backend.softmax(x))
    values = np.array([[50.0, -50.0, 0.0], [1.0, 2.0, 3.0]], np.float32)
    expected = tf.nn.softmax_cross_entropy_with_logits(target, values)
    np.testing.assert_allclose(backend.function(x, loss)(values), expected, rtol=1e-6)


def test_variables_are_read_in_each_call():
    x, variable = backend.placeholder(()), tf.Variable(2.0)
    function = backend.function(x, x * variable)
    assert function(3.0) == 6.0
    variable.assign(4.0)
    assert function(tf.Variable(3.0)) == 12.0


def test_sparse_and_ragged_placeholders():
    x = backend.placeholder((2, 3), sparse=True)
    assert backend.is_sparse(x)
    dense = backend.function(x, backend.to_dense(x))
    assert dense(tf.SparseTensor([[0, 1]], [2.0], (2, 3))).tolist() == [[0, 2, 0], [0, 0, 0]]
    assert backend.placeholder((2, None), ragged=True).shape.rank == 2


@pytest.mark.parametrize("library", ["tf_keras", "keras"])
def test_models_of_layers_that_use_the_backend(library):
    keras = pytest.importorskip(library, reason="see the extra 'libraries'")
    inputs = keras.Input((4,))
    assert backend.is_keras_tensor(inputs)
    outputs = keras.layers.Dense(2, kernel_initializer="ones")(inputs)
    function = backend.function([inputs], [outputs])
    assert function([np.ones((1, 4), np.float32)])[0].tolist() == [[4.0, 4.0]]


CALLS = {
    "abs": lambda x: backend.abs(x),
    "clip": lambda x: backend.clip(x, 0.0, 1.0),
    "concatenate": lambda x: backend.concatenate([x, x]),
    "dot": lambda x: backend.dot(x, tf.ones([4, 2])),
    "flatten": lambda x: backend.batch_flatten(backend.expand_dims(x)),
    "losses": lambda x: backend.binary_crossentropy(x, backend.sigmoid(x)),
    "mean": lambda x: backend.mean(x, axis=-1),
    "relu": lambda x: backend.relu(x, 0.1, 1.0, 0.2),
    "softmax": lambda x: backend.softmax(x),
    "var": lambda x: backend.var(x, axis=1),
}


@pytest.mark.parametrize("name", CALLS)
def test_symbolic_inputs_of_models_of_tf_keras(name):
    keras = pytest.importorskip("tf_keras", reason="see the extra 'libraries'")
    inputs = keras.Input((4,))
    model = keras.Model(inputs, CALLS[name](inputs))
    x = np.linspace(-1.0, 2.0, 8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_allclose(model(x), CALLS[name](tf.constant(x)), rtol=1e-5)


def test_layers_of_tf_keras_get_the_training_argument():
    keras = pytest.importorskip("tf_keras", reason="see the extra 'libraries'")

    class Phase(keras.layers.Layer):
        def call(self, x):
            return backend.in_train_phase(x + 1.0, x)

    assert Phase()(tf.constant(1.0), training=True).numpy() == 2.0
    assert Phase()(tf.constant(1.0)).numpy() == 1.0
