"""Layers, models and losses of users: the ones whose `call` shows that it is pure are replayed."""

import contextlib

import keras
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, Subclassed, compare, floats, outcome, probe, told
from keras import layers as L  # noqa: N812

import fastops
from fastops._core.reasons import advice, text_of
from fastops._specialize import policy

X, Y = floats(2, 4), floats(2, 4, seed=1)
FACTOR = 2.0


class Scaled(keras.Layer):
    """A layer with a weight, made when it is built."""

    factor = 3.0

    def __init__(self, scale=0.5):
        super().__init__()
        self.scale, self.offsets, self.table = scale, [1.0, 2.0], {"a": 0.5}

    def build(self, shape):
        self.weight = self.add_weight(shape=(shape[-1],), initializer="ones")

    def shifted(self, x):
        return x + self.offsets[0] + self.table["a"]

    @property
    def doubled(self):
        return self.scale * 2.0

    def call(self, x, training=None):
        x = self.shifted(x * self.weight) * self.doubled * self.factor
        return x / FACTOR if training else x


class Residual(keras.Model):
    def __init__(self, blocks=3):
        super().__init__()
        self.blocks = [L.Dense(4, activation="relu") for _ in range(blocks)]
        self.scaled, self.dropout, self.out = Scaled(), L.Dropout(0.3), L.Dense(3)

    def call(self, x, training=False):
        for block in self.blocks:
            x = x + self.scaled(block(x))
        if training:
            x = self.dropout(x, training=training)
        return {"out": self.out(x), "parts": [x, tf.shape(x)[0]]}


class Derived(L.Dense):
    """A class without a method."""


class Gated(keras.Layer):
    """A layer that decides by values."""

    def call(self, x):
        if tf.reduce_sum(x) > 0.0:
            return x * 2.0
        return -x


class Quantile(keras.losses.Loss):
    def __init__(self, quantile=0.5):
        super().__init__()
        self.quantile = quantile

    def call(self, y, p):
        return tf.maximum(self.quantile * (y - p), (self.quantile - 1.0) * (y - p))


KINDS = {
    "a layer": Scaled,
    "a model": Residual,
    "a layer in another": lambda: keras.Sequential([keras.Input((4,)), Scaled(), L.Dense(2)]),
    "the model of other tests": Subclassed,
    "a derived layer": lambda: Derived(3),
    "a layer that decides by values": Gated,
}


def calls(model, x=X, **kwargs):
    return [outcome(model, x, **kwargs) for _ in range(CALLS)]


@pytest.mark.parametrize("kind", KINDS)
def test_calls_are_replayed(kind):
    def program():
        model = KINDS[kind]()
        probe(model)
        for x in (X, -X, Y):
            yield calls(model, x)
        if kind != "a layer that decides by values" and kind != "a derived layer":
            yield calls(model, training=True)
        with tf.GradientTape() as tape:
            loss = tf.add_n(
                [tf.reduce_sum(y) for y in tf.nest.flatten(model(X)) if y.dtype.is_floating]
            )
        yield tape.gradient(loss, model.trainable_variables)

    compare(program, native=True)


def test_a_loss_is_replayed():
    def program():
        loss = Quantile()
        probe(loss)
        for _ in range(CALLS):
            yield loss(X, Y)
        loss.quantile = 0.9
        for _ in range(CALLS):
            yield loss(X, Y)

    compare(program, native=True)


@pytest.mark.parametrize("eager", [False, True])
def test_training(eager):
    def program():
        model = keras.Sequential([keras.Input((4,)), Scaled(), L.Dense(4), Scaled(0.25)])
        model.compile("sgd", loss=Quantile(), run_eagerly=eager)
        for _ in range(CALLS):
            yield model.train_on_batch(X, Y)
            yield model.trainable_variables
            yield model(X)

    compare(program)


def with_changes(make, *changes):
    """Compare the results of a model before and after each of some changes."""

    def program():
        model = make()
        probe(model)
        yield calls(model)
        for change in changes:
            change(model)
            yield outcome(model, X)
            yield calls(model)

    compare(program)


def replaced(layer, **attributes):
    """Set attributes that Keras does not let a program set once a layer is built."""
    vars(layer).update(attributes)


CHANGES = {
    "an attribute": lambda layer: setattr(layer, "scale", 4.0),
    "an item of a list": lambda layer: layer.offsets.__setitem__(0, 5.0),
    "an item of a dict": lambda layer: layer.table.update({"a": 7.0}),
    "a weight": lambda layer: layer.weight.assign(tf.ones(4) * 3.0),
    "another weight": lambda layer: replaced(layer, weight=keras.Variable(tf.ones(4) * 9.0)),
    "an attribute in place of that of the class": lambda layer: setattr(layer, "factor", 7.0),
    "a method of the object": lambda layer: setattr(layer, "shifted", lambda x: x * 7.0),
    "a dtype policy": lambda layer: setattr(layer, "dtype_policy", "bfloat16"),
    "whether it is trainable": lambda layer: setattr(layer, "trainable", False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_a_layer_are_seen(change):
    with_changes(Scaled, CHANGES[change], lambda layer: setattr(layer, "scale", 2.0))


OF_CLASSES = {
    "an attribute": ("factor", 9.0),
    "a method": ("shifted", lambda self, x: x),
    "a property": ("doubled", property(lambda self: 9.0)),
    "call": ("call", lambda self, x, training=None: x - 1.0),
}


@pytest.mark.parametrize("change", OF_CLASSES)
def test_changes_of_a_class_are_seen(change, monkeypatch):
    def program():
        layer, model = Scaled(), Residual()
        probe(layer)
        probe(model)
        yield calls(layer), calls(model)
        with monkeypatch.context() as patch:
            patch.setattr(Scaled, *OF_CLASSES[change])
            yield calls(layer), calls(model)
        yield calls(layer), calls(model)

    compare(program)


def test_changes_of_globals_are_seen(monkeypatch):
    def program():
        layer = Scaled()
        probe(layer)
        yield calls(layer, training=True)
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "FACTOR", 8.0)
            yield calls(layer, training=True)
        yield calls(layer, training=True)

    compare(program)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: replaced(model, out=L.Dense(5, kernel_initializer="ones")),
        lambda model: model.blocks.pop(),
        lambda model: list.append(model.blocks, L.Dense(4, kernel_initializer="ones")),
        lambda model: setattr(model.blocks[1], "activation", tf.nn.tanh),
        lambda model: setattr(model.scaled, "scale", 9.0),
        lambda model: setattr(model.dropout, "rate", 0.9),
        lambda model: model.set_weights([weight * 0.5 for weight in model.get_weights()]),
    ],
)
def test_changes_of_a_model_are_seen(change):
    with_changes(Residual, change)


def test_training_and_inference_take_turns():
    def program():
        model = Residual()
        probe(model)
        for number in range(3 * CALLS):
            yield model(X, training=number % 2 == 0)

    compare(program)


# ---------------------------------------------------------------------------------------------
# Calls that are not shown to be pure
# ---------------------------------------------------------------------------------------------


def counts(layer, x):
    layer.count += 1
    return x * float(layer.count)


def keeps_its_input(layer, x):
    layer.last = x
    return x * 2.0


def appends(layer, x):
    layer.many.append(1)
    return x * float(len(layer.many))


def counts_in_a_dict(layer, x):
    layer.table["calls"] = layer.table["calls"] + 1
    return x * float(layer.table["calls"])


def counts_in_a_variable(layer, x):
    layer.steps.assign_add(1.0)
    return x * layer.steps


def prints(layer, x):
    print(end="")
    return x


def draws(layer, x):
    return x + keras.random.normal((4,), seed=layer.seeds)


def passes_itself_on(layer, x):
    return counts(layer, x)


def calls_an_object(layer, x):
    return x * layer.counter()


def takes_the_next(layer, x):
    return x * next(layer.iterator)


class Counter:
    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return float(self.count)

    @property
    def now(self):
        self.count += 1
        return float(self.count)


def reads_a_property_that_counts(layer, x):
    return x * layer.counter.now


IMPURE = [
    *(
        counts,
        keeps_its_input,
        appends,
        counts_in_a_dict,
        counts_in_a_variable,
        prints,
    ),
    *(draws, passes_itself_on, calls_an_object, takes_the_next, reads_a_property_that_counts),
]


def layer_of(function):
    """Return a layer of a new class, since classes of users are given up after some objects."""

    class Impure(keras.Layer):
        def __init__(self):
            super().__init__()
            self.count, self.last, self.many, self.table = 0, None, [], {"calls": 0}
            self.counter, self.iterator = Counter(), iter([float(i) for i in range(100)])
            self.seeds = keras.random.SeedGenerator(3)
            self.steps = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x):
            return function(self, x)

    return Impure()


@pytest.mark.parametrize("function", IMPURE, ids=lambda function: function.__name__)
def test_calls_that_are_refused(function):
    def program():
        layer = layer_of(function)
        probe(layer)
        for _ in range(2 * CALLS):
            yield outcome(layer, X), layer.count, layer.many, layer.last, layer.losses

    compare(program, replayed=False)


@pytest.mark.parametrize("function", IMPURE, ids=lambda function: function.__name__)
def test_parts_of_models_that_are_refused(function):
    def program():
        layer = layer_of(function)
        model = keras.Sequential([L.Dense(4, activation="relu"), layer, L.Dense(4)])
        probe(model)
        for _ in range(2 * CALLS):
            yield outcome(model, X), layer.count, layer.many, layer.last, model.losses

    compare(program, replayed=False)


def test_a_class_of_which_many_objects_were_given_up_is_tried_again_with_empty_caches():
    def replayed(*layers):
        model = keras.Sequential([L.Dense(3), *layers])
        for _ in range(2 * CALLS):
            model(X)
        return told(model)["replayed"] > 0

    fastops.clear_cache()
    with fastops.accelerated():
        assert not any(replayed(layer_of(counts)) for _ in range(policy.MAX_REFUSED_OBJECTS))
        assert not replayed()
        fastops.clear_cache()
        assert replayed()


def test_the_reason_names_the_line():
    class Loud(keras.Layer):
        def call(self, x):
            print(end="")
            return x

    class Late(keras.Layer):
        def call(self, x):
            return counts(self, x)

        count = 0

    with fastops.accelerated():
        layers = Loud(), Late()
        for layer in layers:
            calls(layer)
        loud, late = [fastops.explain(layer, X).methods[0] for layer in layers]
    line, prints = Loud.call.__code__.co_firstlineno + 1, advice("uses_builtin", "print")
    assert (loud.reason, loud.detail) == (
        text_of("user_class"),
        f"{__file__}:{line}: call: {prints}",
    )
    line, assigns = counts.__code__.co_firstlineno + 1, advice("assigns_attribute", "count")
    assert late.detail == f"{__file__}:{line}: counts: {assigns}"


def test_a_declaration_after_the_code_was_refused():
    class Late(keras.Layer):
        def call(self, x):
            with contextlib.nullcontext():
                return x * 2.0

    layer = Late()
    with fastops.accelerated():
        want = calls(layer)
        assert not told(layer)["replayed"]
        fastops.keras.replayable(Late)
        assert calls(layer) == want
        assert told(layer)["replayed"]


def test_an_instance_whose_state_is_set_late():
    class Late(keras.Layer):
        def call(self, x):
            return x * self.scale

    def program():
        layer = Late()
        probe(layer)
        yield [outcome(layer, X) for _ in range(2)]
        layer.scale = 2.0
        yield calls(layer)

    compare(program)
