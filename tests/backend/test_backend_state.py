"""Settings, counters, the learning phase, and what `clear_session` drops."""

import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

from fastops import backend
from fastops._backend.state import Settings


def test_settings_have_defaults_and_scopes():
    assert backend.floatx() == "float32"
    with backend.scope(floatx="float64", epsilon=1e-3, image_data_format="channels_first"):
        assert backend.constant([1]).dtype == tf.float64
        assert backend.zeros(2).dtype == tf.float64
        assert backend.epsilon() == 1e-3
        assert backend.image_data_format() == "channels_first"
        image, kernel = np.ones([1, 2, 5, 5], np.float32), np.ones([3, 3, 2, 4], np.float32)
        assert backend.conv2d(image, kernel).shape == (1, 4, 3, 3)
    assert (backend.floatx(), backend.epsilon()) == ("float32", 1e-7)
    with pytest.raises(ValueError, match="floatx is one of"), backend.scope(floatx="int8"):
        pass
    with pytest.raises(ZeroDivisionError), backend.scope(epsilon=1.0):
        1 / 0  # noqa: B018
    assert backend.epsilon() == 1e-7


def test_epsilon_is_read_in_each_call():
    target, output = tf.constant([[1.0, 0.0]]), tf.constant([[1.0, 0.0]])
    before = backend.categorical_crossentropy(target, output).numpy()
    with backend.scope(epsilon=0.25):
        assert backend.categorical_crossentropy(target, output).numpy() > before + 0.2
    assert backend.categorical_crossentropy(target, output).numpy() == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"floatx": "float16", "epsilon": 0.1, "image_data_format": "channels_first"}',
            ("float16", 0.1, "channels_first"),
        ),
        ('{"floatx": "int8", "epsilon": 1}', ("float32", 1e-7, "channels_last")),
        ("[]", ("float32", 1e-7, "channels_last")),
        ("{", ("float32", 1e-7, "channels_last")),
        (None, ("float32", 1e-7, "channels_last")),
    ],
)
def test_the_settings_file_of_keras_is_read(tmp_path, monkeypatch, text, expected):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    if text is not None:
        (tmp_path / "keras.json").write_text(text)
    settings = Settings()
    assert (settings.floatx, settings.epsilon, settings.image_data_format) == expected


def test_each_graph_counts_its_own_uids():
    backend.reset_uids()
    assert [backend.get_uid("a"), backend.get_uid("a"), backend.get_uid("b")] == [1, 2, 1]
    with tf.Graph().as_default():
        assert backend.get_uid("a") == 1
    assert backend.get_uid("a") == 3
    uids = []
    thread = threading.Thread(target=lambda: uids.append(backend.get_uid("a")))
    thread.start()
    thread.join()
    assert uids == [1]
    backend.clear_session()
    assert backend.get_uid("a") == 1


def test_the_learning_phase_of_a_thread():
    phases = []
    with backend.scope(learning_phase=1):
        assert backend.learning_phase() == 1
        assert tf.function(lambda: backend.learning_phase() + tf.constant(0))().numpy() == 1
        assert backend.in_train_phase(1.0, 2.0) == 1.0
        assert backend.in_test_phase(1.0, 2.0) == 2.0
        thread = threading.Thread(target=lambda: phases.append(backend.learning_phase()))
        thread.start()
        thread.join()
    assert (phases, backend.learning_phase()) == ([0], 0)
    with pytest.raises(ValueError, match="0 or 1"), backend.scope(learning_phase=2):
        pass


def test_the_learning_phase_of_a_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        phase = backend.learning_phase()
        assert phase is backend.learning_phase()
        assert phase.name == "keras_learning_phase:0"
        chosen = backend.in_train_phase(tf.constant(1.0), tf.constant(2.0))
        assert session.run(chosen) == 2.0
        assert session.run(chosen, {phase: True}) == 1.0
        with backend.scope(learning_phase=1):
            assert backend.learning_phase() == 1
    assert backend.learning_phase() == 0


def test_a_tensor_chooses_the_phase():
    for training in (True, False):
        chosen = backend.in_train_phase(
            lambda: tf.constant(1.0), tf.constant(2.0), training=tf.constant(training)
        )
        assert chosen.numpy() == (1.0 if training else 2.0)


def test_graphs_of_sessions():
    with tf.Graph().as_default():
        x = backend.variable([1.0, 2.0])
        assert backend.get_value(x).tolist() == [1.0, 2.0]
        backend.set_value(x, [3, 4])
        assert backend.eval(x * 2.0).tolist() == [6.0, 8.0]
        given = backend.placeholder((2,))
        doubled = backend.function([given], [given * 2.0], updates=[(x, given)])
        assert doubled([[5.0, 6.0]])[0].tolist() == [10.0, 12.0]
        assert backend.batch_get_value([x])[0].tolist() == [5.0, 6.0]
        backend.batch_set_value([(x, [0, 0])])
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            assert backend.get_value(x).tolist() == [1.0, 2.0]
    backend.clear_session()


def test_the_random_generator_setting_can_be_switched():
    experimental = backend.experimental
    assert not experimental.is_tf_random_generator_enabled()
    experimental.enable_tf_random_generator()
    assert experimental.is_tf_random_generator_enabled()
    experimental.disable_tf_random_generator()
    assert not experimental.is_tf_random_generator_enabled()


def test_each_shape_has_integers_of_its_own():
    x = tf.zeros([700, 0, 1_000_000])
    shapes = [backend.int_shape(x) for _ in range(1000)]
    assert set(shapes) == {(700, 0, 1_000_000)}
    # Each number is referenced only by its tuple, and by the argument of getrefcount.
    assert all(sys.getrefcount(shapes[0][axis]) <= 3 for axis in (0, 2))
