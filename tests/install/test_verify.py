"""`install(verify=...)` finds planted faults of each kind, and nothing else."""

import ctypes
import sys
import threading
import warnings
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import assert_same, python
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop
from tensorflow.python.framework.tensor import Tensor
from tensorflow.python.framework.tensor_shape import TensorShape
from tensorflow.python.ops import gen_math_ops, math_ops

import fastops
from fastops import _registry
from fastops._autodiff import rules
from fastops._install import intercept, placement, traced, variables
from fastops._install.answer import Answer
from fastops._install.models import learning
from fastops._install.replay.replayed import Replayed
from fastops._install.target import Target, generated
from fastops._install.verify.results import RESULTS, chosen
from fastops._plans import plan
from fastops._plans.planned import Planned
from fastops._shell.verification import parse
from fastops._specialize import trial

pytestmark = pytest.mark.usefixtures("fresh")

A = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    RESULTS.reset()
    yield
    fastops.uninstall()
    RESULTS.reset()


def install_faulty(monkeypatch, layer, holder, attribute, make, verify="raise"):
    """Install one faulty stand-in, and nothing else."""
    target = Target(layer, f"planted.{attribute}", holder, attribute, make)
    monkeypatch.setattr(placement, "targets", lambda: [target])
    fastops.install(verify=verify)


def error_of(function, *args):
    """Return the message of the exception that a call raises."""
    with pytest.raises(fastops.VerificationError) as caught:
        function(*args)
    assert str(caught.value) in fastops.verified().differences
    return str(caught.value)


def repeat(function, *args):
    """Call a function until its calls are recorded and replayed."""
    for _ in range(8):
        function(*args)


SUB = _registry.op("Sub")


# ---------------------------------------------------------------------------------------------
# Planted faults
# ---------------------------------------------------------------------------------------------


def test_an_operator_that_runs_another_op(monkeypatch):
    make = partial(intercept.Operator, ops={tf.float32: SUB})
    install_faulty(monkeypatch, "operators", Tensor, "__add__", make)
    text = error_of(lambda: tf.constant(A) + tf.constant(A))
    assert "planted.__add__ (operators)" in text
    assert "4 of 4 elements differ, the first at [0, 0]: 0.0 (0x00000000), not 2.0" in text
    assert "call: (<float32 (2, 2)>, <float32 (2, 2)>)" in text
    assert fastops.verified().compared == {"operators": 1}


def test_a_generated_function_that_runs_another_op(monkeypatch):
    install_faulty(
        monkeypatch, "functions", gen_math_ops, "add_v2", lambda own: intercept.Generated(own, SUB)
    )
    text = error_of(gen_math_ops.add_v2, tf.constant(A), tf.constant(A))
    assert "op: Sub" in text


def test_a_dispatch_call_that_runs_another_op(monkeypatch):
    make = partial(intercept.FastPathExecute, find=lambda name: SUB)
    install_faulty(monkeypatch, "dispatch", pywrap_tfe, "TFE_Py_FastPathExecute", make)
    assert "first at [0, 0]" in error_of(gen_math_ops.add_v2, tf.constant(A), tf.constant(A))


def test_a_helper_that_computes_something_else(monkeypatch):
    make = partial(Answer, name="TensorShape.rank")
    install_faulty(monkeypatch, "helpers", TensorShape, "num_elements", make)
    assert "int 2, not int 6" in error_of(tf.TensorShape([2, 3]).num_elements)


def test_a_method_that_answers_otherwise(monkeypatch):
    make = partial(traced.PlainMethod, answer=lambda original, shape: [2])
    install_faulty(monkeypatch, "traced", TensorShape, "as_list", make)
    assert "1 items, not 2" in error_of(tf.TensorShape([2, 3]).as_list)


def test_an_assignment_of_another_value(monkeypatch):
    """The variable has TensorFlow's value afterwards."""
    variable = tf.Variable(A)
    make = partial(variables.Assign, op_name="AssignSubVariableOp")
    holder = next(kind for kind in type(variable).__mro__ if "assign_add" in vars(kind))
    install_faulty(monkeypatch, "variables", holder, "assign_add", make)
    text = error_of(lambda: variable.assign_add(A, read_value=False))
    assert "variable of float32[2, 2]: 4 of 4 elements differ" in text
    assert_same(variable.numpy(), A + A)


class Changing:
    """The op that a function runs, which the test changes after the recording without a guard."""

    op = staticmethod(tf.raw_ops.Exp)


def changing(x):
    return Changing.op(x=x)


def test_a_recording_that_is_no_longer_valid(monkeypatch):
    target = Target(
        "replayed", "planted.changing", __import__(__name__), "changing",
        lambda original: Replayed(original, generated),
    )  # fmt: skip
    monkeypatch.setattr(placement, "targets", lambda: [target])
    x = tf.constant(A)
    fastops.install(verify=True)
    for _ in range(4):
        changing(x)
    assert fastops.verified().compared == {"replayed": 2}
    assert fastops.verified().left == {"replayed": 2}  # the first call, and the recorded one
    monkeypatch.setattr(Changing, "op", staticmethod(tf.raw_ops.Neg))
    text = error_of(changing, x)
    assert "planted.changing (replayed)" in text
    assert "1 signatures are replayed" in text


class Counting:
    """The number that a function adds. It grows in each call, which no guard sees."""

    count = 0


def counting(x):
    Counting.count += 1
    return tf.raw_ops.AddV2(x=x, y=tf.constant(float(Counting.count)))


def test_results_that_vary_in_tensorflow_itself_are_no_difference(monkeypatch):
    target = Target(
        "replayed",
        "planted.counting",
        __import__(__name__),
        "counting",
        lambda original: Replayed(original, generated),
    )
    monkeypatch.setattr(placement, "targets", lambda: [target])
    fastops.install(verify=True)
    repeat(counting, tf.constant(1.0))
    told = fastops.verified()
    assert told.skipped == {"TensorFlow itself gives something else each time": 6}
    assert not told.differences


def test_undefined_outputs_are_no_difference():
    fastops.install(verify=True)
    for _ in range(8):
        tf.linalg.svd(tf.constant(A), compute_uv=False)
    assert not fastops.verified().differences


@pytest.fixture
def altered(monkeypatch):
    """Return a function that alters recordings of Keras's methods; trials accept all of them."""

    def alter(change):
        own = learning.recording

        def recording(*args, **kwargs):
            recorded = own(*args, **kwargs)
            for step in recorded.steps:
                change(step)
            return recorded

        monkeypatch.setattr(learning, "recording", recording)
        for module in (learning, trial):
            monkeypatch.setattr(module, "alike", lambda one, other: True)

    return alter


def test_calls_without_keras(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
        monkeypatch.setitem(sys.modules, name, None)
    fastops.install(verify="raise")
    assert (tf.constant(A) + 1.0).numpy().tolist() == (A + 1.0).tolist()
    assert tf.reduce_sum(tf.constant(A)).numpy() == 10.0
    fastops.uninstall()
    assert sum(RESULTS.compared.values()) >= 2


def test_a_recording_of_another_op(altered):
    def change(step):
        if step.op_name == "Relu":
            step.op_name = "Elu"

    layer, x = keras.layers.ReLU(), tf.constant(-A)
    altered(change)
    fastops.install(verify="raise", only=["models"])
    text = error_of(repeat, layer, x)
    assert "layers.layer.Layer.__call__ (models)" in text
    assert "<ReLU>" in text
    assert "recording: scopes " in text
    assert "ops: Elu" in text
    assert "call" in text.partition("the globals of ")[2]


def test_a_recording_that_assigns_another_value(altered):
    def change(step):
        if step.op_name == "AddV2":
            step.op_name = "Sub"

    wanted, x = keras.metrics.Mean(), tf.constant(A)
    repeat(wanted.update_state, x)
    metric = keras.metrics.Mean()
    altered(change)
    fastops.install(verify="warn", only=["models"])
    with pytest.warns(fastops.VerificationWarning, match=r"variable of float32\[\]: 1 of 1"):
        repeat(metric.update_state, x)
    for one, other in zip(metric.variables, wanted.variables, strict=True):
        assert_same(one.numpy(), other.numpy())


def test_a_recording_that_a_tape_does_not_see(altered):
    def change(step):
        step.stopped = True

    layer, x = keras.layers.ReLU(), tf.constant(A)
    altered(change)
    fastops.install(verify="raise", only=["models"])

    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            layer(x)

    assert "recorded gradients[0]: NoneType None, not EagerTensor" in error_of(repeat, step)


def test_a_plan_of_another_graph(monkeypatch):
    own = plan.schedule

    def schedule(graph, *args):
        for node in graph.node:
            node.op = "Sub" if node.op == "AddV2" else node.op
        return own(graph, *args)

    monkeypatch.setattr(plan, "schedule", schedule)
    x = tf.constant(A)
    traced_function = tf.function(lambda x: x + 2.0)
    fastops.install(verify="raise", only=["traced"])
    text = error_of(repeat, traced_function, x)
    assert "tf.function.__call__ (traced)" in text
    assert "plan of " in text


def test_an_exception_with_another_text(monkeypatch):
    variable = tf.Variable(1.0)

    @tf.function
    def fails(x, n):
        variable.assign_add(1.0)
        return tf.reshape(x, [n])

    x = tf.constant(A)
    for _ in range(2):
        fails(x, tf.constant(4))
    monkeypatch.setattr(Planned, "failure", lambda *_: ValueError("planted"))
    fastops.install(verify="raise", only=["traced"])
    for _ in range(4):
        fails(x, tf.constant(4))
    text = error_of(fails, x, tf.constant(3))
    assert "exception: ValueError('planted'), not InvalidArgumentError" in text
    assert_same(variable.numpy(), np.float32(8.0))


@pytest.fixture
def swapped():
    """Swap the functions of the gradient rules of two ops, the first fields of their structs."""
    places = [ctypes.c_void_p.from_address(id(rules.RULES[name]) + 16) for name in ("Exp", "Neg")]
    values = [place.value for place in places]
    places[0].value, places[1].value = reversed(values)
    yield
    for place, value in zip(places, values, strict=True):
        place.value = value


def gradient_of(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


@pytest.mark.usefixtures("swapped")
def test_a_rule_of_another_op():
    fastops.install(verify="raise")
    text = error_of(gradient_of, tf.exp, tf.constant(A))
    assert "tf.GradientTape.gradient (gradients)" in text
    assert "The first rule: backprop._gradient_function" in text
    assert "'Exp'" in text
    assert 'exclude=["gradients"]' in text


@pytest.mark.usefixtures("swapped")
def test_in_warn_mode_the_program_gets_tensorflows_result():
    x = tf.constant(A)
    wanted = gradient_of(tf.exp, x)
    fastops.install(verify="warn")
    with pytest.warns(fastops.VerificationWarning, match="GradientTape.gradient"):
        gradient = gradient_of(tf.exp, x)
    assert_same(gradient, wanted)


def test_gradients_that_a_tape_does_not_need_are_not_compared():
    """TensorFlow's rule of a product computes both gradients, even if the tape needs only one."""

    def twice(x):
        return backprop.gradients_function(lambda a: a * (a * 2.0), [0])(x)[0]

    fastops.install(verify="raise")
    [gradient] = backprop.gradients_function(twice, [0])(tf.constant(A))
    assert_same(gradient, tf.fill(A.shape, 4.0))
    assert fastops.verified().compared["gradients"] > 0


def test_a_call_that_tensorflow_makes_in_another_function_is_not_compared():
    """Under a forward accumulator, TensorFlow converts arrays in the op's eager fallback."""
    x = tf.constant(1.0)

    @tf.custom_gradient
    def f(a):
        return math_ops.sin(a.numpy()), lambda by: by

    fastops.install(verify="raise")
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)):
        assert_same(f(x), tf.math.sin(x))
    assert fastops.verified().skipped["TensorFlow makes it in another function"] > 0


def test_keras_names_objects_after_a_call_that_was_verified():
    """Keras makes its table of names together with the first name."""
    layer = keras.layers.Dense(2)
    layer.build((None, 2))
    keras.utils.clear_session()
    fastops.install(verify="raise")
    layer(tf.constant(A))
    assert keras.layers.Dense(1).name == "dense"
    assert keras.layers.Dense(1).name == "dense_1"


# ---------------------------------------------------------------------------------------------
# Correct calls
# ---------------------------------------------------------------------------------------------


def mixed():
    """Make calls in all layers, some with effects; return the results."""
    keras.utils.set_random_seed(1)
    x, y = np.linspace(-1, 1, 60, dtype="float32").reshape(12, 5), np.ones((12, 2), "float32")
    model = keras.Sequential(
        [keras.layers.Dense(4, "relu"), keras.layers.Dropout(0.5), keras.layers.Dense(2)]
    )
    model.compile("adam", "mse", metrics=["mae"])
    history = model.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False).history
    variable = tf.Variable(A)
    for _ in range(4):
        variable.assign_add(tf.nn.softmax(variable) + 1.0)
        first, second = tf.Variable(variable)
    resized = [tf.image.resize(tf.ones([1, 4, 4, 3]), [2, 2]) for _ in range(4)]
    second_order = gradient_of(lambda a: gradient_of(tf.tanh, a), tf.constant(A))
    results = [
        history["loss"],
        history["mae"],
        variable.numpy(),
        first,
        second,
        resized,
        second_order,
    ]
    return [*results, *(variable.numpy() for variable in model.variables)]


def test_results_are_the_same_and_each_layer_is_compared():
    wanted = mixed()
    fastops.install(verify="raise")
    results = mixed()
    for one, other in zip(results, wanted, strict=True):
        assert_same(one, other)
    told = fastops.verified()
    assert not told.differences
    layers = {"functions", "gradients", "helpers", "keras", "operators", "public", "replayed"}
    assert layers | {"traced", "variables"} <= told.compared.keys()
    assert "VarHandleOp has a state or effects that cannot be copied" in told.skipped


def test_random_numbers_and_callbacks_are_called_once():
    fastops.install(verify="raise")
    calls = []
    tf.nest.map_structure(calls.append, [1, 2])
    assert calls == [1, 2]
    tf.cond(tf.constant(True), lambda: calls.append(3) or 1, lambda: 2)
    assert calls == [1, 2, 3]
    for _ in range(3):
        tf.random.normal([2])
    skipped = fastops.verified().skipped
    assert skipped["it draws random numbers, others in each call"] >= 3
    assert skipped["it calls functions of its caller"] >= 1


def test_initial_values_are_computed_once():
    def run():
        keras.utils.set_random_seed(1)
        variables = [tf.Variable(lambda: tf.random.normal([2])) for _ in range(6)]
        layers = [keras.layers.Dense(3) for _ in range(6)]
        for layer in layers:
            layer.build([1, 5])
        made = [*variables, *(layer.kernel for layer in layers)]
        return [*(variable.numpy() for variable in made), tf.random.normal([2])]

    wanted = run()
    fastops.install(verify="raise")
    assert_same(run(), wanted)
    assert not fastops.verified().differences
    assert fastops.verified().skipped["it calls functions of its caller"] >= 12


def test_a_function_is_traced_once_and_its_python_runs_once():
    traces = []

    @tf.function
    def function(x):
        traces.append(1)
        return x + 1.0

    fastops.install(verify="raise")
    for _ in range(4):
        function(tf.constant(A))
    assert traces == [1]
    assert fastops.verified().compared["traced"] >= 1


def test_a_function_advances_an_iterator_once():
    @tf.function
    def take(iterator):
        return next(iterator) * 2

    fastops.install(verify="raise")
    iterator = iter(tf.data.Dataset.range(6))
    assert [int(take(iterator)) for _ in range(6)] == [0, 2, 4, 6, 8, 10]
    with pytest.raises(tf.errors.OutOfRangeError):
        take(iterator)
    assert fastops.verified().compared["traced"] >= 3
    assert not fastops.verified().differences


def test_errors_are_tensorflows():
    fastops.install(verify="raise")
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant(A) + tf.ones([3])
    iterator = iter(tf.ones([1]))
    next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    assert not fastops.verified().differences


# ---------------------------------------------------------------------------------------------
# Modes and sampling
# ---------------------------------------------------------------------------------------------


def contents(stand_in):
    """Return the bytes of the struct of a stand-in, without its reference count."""
    return ctypes.string_at(id(stand_in), type(stand_in).__basicsize__)[8:]


def test_without_verification_stand_ins_are_restored():
    fastops.install()
    places = [vars(Tensor)["__add__"], vars(TensorShape)["as_list"], vars(keras.Layer)["__call__"]]
    fastops.uninstall()
    # Only of stand-ins that are made once per process.
    before = [contents(place) for place in places[2:]]
    fastops.install(verify="raise")
    assert [contents(place) for place in places[2:]] != before
    fastops.uninstall()
    fastops.install()
    assert vars(keras.Layer)["__call__"] is places[2]
    assert [contents(place) for place in places[2:]] == before
    compared = fastops.verified().compared
    tf.constant(A) + tf.constant(A)
    assert fastops.verified().compared == compared
    assert fastops.verified().mode is None


def test_without_verification_its_modules_are_not_imported():
    code = """
    import sys
    fastops.install()
    tf.constant(1.0) + 1.0
    print("fastops._install.verify.engine" in sys.modules)
    """
    assert python(code) == "False\n"


def test_a_forked_process_continues_without_verification():
    code = """
    import os
    x = tf.ones([2])
    fastops.install(verify="raise")
    (x + x).numpy()
    child = os.fork()
    if child == 0:
        x + x
        os._exit(fastops.verified().compared["operators"] + 10 * (fastops.verified().mode is None))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert python(code) == "11\n"


def test_verify_every_compares_one_call_in_n():
    fastops.install(verify="raise", verify_every=3, only=["tf.Tensor.__add__"])
    x = tf.constant(A)
    for _ in range(7):
        x + x
    told = fastops.verified()
    assert (told.mode, told.every, told.compared) == ("raise", 3, {"operators": 3})


def test_calls_in_all_threads_are_compared():
    total = tf.Variable(0.0)
    fastops.install(verify="raise")
    failures = []

    def work():
        try:
            own = tf.Variable(A)
            for _ in range(10):
                own.assign_add(tf.matmul(own, own) * 0.01)
                total.assign_add(1.0)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert_same(total.numpy(), np.float32(40.0))
    assert fastops.verified().compared["variables"] >= 80
    assert not fastops.verified().differences


def test_wrong_values_of_verify_are_rejected():
    assert chosen(None, None) == (None, 1)
    assert chosen(False, None) == (None, 1)
    assert chosen(True, 5) == ("raise", 5)
    assert chosen("warn", None) == ("warn", 1)
    with pytest.raises(ValueError, match='verify must be None, a bool, "raise" or "warn"'):
        fastops.install(verify="always")
    with pytest.raises(ValueError, match="verify_every must be a positive int, not 0"):
        fastops.install(verify=True, verify_every=0)
    assert not fastops.is_installed()
    with fastops.accelerated(verify=True):
        assert fastops.verified().mode == "raise"
    assert fastops.verified().mode is None
    fastops.install()
    with pytest.raises(RuntimeError, match="installed without verification"):
        fastops.install(verify=True)


def test_the_environment_enables_verification():
    code = """
    fastops.install()
    tf.constant(1.0) + 1.0
    told = fastops.verified()
    print(told.mode, told.every, told.compared["operators"])
    """
    assert python(code, forked=False, FASTOPS_VERIFY="warn:2") == "warn 2 1\n"
    python("", status=1, forked=False, FASTOPS_VERIFY="always")
    with pytest.raises(ValueError, match="FASTOPS_VERIFY must be 0, 1, raise or warn"):
        parse("raise:0")
    assert parse("0") == (None, 1)
    assert parse("warn:7") == ("warn", 7)


def test_the_report_as_text():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fastops.accelerated(verify="warn", only=["tf.Tensor.__add__"]):
            tf.constant(A) + 1.0
    text = str(fastops.verified())
    assert text.startswith("fastops verified 1 calls (operators 1): 0 differences; 0 calls could")


def test_results_of_every_kind_can_be_compared():
    """Results that cannot be compared part by part do not raise in the program."""
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 2])
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    slices = tf.IndexedSlices(tf.constant(A), tf.constant([0, 1]), dense_shape=(3, 2))
    fastops.install(verify="raise")
    for value in (sparse, ragged, slices, tf.constant(["a"]), float("nan"), None, {"a": (A, [1])}):
        for _ in range(3):
            flat = tf.nest.flatten(value)
            assert tf.nest.pack_sequence_as(value, flat) is not None or value is None
    for _ in range(3):
        tf.sparse.reduce_sum(sparse)
        tf.abs(ragged)
    assert not fastops.verified().differences
