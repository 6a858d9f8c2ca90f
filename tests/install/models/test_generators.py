"""Draws of `tf.random.Generator`: recorded and replayed, with the state in a variable."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import floats, outcome, plain

import fastops
from fastops._specialize.recording.plain import OF_GENERATORS

CALLS = 8
DRAWS = {
    "normal": lambda g: g.normal([4, 3]),
    "moments": lambda g: g.normal((2,), mean=1.0, stddev=[0.5, 2.0]),
    "moments_of_tensors": lambda g: g.normal([2], tf.constant([1.0, 2.0]), tf.constant(3.0)),
    "float64": lambda g: g.normal([3], dtype=tf.float64),
    "float16": lambda g: g.normal([3], dtype=tf.float16),
    "scalar": lambda g: g.normal([]),
    "nothing": lambda g: g.normal([0, 3]),
    "truncated_normal": lambda g: g.truncated_normal([5], 1.0, 2.0),
    "uniform": lambda g: g.uniform([4]),
    "bounds": lambda g: g.uniform(shape=[4], minval=-1.0, maxval=3.0),
    "integers": lambda g: g.uniform([4], 0, 10, tf.int32),
    "long_integers": lambda g: g.uniform([4], -7, 10, dtype=tf.int64, name="draw"),
    "all_integers": lambda g: g.uniform([4], minval=None, dtype=tf.uint32),
    "uniform_full_int": lambda g: g.uniform_full_int([3]),
    "small_integers": lambda g: g.uniform_full_int([3], dtype=tf.int32),
    "make_seeds": lambda g: g.make_seeds(2),
    "one_seed": lambda g: g.make_seeds(),
    "static_shape": lambda g: g.normal(tf.TensorShape([2, 2])),
    "two": lambda g: (g.normal([2]), g.uniform([2])),
}
MAKERS = {
    "philox": lambda: tf.random.Generator.from_seed(7),
    "from_state": lambda: tf.random.Generator.from_state([3, 2, 1], alg=1),
    "split": lambda: tf.random.Generator.from_seed(7).split(2)[1],
}


def replays(generator):
    """Return how many draws of a generator were replayed."""
    methods = [vars(tf.random.Generator)[name] for name in OF_GENERATORS]
    return sum(method.describe(generator)["replayed"] for method in methods)


def compare(program, make=MAKERS["philox"], least=CALLS - 3):
    """Run a program with a generator in stock TensorFlow and with replays.

    What it returns, and the state of the generator, must be the same.
    """

    def run():
        generator = make()
        return generator, [outcome(program, generator), plain(generator.state)]

    _, expected = run()
    with fastops.accelerated():
        generator, made = run()
        assert made == expected
        assert replays(generator) >= least


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", DRAWS)
def test_draws(name, make):
    draw = DRAWS[name]
    compare(lambda g: [draw(g) for _ in range(CALLS)], MAKERS[make])


WRONG = {
    "bounds": lambda g: g.uniform([2], 5, dtype=tf.int32),
    "negative": lambda g: g.normal([-1]),
    "dtype": lambda g: g.normal([2], dtype=tf.int32),
    "text": lambda g: g.normal("a"),
    "no_shape": lambda g: g.normal(),
    "more": lambda g: g.normal([2], 0.0, 1.0, tf.float32, None, 3),
    "moments": lambda g: g.normal([2], mean=[1.0, 2.0, 3.0]),
    "full_range_of_floats": lambda g: g.uniform_full_int([2], dtype=tf.float32),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    wrong = WRONG[name]
    compare(lambda g: [(outcome(wrong, g), g.normal([2])) for _ in range(CALLS)], least=CALLS - 3)


def test_shapes_of_tensors():
    """Their values are compared."""

    def draws(generator):
        shapes = [tf.constant([2, 3]), tf.constant([2, 3]), tf.constant([1]), tf.constant([2, 3])]
        return [generator.normal(shape) for shape in shapes * 4]

    compare(draws, least=0)


def test_draws_that_fail_move_the_state_once():
    def draws(generator):
        low, made = tf.constant(3), []
        for high in [5, 6, 7, 8, 9, 3, 8, 1, 5]:
            made.append(outcome(generator.uniform, [2], low, tf.constant(high), tf.int32))
            made.append(plain(generator.state))
        return made

    compare(draws, least=4)


def test_the_state_changes_between_draws():
    def draws(generator):
        made = []
        for number in range(CALLS):
            made.append(generator.normal([3]))
            if number == 3:
                generator.reset_from_seed(5)
            elif number == 4:
                generator.reset([1, 2, 3])
            elif number == 5:
                made.append(generator.skip(10))
            elif number == 6:
                generator.state.assign([4, 5, 6])
            made.append(generator.state.read_value())
        return made

    compare(draws)


def test_the_algorithm_changes():
    def draws(generator):
        made = [generator.uniform([3]) for _ in range(CALLS)]
        generator._alg = 2
        return made + [outcome(generator.uniform, [3]) for _ in range(CALLS)]

    compare(draws)


def test_another_state_variable():
    def draws(generator):
        made = [generator.uniform([3]) for _ in range(CALLS)]
        generator._state_var = tf.Variable([9, 8, 7], dtype=tf.int64, trainable=False)
        return made + [generator.uniform([3]) for _ in range(CALLS)]

    compare(draws)


def test_patched_functions(monkeypatch):
    from tensorflow.python.ops import gen_stateless_random_ops_v2, stateful_random_ops

    def patched(module, name, change, generator):
        original = getattr(module, name)
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *args, **kwargs: change(original(*args, **kwargs)))
            return [generator.normal([3]) for _ in range(3)]

    def draws(generator):
        sizes = []
        return [
            *(generator.normal([3]) for _ in range(CALLS)),
            *patched(
                stateful_random_ops, "_get_counter_size", lambda n: sizes.append(n) or n, generator
            ),
            *patched(
                gen_stateless_random_ops_v2,
                "stateless_random_normal_v2",
                lambda x: x + 1,
                generator,
            ),
            *(generator.normal([3]) for _ in range(3)),
            sizes,
        ]

    compare(draws)


def test_subclasses():
    class Doubled(tf.random.Generator):
        factor = 2.0

        def _standard_normal(self, shape, dtype):
            return self.factor * super()._standard_normal(shape, dtype)

    def draws(generator):
        made = [generator.normal([3]) for _ in range(CALLS)]
        Doubled.factor += 1.0
        return made + [generator.normal([3]) for _ in range(CALLS)]

    def make():
        Doubled.factor = 2.0
        return Doubled.from_seed(3)

    compare(draws, make, least=0)


def test_tapes():
    def gradients(generator):
        scale = tf.Variable(2.0)
        made = []
        for _ in range(CALLS):
            with tf.GradientTape(persistent=True) as tape:
                mean = tf.constant(1.0)
                tape.watch(mean)
                y = scale * generator.normal([3], mean, scale)
            made.append((y, tape.gradient(y, [scale, mean])))
            made.append(len(tape.watched_variables()))
        return made

    compare(gradients)


def test_modules_that_draw():
    class Noisy(tf.Module):
        def __init__(self, generator):
            super().__init__()
            self.generator, self.w = generator, tf.Variable(floats(3, 2))

        def __call__(self, x):
            return x @ self.w + self.generator.normal([2]) * self.generator.uniform([])

    def calls(generator):
        module = Noisy(generator)
        made = [module(tf.constant(floats(2, 3, seed=seed))) for seed in range(CALLS)]
        if fastops.is_installed():
            from fastops._install.models.method import methods

            (stand_in,) = [m for m in methods() if m.original.__qualname__ == "Module.__call__"]
            assert stand_in.describe(module)["replayed"] >= CALLS - 3
        return made

    compare(calls, least=0)


def test_layers_that_draw():
    class Noise(keras.layers.Layer):
        def __init__(self, generator):
            super().__init__()
            self.generator = generator

        def call(self, x, training=False):
            return x + self.generator.normal(tf.shape(x)) if training else x

    def calls(generator):
        model = keras.Sequential([keras.Input((3,)), Noise(generator), keras.layers.ReLU()])
        x = tf.constant(floats(2, 3))
        made = [model(x, training=True) for _ in range(CALLS)] + [model(x)]
        if fastops.is_installed():
            assert type(model).__call__.describe(model)["replayed"] >= CALLS - 3
        return made

    compare(calls, least=0)


def test_the_global_generator():
    class Noisy(tf.Module):
        def __call__(self, x):
            return x + tf.random.get_global_generator().normal([2])

    before = tf.random.get_global_generator()
    try:

        def calls(generator):
            module, x = Noisy(), tf.constant([1.0, 2.0])
            tf.random.set_global_generator(generator)
            made = [module(x) for _ in range(CALLS)]
            other = tf.random.Generator.from_seed(11)
            tf.random.set_global_generator(other)
            return made + [module(x) for _ in range(CALLS)] + [other.state]

        compare(calls, least=0)
    finally:
        tf.random.set_global_generator(before)


def test_traced_functions_draw():
    def calls(generator):
        draw = tf.function(lambda: generator.normal([2]))
        return [(draw(), generator.normal([2])) for _ in range(CALLS)]

    compare(calls)


def test_threads_that_share_a_generator():
    """Each draw takes numbers of its own: together they are those of one thread."""
    generator = MAKERS["philox"]()
    expected = sorted(plain(generator.normal([3])) for _ in range(4 + 4 * 50))
    with fastops.accelerated():
        generator = MAKERS["philox"]()
        drawn = []

        def run(threads, times):
            def draw():
                drawn.extend([plain(generator.normal([3])) for _ in range(times)])

            started = [threading.Thread(target=draw) for _ in range(threads)]
            for thread in started:
                thread.start()
            for thread in started:
                thread.join()

        run(1, 4)  # the recording is made while nobody else draws
        before = replays(generator)
        assert before > 0
        run(4, 50)
        assert sorted(drawn) == expected
        assert replays(generator) == before + 4 * 50


def test_generators_that_live_for_one_draw():
    def draws(_):
        return [tf.random.Generator.from_seed(seed).normal([2]) for seed in range(CALLS)]

    compare(draws, least=0)


def test_verified_draws():
    expected = [plain(MAKERS["philox"]().normal([2]))]
    generator = MAKERS["philox"]()
    expected = [plain(generator.normal([2])) for _ in range(CALLS)]
    with fastops.accelerated(verify="raise"):
        generator = MAKERS["philox"]()
        assert [plain(generator.normal([2])) for _ in range(CALLS)] == expected
        assert replays(generator)


@pytest.mark.parametrize("without", [{"exclude": ["modules"]}, {"models": False}])
def test_draws_are_left_out(without):
    original = tf.random.Generator.normal
    with fastops.accelerated(**without):
        assert tf.random.Generator.normal is original
    assert np.isfinite(MAKERS["philox"]().normal([])).all()
