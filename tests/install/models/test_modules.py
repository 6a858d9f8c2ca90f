"""Calls of users' modules, subclasses of `tf.Module`, are replayed; their classes do not change.

The classes are made within the tests where it matters whether they are older than `install`.
"""

import abc
import contextlib
import copy
import gc
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, floats, outcome, plain

import fastops
from fastops._core.reasons import text_of
from fastops._install.models import modules
from fastops._install.models.method import methods

X = floats(2, 4)
SCALE = 1.5


class Dense(tf.Module):
    def __init__(self, inputs, outputs, activation=None, name=None):
        super().__init__(name=name)
        values = np.linspace(-1.0, 1.0, inputs * outputs, dtype=np.float32)
        self.w = tf.Variable(values.reshape(inputs, outputs), name="w")
        self.b = tf.Variable(tf.zeros([outputs]), name="b")
        self.activation = activation

    def __call__(self, x):
        y = tf.matmul(x, self.w) + self.b
        return y if self.activation is None else self.activation(y)


class Perceptron(tf.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layers = [Dense(4, width, tf.nn.relu), Dense(width, width, tf.tanh)]
        self.out = Dense(width, 3)
        self.rate = 0.5

    def __call__(self, x, training=False):
        for layer in self.layers:
            x = layer(x)
        if training:
            x = tf.nn.dropout(x, self.rate)
        return self.out(x) * SCALE


class Scoped(tf.Module):
    """A module that enters name scopes."""

    def __init__(self):
        super().__init__(name="scoped")
        self.inner, self.title = Dense(4, 4), "title"

    @tf.Module.with_name_scope
    def __call__(self, x):
        with tf.name_scope("first"), tf.name_scope(self.title):
            y = self.inner(x)
        for _ in range(2):
            with self.name_scope:
                y = y + 1.0
        return {self.title: y}


class Counting(tf.Module):
    """A module that assigns to a variable."""

    def __init__(self):
        super().__init__()
        self.calls = tf.Variable(0)

    def __call__(self, x):
        self.calls.assign_add(1)
        return x * tf.cast(self.calls, tf.float32)


class Abstract(tf.Module, abc.ABC):
    @abc.abstractmethod
    def shift(self, x):
        """Shift a value."""

    def __call__(self, x):
        return self.shift(x) * 2.0


class Concrete(Abstract):
    def shift(self, x):
        return x + 1.0


class Derived(Dense):
    def __call__(self, x):
        return super().__call__(x) * 3.0


class Inheriting(Dense):
    """A class whose method `__call__` is that of its base class."""


class OfLayers(tf.Module):
    """A module that holds layers of Keras."""

    def __init__(self, **options):
        super().__init__()
        self.hidden = keras.layers.Dense(4, activation="relu", **options)
        self.out = keras.layers.Dense(2)

    def __call__(self, x, *, training=None):
        return self.out(self.hidden(x, training=training))


class Printing(tf.Module):
    """A module with effects."""

    def __call__(self, x):
        print(end="")
        return x * 2.0


def told(module):
    """Return the description of the calls of a module."""
    original = getattr(modules.call, "original", modules.call)
    (method,) = [method for method in methods() if method.original is original]
    return method.describe(module)


def results(make, *args, calls=CALLS, **kwargs):
    """Return the results of calls of a new module, and the module."""
    keras.utils.set_random_seed(3)
    module = make()
    return [plain(module(*args, **kwargs)) for _ in range(calls)], module


@pytest.mark.parametrize(
    "make",
    [
        *(Perceptron, Scoped, Counting, Concrete, lambda: Derived(4, 4)),
        *(lambda: Inheriting(4, 4, tf.nn.softplus), OfLayers),
    ],
)
def test_calls_are_replayed(make):
    expected, _ = results(make, X)
    with fastops.accelerated():
        given, module = results(make, X)
        description = told(module)
    assert given == expected
    assert description["replayed"] >= CALLS - 4, description
    assert description["native"], description


def test_random_numbers_are_those_of_tensorflow():
    expected, _ = results(Perceptron, X, training=True)
    with fastops.accelerated():
        given, module = results(Perceptron, X, training=True)
        assert told(module)["replayed"]
    assert given == expected
    assert len(set(map(repr, given))) == CALLS


def train(module, steps=CALLS):
    """Return the losses, gradients and second derivatives of some steps."""
    noted = []
    x = tf.Variable(X)
    for _ in range(steps):
        with tf.GradientTape(persistent=True) as outer, tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(module(x)))
            slope = tape.gradient(loss, x)
        gradients = outer.gradient(slope, module.trainable_variables)
        noted.append(plain([loss, slope, gradients]))
        for variable, gradient in zip(module.trainable_variables, gradients, strict=True):
            if gradient is not None:
                variable.assign_sub(0.01 * gradient)
    return noted


@pytest.mark.parametrize("make", [Perceptron, lambda: Derived(4, 4), OfLayers])
def test_gradients(make):
    keras.utils.set_random_seed(3)
    expected = train(make())
    keras.utils.set_random_seed(3)
    module = make()
    with fastops.accelerated():
        assert train(module) == expected
        assert told(module)["replayed"]


@contextlib.contextmanager
def replaying(make=Perceptron, *args):
    """Yield a module whose calls are replayed."""
    with fastops.accelerated():
        module = make(*args)
        for _ in range(CALLS):
            module(X)
        assert told(module)["replayed"]
        yield module


def widen(module):
    module.layers.append(Dense(8, 8, tf.nn.relu))


def replace_weight(module):
    module.out.w = tf.Variable(tf.ones([8, 3]))


def assign(module):
    module.out.w.assign(tf.ones([8, 3]))


def replace_function(module):
    module.layers[0].activation = tf.nn.sigmoid


def replace_module(module):
    module.out = Dense(8, 2)


def set_global(_):
    global SCALE
    SCALE = 4.0


def add_to_class(module):
    type(module.out).w = property(lambda self: tf.ones([8, 3]))


def set_attribute_of_instance(module):
    module.__call__ = lambda x: None  # calls do not look there


def shuffle(module):
    module.layers.reverse()
    module.layers[0].w = tf.Variable(tf.ones([4, 8]))
    module.layers[1].w = tf.Variable(tf.ones([8, 8]))


CHANGES = [widen, replace_weight, assign, replace_function, replace_module, set_global]
CHANGES += [add_to_class, set_attribute_of_instance, shuffle]


@pytest.fixture
def restored():
    """Undo the changes of globals and classes."""
    global SCALE
    before = SCALE
    yield
    SCALE = before
    if "w" in vars(Dense):
        del Dense.w


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_noticed(change):
    with replaying() as module:
        change(module)
        given = [outcome(module, X) for _ in range(CALLS)]
    expected = [outcome(module, X) for _ in range(CALLS)]
    assert given == expected


def test_another_method_of_the_class():
    class Own(Dense):
        def __call__(self, x):
            return x + 1.0

    with replaying(Own, 4, 4) as module:
        Own.__call__ = lambda self, x: x + 2.0
        assert plain(module(X)) == plain(X + 2.0)
        assert Own not in modules.followed()
        other = Own(4, 4)  # from now on, calls of the class are followed again
        for _ in range(CALLS):
            assert plain(other(X)) == plain(X + 2.0)
        assert told(other)["replayed"]
        del Own.__call__
        assert plain(module(X)) == plain(Dense.__call__(module, X))


def test_another_method_of_the_base_class():
    class Base(tf.Module):
        def __call__(self, x):
            return x + 1.0

    class Own(Base):
        pass

    with replaying(Own) as module:
        Base.__call__ = lambda self, x: x + 2.0
        assert plain(module(X)) == plain(X + 2.0)
        del Base.__call__
        with pytest.raises(TypeError, match="'Own' object is not callable"):
            module(X)


def test_classes_stay_as_they_are():
    before = dict(vars(Dense)), Dense.__call__
    with replaying(Dense, 4, 4) as module:
        assert (dict(vars(Dense)), Dense.__call__) == before
        assert type(Dense.__call__) is type(train)
        assert Dense in modules.followed()
        assert plain(copy.deepcopy(module)(X)) == plain(module.__call__(X))
    assert modules.followed() == []
    assert plain(module(X)) == plain(module.__call__(X))


def test_modules_and_classes_of_any_age():
    old = Dense(4, 4)
    with fastops.accelerated():
        new = Dense(4, 4)

        class Late(Dense):
            pass

        class Silent(tf.Module):
            """A class whose constructor does not call that of `tf.Module`."""

            def __init__(self):
                self.w = tf.Variable(2.0)

            def __call__(self, x):
                return x * self.w

        subjects = [old, new, Late(4, 4)]
        for subject in subjects:
            for _ in range(CALLS):
                assert plain(subject(X)) == plain(subject.__call__(X))
            assert told(subject)["replayed"]
        silent = Silent()
        for _ in range(CALLS):
            assert plain(silent(X)) == plain(X * 2.0)
    with fastops.accelerated():
        for _ in range(CALLS):
            assert plain(silent(X)) == plain(X * 2.0)
        assert told(silent)["replayed"]


@pytest.mark.parametrize("without", [{"exclude": ["modules"]}, {"models": False}])
def test_leaving_modules_out(without):
    with fastops.accelerated(**without):
        module = Dense(4, 4)
        for _ in range(CALLS):
            module(X)
        assert modules.followed() == []
        assert told(module)["replayed"] == 0


def test_code_with_effects_runs_in_each_call():
    with fastops.accelerated():
        module = Printing()
        for _ in range(CALLS):
            module(X)
        report = fastops.explain(module, X)
        assert told(module)["replayed"] == 0
    (method,) = report.methods
    assert method.reason == text_of("user_class")
    assert "print" in method.detail


def test_declared_classes():
    @fastops.keras.replayable
    class Declared(tf.Module):
        def __call__(self, x):
            try:
                return x + self.shift
            except AttributeError:
                return x + 1.0

    with fastops.accelerated():
        module = Declared()
        for _ in range(CALLS):
            assert plain(module(X)) == plain(X + 1.0)
        assert told(module)["replayed"]
        module.shift = 3.0
        assert plain(module(X)) == plain(X + 3.0)


def variables_of(module):
    """Return the names and the values of the variables of a module, by property."""
    return {
        name: [(id(variable), variable.name, plain(variable)) for variable in getattr(module, name)]
        for name in ("variables", "trainable_variables", "non_trainable_variables")
    }


def found(name, module):
    """Return the description of the reads of a property."""
    return getattr(tf.Module, name).fget.describe(module)


def freeze(module):
    module.out.w._trainable = False


def add_frozen(module):
    module.layers[0].extra = {"a": [tf.Variable(1.0, trainable=False, name="frozen")], "b": ()}


def hide(module):
    module.out._TF_MODULE_IGNORED_PROPERTIES = frozenset({"w"})


def remove(module):
    del module.out.w


def rename(module):
    module.abc = module.__dict__.pop("out")


def add_by_dict(module):
    module.__dict__["late"] = tf.Variable(3.0)


def share(module):
    module.another = [module.layers[0].w, module.layers[0], module]


CHANGES_OF_VARIABLES = [*CHANGES[:6], freeze, add_frozen, hide, remove, rename, add_by_dict, share]


@pytest.mark.parametrize("change", CHANGES_OF_VARIABLES)
def test_variables_of_modules(change):
    module = Perceptron()
    with fastops.accelerated():
        for _ in range(CALLS):
            variables_of(module)
        assert found("trainable_variables", module)["replayed"]
        assert found("variables", module)["replayed"]
        assert module.variables is not module.variables
        assert type(module.variables) is tuple
        change(module)
        changed = [variables_of(module) for _ in range(CALLS)]
    assert all(one == variables_of(module) for one in changed)


def test_variables_in_calls_and_on_tapes():
    module = Perceptron()
    with fastops.accelerated():
        for _ in range(CALLS):
            with tf.GradientTape() as tape:
                penalty = tf.add_n([tf.nn.l2_loss(one) for one in module.trainable_variables])
            gradients = tape.gradient(penalty, module.trainable_variables)
            for gradient, variable in zip(gradients, module.variables, strict=True):
                assert plain(gradient) == plain(variable.value())
        assert found("trainable_variables", module)["replayed"]


def test_properties_of_users():
    class Chosen(Perceptron):
        @property
        def trainable_variables(self):
            return super().trainable_variables[:1]

        def _flatten(self, **options):
            seen.append(options["predicate"])
            return super()._flatten(**options)

    seen = []
    with fastops.accelerated():
        module = Chosen()
        for _ in range(CALLS):
            assert len(module.trainable_variables) == 1
            assert len(module.variables) == 6
        assert len(seen) == 2 * CALLS


def test_variables_of_a_traced_module():
    module = Perceptron()

    @tf.function
    def total(x):
        return tf.add_n([tf.reduce_sum(one) for one in module.trainable_variables]) + x

    with fastops.accelerated():
        want = plain(tf.add_n([tf.reduce_sum(one) for one in module.trainable_variables]) + 1.0)
        assert all(plain(total(tf.constant(1.0))) == want for _ in range(CALLS))


class Bound(Scoped):
    def __call__(self, x):
        with tf.name_scope("title") as scope:
            return x * float(len(scope))


class Asking(Scoped):
    def __init__(self):
        super().__init__()
        self.w = tf.constant([5.0])

    def __call__(self, x):
        if hasattr(self.name_scope, "name") and x is self.w:
            return x * 2.0
        return x * 3.0


class Hidden(Scoped):
    def __call__(self, x):
        scope = self.name_scope
        with scope:
            return x * 3.0


@pytest.mark.parametrize("kind", [Bound, Asking, Hidden])
def test_scopes_that_are_more_than_entered(kind):
    with fastops.accelerated():
        module = kind()
        for _ in range(CALLS):
            module(X)
        with tf.name_scope("outer"):
            given = plain([module(X), module(tf.constant([5.0])), module(module.inner.b)])
        assert told(module)["replayed"] == 0
    with tf.name_scope("outer"):
        assert given == plain([module(X), module(tf.constant([5.0])), module(module.inner.b)])


def test_another_name_scope_of_a_module():
    class Noting(contextlib.nullcontext):
        def __enter__(self):
            entered.append(self)

    entered = []
    with replaying(Scoped) as module:
        module._name_scope = Noting()
        module(X)
    assert entered


def called(self, x):
    return x * 2.0


class Raising(type):
    @property
    def __call__(cls):
        raise RuntimeError("code of the metaclass")


def raising():
    kind = Raising("Made", (tf.Module,), {"__call__": called})
    module = kind.__new__(kind)
    module.__init__()
    return module


class Raised:
    """An object that stands for something which cannot be loaded."""

    def __getattr__(self, name):
        raise ImportError(name)


PLACEHOLDERS = {"missing": Raised()}


class Naming(tf.Module):
    def __call__(self, x):
        return x if "missing" in PLACEHOLDERS else -x


def test_values_that_raise_when_they_are_judged():
    with fastops.accelerated():
        module = Naming()
        for _ in range(CALLS):
            assert plain(module(X)) == plain(X)


UNUSUAL = {
    "no module": lambda: eval("type('T', (m,), {'__call__': c})", {"m": tf.Module, "c": called})(),
    "module of None": lambda: type("T", (tf.Module,), {"__call__": called, "__module__": None})(),
    "metaclass": raising,
}


@pytest.mark.parametrize("title", UNUSUAL)
def test_unusual_classes(title):
    with fastops.accelerated():
        module = UNUSUAL[title]()
        module.w = tf.Variable(1.0)
        for _ in range(CALLS):
            assert plain(module(X)) == plain(X * 2.0)
            assert module.trainable_variables == (module.w,)
        fastops.explain(module, X)
        fastops.explain(lambda: module.variables)


def test_classes_that_search_everything():
    class Searching(tf.Module):
        _TF_MODULE_IGNORED_PROPERTIES = frozenset(("_cache",))

        def __init__(self):
            super().__init__()
            self.v = tf.Variable(1.0)

    with fastops.accelerated():
        module = Searching()
        for _ in range(CALLS):
            assert len(module.trainable_variables) == 1
        module._track_trackable(tf.Variable(2.0), "extra")
        assert len(module.trainable_variables) == 2


def test_errors_of_properties():
    def message():
        with pytest.raises(AttributeError) as raised:
            Perceptron().variables = ()
        return str(raised.value)

    expected = message()
    with fastops.accelerated():
        assert message() == expected


WRONG = [
    ((), {}),
    ((X, X, X), {}),
    ((X,), {"other": 1}),
    ((X,), {1: 2}),
    ((X[0],), {}),
    ((None,), {}),
    (([[1.0, 2.0, 3.0, 4.0]],), {}),
    ((np.ones((2, 4), np.float32),), {}),
    ((tf.constant([[1, 2, 3, 4]]),), {}),
    ((), {"training": True, "x": X}),
]


@pytest.mark.parametrize(("args", "kwargs"), WRONG)
def test_unusual_arguments(args, kwargs):
    keras.utils.set_random_seed(3)
    module = Perceptron()
    module.rate = 0.0

    def calls():
        return [outcome(lambda: module(*args, **kwargs)) for _ in range(CALLS)]

    expected = calls()
    with fastops.accelerated():
        for _ in range(CALLS):
            module(X)
        assert calls() == expected


def test_calls_in_other_calls():
    def calls():
        module = Perceptron()
        layer = keras.layers.Lambda(lambda x: module(x) + 1.0)
        traced, data = tf.function(module), tf.data.Dataset.from_tensors(X).map(module)
        parallel = tf.map_fn(module, tf.stack([X, X + 1.0]))
        return [
            *(plain([layer(X), traced(X), next(iter(data))]) for _ in range(CALLS)),
            *(plain([parallel, module(X)]),),
        ]

    expected = calls()
    with fastops.accelerated():
        assert calls() == expected


def test_verified_calls():
    with fastops.accelerated(verify="raise"):
        module = Perceptron()
        for _ in range(CALLS):
            module(X)
        assert told(module)["replayed"]
        assert fastops.verified().compared["modules"] > 0


def test_a_class_that_dies_is_forgotten():
    class Brief(tf.Module):
        def __call__(self, x):
            return x + 1.0

    with fastops.accelerated():
        module = Brief()
        for _ in range(CALLS):
            module(X)
        assert module.trainable_variables == ()
        assert told(module)["replayed"]
        reference = weakref.ref(Brief)
        del module, Brief
        gc.collect()
        assert reference() is None
        assert "Brief" not in {kind.__name__ for kind in modules.followed()}


def test_threads():
    module = Perceptron()
    expected = plain(module(X))
    wrong, ready = [], threading.Barrier(4)

    def call():
        ready.wait()
        for _ in range(50):
            if plain(module(X)) != expected:
                wrong.append(module)

    with fastops.accelerated():
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(CALLS):
            module(X)
        assert told(module)["replayed"]
    assert not wrong


def test_layers_that_add_losses():
    """Their losses outlive the call, so the layers are replayed, and the module is not."""

    def losses(module):
        return [plain([module(X), module.hidden.losses]) for _ in range(3 * CALLS)]

    keras.utils.set_random_seed(3)
    expected = losses(OfLayers(activity_regularizer="l2"))
    keras.utils.set_random_seed(3)
    with fastops.accelerated():
        module = OfLayers(activity_regularizer="l2")
        assert losses(module) == expected
        assert told(module)["replayed"] == 0
        assert type(module.hidden).__call__.describe(module.hidden)["replayed"]


def test_code_of_tf_keras_in_a_module():
    tf_keras = pytest.importorskip("tf_keras")

    class Activating(tf.Module):
        def __call__(self, x):
            return tf_keras.activations.relu(x) * 2.0

    expected, _ = results(Activating, X)
    with fastops.accelerated():
        given, module = results(Activating, X)
        description = told(module)
    assert given == expected
    assert description["replayed"] == 0
    assert text_of("library_in_module") in description["reasons"]
