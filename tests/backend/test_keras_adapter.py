"""Compare `fastops.backend.keras` with Keras's TensorFlow backend: names, results, paths."""

import importlib
import inspect
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from backend.backend_cases import Outcome, differ, plain
from backend.keras_calls import CALLS, EMPTY, WRONG, calls, inputs, lines
from keras.src.backend.common import global_state

import fastops
from fastops._backend.adapter.table import MISSING, NATIVE
from fastops.backend import keras as adapter
from tools import keras_adapter

pytestmark = pytest.mark.skipif(
    not keras.__version__.startswith("3.15."), reason="the table describes Keras 3.15"
)

reference = keras.src.backend.tensorflow

MODULES = sorted(
    path.stem
    for path in Path(reference.__file__).parent.glob("*.py")
    if not path.stem.endswith("_test") and path.stem != "__init__"
)

OF_FUNCTIONS = sorted({*NATIVE, *MISSING})

SOME = [next(call for name, call in calls(module) if name == one) for module, one in (
    ("numpy", "add"), ("numpy", "mean"), ("numpy", "matmul"), ("nn", "softmax"), ("nn", "conv"),
    ("nn", "gelu"), ("core", "cast"), ("math", "logsumexp"), ("linalg", "norm"),
)]  # fmt: skip


def module_of(package, name):
    return importlib.import_module(f"{package.__name__}.{name}")


def functions(name):
    """Return the public functions that a module of Keras's backend defines."""
    module = module_of(reference, name)
    return {
        attribute: getattr(value, "original", value)
        for attribute, value in vars(module).items()
        if not attribute.startswith("_")
        and inspect.isfunction(value)
        and value.__module__ == module.__name__
    }


# ---------------------------------------------------------------------------------------------
# Names
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", *MODULES])
def test_public_names_and_signatures(name):
    theirs, ours = (
        importlib.import_module(f"{package.__name__}.{name}".rstrip("."))
        for package in (reference, adapter)
    )
    compared = 0
    for attribute, value in vars(theirs).items():
        if attribute.startswith("_") or inspect.ismodule(value):
            continue
        own = getattr(ours, attribute)
        if inspect.isfunction(value):
            assert inspect.signature(own) == inspect.signature(value), attribute
            assert own.__name__ == value.__name__
            assert own.__doc__ == value.__doc__
        else:
            assert own is value, attribute
        compared += 1
    assert compared > 0


def test_all_modules_are_attributes_of_the_package():
    modules = {name for name, value in vars(reference).items() if inspect.ismodule(value)}
    assert modules <= set(dir(adapter))
    assert adapter.rnn is reference.rnn  # the function, as in Keras, and not the module


def table(name):
    missing = [one for names in MISSING.get(name, {}) for one in names.split()]
    return NATIVE.get(name, "").split(), missing


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_the_table_has_every_function_once(name):
    native, missing = table(name)
    assert sorted([*native, *missing]) == sorted(functions(name))
    assert " ".join(native) == " ".join(sorted(native))


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_a_function_without_a_stand_in_is_keras_own(name):
    _, missing = table(name)
    ours = module_of(adapter, name)
    for attribute, function in functions(name).items():
        own = getattr(ours, attribute) is function
        assert own == (attribute in missing), attribute


@pytest.mark.parametrize("name", NATIVE)
def test_every_native_function_has_a_call(name):
    assert {one for one, _ in calls(name)} == set(table(name)[0])


def test_the_page_has_the_table(capsys):
    assert keras_adapter.main(["--check"]) == 0, capsys.readouterr().out


def test_fastops_does_not_import_the_adapter():
    code = (
        "import sys, tensorflow; before = set(sys.modules); import fastops, fastops.backend\n"
        "new = {name for name in set(sys.modules) - before if name.partition('.')[0] == 'keras'}\n"
        "assert not new, new\n"
        "assert not [name for name in sys.modules if name.startswith('fastops.backend.keras')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# ---------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------


def world(kind="tensors"):
    """Return the inputs by name, as tensors, arrays or Keras variables, or with other dtypes."""
    values = inputs()
    if kind == "variables":
        values = {
            name: keras.Variable(value, dtype=value.dtype.name) for name, value in values.items()
        }
    elif kind != "arrays":
        if kind != "tensors":
            values = {
                name: np.nan_to_num(value * 4).astype(kind) if value.dtype == np.float32 else value
                for name, value in values.items()
            }
        values = {name: tf.constant(value) for name, value in values.items()}
    sparse = tf.SparseTensor([[0, 1], [2, 3]], np.array([1.5, 2.5], np.float32), (3, 4))
    return values | {"sparse": sparse}


@contextmanager
def seeded():
    """Yield a seed generator; the global seed generator has the same seed meanwhile."""
    attribute = "global_seed_generator"
    before = global_state.get_global_attribute(attribute)
    global_state.set_global_attribute(attribute, keras.random.SeedGenerator(5))
    try:
        yield keras.random.SeedGenerator(11)
    finally:
        global_state.set_global_attribute(attribute, before)


def as_it_is(run, given):
    return run(given)


def outcome(call, module, given, around=as_it_is):
    """Return the outcome of a call, and the states of the seed generators after it."""

    def run(given):
        return eval(call, {**given, "K": module, "generator": generator})

    with seeded() as generator, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            flat = tf.nest.flatten(around(run, given), expand_composites=True)
            result = Outcome([plain(value) for value in flat])
        except Exception as error:
            result = Outcome([], error)
        states = [generator, global_state.get_global_attribute("global_seed_generator")]
        result.results += [plain(generator.state.value) for generator in states]
    return result


def compare(some, given, around=as_it_is, times=3):
    """Compare calls with Keras's three times: unrecorded, recorded, and replayed."""
    different = []
    for call in some:
        expected = outcome(call, reference, given, around)
        for _ in range(times):
            if (why := differ(expected, outcome(call, adapter, given, around))) is not None:
                different.append(f"{call}: {why}")
    assert not different, "\n".join(different)


def all_calls(name):
    return [call for _, call in calls(name)]


def first_calls(name):
    return list(dict(reversed(list(calls(name)))).values())


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["tensors", "arrays", "variables"])
def test_eager_calls(name, kind):
    some = first_calls(name) if kind == "variables" else all_calls(name)
    compare(some, world(kind))


OF_DTYPES = [
    call
    for module, names in {
        "core": "cast convert_to_tensor stop_gradient",
        "numpy": "abs add argmax clip concatenate divide equal exp floor_divide logical_and matmul"
        " max maximum mean multiply power prod round sign sqrt stack std subtract sum take tanh"
        " transpose var where",
        "nn": "batch_normalization conv gelu max_pool one_hot relu sigmoid silu softmax",
        "math": "logsumexp rsqrt top_k",
    }.items()
    for name, call in calls(module)
    if name in names.split()
]


@pytest.mark.parametrize("kind", ["float64", "bfloat16", "int32", "uint8", "bool"])
def test_dtypes(kind):
    compare(OF_DTYPES, world(kind))


@pytest.mark.parametrize("kind", ["tensors", "arrays", "variables"])
def test_wrong_arguments(kind):
    given = world(kind)
    assert all(outcome(call, reference, given).error for call in lines(WRONG))
    compare(lines(WRONG), given)


@pytest.mark.parametrize("kind", ["tensors", "arrays"])
def test_tensors_without_elements(kind):
    given = world(kind)
    assert not any(outcome(call, reference, given).error for call in lines(EMPTY))
    compare(lines(EMPTY), given)


def in_function(run, given):
    """Trace a call, with its tensors as arguments of the traced function."""
    tensors = {name: value for name, value in given.items() if isinstance(value, tf.Tensor)}
    others = []

    @tf.function(autograph=False)
    def traced(tensors):
        flat = tf.nest.flatten(run({**given, **tensors}), expand_composites=True)
        others.extend(plain(value) for value in flat if not tf.is_tensor(value))
        return [value for value in flat if tf.is_tensor(value)]

    return [*traced(tensors), *others]


def test_calls_in_functions():
    compare([*SOME, *OF_DTYPES[::3]], world(), in_function, times=1)


def with_gradients(run, given):
    """Append to the results of a call the gradients of the sum of all results."""
    names = ("x", "y", "w", "p", "image", "kernel", "spd", "signal")
    watched = [given[name] for name in names]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        flat = tf.nest.flatten(run(given), expand_composites=True)
        total = [
            tf.reduce_sum(value)
            for value in flat
            if tf.is_tensor(value) and value.dtype.is_floating
        ]
    gradients = tape.gradient(total, watched) if total else []
    return [
        *flat,
        *(tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None),
    ]


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name):
    some = first_calls(name)
    compare(some[::3] if name == "numpy" else some[::2], world(), with_gradients)


def test_gradients_with_respect_to_variables():
    def around(run, given):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(run(given))
        held = [given[name].value for name in ("x", "y", "w", "kernel", "image")]
        gradients = tape.gradient(total, held)
        return [
            total,
            *(tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None),
        ]

    some = [*SOME, "K.numpy.take(x, rows, axis=0)", "K.numpy.concatenate([x, y])"]
    compare([call for call in some if "cast" not in call], world("variables"), around)


def test_symbolic_values():
    for call in SOME:
        given = {
            name: keras.KerasTensor(value.shape, value.dtype)
            if value.dtype == np.float32
            else value
            for name, value in inputs().items()
        }
        shapes = []
        for module in (reference, adapter):
            named = {name: value for name, value in given.items() if name in call}

            def run(K, call=call, module=module, **named):  # noqa: N803
                return eval(call, {**named, "K": module})

            result = reference.compute_output_spec(run, None, **named)
            shapes.append((result.shape, result.dtype))
        assert shapes[0] == shapes[1], call
        for module in (reference, adapter):
            with pytest.raises((ValueError, TypeError, AttributeError)):
                eval(call, {**given, "K": module})


# ---------------------------------------------------------------------------------------------
# Settings and scopes
# ---------------------------------------------------------------------------------------------


def test_settings_of_keras_are_read_in_every_call():
    x, labels = tf.constant([[0.2, 0.8]]), tf.constant([[0.0, 1.0]])
    settings = [
        (keras.config.set_floatx, keras.config.floatx(), "float64", "K.numpy.zeros((2,))"),
        (keras.config.set_epsilon, keras.config.epsilon(), 0.3, "K.nn.binary_crossentropy(t, x)"),
        (
            keras.config.set_image_data_format,
            keras.config.image_data_format(),
            "channels_first",
            "K.nn.average_pool(image, 1, 3)",
        ),
    ]
    image = tf.reshape(tf.range(48.0), (1, 4, 4, 3))
    for set_it, before, other, call in settings:
        try:
            for value in (before, other, before):
                # An equal object that is not identical.
                set_it("".join(value) if isinstance(value, str) else value)
                compare([call], {"x": x, "t": labels, "image": image})
                compiled = compile(call, call, "eval")
                names = {"K": adapter, "x": x, "t": labels, "image": image}
                for _ in range(3):
                    eval(compiled, names)
                with frames() as files:
                    eval(compiled, names)
                assert not [file for file in files if "/backend/tensorflow/" in file], call
        finally:
            set_it(before)


def test_scopes_that_give_variables_other_values():
    variable = keras.Variable(np.ones((2, 2), np.float32))
    for module in (reference, adapter):
        for _ in range(3):
            with keras.src.backend.AutocastScope("float16"):
                assert module.nn.relu(variable).dtype == tf.float16
            with keras.StatelessScope(state_mapping=[(variable, tf.zeros((2, 2)))]):
                assert module.numpy.sum(variable).numpy() == 0
                assert module.numpy.var(variable * 2 + 1).numpy() == 0
            assert module.numpy.sum(variable).numpy() == 4


def test_under_install():
    compare(SOME, world())
    try:
        fastops.install()
        compare(SOME, world())
        compare(SOME, world("variables"))
    finally:
        fastops.uninstall()
    compare(SOME, world())


# ---------------------------------------------------------------------------------------------
# Paths
# ---------------------------------------------------------------------------------------------


@contextmanager
def frames():
    """Yield a list to which the Keras files are appended whose Python code runs."""
    files = []

    def note(frame, event, argument):
        if event == "call" and "/keras/src/" in frame.f_code.co_filename:
            files.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["tensors", "arrays", "variables"])
def test_replays_run_kernels_and_no_python_of_keras(name, kind):
    given = world(kind)
    run = some = 0
    for _, call in calls(name):
        if "generator" in call or (name == "random" and "seed=" not in call):
            continue  # Keras draws the seed
        names = {**given, "K": adapter}
        code = compile(call, call, "eval")
        try:
            for _ in range(5):
                eval(code, names)
        except Exception:
            continue  # compared above
        fastops.reset_stats()
        with frames() as files:
            eval(code, names)
        counted = fastops.stats()
        some += 1
        if kind == "tensors":
            assert not files, call
            assert counted.tensorflow == counted.capi == 0, f"{call}: {counted}"
        run += counted.direct > 0
    least = {"core": 0.3, "image": 0.5, "numpy": 0.6, "random": 0.0}
    assert run >= least.get(name, 0.75) * some, run


# ---------------------------------------------------------------------------------------------
# Keras's own tests
# ---------------------------------------------------------------------------------------------


def test_keras_own_tests():
    """Run some of Keras's own tests; `python tests/backend/keras_own_tests.py` runs all."""
    wheel = Path(keras.__file__).parent / "src" / "ops" / "core_test.py"
    if not (root := os.environ.get("KERAS_CHECKOUT")) and not wheel.exists():
        pytest.skip("Keras's wheel contains no tests, and KERAS_CHECKOUT names no checkout")
    script = str(Path(__file__).with_name("keras_own_tests.py"))
    options = ["--only", "core_test.py", "-k", "not Correctness and not scan and not map"]
    options += ["--keras", root] if root else []
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, script, *options],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 4
