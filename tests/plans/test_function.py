"""`fastops.function` gives the same as `tf.function`, bit for bit, by the expected executor."""

import gc
import json
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from calls import make
from support import Failure, assert_same, difference, floats, optimizer_options
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import polymorphic_function

import fastops
from fastops._core.reasons import text_of
from fastops._plans import planned as _planned
from fastops._plans.function import Function


def outcome(function, args):
    """Return the flat results of a call, or all properties of its exception."""
    try:
        result = function(*args)
        return [str(tf.nest.map_structure(type, result)), *tf.nest.flatten(result)]
    except Exception as error:
        told = [getattr(error, name, None) for name in ("message", "node_def", "op", "error_code")]
        return [Failure(type(error), str(error)), *map(str, told)]


def compare(function, *args, executor="plan", calls=4, state=()):
    """Assert that a function gives the same as `tf.function`, and which executor runs it."""
    traced = tf.function(function)
    before = [tf.identity(variable) for variable in state]
    wants = [outcome(traced, args) for _ in range(calls)]
    ends = [tf.identity(variable) for variable in state]
    for variable, value in zip(state, before, strict=True):
        variable.assign(value)
    fast = fastops.function(traced)
    for want in wants:
        assert difference(outcome(fast, args), want) is None
    assert_same([tf.identity(variable) for variable in state], ends)
    (described,) = fast.describe()
    assert described["executor"] == executor, described
    return fast


# ---------------------------------------------------------------------------------------------
# A catalogue of functions
# ---------------------------------------------------------------------------------------------

S, X, Y, M, N = (
    make("float32"),
    make("float32", 3),
    make("float32", 3, seed=1),
    make("float32", 4, 3),
    make("float32", 3, 5),
)
AT, B, T = tf.constant(2), tf.constant([True, False, True]), tf.constant([b"one", b"two"])
W = [tf.Variable(floats(*shape) / 4) for shape in ((3, 8), (8,), (8, 2), (2,))]


def perceptron(x):
    return tf.nn.relu(x @ W[0] + W[1]) @ W[2] + W[3]


def counted(x):
    return tf.while_loop(
        lambda i, y: i < 10, lambda i, y: (i + 1, tf.tanh(y * 1.5) - 0.2 * y), [0, x]
    )


def fibonacci(n):
    a, b = tf.constant(0), tf.constant(1)
    while n > 0:
        a, b = b, a + b
        n -= 1
    return a


def broken_off(x):
    total = tf.zeros([])
    for i in tf.range(10):
        if total > 3.0:
            break
        if i % 2 == 0:
            continue
        total += tf.reduce_sum(tf.abs(x)) * tf.cast(i, tf.float32)
    return total


def nested(x):
    def outer(i, y):
        _, z = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * 1.1), [0, y])
        return i + 1, tf.cond(z > 2.0, lambda: z - 1.0, lambda: z + 0.5)

    return tf.while_loop(lambda i, y: i < 7, outer, [0, x])


def written(x):
    array = tf.TensorArray(tf.float32, size=5)
    for i in tf.range(5):
        array = array.write(i, x * tf.cast(i, tf.float32))
    return array.stack(), array.gather([0, 3])


def recursive_branches(x):
    return tf.cond(
        x < 0.0,
        lambda: tf.cond(x < -1.0, lambda: x * 3.0, lambda: 5.0),
        lambda: tf.cond(x > 1.0, lambda: tf.constant(7.0), lambda: x + x),
    )


def asserted(x):
    tf.debugging.assert_positive(tf.abs(x) + 1.0)
    return x * 2.0


CATALOGUE = {
    "two ops": (lambda x: tf.tanh(x) * 2.0, X),
    "constants alone": (lambda: (tf.constant(2.0) + 1.0, tf.zeros([3])),),
    "an unchanged argument": (lambda x: x, X),
    "an unused argument": (lambda x, y: x + 1.0, X, Y),
    "one argument twice": (lambda x, y: x * x + y * y, X, X),
    "results in a dict": (lambda x: {"b": x + 1.0, "a": [x, (x * 2.0,)]}, X),
    "a tuple": (lambda x: (x + 1.0, x - 1.0), X),
    "a list": (lambda x: [x + 1.0, x - 1.0], X),
    "None": (lambda x: None, X),
    "no argument": (lambda: tf.range(5) * 2,),
    "numbers and strings": (lambda x, k, name: tf.multiply(x, k, name=name), X, 2.0, "n"),
    "None as an argument": (lambda x, y=None: x if y is None else y, X, None),
    "perceptron": (perceptron, M),
    "one row": (perceptron, M[:1]),
    "softmax": (lambda x: tf.nn.softmax(x), M),
    "cross entropy": (
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(4) % 3, x),
        M,
    ),
    "layer norm": (
        lambda x: (
            (x - tf.reduce_mean(x, -1, True))
            * tf.math.rsqrt(tf.math.reduce_variance(x, -1, True) + 1e-3)
        ),
        M,
    ),
    "attention": (lambda x: tf.nn.softmax(x @ tf.transpose(x)) @ x, M),
    "matrices": (lambda a, b: tf.linalg.matmul(a, b) + 1.0, M, N),
    "batched matrices": (lambda a: a @ tf.linalg.matrix_transpose(a), make("float32", 2, 4, 3)),
    "inverse": (lambda a: tf.linalg.inv(a @ tf.transpose(a) + tf.eye(3)), make("float32", 3, 3)),
    "convolution": (
        lambda x, k: tf.nn.relu(tf.nn.conv2d(x, k, 1, "SAME")),
        make("float32", 1, 5, 5, 2),
        make("float32", 3, 3, 2, 4),
    ),
    "pooling": (lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), make("float32", 1, 4, 4, 2)),
    "batch norm": (
        lambda x: tf.nn.batch_normalization(x, 0.5, 2.0, 0.1, 1.5, 1e-3),
        M,
    ),
    "indexing": (lambda x: (x[0], x[1:, ::2], x[..., tf.newaxis]), M),
    "gather": (lambda x, i: tf.gather(x, i), M, AT),
    "where": (lambda c, x, y: tf.where(c, x, y), B, X, Y),
    "unique": (lambda x: tf.unique(x), tf.constant([1, 2, 1, 3])),
    "boolean mask": (lambda x, c: tf.boolean_mask(x, c), X, B),
    "sort": (lambda x: (tf.sort(x), tf.argsort(x)), X),
    "einsum": (lambda a, b: tf.einsum("ij,jk->ki", a, b), M, N),
    "strings": (lambda s: tf.strings.upper(tf.strings.join([s, "x"])), T),
    "numbers from strings": (lambda s: tf.strings.to_number(s), tf.constant(["1.5", "2"])),
    "ints": (lambda i: (i // 2, i % 3, tf.bitwise.invert(i)), tf.constant([5, -7])),
    "complex": (lambda x: tf.signal.fft(tf.cast(x, tf.complex64)), X),
    "half": (lambda x: tf.cast(x, tf.float16) * 2.0, X),
    "bfloat16": (lambda x: tf.cast(tf.cast(x, tf.bfloat16) + 1.0, tf.float32), X),
    "float64": (lambda x: tf.exp(x), make("float64", 3)),
    "empty": (lambda x: tf.reduce_sum(x), make("float32", 0, 3)),
    "NaN and denormals": (lambda x: x * 0.5, tf.constant([float("nan"), 1e-40, -0.0])),
    "cond": (lambda x: tf.cond(x > 0.0, lambda: x * 2.0, lambda: x - 1.0), S),
    "the other side": (lambda x: tf.cond(x > 9.0, lambda: x * 2.0, lambda: x - 1.0), S),
    "constant branches": (lambda x: tf.cond(x > 0.0, lambda: 1.0, lambda: 2.0), S),
    "branches in branches": (recursive_branches, S),
    **{
        f"switch_case {i}": (
            lambda i, x: tf.switch_case(i, [lambda: 1.0, lambda: x * 2.0, lambda: x - 1.0]),
            tf.constant(i),
            S,
        )
        for i in (0, 1, 2, 3, -1)
    },
    "a switch with one branch": (lambda i, x: tf.switch_case(i, [lambda: x * 2.0]), AT, S),
    "case": (
        lambda x: tf.case([(x > 2.0, lambda: x), (x > 0.0, lambda: -x)], default=lambda: x * 0.0),
        S,
    ),
    "switches in loops": (
        lambda x: tf.while_loop(
            lambda i, y: i < 6,
            lambda i, y: (
                i + 1,
                tf.switch_case(i % 4, [lambda: y * 2.0, lambda: y - 1.0, lambda: tf.tanh(y)]),
            ),
            [0, x],
        ),
        S,
    ),
    "while": (counted, X),
    "a loop that never runs": (
        lambda x: tf.while_loop(lambda y: False, lambda y: (y * 2.0,), [x]),
        X,
    ),
    "values that swap": (
        lambda x, y: tf.while_loop(lambda i, p, q: i < 5, lambda i, p, q: (i + 1, q, p), [0, x, y]),
        X,
        Y,
    ),
    "fibonacci": (fibonacci, tf.constant(20)),
    "break and continue": (broken_off, X),
    "loops in loops": (nested, S),
    "tensor array": (written, X),
    "map_fn": (lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * 2.0, x), M),
    "scan": (lambda x: tf.scan(lambda a, b: a + b, x), M),
    "gradient": (lambda x: tf.gradients(tf.reduce_sum(tf.tanh(x) ** 2), [x])[0], X),
    "assert": (asserted, X),
    "stateless random": (lambda s: tf.random.stateless_normal([3], s), tf.constant([1, 2])),
    "dropout": (lambda x: tf.nn.experimental.stateless_dropout(x, 0.5, [1, 2]), M),
    "clip": (lambda x: tf.clip_by_norm(x, 1.0), X),
    "cumsum": (lambda x: tf.cumsum(x, axis=1, reverse=True), M),
    "top k": (lambda x: tf.math.top_k(x, 2), M),
    "one hot": (lambda i: tf.one_hot([0, 2], i), AT),
    "reshape to a computed shape": (lambda x: tf.reshape(x, [tf.shape(x)[1], -1]), M),
    "segments": (lambda x: tf.math.segment_sum(x, [0, 0, 1, 2]), M),
    "scatter": (lambda x: tf.tensor_scatter_nd_add(x, [[0], [2]], [1.0, 2.0]), X),
    "ragged inside": (lambda x: tf.RaggedTensor.from_row_lengths(x, [1, 2]).to_tensor(), X),
    "image": (lambda x: tf.image.resize(x, [4, 4]), make("float32", 1, 2, 2, 3)),
    "checked numbers": (lambda x: tf.debugging.check_numerics(x, "message") * 2.0, X),
    "a check without dependents": (
        lambda x: (tf.debugging.Assert(x[0] < 9.0, [x]), x + 1)[1],
        X,
    ),
    "Python": (lambda x: tf.py_function(lambda y: y * 2.0, [x], tf.float32), X),
    "what is guaranteed": (lambda x: tf.guarantee_const(x) + tf.raw_ops.DeepCopy(x=x), X),
}


@pytest.mark.parametrize("name", CATALOGUE)
def test_functions_that_run_as_plans(name):
    function, *args = CATALOGUE[name]
    compare(function, *args)


LEFT = {
    "random numbers with a seed": (lambda: tf.random.uniform([2], seed=3) * 0.0,),
    "a pool with a seed": (
        lambda x: tf.nn.fractional_max_pool(x, 1.4, seed=3)[0],
        make("float32", 1, 9, 9, 1),
    ),
    "a pool that repeats itself": (
        lambda x: (
            0
            * tf.raw_ops.FractionalAvgPool(
                value=x, pooling_ratio=[1.0, 1.4, 1.4, 1.0], deterministic=True
            )[0]
        ),
        make("float32", 1, 9, 9, 1),
    ),
    "candidates that were learned": (
        lambda c: 0 * tf.random.learned_unigram_candidate_sampler(c, 1, 4, True, 9)[0],
        tf.constant([[1], [2]], tf.int64),
    ),
    "a dataset": (
        lambda: tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda a, b: a + b),
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_functions_that_tensorflow_runs(name):
    function, *args = LEFT[name]
    fast = compare(function, *args, executor="tensorflow")
    assert fast.describe()[0]["reason"]
    with pytest.raises(RuntimeError, match="cannot be planned"):
        fastops.function(function, executor="plan")(*args)


def not_inlined(function):
    """Return a traced function whose calls in other graphs are not inlined."""
    return tf.function(function, autograph=False, experimental_attributes={"_noinline": True})


COUNT = tf.Variable(0.0)


@not_inlined
def scaled(x, y):
    return tf.tanh(x) * y


@not_inlined
def counting(x):
    COUNT.assign_add(tf.reduce_sum(x))
    return COUNT.read_value() * x


@not_inlined
def twice_deep(x):
    return scaled(x, 2.0) + tf.cond(tf.reduce_sum(x) > 0.0, lambda: scaled(x, x), lambda: x)


@not_inlined
def halves(x):
    return tf.nn.dropout(x, 0.5, seed=1) * 0.0


@not_inlined
def from_python(x):
    return tf.py_function(lambda y: y * 2.0, [x], tf.float32)


def after_a_draw():
    """Return a scope in which no function can be planned: a random op with a seed runs first."""
    return tf.control_dependencies([tf.random.uniform([], seed=1)])


def concrete(function, *specs):
    return tf.function(function, autograph=False).get_concrete_function(*specs)


VECTOR = tf.TensorSpec([3])
SUM, LESS = concrete(lambda x: x + 1.0, VECTOR), concrete(lambda x: x - 2.0, VECTOR)
SMALL = concrete(lambda x: tf.reduce_sum(x) < 20.0, VECTOR)

CALLS = {
    "a call": lambda x: scaled(x, 2.0) + scaled(x, x),
    "a call with effects": lambda x: counting(x) + 1.0,
    "calls in calls": twice_deep,
    "a call that runs Python": lambda x: from_python(x) + 1.0,
    "a call in a branch": lambda x: tf.cond(x[0] > 0.0, lambda: scaled(x, x), lambda: x),
    "a call in a loop": lambda x: tf.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, scaled(y, 2.0)), [0, x]
    )[1],
    "If": lambda x: tf.raw_ops.StatelessIf(
        cond=x[0] > 0.0, input=[x], Tout=[tf.float32], then_branch=SUM, else_branch=LESS
    ),
    "While": lambda x: tf.raw_ops.StatelessWhile(input=[x], cond=SMALL, body=SUM),
    "Case": lambda x: tf.raw_ops.StatelessCase(
        branch_index=tf.cast(x[0] * 3.0, tf.int32),
        input=[x],
        Tout=[tf.float32],
        branches=[LESS, SUM],
    ),
    "PartitionedCall": lambda x: tf.raw_ops.PartitionedCall(args=[x], Tout=[tf.float32], f=SUM),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_that_nodes_call(name):
    """A node that calls a function is a step of the plan, and TensorFlow runs the function."""
    COUNT.assign(0.0)
    compare(CALLS[name], X, state=[COUNT])


def test_states_in_functions_that_nodes_call():
    """Such functions have no plan, which would have its own random sequences."""
    fast = compare(lambda x: halves(x) + 1.0, X, executor="tensorflow")
    assert "sequence" in fast.describe()[0]["reason"]


@pytest.mark.parametrize("effects", [False, True])
def test_functions_that_nodes_call_and_that_fail(effects):
    @not_inlined
    def picked(x, i):
        if effects:
            COUNT.assign_add(1.0)
        return tf.gather(x, i)

    fast = fastops.function(lambda x, i: picked(x, i) * 2.0)
    for index, fails in ((0, False), (1, False), (7, True), (2, False), (7, True)):
        COUNT.assign(0.0)
        want = outcome(fast._traced, (X, tf.constant(index)))
        COUNT.assign(0.0)
        assert outcome(fast, (X, tf.constant(index))) == want or not fails
        assert isinstance(want[0], Failure) == fails
    assert fast.describe()[0]["executor"] == "plan"


def test_calls_that_tensorflow_runs_skip_known_checks(monkeypatch):
    """TensorFlow checks the arguments once; errors, reports and other contexts are the same."""

    def function(x, k):
        with after_a_draw():
            return {"y": 6.0 // x * k}

    def failing_function(x, i):
        with after_a_draw():
            return tf.gather(x, i)

    fast = fastops.function(function)
    traced = tf.function(fast.python_function)
    calls = []
    original = polymorphic_function.Function._call

    def counted(self, *args, **kwargs):
        calls.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(polymorphic_function.Function, "_call", counted)
    for _ in range(4):
        assert_same(fast(X, 2.0)["y"], 6.0 // X * 2.0)
    assert calls == [fast._traced]
    with fastops.profile() as report:
        fast(X, 2.0)
    assert [(function.executor, function.calls) for function in report.functions] == [
        ("tensorflow", 1)
    ]
    with tf.GradientTape() as tape:
        tape.watch(X)
        fast(X, 2.0)
    assert calls == [fast._traced] * 2
    tf.config.run_functions_eagerly(True)
    assert_same(fast(X, 2.0)["y"], 6.0 // X * 2.0)
    tf.config.run_functions_eagerly(False)
    failing = fastops.function(failing_function)
    wants = outcome(failing._traced, (X, tf.constant(7)))
    for _ in range(3):
        assert outcome(failing, (X, tf.constant(7)))[0].kind is wants[0].kind
    other = tf.constant([[3.0]])
    assert_same(fast(other, 2.0)["y"], traced(other, 2.0)["y"])


# ---------------------------------------------------------------------------------------------
# Arguments
# ---------------------------------------------------------------------------------------------

DEFAULT = tf.constant(3.0)
V = [tf.Variable([1.0, 2.0]), tf.Variable([3.0, 5.0])]
SCALAR = tf.convert_to_tensor(2.0)  # TensorFlow caches this tensor, and uses it for 2.0 elsewhere


def linear(x, k=2.0, *rest, bias=DEFAULT, flags=None):
    for value in rest:
        x = x + value
    return x * k + bias if flags is None else (x * k if flags["negative"] else x - k)


def call(*args, **kwargs):
    return args, kwargs


ARGUMENTS = {
    "defaults": (linear, [call(X), call(Y)]),
    "keywords": (linear, [call(x=X, k=3.0), call(k=3.0, x=Y), call(X, bias=S, k=1.0)]),
    "further arguments": (linear, [call(X, 2.0, Y, S), call(Y, 2.0, X, S), call(X, 2.0, Y, 1.5)]),
    "further keywords": (lambda **named: named["a"] - named["b"], [call(b=X, a=Y), call(a=X, b=Y)]),
    "arrays": (
        linear,
        [call(X.numpy()), call(Y.numpy(), 1.0), call(np.ones(3, np.float32), np.float32(2))],
    ),
    "scalars of NumPy": (
        lambda x: x + 1,
        [call(np.float32(2)), call(np.int64(3)), call(np.uint8(1))],
    ),
    "arrays of texts": (lambda t: tf.strings.upper(t), [call(np.array(["a", "ü"])), call(T)]),
    "arrays among tensors": (linear, [call(X, 2.0, Y.numpy()), call(Y, 2.0, X.numpy())]),
    "nested": (
        lambda pair, named: (pair[0] + pair[1][0] * named["k"], named["more"][0] - pair[0]),
        [
            call((X, [Y]), {"k": 2.0, "more": [Y]}),
            call((Y, [X]), {"k": 2.0, "more": [X]}),
            call((Y, [X]), {"k": S, "more": [X]}),
            call([Y, (X,)], {"more": (X,), "k": 2.0}),
        ],
    ),
    "empty containers": (lambda x, a, b: x * len(a) + len(b), [call(X, [], {}), call(X, (), {})]),
    "the same tensor twice, then two": (
        lambda x, y: x - 2.0 * y,
        [call(X, X), call(X, Y), call(Y, X)],
    ),
    "a tensor equal to a number": (
        lambda x, k: x - 3.0 * k,
        [call(SCALAR, 2.0), call(S, 2.0), call(S, SCALAR)],
    ),
    "a variable": (lambda v: v * 2.0, [call(W[1]), call(W[0]), call(W[1])]),
    "a variable twice, then two": (
        lambda a, b: (a.assign_add(b), a - b),
        [call(V[0], V[0]), call(V[0], V[1]), call(V[1], V[0])],
    ),
    "a variable that is captured": (lambda v: v + W[0], [call(W[0]), call(W[0])]),
    "dtypes": (lambda x, to: tf.cast(x, to), [call(X, tf.int32), call(X, tf.float64)]),
    "texts and None": (
        lambda x, name, none: tf.identity(x) if none is None else x + len(name),
        [call(X, "a", None), call(X, "é", 1), call(X, "", 1)],
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name):
    """Each signature is traced once; each call gives the same as TensorFlow's, by a plan."""
    function, calls = ARGUMENTS[name]
    traced = tf.function(function)
    fast = fastops.function(function)
    before = [tf.identity(v) for v in V]
    for _ in range(3):
        for args, kwargs in calls:
            want = traced(*args, **kwargs)
            left = [tf.identity(v) for v in V]
            for v, value in zip(V, before, strict=True):
                v.assign(value)
            assert_same(fast(*args, **kwargs), want)
            assert_same([tf.identity(v) for v in V], left)
            for v, value in zip(V, before, strict=True):
                v.assign(value)
    described = fast.describe()
    assert {row["executor"] for row in described} == {"plan"}, described
    tracings = [f.experimental_get_tracing_count() for f in (fast, traced)]
    assert tracings[0] == tracings[1]


class Opaque:
    __slots__ = ()
    factor = 2.0


FOREIGN = {
    "a ragged tensor": (lambda x: x * 2.0, tf.ragged.constant([[1.0], [2.0, 3.0]])),
    "a sparse tensor": (lambda x: tf.sparse.to_dense(x), tf.sparse.from_dense([[0.0, 1.0]])),
    "an object with slots": (lambda o: X * o.factor, Opaque()),
    "a function": (lambda f: f(X), tf.tanh),
    "a NumPy string": (lambda x, name: x * len(name), X, np.str_("two")),
    "a number beyond 64 bits": (lambda n: X * float(n), 2**70),
    "a variable of another class": (
        lambda v: v * 2.0,
        keras.Variable(np.ones(2, np.float32)),
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_arguments_that_signatures_do_not_support(name):
    function, *arguments = FOREIGN[name]
    fast = fastops.function(function)
    for _ in range(3):
        assert difference(outcome(fast, arguments), outcome(fast._traced, arguments)) is None
    assert fast.describe() == []


def test_numbers_that_an_input_signature_turns_into_tensors():
    spec = tf.TensorSpec([], tf.float32)
    fast = fastops.function(lambda x, k: x - 3.0 * k, input_signature=[spec, spec])
    for args in ((SCALAR, 2.0), (S, 2.0), (2.0, S), (2.0, 2.0), (1, 2.0), (S, SCALAR)):
        for _ in range(3):
            assert_same(fast(*args), fast._traced(*args))
    assert {row["executor"] for row in fast.describe()} == {"plan"}
    assert fast.experimental_get_tracing_count() == 1


def test_an_array_as_default_may_change():
    default = np.ones(3, np.float32)

    def function(x, y=default):
        return x + y

    fast = fastops.function(function)
    for value in range(3):
        default[:] = value
        assert_same(fast(X), fast._traced(X))


def test_arrays_that_change_afterwards():
    """Results and variables made of an array are copies and not views."""
    v = tf.Variable(tf.zeros([1024]))

    def function(x):
        v.assign(x)
        return x, tf.reshape(x, [32, 32])

    fast = fastops.function(function)
    memory = np.zeros(2048, np.float32)
    aligned = -memory.ctypes.data % 64 // 4
    array = memory[aligned : aligned + 1024]
    for value in range(6):
        array[:] = value
        results = fast(array)
        array[:] = -1.0
        assert_same(
            [*results, v.read_value()],
            [
                tf.fill([1024], float(value)),
                tf.fill([32, 32], float(value)),
                tf.fill([1024], float(value)),
            ],
        )
    assert fast.describe()[0]["executor"] == "plan"


def test_a_list_that_changes():
    held = [X, Y]
    fast = fastops.function(lambda tensors: tf.add_n(tensors))
    for more in ((), (Y,), (S * X,)):
        held.extend(more)
        for _ in range(2):
            assert_same(fast(held), fast._traced(held))
    assert len(fast.describe()) == 3


def test_containers_that_contain_themselves():
    held = []
    held.append(held)
    fast = fastops.function(lambda held: X)
    with pytest.raises(RecursionError):
        fast._traced(held)
    with pytest.raises(RecursionError):
        fast(held)


# ---------------------------------------------------------------------------------------------
# State
# ---------------------------------------------------------------------------------------------


def test_variables():
    v, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0.0)

    def step(x):
        w.assign_add(tf.reduce_sum(v))
        v.assign_sub(0.1 * x)
        v.scatter_nd_add([[0]], [w])
        return v + w, v.read_value()

    compare(step, X, state=(v, w), calls=6)


def test_a_training_step():
    def step(x, y):
        with tf.GradientTape() as tape:
            error = perceptron(x) - y
            loss = tf.reduce_mean(error * error)
        for variable, gradient in zip(W, tape.gradient(loss, W), strict=True):
            variable.assign_sub(0.05 * gradient)
        return loss

    compare(step, M, make("float32", 4, 2), state=W, calls=6)


def test_a_training_step_of_keras():
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(2)]
    )
    optimizer = keras.optimizers.Adam(0.05)
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables))
        return loss

    state = [variable.value for variable in (*model.variables, *optimizer.variables)]
    compare(step, M, make("float32", 4, 2), state=state, calls=6)


@pytest.mark.quick
def test_effects_in_branches():
    """Nodes that depend on a branch with effects run, whichever branch is taken."""
    v, w = tf.Variable(0.0), tf.Variable(0.0)

    def branches(x, limit):
        def add(variable, value):
            variable.assign_add(value)
            return variable + x

        def body(i, y):
            y = tf.cond(i < limit, lambda: add(v, 1.0), lambda: y)
            y = tf.switch_case(i % 3, [lambda: y, lambda: add(w, y), lambda: y * 0.5])
            return i + 1, tf.cond(y > 3.0, lambda: y - 3.0, lambda: y)

        return tf.while_loop(lambda i, y: i < 7, body, [0, x])

    for limit in (0, 3, 9):
        compare(branches, S, tf.constant(limit), state=(v, w), calls=3)


def test_generators_share_one_sequence_with_tensorflow():
    def numbers(seed):
        generator = tf.random.Generator.from_seed(seed)
        function = tf.function(lambda: generator.normal([3]))
        return function, generator

    want, _ = numbers(5)
    wants = [want() for _ in range(5)]
    function, _ = numbers(5)
    fast = fastops.function(function)
    assert_same([fast() for _ in range(5)], wants)


def test_random_numbers_without_a_seed():
    """The numbers differ in each call, also if several threads draw."""
    tf.random.set_seed(None)  # clear the seed of other tests
    fast = fastops.function(lambda: tf.random.normal([1000]) + 3.0, executor="plan")
    results, threads = [], []
    for _ in range(4):
        threads.append(threading.Thread(target=lambda: results.extend(fast() for _ in range(50))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    drawn = np.stack(results)
    assert len(np.unique(drawn)) > 0.99 * drawn.size
    assert abs(drawn.mean() - 3.0) < 0.02
    assert abs(drawn.std() - 1.0) < 0.02


def test_checks_that_fail_in_a_plan():
    fast = fastops.function(lambda x: tf.debugging.check_numerics(1.0 / x, "message"))
    for x in (X, X + 9.0, X * 0.0, X, X * 0.0):
        assert difference(outcome(fast, (x,)), outcome(fast._traced, (x,))) is None
    assert fast.describe()[0]["executor"] == "plan"


def test_random_ops_without_a_seed():
    """Each call draws new numbers, and reads the state that other stateful ops depend on."""
    tf.random.set_seed(None)
    images, classes = make("float32", 1, 64, 64, 1), tf.constant([[1], [2]], tf.int64)

    def draw():
        return (
            tf.random.shuffle(tf.range(64)),
            tf.random.gamma([64], 1.5),
            tf.random.uniform_candidate_sampler(classes, 1, 64, True, 900)[0],
            tf.nn.fractional_avg_pool(images, [1.0, 1.4, 1.4, 1.0])[1],
            tf.raw_ops.NonDeterministicInts(shape=[8]),
        ), tf.timestamp()

    fast = fastops.function(draw, executor="plan")
    results = [fast() for _ in range(6)]
    assert fast.describe()[0]["executor"] == "plan"
    for place in range(5):
        assert len({drawn[place].numpy().tobytes() for drawn, _ in results}) == 6
    times = [time.numpy() for _, time in results]
    assert times == sorted(times)


def test_variables_that_the_first_call_makes():
    class Model:
        def __init__(self):
            self.v = None

        @fastops.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(2.0)
            self.v.assign_add(1.0)
            return x * self.v

    model = Model()
    assert [float(model(tf.constant(1.0))) for _ in range(4)] == [3.0, 4.0, 5.0, 6.0]


# ---------------------------------------------------------------------------------------------
# Signatures
# ---------------------------------------------------------------------------------------------


def test_functions_are_traced_as_often_as_by_tensorflow():
    def count(wrap):
        traces = []

        def function(x, k=2.0):
            traces.append((x.dtype, x.shape.as_list(), k))
            return x * tf.cast(k, x.dtype)

        wrapped = wrap(function)
        results = [
            wrapped(make(dtype, *shape), *more)
            for _ in range(2)
            for dtype in ("float32", "float64")
            for shape in ((), (3,), (2, 3))
            for more in ((), (2,), (2.0,), (True,), (3,))
        ]
        return traces, results

    (traces, got), (want_traces, want) = count(fastops.function), count(tf.function)
    assert traces == want_traces
    assert_same(got, want)


def test_values_that_are_equal_in_python():
    fast = fastops.function(lambda x, k: x * tf.constant(k, x.dtype))
    for k in (0.0, -0.0, 1, 1.0, float("nan"), 2**40):
        for _ in range(2):
            assert_same(fast(X, k), fast._traced(X, k))


def test_input_signature_and_relaxed_shapes():
    fast = fastops.function(
        lambda x: tf.reduce_sum(x) * 2.0, input_signature=[tf.TensorSpec([None], tf.float32)]
    )
    for size in (1, 3, 7, 3):
        for _ in range(2):
            assert_same(fast(make("float32", size)), fast._traced(make("float32", size)))
    assert {row["executor"] for row in fast.describe()} == {"plan"}
    assert fast.experimental_get_tracing_count() == 1
    relaxed = fastops.function(lambda x: x * 2.0, reduce_retracing=True)
    for size in range(1, 6):
        for _ in range(2):
            assert_same(relaxed(make("float32", size)), make("float32", size) * 2.0)
    assert relaxed.experimental_get_tracing_count() == 2


@pytest.mark.quick
def test_signatures_are_bounded(monkeypatch):
    monkeypatch.setattr("fastops._plans.plans.MAX_FUNCTION_SIGNATURES", 3)
    fast = fastops.function(lambda x: x + 1.0)
    for size in range(1, 9):
        fast(make("float32", size))
    assert len(fast.describe()) == 3


def test_methods():
    class Scale:
        def __init__(self, factor):
            self.factor = tf.Variable(factor)

        @fastops.function
        def __call__(self, x):
            return x * self.factor

    one, other = Scale(2.0), Scale(3.0)
    for _ in range(3):
        assert_same([one(X), other(X)], [X * 2.0, X * 3.0])
    assert isinstance(Scale.__call__, Function)
    dead = weakref.ref(one)
    del one
    gc.collect()
    assert dead() is None


# ---------------------------------------------------------------------------------------------
# Fallbacks
# ---------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_tapes_accumulators_and_graphs():
    fast = compare(perceptron, M)
    traced = fast._traced

    def gradients(function):
        with tf.GradientTape() as tape:
            y = function(M)
        return tape.gradient(y, W)

    assert_same(gradients(fast), gradients(traced))
    with tf.autodiff.ForwardAccumulator(W[0], tf.ones_like(W[0])) as accumulator:
        y = fast(M)
    with tf.autodiff.ForwardAccumulator(W[0], tf.ones_like(W[0])) as other:
        z = traced(M)
    assert_same(accumulator.jvp(y), other.jvp(z))
    assert_same(tf.function(lambda x: fast(x) + 1.0)(M), tf.function(lambda x: traced(x) + 1.0)(M))
    with tf.Graph().as_default() as graph:
        fastops.function(lambda x: x + 1.0)(tf.constant([1.0]))
        assert any("Call" in operation.type for operation in graph.get_operations())


def test_functions_that_run_eagerly():
    seen = []
    fast = compare(lambda x: seen.append(type(x).__name__) or x + 1.0, X)
    seen.clear()
    tf.config.run_functions_eagerly(True)
    try:
        fast(X)
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen == ["EagerTensor"]


def test_a_scope_of_the_only_device_has_no_trace_of_its_own():
    scopes, counts = [], []

    def function(x, y=2.0):
        scopes.append(context.context().device_name)
        return tf.nn.relu(x @ tf.transpose(x)) * y

    for make_function in (tf.function, lambda f: fastops.function(f, executor="plan")):
        run, results = make_function(function), []
        scopes.clear()
        fastops.reset_stats()
        for scope in (None, "/CPU:0", "cpu:0", None, "/device:CPU:0"):
            with tf.device(scope):
                results += [run(M), run(M, 3.0), run(M)]
        counts.append(len(scopes))
        if make_function is tf.function:
            want = results
    assert_same(results, want)
    assert [one.device for one in results] == [one.device for one in want]
    assert counts == [2, 2]
    (seen,) = fastops.stats().functions.values()
    assert (seen.plan, seen.tensorflow) == (15, 0)


@pytest.mark.parametrize("scope", ["/CPU:0", None])
def test_variables_and_state_in_a_device_scope(scope):
    def results(make_function):
        variable, made = tf.Variable(1.0), []

        def function(x):
            made.append(tf.constant(1.0))
            return variable.assign_add(2.0) * x

        run = make_function(function)
        for number in range(6):
            with tf.device(scope if number % 2 else "/CPU:0"):
                result = run(tf.constant(2.0))
            yield result
            yield tf.identity(variable)
        yield tf.constant(len(made))

    assert_same(list(results(fastops.function)), list(results(tf.function)))


def test_device_scopes_and_strategies():
    fast = compare(lambda x: x + 1.0, X)
    with tf.device("CPU:0"):
        assert_same(fast(X), fast._traced(X))
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    assert_same(strategy.run(fast, (X,)), strategy.run(fast._traced, (X,)))
    with tf.GradientTape():
        assert_same(fast(X), fast._traced(X))


def test_other_options_of_the_optimizer_make_another_plan():
    fast = compare(lambda x: tf.nn.relu(x @ tf.transpose(x) + 1.0), M)
    with optimizer_options(remapping=False, constant_folding=False):
        for _ in range(3):
            assert_same(fast(M), fast._traced(M))
        assert fast.describe()[0]["executor"] == "plan"
    assert_same(fast(M), fast._traced(M))


def test_without_the_optimizer():
    def function(x):
        return tf.nn.relu(x @ tf.transpose(x) + 1.0) + tf.constant(1.0) * tf.constant(2.0)

    fast = fastops.function(function, optimize=False)
    results = [fast(M) for _ in range(3)]
    (plan,) = fast.plans()
    (optimized,) = compare(function, M).plans()
    assert len(plan.nodes) > len(optimized.nodes)
    with optimizer_options(disable_meta_optimizer=True):
        assert_same(results, [tf.function(function)(M)] * 3)
    with tf.GradientTape() as tape:  # TensorFlow makes this call
        tape.watch(M)
        assert_same(fast(M), results[0])
    assert fast.describe()[0]["executor"] == "plan"

    class Model:
        @fastops.function(optimize=False)
        def call(self, x):
            return x * tf.constant(2.0) * tf.constant(3.0)

    assert_same(Model().call(X), X * 2.0 * 3.0)


def test_errors_of_wrong_use():
    with pytest.raises(ValueError, match="no executor 'fast'"):
        fastops.function(lambda x: x, executor="fast")
    with pytest.raises(ValueError, match=r"already a tf.function"):
        fastops.function(tf.function(lambda x: x), reduce_retracing=True)
    fast = compare(lambda x: x + 1.0, X)
    for args in ((), (X, X), ("text",)):
        assert outcome(fast, args) == outcome(fast._traced, args)


# ---------------------------------------------------------------------------------------------
# Failures and threads
# ---------------------------------------------------------------------------------------------


def test_kernels_that_fail():
    v = tf.Variable(0.0)

    def pure(x, i):
        return tf.gather(x, i) * 2.0

    def counting(x, i):
        v.assign_add(1.0)
        return tf.gather(x, i) + v

    def asserting(x, i):
        tf.debugging.Assert(i < 3, [i, "is too large"])
        return x * 2.0  # no other op of the function fails

    def looping(x, i):
        for _ in tf.range(3):
            x = x + tf.gather(x, i)
        return x

    for function in (pure, counting, asserting, looping):
        fast = fastops.function(function)
        for _ in range(2):
            fast(X, AT)
        assert fast.describe()[0]["executor"] == "plan"
        for _ in range(2):
            v.assign(0.0)
            want = outcome(fast._traced, (X, tf.constant(7)))
            v.assign(0.0)
            assert outcome(fast, (X, tf.constant(7))) == want
            # The order of two independent nodes is undefined.
            assert float(v) in (0.0, 1.0)
            assert isinstance(want[0], Failure)
        v.assign(0.0)
        got = fast(X, AT)
        v.assign(0.0)
        assert_same(got, fast._traced(X, AT))


def test_conditions_that_are_not_scalars():
    def shaped(flag, rank):
        return tf.reshape(flag, tf.ones([rank], tf.int32))

    def branch(flag, rank):
        return tf.cond(shaped(flag, rank), lambda: 1.0, lambda: 2.0)

    def loop(flag, rank):
        return tf.while_loop(lambda i: shaped(i < 3 and flag, rank), lambda i: (i + 1,), [0])

    flag, zero, one = tf.constant(True), tf.constant(0), tf.constant(1)
    for function in (branch, loop):
        fast = fastops.function(function, executor="plan")
        assert_same(fast(flag, zero), fast._traced(flag, zero))
        want = outcome(fast._traced, (flag, one))
        assert difference(outcome(fast, (flag, one)), want) is None


def test_reads_whose_value_is_not_used():
    """TensorFlow reads a variable even if its value is not used, and so does a plan."""
    v = tf.Variable([1.0, 2.0])

    def read(x):
        v.read_value()
        return x * 2.0

    fast = compare(read, X)
    nodes = [node for node in fast.plans()[0].nodes if node.op == "ReadVariableOp"]
    assert [node.outputs for node in nodes] == [(-1,)]

    @tf.custom_gradient
    def scaled(x, w):
        return x * 1.5, lambda gradient: (gradient * w, None)

    compare(lambda x: scaled(x, v)[:1], make("float32", 2))


def test_threads():
    fast = fastops.function(
        lambda x: counted(x)[1] + perceptron(x[tf.newaxis])[0, 0], executor="plan"
    )
    inputs = [make("float32", 3, seed=seed) for seed in range(8)]
    wants = [fast._traced(x) for x in inputs]
    problems = []

    def work(x, want):
        for _ in range(300):
            if differing := difference(fast(x), want):
                problems.append(differing)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, wants, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[:3]
    assert fast.describe()[0]["executor"] == "plan"


@pytest.mark.quick
def test_threads_share_plans():
    """Each thread has its own call options, here with the same values."""
    fast = compare(lambda x: x * 2.0 + 1.0, X)
    (case,) = fast.known_cases()
    plan, results = case.runner.plan, []

    def work():
        results.extend([fast(X) for _ in range(3)])

    for _ in range(4):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert_same(results, [X * 2.0 + 1.0] * 12)
    assert case.runner.plan is plan


def test_long_calls_are_timed():
    """No call is made twice, and one of the executors is kept."""
    v, x = tf.Variable(0.0), make("float32", 300, 300)

    def slow(x):
        v.assign_add(1.0)
        return tf.linalg.matmul(tf.linalg.matmul(x, x), x)

    fast = fastops.function(slow)
    for _ in range(12):
        fast(x)
    assert float(v) == 12.0
    assert fast.describe()[0]["executor"] in ("plan", "tensorflow")


def test_memory_is_flat():
    fast = compare(lambda x: counted(x)[1], X)
    x, dead = make("float32", 3), []
    for _ in range(200):
        y = fast(x)
        dead.append(weakref.ref(y))
    del y
    gc.collect()
    assert not [reference for reference in dead if reference() is not None]


# ---------------------------------------------------------------------------------------------
# Reports about plans
# ---------------------------------------------------------------------------------------------


def test_stats_count_calls_by_function():
    def scaled(x, factor):
        return x * factor

    def written(x):
        with after_a_draw():
            return x + 1.0

    fastops.reset_stats()
    fast = fastops.function(scaled, executor="plan", autograph=False)
    left = fastops.function(written, autograph=False)
    for _ in range(4):
        fast(X, 2.0)
        left(X)
    with tf.GradientTape() as tape:
        tape.watch(X)
        fast(X, 2.0)
    fast(tf.ragged.constant([[1.0]]), 2.0)
    seen = fastops.stats().functions
    mine = {name.rpartition(".")[2]: calls for name, calls in seen.items()}
    assert mine["scaled"].plan == 4, "also the first call, which only TensorFlow makes"
    assert mine["scaled"].tensorflow == 2
    assert mine["scaled"].reasons == {
        "tape_open": 1,
        "argument_type": 1,
    }
    (row,) = left.describe()
    # The particulars are not counted.
    assert row["reason"].startswith(f"{text_of('node_seeded')}: ")
    assert mine["written"] == fastops.FunctionStats(0, 4, {"signature_new": 1, "node_seeded": 3})
    assert fastops.stats().as_dict()["functions"].keys() == seen.keys()
    fastops.reset_stats()
    assert not fastops.stats().functions
    fast(X, 2.0)
    assert [calls.plan for calls in fastops.stats().functions.values()] == [1]


@pytest.mark.parametrize("faster", ["plan", "tensorflow"])
def test_the_faster_executor_is_kept(monkeypatch, faster):
    note_time = _planned.Planned.note_time
    noted = []

    def slower(self, executor, ns):
        noted.append(executor)
        note_time(self, executor, ns if executor == faster else ns + 10**12)

    monkeypatch.setattr(_planned, "TIMED_PLAN_NS", 0)
    monkeypatch.setattr(_planned.Planned, "note_time", slower)
    count = tf.Variable(0)
    fast = fastops.function(lambda: count.assign_add(1), autograph=False)
    assert [int(fast()) for _ in range(10)] == [*range(1, 11)], "no call is made twice"
    assert noted == ["plan", "tensorflow"] * 3, "not in turn"
    (described,) = fast.describe()
    assert described["executor"] == faster
    assert described["reason"] == (
        None if faster == "plan" else "TensorFlow's executor is faster than the plan"
    )


def test_plans_report_their_nodes_and_times():
    fast = fastops.function(lambda x: counted(x)[1] * 2.0)
    fast(X)
    (before,) = fast.plans()
    assert {node.runs for node in before.nodes} == {0}
    with fastops.profile() as report:
        for _ in range(3):
            fast(X)
    (plan,) = fast.plans()
    # The loop has three variables, including its counter.
    assert plan.to_dot().count("style=dotted") == 3
    by_op = {node.op: node for node in plan.nodes}
    tanh = by_op["Tanh"]
    assert (tanh.kind, tanh.depth, tanh.runs) == ("kernel", 1, 30)
    assert 0 < tanh.ns < sum(node.ns for node in plan.nodes if node.kind == "loop")
    assert any(node.takes_over for node in plan.nodes if node.kind == "kernel")
    assert all(slot in node.inputs for node in plan.nodes for slot in node.takes_over)
    made = {slot for node in plan.nodes for slot in node.outputs}
    assert {*plan.results} <= made
    assert len(plan.arguments) == 1
    assert "Tanh" in str(plan)
    assert json.loads(json.dumps(plan.to_dict()))["nodes"][0]["name"] == plan.nodes[0].name
    (function,) = report.functions
    assert (function.executor, function.reason, function.calls) == ("plan", None, 3)
    assert function.ns >= sum(node.ns for node in plan.nodes if not node.depth)
    assert "function" in str(report)
    assert report.to_dict()["functions"][0]["calls"] == 3
    fast(X)
    assert [node.runs for node in fast.plans()[0].nodes] == [node.runs for node in plan.nodes]


def test_reports_name_what_tensorflow_runs():
    def function(x):
        with after_a_draw():
            return x * 2.0

    fast = fastops.function(function)
    fast(X)
    report = fastops.explain(fast, X)
    assert_same(report.result, X * 2.0)
    (function,) = report.functions
    assert (function.executor, function.calls) == ("tensorflow", 1)
    assert "RandomUniform" in function.reason
    assert fast.plans() == []


def test_reset():
    fast = compare(lambda x: x + 1.0, X)
    (case,) = fast.known_cases()
    fast.reset()
    assert fast.describe() == fast.plans() == []
    for _ in range(2):
        assert_same(fast(X), X + 1.0)
    assert fast.describe()[0]["executor"] == "plan"
    assert fast.experimental_get_tracing_count() == 1
    assert fast.known_cases() != [case]


def test_attributes_of_tf_function_exist():
    fast = compare(lambda x: x + 1.0, X)
    assert fast.pretty_printed_concrete_signatures() == (
        fast._traced.pretty_printed_concrete_signatures()
    )
    assert_same(fast.get_concrete_function(X)(X), X + 1.0)


def test_profiles_belong_to_threads():
    fast = compare(lambda x: x + 1.0, X)
    with fastops.profile() as outer, fastops.profile() as inner:
        fast(X)
        thread = threading.Thread(target=lambda: fast(X))
        thread.start()
        thread.join()
    fast(X)
    assert [function.calls for report in (outer, inner) for function in report.functions] == [1, 1]


def test_pictures(tmp_path, monkeypatch):
    fast = compare(perceptron, M)
    (plan,) = fast.plans()
    dot = plan.to_dot()
    assert dot.count("shape=ellipse") == len(plan.arguments) + len(plan.captured) + 1
    assert dot.count(" [label=") == len(plan.nodes) + dot.count("shape=ellipse") + 0
    plan.save(tmp_path / "plan.dot")
    assert (tmp_path / "plan.dot").read_text() == dot
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="takes the program dot of graphviz"):
        plan.save(tmp_path / "plan.svg")
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\n/bin/cat > "$3"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    plan.save(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text() == dot
    program.write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    with pytest.raises(RuntimeError, match=r"plan\.png cannot be drawn: broken"):
        plan.save(tmp_path / "plan.png")
