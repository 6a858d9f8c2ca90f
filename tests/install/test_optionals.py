"""Optional values made outside of graphs give the same as TensorFlow's, without their ops."""

import numpy as np
import pytest
import tensorflow as tf

import fastops

Optional = tf.experimental.Optional


ONES: list = []
"""The optional values that tests have made since the list was cleared."""


def made_of(value):
    """Make an optional value, keep it in the list for `variants`, and return it."""
    ONES.append(Optional.from_value(value))
    return ONES[-1]


def variants():
    """Return how many of the optional values have a variant tensor, which an op makes."""
    return sum(getattr(optional, "_made", optional) is not None for optional in ONES)


def plain(value):
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value), [plain(item) for item in value]
    if isinstance(value, tf.Tensor):
        known = value.numpy() if value.dtype != tf.variant else None
        return value.dtype, value.shape, value.device, known
    return repr(value)


VALUES = {
    "tensor": lambda: tf.constant(2.0),
    "logs": lambda: {"loss": tf.constant(2.0), "accuracy": tf.constant(1.0)},
    "nested": lambda: ({"b": tf.constant([1, 2]), "a": (tf.constant("text"),)}, tf.constant(True)),
    "numbers": lambda: {"loss": 2.0, "other": tf.constant(1)},
    "array": lambda: np.ones(3),
    "none": lambda: {"loss": None, "other": tf.constant(1)},
    "list": lambda: [tf.constant(1), tf.constant(2)],
    "sparse": lambda: tf.sparse.eye(2),
    "optional": lambda: Optional.from_value(tf.constant(1))._variant_tensor,
}
KEPT = {"tensor", "logs", "nested"}


def uses(value):
    """Yield the results of all eager uses of an optional value."""
    given = value()
    optional = made_of(given)
    yield repr(optional.element_spec), type(optional).__name__, isinstance(optional, Optional)
    yield optional.has_value().numpy()
    held = optional.get_value()
    assert held is not given
    yield plain(held) if given is not None else None
    if isinstance(held, dict):
        held["more"] = None
        yield list(optional.get_value())


def in_graphs(value):
    """Yield the results of uses in a graph, of an optional value as argument and captured."""
    optional = made_of(value())
    yield plain(tf.function(lambda given: given.get_value())(optional))
    yield plain(tf.function(lambda: optional.get_value())())
    yield tf.function(lambda: optional.has_value())().numpy()
    yield repr(optional._type_spec)


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    expected = list(map(repr, uses(VALUES[name])))
    with fastops.accelerated():
        for _ in range(2):
            ONES.clear()
            assert list(map(repr, uses(VALUES[name]))) == expected
            assert bool(variants()) == (name not in KEPT)


@pytest.mark.parametrize("name", ["tensor", "logs", "nested"])
def test_graphs_take_them(name):
    expected = list(map(repr, in_graphs(VALUES[name])))
    for options in ({}, {"functions": True}):
        with fastops.accelerated(**options):
            for _ in range(2):
                ONES.clear()
                assert list(map(repr, in_graphs(VALUES[name]))) == expected
                assert variants() == 1


def test_gradients_are_those_of_the_ops():
    def program(inside):
        x = tf.constant(3.0)
        optional = None if inside else Optional.from_value(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            if inside:
                optional = Optional.from_value(x * x)
            y = optional.get_value() * x
        return repr(tape.gradient(y, x))

    expected = [program(False), program(True)]
    with fastops.accelerated():
        for _ in range(2):
            assert [program(False), program(True)] == expected


def test_after_uninstall_tensorflow_makes_optional_values():
    original = vars(Optional)["from_value"]
    with fastops.accelerated():
        kept = Optional.from_value
        assert vars(Optional)["from_value"] is not original
        optional = kept(tf.constant(1))
        assert optional._made is None
    assert vars(Optional)["from_value"] is original
    assert optional.get_value() == 1
    assert not hasattr(kept(tf.constant(1)), "_made")
    with fastops.accelerated(), pytest.raises(TypeError):
        Optional.from_value()
