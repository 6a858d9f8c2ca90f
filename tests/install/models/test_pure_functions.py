"""Functions of users whose code shows that they are pure: Lambdas, activations, losses."""

import builtins
import contextlib
import os
import random
import sys
import time
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from guards import pure, settings
from hypothesis import given as given_values
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from install.models.keras_programs import CALLS, compare, floats, outcome, plain, probe, told
from keras import layers as L  # noqa: N812
from support import python

import fastops
from fastops._core.reasons import advice, text_of

X, Y = floats(2, 4), floats(2, 4, seed=1)
ROWS = 3


def of_lambda(function):
    """Return a model of built-in layers with a Lambda."""
    layers = [L.Dense(4, activation="relu"), L.Lambda(function, output_shape=(4,)), L.Dense(2)]
    return keras.Sequential([keras.Input((4,)), *layers])


def calls(model, x=X):
    return [outcome(model, x) for _ in range(CALLS)]


@pytest.mark.parametrize("name", pure.READS)
def test_a_lambda_is_replayed(name):
    def program():
        model = of_lambda(pure.READS[name])
        layer = L.Lambda(pure.READS[name])
        probe(model)
        probe(layer)
        for x in (X, Y, X * 100.0, X):
            yield calls(model, x)
            yield calls(layer, x)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(X))
        yield tape.gradient(loss, model.trainable_variables)

    compare(program)


@pytest.mark.parametrize("name", ["divides", "reads_global", "calls_helper", "closure", "lambda"])
def test_kernels_run_alone(name):
    def program():
        model = of_lambda(pure.READS[name])
        probe(model)
        yield calls(model)
        yield calls(model, Y)

    compare(program, native=True)


def swish(x):
    return x * tf.sigmoid(x)


def squares(y, p):
    return tf.reduce_mean(tf.square(y - p))


def squares_by_row(y, p):
    return tf.reduce_mean(tf.square(y - p) * pure.FACTOR, axis=-1)


def test_an_activation_is_replayed():
    def program():
        units = [L.Dense(8, activation=swish), L.Dense(8, activation=lambda t: tf.nn.relu(t) * 2.0)]
        model = keras.Sequential([keras.Input((4,)), *units, L.Activation(swish), L.Dense(3)])
        probe(model)
        yield calls(model)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(X))
        yield tape.gradient(loss, model.trainable_variables)

    compare(program, native=True)


@pytest.mark.parametrize("loss", [squares, squares_by_row])
def test_a_loss_is_replayed(loss):
    def program():
        wrapped = keras.losses.get(loss)
        if not isinstance(wrapped, keras.losses.Loss):
            wrapped = keras.src.losses.LossFunctionWrapper(loss)
        probe(wrapped)
        for _ in range(CALLS):
            yield wrapped(X, Y)
            with tf.GradientTape() as tape:
                tape.watch(X)
                value = wrapped(Y, X)
            yield tape.gradient(value, X)

    compare(program, native=True)


@pytest.mark.parametrize("eager", [False, True])
def test_training_with_functions_of_users(eager):
    def program():
        units = [L.Dense(4, activation=swish), L.Lambda(lambda x: x / 2.0), L.Dense(4)]
        model = keras.Sequential([keras.Input((4,)), *units])
        model.compile("sgd", loss=squares, metrics=[squares_by_row], run_eagerly=eager)
        for _ in range(CALLS):
            yield model.train_on_batch(X, Y)
            yield model.trainable_variables
            yield model.predict_on_batch(X)

    compare(program)


def test_regularizers_and_constraints():
    def program():
        layer = L.Dense(
            4,
            kernel_regularizer=lambda w: 0.01 * tf.reduce_sum(tf.square(w)),
            kernel_constraint=lambda w: tf.clip_by_value(w, -0.5, 0.5),
        )
        model = keras.Sequential([keras.Input((4,)), layer])
        model.compile("sgd", "mse", run_eagerly=True)
        for _ in range(CALLS):
            yield model.train_on_batch(X, Y)
            yield model(X)

    compare(program)


# ---------------------------------------------------------------------------------------------
# Changes
# ---------------------------------------------------------------------------------------------


def changed(function, change, undo, before=CALLS):
    """Compare the results of a Lambda and of a model before, during and after a change."""

    def program():
        model, layer = of_lambda(function), L.Lambda(function)
        probe(model)
        probe(layer)
        for _ in range(before):
            yield outcome(model, X), outcome(layer, X)
        change()
        try:
            yield outcome(model, X), outcome(layer, X)
            for _ in range(CALLS):
                yield outcome(model, X), outcome(layer, X)
        finally:
            undo()
        for _ in range(2):
            yield outcome(model, X), outcome(layer, X)

    compare(program)


def replacing(holder, name, value):
    """Return a function that replaces an attribute or item, and one that restores it."""
    if isinstance(holder, dict | list):
        old = holder[name]
        return (
            lambda: holder.__setitem__(name, value),
            lambda: holder.__setitem__(name, old),
        )
    old = getattr(holder, name)
    return lambda: setattr(holder, name, value), lambda: setattr(holder, name, old)


def relu_of_user(x):
    return x * -1.0


def counting(x):
    counting.count += 1
    return x * float(counting.count)


COUNTER = [0.0]


def counts(x):
    COUNTER[0] += 1.0
    return x * COUNTER[0]


WRITTEN = np.ones(4, np.float32)

CHANGES = {
    "a global": ("reads_global", lambda: replacing(vars(pure), "FACTOR", 5.0)),
    "a list": ("reads_list", lambda: replacing(pure.FACTORS, 0, 7.0)),
    "a nested list": ("reads_nested", lambda: replacing(pure.PAIRS[0], 1, 7.0)),
    "an array": ("reads_array", lambda: replacing(vars(pure), "ROW", pure.ROW * 3)),
    "an array in place": (
        "reads_array",
        lambda: (lambda: pure.ROW.__imul__(3.0), lambda: pure.ROW.__itruediv__(3.0)),
    ),
    "a tensor": ("reads_tensor", lambda: replacing(vars(pure), "CONSTANT", pure.CONSTANT * 2)),
    "a variable": (
        "reads_variable",
        lambda: replacing(vars(pure), "VARIABLE", tf.Variable(tf.ones(4) * 9.0)),
    ),
    "the value of a variable": (
        "reads_variable",
        lambda: (
            lambda: pure.VARIABLE.assign_add(tf.ones(4)),
            lambda: pure.VARIABLE.assign_sub(tf.ones(4)),
        ),
    ),
    "a variable of Keras": (
        "reads_variable_of_keras",
        lambda: (
            lambda: pure.WEIGHT.assign(tf.ones(4) * 9.0),
            lambda: pure.WEIGHT.assign(tf.ones(4) * 3.0),
        ),
    ),
    "an attribute of a module": ("reads_module", lambda: replacing(settings, "SCALE", 9.0)),
    "a dict of a module": ("reads_module", lambda: replacing(settings.TABLE, "shift", 9.0)),
    "a class": ("reads_class_of_module", lambda: replacing(settings.Named, "factor", 9.0)),
    "an attribute": ("reads_object", lambda: replacing(pure.CONFIG, "scale", 9.0)),
    "a list of an object": ("reads_object", lambda: replacing(pure.CONFIG.weights, 1, 9.0)),
    "a namespace": ("reads_space", lambda: replacing(pure.SPACE.inner, "shift", 9.0)),
    "a method": ("calls_methods", lambda: replacing(pure.Config, "times", lambda _, x: x)),
    "a property": (
        "calls_methods",
        lambda: replacing(pure.Config, "doubled", property(lambda _: 9.0)),
    ),
    "the global of a helper": ("calls_helper", lambda: replacing(vars(pure), "FACTOR", 9.0)),
    "a helper": ("calls_helper", lambda: replacing(vars(pure), "helper", lambda x, shift=0: x)),
    "defaults": ("calls_helper", lambda: replacing(pure.helper, "__defaults__", (9.0,))),
    "keyword defaults": (
        "calls_helper",
        lambda: replacing(pure.helper, "__kwdefaults__", {"shift": 9.0}),
    ),
    "code": (
        "calls_helper",
        lambda: replacing(
            pure.helper, "__code__", (lambda x, scale, *, shift: x - scale - shift).__code__
        ),
    ),
    "a decorated function": (
        "calls_decorated",
        lambda: replacing(pure.decorated.__closure__[0], "cell_contents", lambda x: -x),
    ),
    "keywords of a partial function": (
        "calls_partial",
        lambda: replacing(pure.leaky.keywords, "alpha", 0.9),
    ),
    "a layer": ("calls_layer", lambda: replacing(pure.LAYER, "scale", 9.0)),
    "a cell": (
        "closure",
        lambda: replacing(pure.READS["closure"].__closure__[1], "cell_contents", 9.0),
    ),
    "a list in a cell": (
        "closure",
        lambda: replacing(pure.READS["closure"].__closure__[0].cell_contents, 0, 9.0),
    ),
    "defaults of a lambda": (
        "lambda",
        lambda: replacing(pure.READS["lambda"], "__defaults__", (9.0,)),
    ),
    "code of a lambda": (
        "lambda",
        lambda: replacing(pure.READS["lambda"], "__code__", (lambda x, scale: x - scale).__code__),
    ),
    "a function of TensorFlow": ("reads_global", lambda: replacing(tf.nn, "relu", relu_of_user)),
    "a module of TensorFlow": (
        "reads_global",
        lambda: replacing(tf, "nn", types.SimpleNamespace(relu=relu_of_user)),
    ),
    "the name of TensorFlow": (
        "reads_global",
        lambda: replacing(
            vars(pure), "tf", types.SimpleNamespace(nn=types.SimpleNamespace(relu=relu_of_user))
        ),
    ),
    "a function of Keras": ("calls_ops", lambda: replacing(keras.ops, "relu", relu_of_user)),
    "an activation of Keras": (
        "calls_ops",
        lambda: replacing(keras.activations, "gelu", relu_of_user),
    ),
    "a function of math": ("calls_math", lambda: replacing(pure.math, "sqrt", lambda x: x)),
    "a constant of NumPy": ("calls_math", lambda: replacing(np, "pi", 3.0)),
    "a builtin": ("loops", lambda: replacing(builtins, "sum", lambda parts: next(iter(parts)))),
    "a branch": ("branches_by_global", lambda: replacing(vars(pure), "FACTOR", 0.5)),
    "a limit of values": ("branches_by_value", lambda: replacing(vars(pure), "LIMIT", -1000.0)),
    "a limit of a condition": ("conditional", lambda: replacing(vars(pure), "LIMIT", -1000.0)),
    "a global that becomes impure": (
        "calls_helper",
        lambda: replacing(vars(pure), "helper", lambda x, shift=0: x * random.random()),
    ),
    "a global that becomes a counter": (
        "calls_helper",
        lambda: replacing(vars(pure), "helper", lambda x, shift=0: counts(x)),
    ),
}


@pytest.mark.parametrize("title", CHANGES)
def test_changes_are_seen(title):
    name, make = CHANGES[title]
    change, undo = make()

    def begin():
        random.seed(3)
        COUNTER[0] = 0.0
        change()

    changed(pure.READS[name], begin, undo)


@pytest.mark.parametrize("name", ["gelu", "multiply"])
def test_a_handler_of_tensors_is_seen(name):
    """A stand-in runs in the place of the function, so that the call does not show its code."""
    assert (
        python(f"""
        import tensorflow as tf, keras, fastops
        from fastops._specialize import policy
        from tensorflow.python.util import dispatch

        dispatch.register_dispatchable_type(tf.Tensor)
        function, parameter = {{
            "gelu": (tf.nn.gelu, "features"), "multiply": (tf.multiply, "x")
        }}[{name!r}]

        def handler(*args, **kwargs):
            return tf.ones(3)

        def gelu(x):
            return tf.nn.gelu(x)

        def multiply(x):
            return tf.multiply(x, 2.0)

        def program():
            layer, x = keras.layers.Lambda({name}), tf.constant([0.5, 2.0, -1.0])
            values = [layer(x).numpy().tolist() for _ in range(8)]
            tf.experimental.dispatch_for_api(function, {{parameter: tf.Tensor}})(handler)
            values += [layer(x).numpy().tolist() for _ in range(8)]
            tf.experimental.unregister_dispatch_for(handler)
            return values + [layer(x).numpy().tolist() for _ in range(8)]

        policy.set_share(0)
        want = program()
        assert len(set(map(str, want))) == 2, want
        with fastops.accelerated():
            got = program()
            method = keras.layers.Lambda.__call__
            assert method.replayed, method.reasons
        print(got == want)
    """).strip()
        == "True"
    )


@pytest.mark.parametrize(
    ("setting", "value", "function"),
    [
        ("floatx", "float64", lambda x: x + 1.0 if keras.ops.ones(4).dtype == tf.float32 else -x),
        ("epsilon", 0.1, lambda x: keras.losses.categorical_crossentropy(x, keras.ops.softmax(x))),
        (
            "image_data_format",
            "channels_first",
            lambda x: keras.ops.max_pool(keras.ops.reshape(x, (1, 2, 2, 2)), (2, 1)),
        ),
    ],
)
def test_settings_of_keras_are_seen(setting, value, function):
    change = getattr(keras.config, f"set_{setting}")
    before = getattr(keras.config, setting)()

    def program():
        layer = L.Lambda(function)
        yield calls(layer)
        try:
            change(value)
            yield calls(layer)
        finally:
            change(before)
        yield calls(layer)

    compare(program)


def test_a_shadowed_builtin_is_seen():
    def undo():
        del pure.len

    changed(pure.READS["unpacks"], lambda: setattr(pure, "len", lambda _: 9.0), undo)


def test_another_function_of_a_layer():
    def program():
        layer = L.Lambda(pure.divides)
        model = keras.Sequential([keras.Input((4,)), L.Dense(4, activation=swish), layer])
        probe(model)
        yield calls(model)
        layer.function = pure.reads_global
        yield calls(model)
        model.layers[0].activation = relu_of_user
        yield calls(model)

    compare(program)


def test_arguments_of_a_layer():
    def program():
        layer = L.Lambda(pure.helper, arguments={"scale": 2.0})
        probe(layer)
        yield calls(layer)
        layer.arguments["scale"] = 5.0
        yield calls(layer)

    compare(program)


def test_the_function_gets_mask_and_training():
    def program():
        layer = L.Lambda(lambda x, mask=None, training=None: x * 2.0 if training else x)
        probe(layer)
        for training in (True, False, None):
            yield [layer(X, training=training) for _ in range(CALLS)]

    compare(program)


def test_a_branch_by_values_takes_both_ways():
    def program():
        layer = L.Lambda(pure.branches_by_value)
        probe(layer)
        for number in range(4 * CALLS):
            yield layer(X * (1e6 if number % 3 else -1e6))

    compare(program)


def test_a_tensor_that_is_also_an_argument():
    kept = tf.constant(float("nan"))

    def compares(x):
        return x * 2.0 if [x] == [kept] else x - 1.0

    def program():
        layer = L.Lambda(compares)
        for x in (*[tf.constant(1.0)] * CALLS, kept, tf.constant(float("nan")), kept):
            yield outcome(layer, x)

    compare(program)


def test_a_container_that_is_returned():
    made = [1.0, 2.0]

    def program():
        layer = L.Lambda(lambda x: made)
        for _ in range(CALLS):
            result = layer(X)
            yield result, result is made

    compare(program)


# ---------------------------------------------------------------------------------------------
# Functions that are not shown to be pure
# ---------------------------------------------------------------------------------------------

SEEN = []


def prints(x):
    print(end="")
    return x


def asks_the_time(x):
    return x * time.time()


def asks_the_system(x):
    return x * len(os.environ)


def draws(x):
    return x * random.random()


def draws_by_numpy(x):
    return x * np.random.rand()  # noqa: NPY002


def draws_by_keras(x):
    return x * keras.random.uniform([4])


def appends(x):
    SEEN.append(1)
    return x


def assigns_a_global(x):
    global ROWS
    ROWS = ROWS + 1
    return x


def assigns_an_item(x):
    COUNTER[0] = COUNTER[0] + 1.0
    return x


def adds_in_place(x):
    many = COUNTER
    many += [1.0]
    return x * len(many)


def adds_in_place_by_a_call(x):
    def get():
        return WRITTEN

    many = get()
    many += 1.0
    return x * many


def writes_by_a_function_of_numpy(x):
    np.add(WRITTEN, 1.0, out=WRITTEN)
    return x * WRITTEN


def nonlocal_counter():
    count = 0

    def counter(x):
        nonlocal count
        count += 1
        return x * float(count)

    return counter


def reads_by_numpy(x):
    return tf.constant(x.numpy() * 2.0)


def computes_by_numpy(x):
    return tf.constant(np.sort(x))


def handles(x):
    try:
        return tf.reshape(x, [3, 5])
    except tf.errors.InvalidArgumentError:
        return x


def enters_a_context(x):
    with contextlib.nullcontext():
        return x * 2.0


def imports(x):
    import math

    return x * math.pi


def takes_from_an_iterator(x):
    return x * next(ITERATOR)


ITERATOR = iter([1.0] * 1000)


def generator(x):
    yield x


def uses_a_generator(x):
    return sum(generator(x))


def compares_by_identity(x):
    return x if x is pure.CONSTANT else -x


def identifies(x):
    return x * float(id(x) % 2)


def gets_any_attribute(x):
    return x * getattr(pure, "FACTOR" + "S"[: ROWS - 3])


def reads_an_attribute_of_a_tensor(x):
    return x if x.device else -x


@tf.function
def traced(x):
    return x * 2.0


def calls_a_traced_function(x):
    return traced(x)


class Stateful:
    def __init__(self):
        self.count = 0

    def __call__(self, x):
        self.count += 1
        return x * float(self.count)

    def step(self, x):
        self.count += 1
        return x * float(self.count)


STATEFUL = Stateful()


def calls_a_stateful_method(x):
    return STATEFUL.step(x)


def passes_an_object_on(x):
    return x * _scale_of(pure.CONFIG)


def _scale_of(config):
    config.scale = config.scale + 1.0
    return config.scale


def prints_by_tensorflow(x):
    tf.print("", end="")
    return x


def sets_the_seed(x):
    tf.random.set_seed(1)
    return x


def asks_numpy_for_the_time(x):
    return x if np.datetime64("now").astype(int) else -x


def formats_attributes(x):
    return x * float("{0.scale}".format(pure.CONFIG))  # noqa: UP030, UP032


def formats_by_a_nested_field(x):
    return x * float(len("{0:{1.scale:.0f}.1f}".format(1.0, pure.CONFIG)))


class Callables(list):
    def __call__(self, x):
        return x


CALLABLES = Callables([sys.getrecursionlimit])


def calls_an_item(x):
    return x * float(CALLABLES[0]())


WRITTEN_AS_TEXT = """
import dataclasses
CENTER = object()

@dataclasses.dataclass
class Pair:
    y: object

    def __init__(self, y):
        self.y = y
        self.near = y is CENTER
"""
AS_TEXT = {"__name__": __name__}
exec(WRITTEN_AS_TEXT, AS_TEXT)
Pair = AS_TEXT["Pair"]
Pair.__module__ = __name__


def fills_a_dataclass_of_users(x):
    return -x if Pair(x).near else x


def refused_functions():
    names = """
        prints asks_the_time asks_the_system draws draws_by_numpy draws_by_keras
        appends assigns_a_global assigns_an_item adds_in_place adds_in_place_by_a_call
        writes_by_a_function_of_numpy reads_by_numpy computes_by_numpy handles enters_a_context
        imports
        takes_from_an_iterator uses_a_generator compares_by_identity identifies gets_any_attribute
        reads_an_attribute_of_a_tensor calls_a_traced_function
        asks_numpy_for_the_time formats_attributes formats_by_a_nested_field
        fills_a_dataclass_of_users calls_an_item
        calls_a_stateful_method passes_an_object_on prints_by_tensorflow sets_the_seed counting
        counts
    """
    return {name: globals()[name] for name in names.split()}


REFUSED = refused_functions() | {
    "a counter in a closure": nonlocal_counter(),
    "an object that is called": STATEFUL,
    "a method": STATEFUL.step,
}


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_are_refused(name):
    """They run as Python in each call, and the reason names a line of their code."""

    def results(layer):
        keras.utils.set_random_seed(3)
        reset()
        return [outcome(layer, X) for _ in range(CALLS)]

    want = results(L.Lambda(REFUSED[name]))
    with fastops.accelerated():
        layer = L.Lambda(REFUSED[name])
        got, known = results(layer), told(layer)
    if name not in ("asks_the_time", "identifies"):
        assert got == want
    assert not known["replayed"], known
    places = (f"{__file__}:", "<string>:")
    details = [str(detail) for detail in known["details"].values()]
    assert any(place in detail for place in places for detail in details), known


def reset():
    """Restore the state that the functions change."""
    global ROWS, ITERATOR
    ROWS, ITERATOR = 3, iter([float(number) for number in range(1000)])
    SEEN.clear()
    COUNTER[:] = [0.0]
    WRITTEN[:] = 1.0
    STATEFUL.count = counting.count = 0
    pure.CONFIG.scale = 2.0
    pure.VARIABLE.assign([1.0, 2.0, 3.0, 4.0])
    REFUSED["a counter in a closure"].__closure__[0].cell_contents = 0


def draws_by_tensorflow(x):
    return x * tf.random.uniform([4]) + tf.random.normal([4], seed=3)


def drops(x):
    return tf.nn.dropout(x, 0.5) * tf.random.stateless_uniform([4], seed=[1, 2])


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("function", [draws_by_tensorflow, drops])
def test_draws_are_replayed(function, seed):
    """Each call draws anew, with the seeds that TensorFlow would give it."""

    def program():
        layer = L.Lambda(function)
        probe(layer)
        tf.random.set_seed(1 if seed is None else seed)
        for number in range(3 * CALLS):
            yield layer(X)
            if number == 2 * CALLS:
                tf.random.set_seed(7)

    compare(program)


def test_draws_differ_from_call_to_call():
    layer = L.Lambda(draws_by_tensorflow)
    with fastops.accelerated():
        values = {plain(layer(X))[2] for _ in range(2 * CALLS)}
        assert told(layer)["replayed"]
    assert len(values) == 2 * CALLS


def assigns_to_a_variable(x):
    pure.VARIABLE.assign_add(tf.ones(4))
    return x * pure.VARIABLE


def test_assignments_are_replayed():
    def program():
        pure.VARIABLE.assign([1.0, 2.0, 3.0, 4.0])
        layer = L.Lambda(assigns_to_a_variable)
        probe(layer)
        for _ in range(2 * CALLS):
            yield layer(X), pure.VARIABLE
        pure.VARIABLE.assign([1.0, 2.0, 3.0, 4.0])
        yield layer(X), pure.VARIABLE

    compare(program)
    pure.VARIABLE.assign([1.0, 2.0, 3.0, 4.0])


def test_the_reason_has_the_line_and_a_remedy():
    layer = L.Lambda(prints)
    with fastops.accelerated():
        calls(layer)
        report = fastops.explain(layer, X)
    line = prints.__code__.co_firstlineno + 1
    expected = f"{__file__}:{line}: prints: {advice('uses_builtin', 'print')}"
    assert (text_of("foreign_code"), expected) in [
        (one.reason, one.detail) for one in report.methods
    ]


def test_a_function_of_another_module():
    """A module that only calls is not the module of the function that is replayed."""
    module = types.ModuleType("of_a_user")
    source = "import time\nSCALE = 2.0\ndef good(x): return x * SCALE\n"
    source += "def bad(x): return x * time.time()"
    exec(compile(source, "of_a_user.py", "exec"), vars(module))

    def program():
        layer = L.Lambda(module.good)
        probe(layer)
        yield calls(layer)
        module.SCALE = 3.0
        yield calls(layer)
        module.SCALE = 2.0

    compare(program)
    with fastops.accelerated():
        layer = L.Lambda(module.bad)
        calls(layer)
        known = told(layer)
    assert not known["replayed"]
    assert any(
        f"of_a_user.py:4: bad: {advice('uses_changing', 'time.time')}" in str(why)
        for why in known["details"].values()
    )


# ---------------------------------------------------------------------------------------------
# Any function
# ---------------------------------------------------------------------------------------------

TERMS = st.recursive(
    st.sampled_from(
        [
            *("x", "2.0", "FACTOR", "FACTORS[0]", "ROW", "CONSTANT", "VARIABLE", "CONFIG.scale"),
            *("settings.SCALE", "TABLE['shift']", "WEIGHT", "x[..., ::-1]", "x.shape[-1]"),
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
            lambda parts: "tf.cast({}, tf.float32) {} tf.cast({}, tf.float32)".format(*parts)
        ),
        inner.map("tf.nn.relu(tf.cast({}, tf.float32))".format),
        inner.map("keras.ops.tanh({})".format),
        inner.map("helper({})".format),
        inner.map("sum([{}, 1.0])".format),
        inner.map("[tf.cast(part, tf.float32) for part in ({}, 2.0)][0]".format),
        st.tuples(inner, inner).map("({0[0]} if FACTOR > 1.5 else {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} if tf.reduce_sum(x) > 0.0 else {0[1]})".format),
        inner.map("(lambda y: y * FACTOR)({})".format),
    ),
    max_leaves=5,
)

ASSIGNMENTS = [
    ("FACTOR", 5.0, 1.0),
    ("FACTORS", [4.0, 3.0], [0.5]),
    ("ROW", np.full(4, 2.0, np.float32), np.zeros(4, np.float32)),
    ("CONSTANT", tf.ones(4), tf.zeros(4)),
    ("TABLE", {"shift": 3.0}, {"shift": 4.0}),
]


@hypothesis_settings(max_examples=25, deadline=None)
@given_values(TERMS, st.sampled_from(ASSIGNMENTS))
def test_any_function(term, assignment):
    name, one, other = assignment
    namespace = {**vars(pure), "TABLE": dict(settings.TABLE), "__name__": "of_a_user"}
    exec(f"def function(x):\n    return tf.convert_to_tensor(x * 1.0) + {term}\n", namespace)
    function = namespace["function"]
    before = namespace[name]

    def program():
        layer = L.Lambda(function)
        for value in (before, one, other, before):
            namespace[name] = value
            for _ in range(6):
                yield outcome(layer, X)
                yield outcome(layer, -X)

    compare(program)
