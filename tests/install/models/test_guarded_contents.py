"""What users' calls read and guards compare, even if CPython uses an address again."""

import abc
import sys
import warnings
import weakref
from collections.abc import Sequence

import keras
import numpy as np
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, probe
from keras import layers as L  # noqa: N812

import fastops
from fastops._specialize import libraries

X = floats(2, 6)
ROUNDS = 6


class Act:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor


class Slope(float):
    pass


class Reduction(str):
    __slots__ = ()


def test_bound_methods():
    """A new method may be at the address of the one before, and so may its object."""

    def program():
        layer = L.Activation(Act(1.0).apply)
        probe(layer)
        for factor in range(40):
            layer.activation = Act(float(factor)).apply
            for _ in range(CALLS // 2):
                yield layer(X)

    compare(program)


def test_bound_methods_of_objects_that_live():
    acts = [Act(float(factor)) for factor in range(7)]

    def program():
        layer = L.Activation(acts[0].apply)
        probe(layer)
        for factor in range(40):
            layer.activation = acts[factor % 7].apply
            for _ in range(CALLS // 2):
                yield layer(X)

    compare(program)


def test_slices():
    class Window(L.Layer):
        def call(self, x):
            return x[:, self.window]

    def program():
        layer = Window()
        probe(layer)
        for start in range(5):
            layer.window = None
            layer.window = slice(start, start + 2)
            for _ in range(CALLS):
                yield layer(X)

    compare(program)


def test_negative_slope():
    def program():
        layer = L.LeakyReLU()
        probe(layer)
        for slope in range(1, ROUNDS):
            layer.negative_slope = None
            layer.negative_slope = Slope(slope)
            for _ in range(CALLS):
                yield layer(-X)

    compare(program)


def test_losses_made_with_subclasses_of_values():
    """The recordings of one loss are not those of another with another number or text."""

    def program():
        for number in range(8):
            huber = keras.losses.Huber(delta=Slope(0.1 + number % 3))
            reduced = keras.losses.MeanSquaredError(
                reduction=Reduction(["sum", "mean"][number % 2])
            )
            for _ in range(CALLS):
                yield huber(X, -X), reduced(X, -X)

    compare(program)


class Masking(L.Layer):
    def __init__(self):
        super().__init__()
        self.kept = tf.reshape(X, [1, 6, 2])
        self.pool = L.GlobalAveragePooling1D()

    def call(self, x):
        return x + self.pool(self.kept)


MASKS = [None, [[1, 0, 1, 0, 1, 1]], [[1, 1, 0, 0, 0, 0]], None]


def test_mask_of_a_tensor_that_is_held():
    def program():
        layer = Masking()
        probe(layer)
        for mask in MASKS:
            if mask is not None:
                layer.kept._keras_mask = tf.constant(np.array(mask, bool))
            elif hasattr(layer.kept, "_keras_mask"):
                del layer.kept._keras_mask
            for _ in range(CALLS):
                yield layer(tf.ones([2]))

    compare(program)


def test_mask_of_a_variable():
    def program():
        layer = L.GlobalAveragePooling1D()
        variable = tf.Variable(tf.reshape(X, [1, 6, 2]))
        probe(layer)
        for mask in MASKS:
            variable._keras_mask = None if mask is None else tf.constant(np.array(mask, bool))
            for _ in range(CALLS):
                yield layer(variable)

    compare(program)


def test_attribute_that_a_tensor_gets():
    class Asking(L.Layer):
        def __init__(self):
            super().__init__()
            self.kept = tf.constant(2.0)

        def call(self, x):
            return x * 2.0 if hasattr(self.kept, "flag") else x * 3.0

    def program():
        layer = Asking()
        probe(layer)
        for number in range(3 * CALLS):
            if number == CALLS:
                layer.kept.flag = True
            if number == 2 * CALLS:
                del layer.kept.flag
            yield layer(X)

    compare(program, replayed=False)


class AskingArgument(L.Layer):
    def call(self, x):
        return x * 2.0 if hasattr(x, "flag") else x * 3.0


@pytest.mark.parametrize("make", [tf.identity, tf.Variable])
@pytest.mark.parametrize("value", [None, True])
def test_attribute_that_an_argument_gets(make, value):
    def program():
        layer = AskingArgument()
        probe(layer)
        for number in range(2 * CALLS):
            x = make(X)
            if number >= CALLS:
                x.flag = value
            yield layer(x)

    compare(program, replayed=False)


def test_attribute_that_the_class_of_an_argument_has():
    class OfClass(L.Layer):
        def call(self, x):
            return x * 2.0 if hasattr(x, "numpy") and not hasattr(x, "items") else x * 3.0

    def program():
        layer = OfClass()
        probe(layer)
        for _ in range(CALLS):
            yield layer(X)

    compare(program)


def abstract_class():
    return abc.ABCMeta("Registering", (), {"__module__": __name__})


Registering = abstract_class()  # a program makes another one
OF_MODULE = globals()


class AskingOwn(L.Layer):
    def call(self, x):
        return x * 2.0 if isinstance(self.thing, Registering) else x * 5.0


class AskingSequence(L.Layer):
    def call(self, x):
        return x * 2.0 if isinstance(self.thing, Sequence) else x * 5.0


@pytest.mark.parametrize("kind", [AskingOwn, AskingSequence])
def test_classes_registered_with_an_abstract_class(kind):
    def program():
        abstract = OF_MODULE["Registering"] = abstract_class()

        class Thing:
            pass

        layer = kind()
        layer.thing = Thing()
        probe(layer)
        for number in range(2 * CALLS):
            if number == CALLS:
                abstract.register(Thing)
                Sequence.register(Thing)
            yield layer(X)

    compare(program)


def test_argument_that_is_returned():
    """A list that a layer returns as it came is the caller's list."""

    class Returning(L.Layer):
        def __init__(self):
            super().__init__()
            self._convert_input_args = False
            self._allow_non_tensor_positional_args = True

        def call(self, xs):
            return xs

    def program():
        layer = Returning()
        probe(layer)
        for _ in range(2 * CALLS):
            xs = [X, X * 2.0]
            result = layer(xs)
            yield result, result is xs

    compare(program, replayed=False)


def test_names_of_metrics_in_results():
    """Another object with other names is not answered by the recording of the first."""

    def program():
        inputs = tf.ones([4, 3])
        for number in range(6):
            model = keras.Sequential([L.Dense(1)])
            metric = keras.metrics.MeanSquaredError(name=f"m{number}")
            model.compile(loss="mse", metrics=[metric], run_eagerly=True)
            for _ in range(4):
                yield model.test_on_batch(inputs, inputs[:, :1], return_dict=True)
            del model, metric

    compare(program)


def test_module_of_the_program_with_the_name_of_a_package(tmp_path, monkeypatch):
    """The code of a module `tree.py` of a program is that of a user."""
    (tmp_path / "tree.py").write_text(
        "import keras\n"
        "SCALE = [2.0]\n"
        "COUNT = [0]\n"
        "class Own(keras.layers.Layer):\n"
        "    def call(self, x):\n"
        "        return x * SCALE[0]\n"
        "class Counting(keras.layers.Layer):\n"
        "    def call(self, x):\n"
        "        COUNT[0] += 1\n"
        "        return x * 2.0\n"
    )
    monkeypatch.setitem(sys.modules, "tree", None)  # afterwards, the module is as before
    del sys.modules["tree"]
    monkeypatch.syspath_prepend(tmp_path)
    import tree

    libraries.is_own.cache_clear()

    def program():
        layer, counting = tree.Own(), tree.Counting()
        probe(layer)
        tree.COUNT[0], scales = 0, (1.0, 2.0, 3.0)
        for number in range(3 * CALLS):
            tree.SCALE[0] = scales[number // CALLS]
            yield layer(X), counting(X), tree.COUNT[0]

    try:
        compare(program)
    finally:
        libraries.is_own.cache_clear()


def test_warnings_of_numpy_are_issued_again():
    class Logarithm(L.Layer):
        def __init__(self):
            super().__init__()
            self.zeros = np.zeros(2, np.float32)

        def call(self, x):
            return x[:, :2] + np.log(self.zeros)

    def program():
        layer = Logarithm()
        for _ in range(CALLS):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                layer(X)
            yield [str(warning.message) for warning in caught]

    compare(program)
    assert not fastops.is_installed()


class Setting:
    def __init__(self, factor):
        self.factor = factor


SETTING = None


class Set(L.Layer):
    def call(self, x):
        return x * SETTING.factor


def test_globals_are_not_kept_alive():
    """A recording does not keep the object of a global name that the program has dropped."""

    def program():
        layer = Set()
        probe(layer)
        for factor in range(ROUNDS):
            setting = OF_MODULE["SETTING"] = Setting(float(factor))
            reference = weakref.ref(setting)
            for _ in range(CALLS):
                yield layer(X)
            OF_MODULE["SETTING"] = None
            del setting
            yield reference() is None

    compare(program)
