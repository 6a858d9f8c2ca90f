"""Compare each function with tf_keras's, bit for bit: eager calls, functions, gradients, errors."""

import inspect
import warnings

import numpy as np
import pytest
import tensorflow as tf
from backend.backend_cases import cases, differ, outcome, plain, world
from support import one_in
from tensorflow.python.eager import context

from fastops import backend

reference = pytest.importorskip("tf_keras", reason="see the extra 'libraries'").backend

NAMES = sorted(name for name in dir(reference) if not name.startswith("_"))

CALLS: dict = {}
for _name, _call in cases():
    CALLS.setdefault(_name, []).append(_call)

SEEDS = {call: 100 * number for number, (_, call) in enumerate(cases())}

KINDS = {
    "tensors": "the inputs of most programs",
    "variables": "`tf.Variable`, for all inputs",
    "arrays": "NumPy's arrays",
    "float64": "floats of 64 bits",
    "float16": "floats of 16 bits",
}

OTHER = {
    "placeholder": "a graph's tensor, of another class than in tf_keras; shapes are compared",
    "function": "takes placeholders: see test_backend_symbolic.py",
}
"""Names of functions whose results differ from tf_keras by design, with the reason."""

NEARLY = {
    "categorical_focal_crossentropy": "TensorFlow's optimizer moves constant factors to other "
    "nodes in the order of node names, and the names differ",
}
"""Names of functions whose calls in a tf.function differ in the last bits, with the reason."""


def some(name, kind):
    """Return the calls of a function that support inputs of a kind."""
    return CALLS[name] if kind == "tensors" else CALLS[name][:1]


def test_all_names_of_tf_keras_exist():
    assert len(NAMES) == 148
    assert set(NAMES) <= set(backend.__all__)


def test_all_names_have_calls():
    assert set(NAMES) == CALLS.keys()


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"experimental"}))
def test_parameters_are_those_of_tf_keras(name):
    expected = inspect.signature(getattr(reference, name))
    assert str(inspect.signature(getattr(backend, name))) == str(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_eager_calls(name, kind):
    different = []
    for call in some(name, kind):
        expected = outcome(call, reference, world(kind), SEEDS[call])
        if kind == "arrays" and isinstance(expected.error, AttributeError):
            continue  # tf_keras accepts only tensors here; fastops accepts arrays
        for _ in range(2):  # TensorFlow makes the first call
            got = outcome(call, backend, world(kind), SEEDS[call])
            if (why := differ(expected, got)) is not None:
                different.append(f"{call}: {why}")
    assert not different, "\n".join(different)


def in_function(inputs):
    """Return a function that traces a call, with the tensors among the inputs as arguments."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, tf.Tensor)}

    def around(run):
        others = []

        @tf.function(autograph=False)
        def traced(given):
            inputs.update(given)
            flat = tf.nest.flatten(run(), expand_composites=True)
            others.extend(plain(value) for value in flat if not tf.is_tensor(value))
            return [value for value in flat if tf.is_tensor(value)]

        return [*traced(tensors), *others]

    return around


@pytest.mark.parametrize("name", one_in(3, sorted(set(NAMES) - OTHER.keys())))
def test_calls_in_functions(name):
    different = []
    for call in CALLS[name]:
        inputs = world()
        expected = outcome(call, reference, inputs, SEEDS[call], in_function(inputs))
        inputs = world()
        got = outcome(call, backend, inputs, SEEDS[call], in_function(inputs))
        within = 1e-6 if name in NEARLY else 0.0
        if (why := differ(expected, got, within)) is not None:
            different.append(f"{call}: {why}")
    assert not different, "\n".join(different)


def with_gradients(inputs):
    """Return a function that appends gradients of the sum of all results to the results."""
    watched = [
        value
        for value in inputs.values()
        if isinstance(value, tf.Tensor) and value.dtype.is_floating
    ]

    def around(run):
        with tf.GradientTape() as tape:
            tape.watch(watched)
            flat = tf.nest.flatten(run(), expand_composites=True)
            total = [
                tf.reduce_sum(value)
                for value in flat
                if tf.is_tensor(value) and value.dtype.is_floating
            ]
        if not total:
            return flat
        gradients = tape.gradient(total, watched)
        return [
            *flat,
            *(tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None),
        ]

    return around


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    different = []
    for call in CALLS[name][:8]:
        inputs = world()
        expected = outcome(call, reference, inputs, SEEDS[call], with_gradients(inputs))
        for _ in range(2):
            inputs = world()
            got = outcome(call, backend, inputs, SEEDS[call], with_gradients(inputs))
            if (why := differ(expected, got)) is not None:
                different.append(f"{call}: {why}")
    assert not different, "\n".join(different)


def test_random_numbers_of_a_global_seed():
    for call in ("K.random_normal((2, 3))", "K.dropout(x, 0.5)", "K.random_uniform((4,))"):
        try:
            numbers = []
            for module in (reference, backend):
                tf.random.set_seed(5)
                numbers.append(outcome(call, module, world(), 9))
            assert differ(*numbers) is None
        finally:
            context.context()._set_global_seed(None)


def test_warnings():
    for call in (
        "K.random_binomial((2,), 0.5)",
        "K.set_learning_phase(0)",
        "K.learning_phase_scope(0).__enter__()",
        "K.binary_crossentropy(target, K.sigmoid(x), from_logits=True)",
    ):
        kinds = []
        for module in (reference, backend):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                eval(call, {**world(), "K": module})
            kinds.append([warning.category for warning in caught])
        assert kinds[0] == kinds[1], call
    backend.clear_session()
    reference.clear_session()


def test_a_second_call_with_the_same_seed_draws_the_same_numbers():
    # In tf_keras, a second call continues the sequence of the kernel with that seed. In fastops, it
    # draws the first numbers again.
    np.random.seed(3)
    first = backend.random_normal((3,)).numpy().tolist()
    np.random.seed(3)
    assert backend.random_normal((3,)).numpy().tolist() == first
