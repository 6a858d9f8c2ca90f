"""Functions of TensorFlow and Keras that users replace are called, as without `install`."""

import functools
import sys
import unittest.mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import frames
from replaced import counted, places, programs, t
from support import assert_same, outcome
from tensorflow.python.framework import ops
from tensorflow.python.ops import gen_math_ops, math_grad, math_ops, resource_variable_ops

import fastops
from fastops._install import lookups, restated
from fastops._install.moved import running_name
from fastops._install.replacement import Replacement, guard_of
from fastops._install.target import resolve

pytestmark = pytest.mark.usefixtures("fresh")

PROGRAMS = [*programs()]

NOT_ASKED = {
    *lookups.PASSED_OVER,
    *lookups.BELOW,
    # Modules of functions that TensorFlow calls on the way to an op.
    *("tensorflow.python.eager.context", "tensorflow.python.distribute.distribute_lib"),
    *("tensorflow.python.eager.record", "tensorflow.python.util.is_in_graph_mode"),
}
"""Modules whose changes are not checked in each call."""

LEFT = {
    *("_should_not_autopack", "_autopacking_helper", "_get_dtype_from_nested_lists"),
    *("maybe_promote_tensors", "name_scope", "init_scope", "variable_accessed"),
    *("get_global_attribute", "validate_synchronization_aggregation_trainable"),
    *("constant_value", "standardize_dtype"),
}
"""Functions in TensorFlow and Keras that some stand-ins skip, even if they are replaced."""

MODELS = {"dense", "norm", "pool", "loss", "model"}
"""Programs whose calls are recorded with all their dependencies."""


def is_asked(module, name):
    """Tell whether each call checks if a function was replaced."""
    return not (
        module in NOT_ASKED
        or name in LEFT
        or name.startswith(("TFE_Py_", "is_"))
        or name.endswith("_eager_fallback")
    )


# ---------------------------------------------------------------------------------------------
# Each function that programs look up
# ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stock():
    """Return by program the functions it looks up, how often it calls each, and its result."""
    assert not fastops.is_installed()
    rows_by_program = {}
    for name, program in programs().items():
        for _ in range(2):
            program()
        rows = []
        for (_, attribute), holder in sorted(places(program).items()):
            with counted(holder, attribute) as count:
                result = outcome(program)
            if count[0]:
                rows.append((holder, attribute, count[0], result))
        rows_by_program[name] = rows
    return rows_by_program


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_replaced_function_is_called(stock, name):
    with fastops.accelerated():
        program = programs()[name]
        for _ in range(6):
            want = program()
        entered = frames(program, (), {})
        missed = []
        for holder, attribute, times, result in stock[name]:
            with counted(holder, attribute) as count:
                got = outcome(program)
            if name != "shape":  # unknown dimensions are not equal to themselves
                assert_same(got, result)
                assert_same(program(), want)
            if count[0] != times and is_asked(holder["__name__"], attribute):
                missed.append(f"{holder['__name__']}.{attribute}: {count[0]}, not {times}")
        for _ in range(6):
            program()
        if name not in MODELS:
            assert frames(program, (), {}) == entered, "restored functions are still called"
    assert not missed


# ---------------------------------------------------------------------------------------------
# Functions that users replace
# ---------------------------------------------------------------------------------------------

BACKEND_CORE, BACKEND_NUMPY = (
    sys.modules[running_name(f"keras.src.backend.tensorflow.{name}")] for name in ("core", "numpy")
)

PLACES = {
    "tf.matmul": (tf, "matmul", "keras.ops.matmul"),
    "tf.cast": (tf, "cast", "keras.ops.cast"),
    "tf.convert_to_tensor": (tf, "convert_to_tensor", "keras.ops.convert_to_tensor"),
    "tf.reduce_mean": (tf, "reduce_mean", "keras.ops.mean"),
    "tf.add": (tf, "add", "keras.ops.add"),
    "tf.nn.relu": (tf.nn, "relu", "keras.ops.relu"),
    "tf.is_tensor": (tf, "is_tensor", "keras.ops.add"),
    "math_ops.reduce_sum": (math_ops, "reduce_sum", "tf.norm"),
    "gen_math_ops.mat_mul": (gen_math_ops, "mat_mul", "tf.matmul"),
    "gen_math_ops.add_v2": (gen_math_ops, "add_v2", "a + b"),
    "ops.convert_to_tensor": (ops, "convert_to_tensor", "tf.matmul of an array"),
    "math_ops.multiply": (math_ops, "multiply", "a * 2.0"),
    "keras.src.backend.numpy.add": (BACKEND_NUMPY, "add", "keras.ops.add"),
    "keras.src.backend.tensorflow.numpy.convert_to_tensor": (
        *(BACKEND_NUMPY, "convert_to_tensor"),
        "keras.ops.add",
    ),
    "keras.src.backend.tensorflow.core.standardize_dtype": (
        *(BACKEND_CORE, "standardize_dtype", "keras.ops.cast"),
    ),
    "keras.src.backend.config.floatx": (keras.src.backend.config, "floatx", "keras.Variable"),
    "dense": (tf, "matmul", "dense"),
    "dense, of Keras": (BACKEND_NUMPY, "matmul", "dense"),
    "model": (tf, "matmul", "model"),
    "step": (gen_math_ops, "mul", "step"),
    "assign": (
        *(resource_variable_ops.gen_resource_variable_ops, "assign_add_variable_op", "assign"),
    ),
}


def counting(function):
    @functools.wraps(function, updated=())
    def counting(*args, **kwargs):
        counting.calls += 1
        return function(*args, **kwargs)

    counting.calls = 0
    return counting


def spying(function):
    return unittest.mock.Mock(side_effect=function)


def calls_of(spy):
    return spy.call_count if isinstance(spy, unittest.mock.Mock) else spy.calls


@pytest.fixture(scope="module")
def wanted():
    """Return, by place and replacement, the number of its calls, and the result."""
    assert not fastops.is_installed()
    results = {}
    for name, (holder, attribute, program) in PLACES.items():
        for make in (counting, spying):
            run = programs()[program]
            run()
            replacement = make(getattr(holder, attribute))
            with unittest.mock.patch.object(holder, attribute, replacement):
                result = outcome(run)
            results[name, make] = calls_of(replacement), result
    return results


@pytest.mark.parametrize("make", [counting, spying])
@pytest.mark.parametrize("name", PLACES)
def test_a_function_that_is_replaced_between_calls(wanted, name, make):
    holder, attribute, program = PLACES[name]
    times, result = wanted[name, make]
    with fastops.accelerated():
        run = programs()[program]
        for _ in range(6):
            want = run()
        replacement = make(getattr(holder, attribute))
        with unittest.mock.patch.object(holder, attribute, replacement):
            for i in range(1, 4):
                assert_same(outcome(run), result)
                assert calls_of(replacement) == i * times
        for _ in range(6):
            assert_same(run(), want)
        assert calls_of(replacement) == 3 * times


@pytest.mark.parametrize("name", PLACES)
def test_a_function_that_is_replaced_before_the_first_call(wanted, name):
    holder, attribute, program = PLACES[name]
    times, result = wanted[name, counting]
    with fastops.accelerated():
        replacement = counting(getattr(holder, attribute))
        run = programs()[program]
        run()
        with unittest.mock.patch.object(holder, attribute, replacement):
            assert_same(outcome(run), result)
        assert calls_of(replacement) == times


@pytest.mark.parametrize("name", PLACES)
def test_a_function_that_is_replaced_before_install(wanted, name):
    holder, attribute, program = PLACES[name]
    times, result = wanted[name, counting]
    replacement = counting(getattr(holder, attribute))
    run = programs()[program]
    run()
    with unittest.mock.patch.object(holder, attribute, replacement), fastops.accelerated():
        for i in range(1, 7):
            assert_same(outcome(run), result)
            assert calls_of(replacement) == i * times


def test_a_function_replaced_by_another_one_of_tensorflow(monkeypatch):
    x = t(2, 3)
    want = keras.ops.mean(x), tf.reduce_sum(x)
    monkeypatch.setattr(tf, "reduce_mean", tf.reduce_sum)
    assert_same(keras.ops.mean(x), want[1])
    with fastops.accelerated():
        assert_same(keras.ops.mean(x), want[1])
        monkeypatch.undo()
        assert_same(keras.ops.mean(x), want[0])


def test_a_replaced_function_gives_other_results_to_recorded_models():
    dense = keras.layers.Dense(2)
    x = t(2, 3)
    dense(x)
    with fastops.accelerated():
        for _ in range(6):
            want = dense(x)
        with unittest.mock.patch("tensorflow.matmul", return_value=tf.zeros([2, 2])):
            assert_same(dense(x), tf.zeros([2, 2]))
        assert_same(dense(x), want)


def test_methods_of_classes_that_are_replaced():
    x, own = t(2, 3), keras.Variable(np.ones([2, 3], np.float32))
    with fastops.accelerated():
        for _ in range(3):
            want = x + own
        with unittest.mock.patch.object(
            keras.src.backend.Variable, "value", property(lambda self: tf.zeros([2, 3]))
        ):
            assert_same(x + own, x)
        assert_same(x + own, want)
        with unittest.mock.patch.object(tf.Tensor, "__add__", return_value="added"):
            assert x + x == "added"
        assert_same(x + own, want)


# ---------------------------------------------------------------------------------------------
# Guards
# ---------------------------------------------------------------------------------------------


def test_every_guard_holds_if_nothing_is_replaced():
    with fastops.accelerated():
        for piece in restated.table()["rests_on"]:
            if piece.partition(":")[0] in sys.modules:
                assert lookups.of_piece(piece), (piece, lookups.of_piece(piece).differing())


def test_everything_that_reimplements_code_has_a_guard():
    with fastops.accelerated():
        for layer, titles in restated.table()["pieces"].items():
            for title in titles if layer == "public" else ():
                holder, attribute = resolve(title)
                there = getattr(holder, attribute)
                if isinstance(there, Replacement):
                    assert guard_of(there), title


def test_a_guard_compares_nothing_while_nothing_changes():
    x = t(2, 3)
    with fastops.accelerated():
        for _ in range(3):
            tf.matmul(x, x, transpose_b=True)
        guard = guard_of(tf.matmul)
        looks = guard.looks
        for _ in range(10):
            tf.matmul(x, x, transpose_b=True)
        assert guard.looks == looks
        with unittest.mock.patch.object(gen_math_ops, "mat_mul", counting(gen_math_ops.mat_mul)):
            assert not guard
            assert guard.differing() == ["tensorflow.python.ops.gen_math_ops.mat_mul"]
        assert guard


def test_later_guards_of_a_piece_see_what_is_replaced():
    piece = "tensorflow.python.ops.math_ops:matmul"
    make = lookups.of_piece.__wrapped__
    with fastops.accelerated():
        assert make(piece)  # its names are known now
        for name in ("gen_math_ops.mat_mul", "math_ops.matmul", "math_ops.cast"):
            with unittest.mock.patch(f"tensorflow.python.ops.{name}"):
                assert not make(piece), name
            assert make(piece)


def test_names_of_a_function_are_found_anew_if_its_code_changes():
    parts, function = ("tensorflow.python.ops.math_grad:_AbsGrad",), math_grad._AbsGrad
    names, code = lookups._names_of(parts), function.__code__
    assert lookups._names_of(parts) is names
    try:
        function.__code__ = code.replace(co_name="changed")
        assert lookups._names_of(parts) is not names
    finally:
        function.__code__ = code


def test_recordings_of_the_same_code_of_libraries_share_a_guard():
    def own():
        return tf.matmul

    codes = [
        (function.__code__, function.__globals__) for function in (keras.ops.matmul, keras.ops.add)
    ]
    guard = lookups.of_codes(codes)
    assert lookups.of_codes(reversed(codes)) is guard
    assert lookups.of_codes(codes[:1]) is not guard
    codes.append((own.__code__, own.__globals__))  # a local function, which may be freed
    assert lookups.of_codes(codes) is not lookups.of_codes(codes)
    with fastops.accelerated():
        assert guard
        with unittest.mock.patch("keras.src.ops.numpy.any_symbolic_tensors"):
            assert not guard
        assert guard
