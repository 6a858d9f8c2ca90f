"""`fastops.install`: what it replaces, the results, and that `uninstall` restores everything."""

import copy
import functools
import gc
import inspect
import operator
import pickle
import threading
import weakref
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from support import SNAPSHOT, TENSORFLOW, Failure, assert_same, difference, floats, python
from tensorflow.python import pywrap_tfe
from tensorflow.python.framework.tensor import Tensor
from tensorflow.python.ops import gen_array_ops, gen_math_ops

import fastops
from fastops._core.reasons import text_of
from fastops._install import calls, intercept, placement, replacement, targets, upstream
from fastops._install.replay import targets as replay
from fastops._install.replay.replayed import Replayed
from tools import replaced

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()


def test_functions_of_a_single_op_are_not_replayed():
    """Such a function calls its op without a recording."""
    generated, replayed = calls.functions(), replay.functions()
    assert not generated.keys() & replayed.keys()
    assert min(len(generated), len(replayed)) > 400


def held():
    """Return what each patch point of `install` holds, with the name of its target."""
    return [
        (target.name, vars(holder)[attribute])
        for target in targets.targets()
        for holder, attribute in zip(target.points()[::2], target.points()[1::2], strict=True)
    ]


def outcome(function, *args, **kwargs):
    """Return the result of a call, or the `Failure` if it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return Failure(type(error), str(error))


def assert_unchanged(function, *args, path="direct", **kwargs):
    """Compare calls under `install` with the call without, and check the path of the last."""
    (want,) = assert_each_unchanged([(function, args, kwargs)], path)
    return want


def assert_each_unchanged(calls, path="direct"):
    """Compare several calls under `install` with those without; all must take the path."""
    wants = [outcome(function, *args, **kwargs) for function, args, kwargs in calls]
    with fastops.accelerated():
        for (function, args, kwargs), want in zip(calls, wants, strict=True):
            for _ in range(2):
                fastops.reset_stats()
                got = outcome(function, *args, **kwargs)
                seen = fastops.stats()
                differing = difference(got, want)
                assert differing is None, f"{function} {args} {kwargs}: {differing}"
            taken = {"direct": seen.direct, "capi": seen.capi, "tensorflow": seen.tensorflow}
            if path is not None:
                taken = [name for name, count in taken.items() if count]
                assert taken == ([path] if path else []), (function, args, kwargs, seen)
    return wants


def assert_all_unchanged(calls):
    """Compare calls (tuples of a function and its arguments) with those without `install`."""
    wants = [outcome(*call) for call in calls]
    with fastops.accelerated():
        fastops.reset_stats()
        for _ in range(2):
            for call, want in zip(calls, wants, strict=True):
                differing = difference(outcome(*call), want)
                assert differing is None, f"{call}: {differing}"
        return fastops.stats()


# ---------------------------------------------------------------------------------------------
# In and out
# ---------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_the_original_objects_are_restored():
    before = held()
    assert len(before) > 5000
    fastops.install()
    replaced = held()
    assert fastops.is_installed()
    fastops.uninstall()
    after = held()
    assert not fastops.is_installed()
    assert [name for name, _ in before] == [name for name, _ in after]
    assert all(one is other for (_, one), (_, other) in zip(before, after, strict=True))
    # While `install` is active, `targets` finds only the lowest and the highest layer.
    assert {name for name, _ in replaced} < {name for name, _ in before}
    stand_ins = [value.fget if isinstance(value, property) else value for _, value in replaced]
    assert all(isinstance(value, replacement.Replacement) for value in stand_ins)


def test_install_and_uninstall_can_be_repeated():
    original = tf.math.tanh
    for _ in range(3):
        fastops.install()
        replacement = tf.math.tanh
        fastops.install()
        assert tf.math.tanh is replacement is not original
        fastops.uninstall()
        fastops.uninstall()
        assert tf.math.tanh is original


def test_layers_can_be_chosen():
    fastops.install(only=["operators"])
    assert isinstance(Tensor.__add__, intercept.Operator)
    assert not isinstance(gen_math_ops.add_v2, replacement.Replacement)
    fastops.uninstall()
    fastops.install(exclude=["dispatch", "tf.Tensor.__r*__", "gen_math_ops.cos?"])
    assert isinstance(Tensor.__add__, intercept.Operator)
    assert not isinstance(Tensor.__radd__, replacement.Replacement)
    assert isinstance(gen_math_ops.add_v2, intercept.Generated)
    assert not isinstance(tf.math.cosh, replacement.Replacement)
    assert not isinstance(pywrap_tfe.TFE_Py_FastPathExecute, replacement.Replacement)
    fastops.uninstall()
    for wrong in ("operators", [1]):
        with pytest.raises(TypeError, match="only must be a list of names"):
            fastops.install(only=wrong)
        with pytest.raises(TypeError, match="exclude must be a list of names"):
            fastops.install(exclude=wrong)
    assert not fastops.is_installed()


def test_attributes_that_others_have_set_stay():
    original = Tensor.__add__
    fastops.install()

    def theirs(self, other):
        return "theirs"

    Tensor.__add__ = theirs
    try:
        assert tf.constant(1.0) + 1.0 == "theirs"
        fastops.uninstall()
        assert Tensor.__add__ is theirs
    finally:
        Tensor.__add__ = original


@pytest.mark.quick
def test_accelerated_blocks_nest():
    with fastops.accelerated():
        with fastops.accelerated():
            assert fastops.is_installed()
        assert fastops.is_installed()
    assert not fastops.is_installed()
    fastops.install()
    with fastops.accelerated():
        assert fastops.is_installed()
    assert fastops.is_installed()
    fastops.uninstall()
    with pytest.raises(KeyError), fastops.accelerated():
        raise KeyError
    assert not fastops.is_installed()
    with fastops.accelerated():
        fastops.uninstall()
        assert not fastops.is_installed()
        with fastops.accelerated():
            assert fastops.is_installed()
        assert not fastops.is_installed()
    assert not fastops.is_installed()
    with fastops.accelerated():
        fastops.install()
    assert fastops.is_installed()


def faulty(monkeypatch, problem, **more):
    """Let the replacement of an operator raise, after three others."""
    fine = next(one for one in targets.GROUPS if one.title == "operators of tensors and variables")

    def make(original):
        raise problem

    def some(module):
        found = list(fine.find(module))
        wrong = next(one for one in found if one.name == "tf.Tensor.__mul__")
        yield from (one._replace(**more) for one in (*found[:3], wrong._replace(make=make)))
        yield from (one._replace(**more) for one in found[3:] if one is not wrong)

    groups = [fine._replace(find=some) if one is fine else one for one in targets.GROUPS]
    monkeypatch.setattr(targets, "GROUPS", groups)


def test_an_interrupt_during_install_restores_everything(monkeypatch):
    before = held()
    faulty(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fastops.install()
    assert not fastops.is_installed()
    monkeypatch.undo()
    assert all(one is other for (_, one), (_, other) in zip(before, held(), strict=True))


def test_a_patch_point_that_fails_is_left_out(monkeypatch):
    before = held()
    faulty(monkeypatch, ValueError("no"))
    fastops.install()
    assert not isinstance(Tensor.__mul__, replacement.Replacement)
    assert isinstance(Tensor.__add__, intercept.Operator)
    assert isinstance(Tensor.__sub__, intercept.Operator)
    why = text_of("install_error", "ValueError: no")
    assert upstream.left_out() == {("operators", "tf.Tensor.__mul__"): why}
    fastops.uninstall()
    monkeypatch.undo()
    assert all(one is other for (_, one), (_, other) in zip(before, held(), strict=True))


def test_a_patch_point_that_fails_is_left_out_with_its_unit(monkeypatch):
    faulty(monkeypatch, ValueError("no"), unit="operators")
    fastops.install()
    for name in ("__add__", "__mul__", "__sub__"):
        assert not isinstance(vars(Tensor)[name], replacement.Replacement)
    assert isinstance(tf.math.tanh, replacement.Replacement)


def test_a_call_with_another_context_falls_back():
    arguments = object(), "Neg", None, tf.constant([1.0])
    want = outcome(pywrap_tfe.TFE_Py_FastPathExecute, *arguments)
    assert isinstance(want, Failure)
    fastops.install()
    fastops.reset_stats()
    assert outcome(pywrap_tfe.TFE_Py_FastPathExecute, *arguments) == want
    assert fastops.stats().ops == {}


def test_references_that_outlive_an_uninstall():
    fastops.install()
    late, method = tf.math.tanh, Tensor.__add__
    fastops.uninstall()
    x = tf.constant([0.5])
    fastops.reset_stats()
    assert_same(late(x), tf.math.tanh(x))
    assert_same(method(x, x), x + x)
    assert fastops.stats().ops == {}


def test_references_from_before_install():
    """References from before are accelerated by the layers below."""
    early = gen_math_ops.tanh
    x = tf.constant([0.5])
    want = early(x)
    fastops.install()
    for _ in range(2):
        fastops.reset_stats()
        assert_same(early(x), want)
    assert fastops.stats().ops["Tanh"].direct == 1


def test_threads_that_install_while_others_compute():
    x = tf.constant([1.0, 2.0])
    want = (x + x * 2.0).numpy().tolist()
    stop, wrong = threading.Event(), []

    def compute():
        while not stop.is_set():
            got = (x + x * 2.0).numpy().tolist()
            if got != want:
                wrong.append(got)

    def install():
        for _ in range(20):
            with fastops.accelerated():
                (x + 1.0).numpy()

    computing = [threading.Thread(target=compute) for _ in range(3)]
    installing = [threading.Thread(target=install) for _ in range(3)]
    for thread in computing + installing:
        thread.start()
    for thread in installing:
        thread.join()
    stop.set()
    for thread in computing:
        thread.join()
    assert not wrong
    assert not fastops.is_installed()


def test_the_environment():
    """A new interpreter is needed: the variable is read when fastops is imported."""
    program = "print(fastops.is_installed())"
    assert python(program, forked=False, FASTOPS_INSTALL="1") == "True\n"
    assert python(program, forked=False, FASTOPS_INSTALL="0") == "False\n"
    error = python("", status=1, forked=False, FASTOPS_INSTALL="yes")
    assert error == ""


# ---------------------------------------------------------------------------------------------
# Stand-ins look like the originals
# ---------------------------------------------------------------------------------------------


def test_stand_ins_look_like_functions():
    original, method = gen_math_ops.cosh, Tensor.__add__
    facts = [
        (
            f.__name__,
            f.__qualname__,
            f.__module__,
            f.__doc__,
            inspect.signature(f),
            repr(f),
            hash(f),
        )
        for f in (original, method)
    ]
    source = inspect.getsource(original)
    fastops.install()
    for before, f in zip(facts, (tf.math.cosh, Tensor.__add__), strict=True):
        assert isinstance(f, replacement.Replacement)
        assert before == (
            f.__name__, f.__qualname__, f.__module__, f.__doc__, inspect.signature(f), repr(f),
            hash(f),
        )  # fmt: skip
        assert callable(f)
    assert tf.math.cosh == original
    assert {original: 1}[tf.math.cosh] == 1
    assert inspect.getsource(tf.math.cosh) == source
    assert inspect.isfunction(tf.math.cosh)
    assert tf.math.cosh.__class__ is type(original)
    assert inspect.unwrap(tf.math.cosh) is inspect.unwrap(original)
    assert tf.math.cosh.__code__ is original.__code__
    assert pickle.loads(pickle.dumps(tf.math.cosh)) is tf.math.cosh
    assert copy.deepcopy(tf.math.cosh) is tf.math.cosh
    assert weakref.ref(tf.math.cosh)() is tf.math.cosh
    assert functools.wraps(tf.math.cosh)(lambda x: x).__name__ == "cosh"

    class Layer:
        activation = tf.math.cosh
        scaled = functools.partialmethod(tf.math.multiply, y=2.0)

        def __init__(self, x):
            self.x = x

    assert isinstance(Layer.activation, replacement.Replacement)
    assert inspect.ismethod(Layer(1).activation)


def test_mocks_of_methods_are_given_the_object():
    seen = []
    variable = tf.Variable([1.0, 2.0])
    for _ in range(2):
        with mock.patch.object(type(variable), "assign", autospec=True) as assign:
            assign.side_effect = lambda self, value: seen.append((self is variable, value))
            variable.assign([3.0, 4.0])
        with mock.patch.object(tf.math, "tanh", autospec=True) as tanh:
            tanh.side_effect = lambda x, name=None: seen.append(x)
            tf.math.tanh(5.0)
            with pytest.raises(TypeError, match="too many positional arguments"):
                tf.math.tanh(5.0, "name", 7)
        fastops.install()
    assert seen == [(True, [3.0, 4.0]), 5.0] * 2


def test_every_stand_in_runs_the_op_of_its_original():
    fastops.install(only=["functions"])
    checked = 0
    for original, one in zip(placement._placed[2::5], placement._placed[3::5], strict=True):
        code = getattr(inspect.unwrap(original), "__code__", None)
        assert one.op.op_name in code.co_consts, original
        checked += 1
    assert checked > 5000


def test_dispatch_handlers_of_users():
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor

    class Hidden(tf.experimental.ExtensionType):
        values: tf.Tensor

    fastops.install()

    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def unary(api, x):
        return Masked(api(x.values))

    @tf.experimental.dispatch_for_api(tf.math.tanh, {"x": Hidden})
    def tanh(x, name=None):
        return "hidden"

    x, y = Masked(tf.constant([1.0])), Hidden(tf.constant([1.0]))
    for _ in range(2):
        assert tf.math.tanh(y) == "hidden"
        for function in (tf.math.sin, tf.math.tanh):
            assert_same(function(x).values, function(x.values))
        fastops.uninstall()
    tf.experimental.unregister_dispatch_for(tanh)
    tf.experimental.unregister_dispatch_for(unary)


def test_composite_and_symbolic_tensors():
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    sparse = tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])
    for function, args in (
        (tf.math.tanh, (ragged,)),
        (operator.add, (ragged, ragged)),
        (operator.mul, (sparse, 2.0)),
        (operator.mul, (tf.ones([2, 2]), sparse)),
    ):
        want = function(*args)
        with fastops.accelerated():
            got = function(*args)
        assert type(got) is type(want)
        flat = [tf.nest.flatten(result, expand_composites=True) for result in (got, want)]
        assert_same(*flat)
    with fastops.accelerated():
        inputs = tf.keras.Input([3])
        model = tf.keras.Model(inputs, tf.keras.layers.Dense(2, activation="tanh")(inputs) * 2.0)
    assert model(tf.ones([1, 3])).shape == (1, 2)


def test_functions_are_traced_as_without_install():
    def program(x, y):
        with tf.name_scope("scope"):
            z = tf.math.tanh(x + y) * 2.0 - (-x)
        return tf.raw_ops.AddV2(x=z, y=x, name="last"), x == y, x[0] < 1.0

    def graph():
        spec = tf.TensorSpec([3], tf.float32)
        return tf.function(program).get_concrete_function(spec, spec).graph.as_graph_def()

    want = graph()
    with fastops.accelerated():
        assert graph() == want
        x = tf.constant([1.0, 2.0, 3.0])
        compiled = tf.function(program)(x, x)
    assert_same(compiled, program(x, x))


# ---------------------------------------------------------------------------------------------
# The same results
# ---------------------------------------------------------------------------------------------

BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lt", "le",
    "gt", "ge", "eq", "ne", "matmul",
)  # fmt: skip
ARITHMETIC = [name for name in BINARY if name not in ("and_", "or_", "xor", "matmul")]
DTYPES = (
    "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "complex64", "complex128", "bool", "string",
)  # fmt: skip


def operand(dtype, seed):
    array = floats(2, 3, dtype=tf.as_dtype(dtype).as_numpy_dtype, seed=seed)
    if array.dtype.kind in "iu":
        array = np.where(array == 0, array.dtype.type(3), array)
    return tf.constant(array, dtype)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name):
    function = getattr(operator, name)
    calls = []
    for dtype in DTYPES:
        x, y = operand(dtype, 1), operand(dtype, 2)
        for other in (y, y[0], y[:, :1], y[:0, :1], tf.constant([[1, 2]]), tf.zeros([5, 5, 5])):
            calls.append((function, x, other))
    assert assert_all_unchanged(calls).direct >= (0 if name == "matmul" else 30)


NUMBERS = (
    0, 1, -3, 300, 2**31, 2**40, 0.0, -0.0, 0.1, 2.5, 1e30, 1e300, float("nan"),
    float("inf"), True, False, 1j, None, "text", b"text", [1, 2, 3], [[1.0]], (1, 2), {}, object(),
    np.float32(2), np.float64(0.1), np.int8(3), np.int64(4), np.bool_(True), np.float16(1.5),
    np.ones(3), np.ones(3, np.float32), np.ones([2, 3], np.int32), np.array("text"),
)  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_operators_with_numbers(name):
    function = getattr(operator, name)
    # TensorFlow's message for a number that does not fit into uint64 varies at random.
    operands = [operand(dtype, 1) for dtype in DTYPES if dtype != "uint64"]
    assert_all_unchanged(
        [(function, x, number) for x in operands for number in NUMBERS]
        + [(function, number, x) for x in operands for number in NUMBERS]
    )


@pytest.mark.parametrize("name", ["neg", "abs", "invert", "pos", "not_"])
def test_unary_operators(name):
    assert_all_unchanged([(getattr(operator, name), operand(dtype, 1)) for dtype in DTYPES])


def test_operators_run_directly():
    x = tf.constant([1.0, 2.0])
    pairs = ((x, x), (x, 2.0), (x, 3), (2.0, x))
    calls = [(getattr(operator, name), pair, {}) for name in ARITHMETIC for pair in pairs]
    calls += [(getattr(operator, name), (x,), {}) for name in ("neg", "abs")]
    b, n = tf.constant([True, False]), tf.constant([5, 6])
    pairs = ((b, b), (b, True), (False, b), (tf.Variable(b), True), (True, tf.Variable(b)))
    calls += [(getattr(operator, name), pair, {}) for name in ("and_", "or_") for pair in pairs]
    pairs = ((n, n), (n, 3), (3, n))
    calls += [
        (getattr(operator, name), pair, {}) for name in ("and_", "or_", "xor") for pair in pairs
    ]
    assert_each_unchanged(calls)


def test_special_values_of_operators():
    values = [0.0, -0.0, 1e-40, -1e-40, np.nan, np.inf, -np.inf, 3.4e38, 1.0]
    x = tf.constant(values)
    calls = []
    for name in ARITHMETIC:
        calls.append((getattr(operator, name), x[:, None], x[None]))
        for number in values:
            calls += [(getattr(operator, name), x, number), (getattr(operator, name), number, x)]
    assert assert_all_unchanged(calls).direct >= len(calls)


@pytest.mark.parametrize("mode", ["legacy", "all", "safe"])
def test_promotion_of_dtypes_is_tensorflows(mode):
    """Operators, public functions, and generated functions promote dtypes as TensorFlow does."""
    out = python(f"""
        import itertools
        import operator
        import numpy as np
        from tensorflow.python.ops import gen_math_ops, math_ops
        tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode={mode!r})
        binary = [
            operator.add, operator.mul, operator.sub, operator.floordiv, operator.mod, operator.pow,
            tf.add, tf.subtract, tf.multiply, tf.maximum, tf.math.floormod, tf.math.floordiv,
            tf.truncatediv, tf.equal, gen_math_ops.sub, gen_math_ops.real_div, math_ops.realdiv,
            gen_math_ops.floor_div, gen_math_ops.truncate_mod, gen_math_ops.minimum,
        ]
        unary = [tf.negative, tf.square, tf.sin, gen_math_ops.neg, gen_math_ops.tanh, tf.abs]
        values = [
            tf.constant([4], tf.uint8), tf.constant([3], tf.uint16), tf.constant([2.0]),
            tf.Variable([2], dtype=tf.int32), np.array([3], np.uint16), np.float64(1.5),
            2, 2.5, [2],
        ]

        def result(function, *args):
            try:
                got = function(*args)
            except Exception as error:
                return repr(error)
            return type(got), getattr(got, "dtype", None), np.asarray(got).tolist()

        def results():
            pairs = itertools.product(binary, values, values)
            return [result(*one) for one in (*pairs, *itertools.product(unary, values))]

        want = results()
        fastops.install()
        for _ in range(2):
            assert results() == want
        print("fine")
    """)
    assert out == "fine\n"


def test_comparison_by_identity():
    x, y = tf.constant([1.0]), tf.constant([1.0])
    tf.compat.v1.disable_tensor_equality()
    try:
        with fastops.accelerated():
            assert (x == y) is False
            assert (x == x) is True
    finally:
        tf.compat.v1.enable_tensor_equality()


@pytest.mark.quick
def test_generated_functions():
    x, y = tf.constant([[1.0, 2.0]]), tf.constant([[3.0], [4.0]])
    assert_unchanged(gen_math_ops.mat_mul, x, y)
    assert_unchanged(lambda: gen_math_ops.mat_mul(x, x, False, True))
    assert_unchanged(lambda: gen_math_ops.mat_mul(a=x, b=x, transpose_b=True, name="product"))
    assert_unchanged(lambda: gen_math_ops.mat_mul(x, b=y))
    assert_unchanged(lambda: tf.raw_ops.MatMul(a=x, b=y))
    assert_unchanged(lambda: gen_array_ops.unpack(x, 2, axis=1))
    for wrong in (
        lambda: gen_math_ops.mat_mul(x),
        lambda: gen_math_ops.mat_mul(x, y, a=x),
        lambda: gen_math_ops.mat_mul(x, y, False, False, False, False, "name", 1),
        lambda: gen_math_ops.mat_mul(x, y, wrong=1),
        lambda: gen_math_ops.mat_mul(x, x),
        lambda: gen_math_ops.mat_mul(x, tf.constant([[1]])),
        lambda: gen_math_ops.mat_mul(x, "text"),
        lambda: tf.raw_ops.MatMul(x, y),
    ):
        want = outcome(wrong)
        assert isinstance(want, Failure)
        assert_unchanged(wrong, path=None)


def test_public_functions():
    """Functions that TensorFlow writes in Python are accelerated by the functions they call."""
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    programs = (
        lambda: tf.matmul(x, x, transpose_b=True),
        lambda: tf.reshape(x, [6]),
        lambda: tf.reduce_sum(x, axis=1),
        lambda: tf.transpose(x),
        lambda: tf.concat([x, x], 0),
        lambda: tf.where(x > 2.0, x, 0.0),
        lambda: tf.one_hot([0, 2], 3),
        lambda: tf.cast(x, tf.int32),
        lambda: tf.nn.softmax(x),
        lambda: tf.clip_by_value(x, 2.0, 3.0),
        lambda: x[1, ::-1],
    )
    assert assert_all_unchanged([(program,) for program in programs]).direct >= len(programs)


@pytest.mark.quick
def test_gradients():
    v = tf.Variable([[0.5, -1.0], [2.0, 3.0]])
    x = tf.constant([[1.0, 2.0]])

    def step():
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.tanh(x @ v) * 2.0 / (1.0 + tf.exp(-x)) ** 2.0)
            first = tape.gradient(y, v)
        return y, first, outer.gradient(first, v), outer.jacobian(y, v)

    assert_unchanged(step, path=None)
    with fastops.accelerated():
        fastops.reset_stats()
        step()
        seen = fastops.stats()
    assert seen.direct > 10 * (seen.capi + 1)


@pytest.mark.quick
def test_a_model_is_trained_to_the_same_weights():
    def train():
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential(
            [tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(3)]
        )
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      run_eagerly=True)  # fmt: skip
        x = floats(32, 5)
        model.fit(x, np.arange(32) % 3, batch_size=8, epochs=2, verbose=0, shuffle=False)
        return [tf.constant(weight) for weight in model.get_weights()]

    want = train()
    with fastops.accelerated():
        fastops.reset_stats()
        got = train()
        assert fastops.stats().direct > 500
    assert_same(got, want)


def test_nothing_is_kept_alive():
    fastops.install()
    x = tf.constant([1.0, 2.0])
    for _ in range(2):
        y = tf.math.tanh(x + x)
    dead = weakref.ref(y)
    del y
    gc.collect()
    assert dead() is None


@pytest.mark.skipif(TENSORFLOW > SNAPSHOT, reason="the table is of an earlier TensorFlow")
def test_the_table_in_the_docs_is_true():
    assert replaced.FILE.read_text() == replaced.render(), "run `make gen`"


def test_the_layer_of_replayed_functions():
    with fastops.accelerated(only=["tf.roll"]):
        assert isinstance(tf.roll, Replayed)
        assert not isinstance(tf.norm, Replayed)
    with fastops.accelerated(exclude=["replayed"]):
        assert not isinstance(tf.roll, Replayed)
