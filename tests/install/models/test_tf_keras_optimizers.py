"""Optimizers of tf_keras, if it is installed: results are the same, and steps are replayed."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, outcome, probe, told
from tensorflow.python.eager import record as tape_lib

import fastops
from fastops._install import restated
from fastops._install import targets as targets_of_install
from fastops._install.models import targets

tf_keras = pytest.importorskip("tf_keras", reason="see the extra 'libraries'")

O = tf_keras.optimizers  # noqa: E741

OBJECTION = restated.changed("tf_keras.src.optimizers.optimizer:Optimizer.apply_gradients")

pytestmark = pytest.mark.skipif(OBJECTION is not None, reason=str(OBJECTION))

REPLAYED = {
    "SGD": lambda: O.SGD(0.1),
    "SGD with momentum": lambda: O.SGD(0.1, momentum=0.9),
    "SGD, Nesterov's": lambda: O.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: O.Adam(0.1),
    "AMSGrad": lambda: O.Adam(0.1, amsgrad=True),
    "AdamW": lambda: O.AdamW(0.1),
    "RMSprop": lambda: O.RMSprop(0.1),
    "RMSprop, centered": lambda: O.RMSprop(0.1, momentum=0.5, centered=True),
    "Adagrad": lambda: O.Adagrad(0.1),
    "Adadelta": lambda: O.Adadelta(0.1),
    "Adamax": lambda: O.Adamax(0.1),
    "Ftrl": lambda: O.Ftrl(0.1),
    "Adafactor": lambda: O.Adafactor(0.1),
    "Lion": lambda: O.Lion(0.1),
    "a schedule": lambda: O.Adam(O.schedules.ExponentialDecay(0.1, 2, 0.5)),
    "another schedule": lambda: O.SGD(O.schedules.CosineDecay(0.1, 5)),
    "weight decay": lambda: O.SGD(0.1, weight_decay=0.01),
    "norms": lambda: O.Adam(0.1, clipnorm=0.5),
    "a global norm": lambda: O.Adam(0.1, global_clipnorm=0.5),
    "values": lambda: O.Adam(0.1, clipvalue=0.5),
    "averages": lambda: O.Adam(0.1, use_ema=True),
}

LEFT_ALONE = {
    "Nadam": lambda: O.Nadam(0.1),  # it sets an attribute in each call
    "averages that are swapped in": lambda: O.Adam(0.1, use_ema=True, ema_overwrite_frequency=3),
}


def parameters():
    return [tf.Variable(floats(*shape, seed=5)) for shape in ((3, 2), (2,), ())]


def gradients(variables, number):
    return [floats(*variable.shape, seed=10 * number + i) for i, variable in enumerate(variables)]


def paired(variables, number):
    return zip(gradients(variables, number), variables, strict=True)


def state(optimizer, variables):
    return [value.numpy() for value in (*variables, *optimizer.variables)]


def steps(optimizer, variables, numbers=range(CALLS)):
    """Yield the results of some steps, and the state after each step."""
    for number in numbers:
        yield outcome(optimizer.apply_gradients, paired(variables, number))
        yield state(optimizer, variables)


def start(make=lambda: O.Adam(0.1)):
    variables, optimizer = parameters(), make()
    probe(optimizer, "apply_gradients")
    return variables, optimizer


@pytest.mark.parametrize("make", REPLAYED.values(), ids=REPLAYED)
def test_steps(make):
    def program():
        variables, optimizer = start(make)
        yield from steps(optimizer, variables)

    compare(program, native=True)


@pytest.mark.parametrize("make", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_optimizers_that_are_not_replayed(make):
    def program():
        variables, optimizer = start(make)
        yield from steps(optimizer, variables)

    compare(program, replayed=False)


def test_a_schedule_that_branches_on_the_step():
    def program():
        schedule = O.schedules.PiecewiseConstantDecay([2, 9], [0.1, 0.2, 0.3])
        variables, optimizer = start(lambda: O.SGD(schedule))
        yield from steps(optimizer, variables, range(12))

    compare(program)


def test_many_variables():
    def program():
        _, optimizer = start()
        yield from steps(optimizer, [tf.Variable([float(i)]) for i in range(40)])

    compare(program, native=True)


def test_the_result_of_a_step_is_read_when_it_is_used():
    def program():
        variables, optimizer = start()
        for _ in range(CALLS):
            made = optimizer.apply_gradients(paired(variables, 1))
            yield type(made), made.name, made.dtype, made.shape, made.trainable, sorted(vars(made))
            yield made.handle is optimizer.iterations.handle
            optimizer.iterations.assign_add(5)
            yield made.numpy()

    compare(program)


def columns(pairs):
    return [[pair[i] for pair in pairs] for i in range(2)]


def given_as(given):
    """Make steps with pairs in a given form; yield the outcomes and the states."""
    variables, optimizer = start()
    optimizer.build(variables)
    for number in range(CALLS):
        pairs = list(paired(variables, number))
        yield outcome(optimizer.apply_gradients, given(pairs))
        yield state(optimizer, variables)


GIVEN = {
    "a list": lambda pairs: list(pairs),
    "a tuple": lambda pairs: tuple(pairs),
    "lists": lambda pairs: [list(pair) for pair in pairs],
    "a zip": lambda pairs: zip(*columns(pairs), strict=False),
    "a strict zip": lambda pairs: zip(*columns(pairs), strict=True),
    "a zip of generators": lambda pairs: zip(*map(iter, columns(pairs)), strict=True),
    "reversed": lambda pairs: list(pairs)[::-1],
    "some": lambda pairs: list(pairs)[1:],
    "one twice": lambda pairs: [*pairs, pairs[0]],
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_arguments(given):
    compare(lambda: given_as(given))


def test_a_zip_that_opens_a_tape():
    def opening(tape, values):
        tape.__enter__()
        yield from values

    def program():
        variables, optimizer = start()
        yield from steps(optimizer, variables)
        tape = tf.GradientTape()
        given = opening(tape, gradients(variables, 1))
        optimizer.apply_gradients(zip(given, variables, strict=True))
        tape.__exit__(None, None, None)
        yield [variable.shape for variable in tape.watched_variables()]
        yield state(optimizer, variables)

    compare(program)


ODD = {
    "a generator": lambda pairs: (pair for pair in pairs),
    "a zip of triples": lambda pairs: zip(*columns(pairs), [1, 2, 3], strict=True),
    "a strict zip that is too long": lambda pairs: zip(pairs, [], strict=True),
    "an empty zip": lambda pairs: zip(),
    "nothing": lambda pairs: [],
    "no gradients": lambda pairs: [(None, variable) for _, variable in pairs],
    "a pair without a gradient": lambda pairs: [(None, pairs[0][1]), *pairs[1:]],
    "arrays": lambda pairs: [(gradient.numpy(), variable) for gradient, variable in pairs],
    "another dtype": lambda pairs: [(tf.cast(one, tf.float64), two) for one, two in pairs],
    "another shape": lambda pairs: [(tf.ones((7,)), variable) for _, variable in pairs],
    "variables": lambda pairs: [(variable, variable) for _, variable in pairs],
    "an unknown variable": lambda pairs: [*pairs, (tf.ones(2), tf.Variable([1, 2.0]))],
    "slices": lambda pairs: [(tf.IndexedSlices(tf.ones((2, 2)), [0, 2]), pairs[0][1]), *pairs[1:]],
    "the same slices": lambda pairs: [(tf.IndexedSlices(tf.ones((2, 2)), [1, 1]), pairs[0][1])],
    "None": lambda pairs: None,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
def test_odd_arguments(given):
    compare(lambda: given_as(given), replayed=None)


def test_keywords():
    def program():
        variables, optimizer = start()
        for number in range(CALLS):
            pairs = list(paired(variables, number))
            for settings in ({"name": "other"}, {"skip_gradients_aggregation": True}):
                yield outcome(optimizer.apply_gradients, pairs, **settings)
                yield outcome(optimizer.apply_gradients, paired(variables, number), **settings)
            yield outcome(optimizer.apply_gradients, pairs, nonsense=1)
            yield outcome(optimizer.apply_gradients, grads_and_vars=pairs)
            yield outcome(optimizer.apply_gradients)
            yield state(optimizer, variables)

    compare(program)


def _constrain(_, variables):
    variables[0]._constraint = tf_keras.constraints.NonNeg()


def _by_sign(optimizer, gradient, variable):
    variable.assign_sub(tf.sign(gradient))


def _delete_velocities(optimizer, _):
    del optimizer._velocities


def _schedule(optimizer, _):
    optimizer._learning_rate = O.schedules.CosineDecay(1, 9)


CHANGES = {
    "the learning rate": lambda optimizer, _: setattr(optimizer, "learning_rate", 0.5),
    "its variable": lambda optimizer, _: optimizer.learning_rate.assign(0.5),
    "a schedule instead": _schedule,
    "a number as an attribute": lambda optimizer, _: setattr(optimizer, "beta_1", 0.3),
    "a number that becomes a tensor": lambda optimizer, _: setattr(
        optimizer, "beta_1", tf.constant(0.3)
    ),
    "clipping": lambda optimizer, _: setattr(optimizer, "clipnorm", 0.1),
    "weight decay": lambda optimizer, _: setattr(optimizer, "weight_decay", 0.1),
    "compilation": lambda optimizer, _: setattr(optimizer, "jit_compile", True),
    "averages": lambda optimizer, _: setattr(optimizer, "use_ema", True),
    "a method": lambda optimizer, _: setattr(
        optimizer, "update_step", lambda gradient, variable: None
    ),
    "weights": lambda _, variables: variables[1].assign([5.0, 6.0]),
    "momentums": lambda optimizer, _: optimizer._momentums[0].assign(tf.ones((3, 2))),
    "other momentums": lambda optimizer, _: optimizer._momentums.reverse(),
    "fewer momentums": lambda optimizer, _: optimizer._momentums.pop(),
    "none": _delete_velocities,
    "iterations": lambda optimizer, _: optimizer.iterations.assign(40),
    "everything": lambda optimizer, _: optimizer.set_weights(
        [value + 1 for value in optimizer.variables]
    ),
    "the order": lambda _, variables: variables.reverse(),
    "another variable": lambda _, variables: variables.append(tf.Variable([1.0])),
    "fewer variables": lambda _, variables: variables.pop(),
    "a constraint": _constrain,
    "a key": lambda _, variables: setattr(variables[0], "_unique_id", "another"),
    "a restart": lambda optimizer, variables: optimizer.build(variables[::-1]),
    "another start": lambda optimizer, variables: (
        setattr(optimizer, "_built", False),
        optimizer.build(variables),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes(change):
    def program():
        variables, optimizer = start()
        yield from steps(optimizer, variables)
        change(optimizer, variables)
        yield from steps(optimizer, variables)

    compare(program)


def test_a_class_that_is_changed(monkeypatch):
    def program():
        variables, optimizer = start()
        yield from steps(optimizer, variables)
        with monkeypatch.context() as patch:
            patch.setattr(O.Adam, "update_step", _by_sign)
            yield from steps(optimizer, variables)
        yield from steps(optimizer, variables)

    compare(program)


def test_a_checkpoint_that_is_restored(tmp_path):
    def program():
        variables, optimizer = start()
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, variables=variables)
        yield from steps(optimizer, variables)
        path = checkpoint.save(str(tmp_path / "checkpoint"))
        yield from steps(optimizer, variables)
        checkpoint.restore(path)
        yield from steps(optimizer, variables)

    compare(program)


def test_variables_that_were_deleted():
    def program():
        variables, optimizer = start()
        yield from steps(optimizer, variables)
        pairs = list(paired(variables, 1))
        tf.raw_ops.DestroyResourceOp(resource=variables[1].handle)
        yield outcome(optimizer.apply_gradients, pairs)
        yield variables[0], variables[2], optimizer.iterations

    compare(program)


class Own(O.Adam):
    """An optimizer of a user."""

    def update_step(self, gradient, variable):
        super().update_step(-gradient, variable)


@pytest.mark.parametrize("kind", [Own, O.legacy.Adam], ids=lambda kind: kind.__name__)
def test_other_optimizers(kind):
    def program():
        variables, optimizer = parameters(), kind(0.1)
        for number in range(CALLS):
            optimizer.apply_gradients(paired(variables, number))
            yield variables

    compare(program)


def test_a_schedule_of_a_user():
    class Schedule(O.schedules.LearningRateSchedule):
        def __call__(self, step):
            return next(rates)

    rates = iter(np.arange(100.0))

    def program():
        nonlocal rates
        rates = iter(np.arange(100.0))
        variables, optimizer = start(lambda: O.Adam(Schedule()))
        yield from steps(optimizer, variables)

    compare(program, replayed=False)


def test_a_model_is_trained():
    def program():
        model = tf_keras.Sequential([tf_keras.layers.Dense(4, "relu"), tf_keras.layers.Dense(1)])
        optimizer = O.Adam(0.1)
        model.build((None, 3))
        probe(optimizer, "apply_gradients")
        for number in range(CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(floats(5, 3, seed=number)) ** 2)
            optimizer.minimize(loss, model.trainable_variables, tape)
            yield loss, *model.get_weights()

    compare(program, native=True)


def test_mixed_precision():
    def program():
        dense = tf_keras.layers.Dense(2, dtype="mixed_float16")
        optimizer = tf_keras.mixed_precision.LossScaleOptimizer(O.Adam(0.1))
        dense.build((None, 3))
        for number in range(CALLS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(dense(floats(5, 3, seed=number)) ** 2)
                scaled = optimizer.get_scaled_loss(loss)
            gradients = tape.gradient(scaled, dense.trainable_variables)
            optimizer.apply_gradients(
                zip(
                    optimizer.get_unscaled_gradients(gradients),
                    dense.trainable_variables,
                    strict=True,
                )
            )
            yield loss, *dense.get_weights()

    compare(program)


def test_scopes_around_a_step():
    def program():
        variables, optimizer = start()
        optimizer.build(variables)
        strategy = tf.distribute.OneDeviceStrategy("cpu:0")

        @tf.function
        def traced(*given):
            return optimizer.apply_gradients(zip(given, variables, strict=True))

        for number in range(CALLS):
            given = gradients(variables, number)
            with tf.GradientTape() as tape:
                optimizer.apply_gradients(zip(given, variables, strict=True))
            yield [variable.name for variable in tape.watched_variables()]
            with tape_lib.VariableWatcher() as watcher:
                optimizer.apply_gradients(zip(given, variables, strict=True))
            yield [variable.name for variable in watcher.watched_variables()]
            yield traced(*given)
            with strategy.scope():
                yield outcome(optimizer.apply_gradients, list(zip(given, variables, strict=True)))
            with tf.device("cpu:0"):
                yield outcome(optimizer.apply_gradients, list(zip(given, variables, strict=True)))
            yield state(optimizer, variables)

    compare(program)


@pytest.mark.parametrize("make", [lambda: O.SGD(0.1), lambda: O.Adam(0.1)], ids=["SGD", "Adam"])
def test_watched_variables_of_a_step(make):
    def program():
        variables, optimizer = start(make)
        for number in range(CALLS):
            with tape_lib.VariableWatcher() as watcher:
                optimizer.apply_gradients(paired(variables, number))
            yield sorted(variable.name for variable in watcher.watched_variables())

    compare(program)


def test_steps_keep_nothing_alive():
    with fastops.accelerated():
        variables, optimizer = parameters(), O.Adam(0.1)
        list(steps(optimizer, variables))
        assert told(optimizer, "apply_gradients")["replayed"]
        dropped = [weakref.ref(value) for value in (optimizer, *variables)]
        del variables, optimizer
        gc.collect()
        assert not any(reference() for reference in dropped)


def test_without_keras(monkeypatch):
    monkeypatch.setattr(targets, "source", lambda: None)
    assert [target.name for target in targets.targets()] == [
        f"tf_keras.src.{title}.{name}" for title, name in targets.OF_TF_KERAS.items()
    ]


def test_a_replaced_original(monkeypatch):
    def apply_gradients(self, grads_and_vars):
        raise NotImplementedError

    monkeypatch.setattr(O.Optimizer, "apply_gradients", apply_gradients)
    targets = [target for target in targets_of_install.targets() if target.layer == "models"]
    assert targets
    assert not any(target.name.endswith(".apply_gradients") for target in targets)
