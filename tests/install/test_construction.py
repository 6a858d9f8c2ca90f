"""Variables of the same kind: fastops makes the later ones, which are like TensorFlow's own."""

import copy
import functools
import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, in_both, outcome
from memory import tensors_left
from support import Failure, assert_same
from tensorflow.python.eager import record
from tensorflow.python.framework import op_callbacks, ops
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsStopped
from tensorflow.python.trackable.base import CheckpointInitialValue

import fastops
from fastops._core.reasons import REGISTRY
from fastops._install import construction

TIMES = 4
"""How many variables to make. TensorFlow makes the first two, fastops the others."""

M = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def same(value):
    return lambda step: value


VALUES = {
    "tensor": lambda step: tf.constant(M + step),
    "array": lambda step: M + step,
    "strided": lambda step: (M + step)[:, ::-1],
    "array of doubles": lambda step: M.astype(np.float64) + step,
    "scalar of NumPy": lambda step: np.float64(step),
    "number": float,
    "int": lambda step: step,
    "bool": lambda step: step % 2 == 0,
    "complex": lambda step: step + 2j,
    "text": lambda step: f"text {step}",
    "bytes": lambda step: b"text",
    "list": lambda step: [[1.0, step], [2.0, 3.0]],
    "tuple": lambda step: (1, step),
    "texts": lambda step: ["a", str(step)],
    "list of tensors": lambda step: [tf.constant(1.0), tf.constant(float(step))],
    "empty": lambda step: [],
    "no rows": lambda step: tf.zeros([0, 3]),
    "half": lambda step: tf.constant(M + step, tf.float16),
    "bfloat16": lambda step: tf.constant(M + step, tf.bfloat16),
    "variable": lambda step: tf.Variable(M + step),
    "function": lambda step: lambda: tf.constant(M + step),
    "ragged list": same([[1], [2, 3]]),
    "object": same(object()),
    "nothing": same(None),
    "checkpointed": lambda step: CheckpointInitialValue,
    "variant": lambda step: tf.raw_ops.EmptyTensorList(
        element_shape=-1, max_num_elements=2, element_dtype=tf.float32
    ),
}
"""Functions that return an initial value, given the number of the variable."""

OPTIONS = {
    "": {},
    "trainable": {"trainable": True},
    "not trainable": {"trainable": False},
    "name": {"name": "weight"},
    "scope as a name": {"name": "weight/"},
    "empty name": {"name": ""},
    "bad name": {"name": "a b ("},
    "number as a name": {"name": 3},
    "dtype": {"dtype": tf.float32},
    "dtype by name": {"dtype": "float32"},
    "dtype of NumPy": {"dtype": np.float32},
    "other dtype": {"dtype": tf.int64},
    "bad dtype": {"dtype": "float7"},
    "synchronization": {"synchronization": tf.VariableSynchronization.ON_READ},
    "aggregation": {"aggregation": tf.VariableAggregation.SUM},
    "no aggregation": {"aggregation": None},
    "any shape": {"shape": tf.TensorShape(None)},
    "shape": {"shape": [2, 3]},
    "unvalidated": {"validate_shape": False},
    "constraint": {"constraint": tf.identity},
    "cached": {"caching_device": "CPU:0"},
    "not lifted": {"experimental_enable_variable_lifting": False},
    "unknown": {"unknown": 1},
    "two values": {"initial_value": 3.0},
}
"""Keyword arguments."""


def described(variable):
    """Return all properties of a variable except for those that differ between variables."""
    if isinstance(variable, Failure):
        return variable
    state, handle = dict(variable.__dict__), variable.handle
    names = list(state)
    number = state.pop("_unique_id")
    assert state.pop("_handle") is handle
    assert handle._unique_id == number
    assert handle._parent_trackable() is variable
    cached = state.pop("_cached_value")
    return [
        type(variable).__name__,
        names,
        {name: (type(value).__name__, str(value)) for name, value in state.items()},
        number.rpartition("_")[0],
        None if cached is None else cached.numpy().tolist(),
        list(handle.__dict__),
        handle._name,
        str(handle._handle_data),
        handle.dtype,
        handle.device,
        handle.backing_device,
        variable.name,
        str(variable.shape),
        variable.dtype,
        variable.trainable,
        variable.device,
        str(variable._shared_name),
        variable.read_value() if variable.dtype != tf.variant else None,
    ]


def makes(function, *args, **kwargs):
    """Tell whether a call makes its variable by TensorFlow's own Python code."""
    return "_init_from_args" in frames(function, args, kwargs)


def create(kind, values, options):
    made = [outcome(kind, (values(step),), options) for step in range(TIMES)]
    return [described(variable) for variable in made], made


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", [tf.Variable, ResourceVariable])
def test_options(kind, options):
    def run():
        return create(kind, VALUES["tensor"], OPTIONS[options])[0]

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.parametrize("value", VALUES)
def test_values(value):
    def run():
        return [
            create(tf.Variable, VALUES[value], options)[0] for options in ({}, {"dtype": "float32"})
        ]

    want, got = in_both(run)
    assert_same(got, want)


@pytest.mark.quick
@pytest.mark.parametrize(
    "make",
    [
        tf.Variable,
        ResourceVariable,
        lambda value: tf.Variable(value, False),
        lambda value: tf.Variable(initial_value=value, name="weight", dtype="float32"),
        lambda value: copy.deepcopy(tf.Variable(value)),
    ],
)
@pytest.mark.parametrize("value", ["tensor", "array", "list", "number", "function"])
def test_later_variables_are_made_without_tensorflows_python(make, value):
    with fastops.accelerated():
        for step in range(TIMES):
            make(VALUES[value](step))
        assert not makes(make, VALUES[value](0))
    assert makes(make, VALUES[value](0))


def test_the_counter_of_names_continues():
    """The numbers in names come from TensorFlow's counter, which tensors and layers share."""
    with fastops.accelerated():
        made = [v for name in "ab" for _ in range(TIMES) for v in [tf.Variable(M, name=name)]]
    numbers = [int(v._unique_id.removeprefix(f"{v.name[0]}_")) for v in made]
    before, after = ops.uid(), ops.uid()
    assert numbers == sorted({*numbers, before, after})[:-2]


def test_each_variable_has_its_own_value():
    def run():
        value = tf.constant(M)
        made = [tf.Variable(value) for _ in range(TIMES)]
        for step, variable in enumerate(made):
            variable.assign_add(M * step)
            variable.scatter_nd_add([[0, 0]], [10.0])
        return value, *[variable.read_value() for variable in made]

    want, got = in_both(run)
    assert_same(got, want)


def test_variables_share_no_mutable_objects():
    with fastops.accelerated():
        first, *_, one, other = [tf.Variable(M) for _ in range(TIMES)]
        assert one.handle is not other.handle
        assert one.handle._handle_data is not other.handle._handle_data
        one.handle._handle_data.shape_and_type[0].shape.dim[0].size = 7
        one.handle._name = one._handle_name = "changed"
        one.extra = 1
        assert str(other.handle._handle_data) == str(first.handle._handle_data)
        assert other.handle._name == first.handle._name
        assert not hasattr(other, "extra")
        assert_same(described(tf.Variable(M)), described(first))


def test_nothing_is_kept_alive():
    with fastops.accelerated():
        made = [tf.Variable(tf.constant(M), name="kept") for _ in range(TIMES)]
        ends = [weakref.ref(variable) for variable in made] + [
            weakref.ref(variable.handle) for variable in made
        ]
        del made
        gc.collect()
        assert [end() for end in ends] == [None] * len(ends)


def test_the_shape_is_that_of_the_value():
    def run():
        values = [tf.constant(M) for _ in range(TIMES)]
        return [tf.Variable(value).shape is value.shape for value in values]

    want, got = in_both(run)
    assert got == want == [True] * TIMES


def test_caches_are_not_reported_as_leaks():
    with fastops.accelerated():
        before = tensors_left()
        for _ in range(TIMES):
            tf.Variable(tf.constant(M), name="left")
        assert tensors_left() == before


def test_later_variables_use_known_keys():
    """TensorFlow's own tests report objects that the third run of a program creates."""
    fastops.clear_cache()
    with fastops.accelerated():
        for _ in range(2):
            tf.Variable(M, name="known")
        before = fastops.cache_info()
        assert not makes(tf.Variable, M, name="known")
        assert fastops.cache_info() == before


def test_handles_know_the_shape_in_functions():
    def run():
        @tf.function
        def read(handle):
            value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
            shapes.append(value.shape)
            return value + 1.0

        shapes = []
        values = [read(tf.Variable(M).handle) for _ in range(TIMES)]
        return values, [str(shape) for shape in shapes]

    want, got = in_both(run)
    assert_same(got, want)


def test_gradients():
    def run():
        results = []
        for step in range(TIMES):
            v, fixed = tf.Variable(M + step), tf.Variable(M, trainable=False)
            with tf.GradientTape() as tape:
                result = v * fixed
            results.append((tape.gradient(result, [v, fixed]), tape.watched_variables() == (v,)))
        return str(results)

    want, got = in_both(run)
    assert got == want


def test_within_tapes_and_accumulators():
    def run():
        results = []
        for _ in range(TIMES):
            x = tf.constant(M)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                v = tf.Variable(x * 2.0)
                results.append(described(v))
                result = v * x
            with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
                w = tf.Variable(x * 3.0)
                results.append(described(w))
                tangent = accumulator.jvp(w * x)
            results.append((tape.gradient(result, [x, v]), tangent))
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_tapes_do_not_see_the_making():
    """Tapes are stopped while a variable is made, also by code that is not TensorFlow's."""
    with fastops.accelerated():
        for _ in range(TIMES):
            tf.Variable(M)
        with tf.GradientTape():
            assert not makes(tf.Variable, M)
        with tf.autodiff.ForwardAccumulator(tf.constant(M), tf.constant(M)):
            assert not makes(tf.Variable, M)
        with tf.GradientTape() as tape:
            value = tf.Variable(3.0)
            tape.watch(value)
            made = tf.Variable(lambda: 2.0 * value)
            assert not TFE_Py_TapeSetIsStopped()
            result = made * value
        assert tape.gradient(result, value).numpy() == 6.0
        with record.stop_recording():
            assert not makes(tf.Variable, M)
            assert TFE_Py_TapeSetIsStopped()


def test_tapes_see_initial_values_that_are_not_lifted():
    def run():
        results = []
        for _ in range(TIMES):
            values = []
            with tf.GradientTape() as tape:
                x = tf.constant(3.0)
                tape.watch(x)
                tf.Variable(
                    lambda x=x, values=values: values.append(x * x) or values[0],
                    experimental_enable_variable_lifting=False,
                )
            results.append(tape.gradient(values[0], x))
        return results

    want, got = in_both(run)
    assert_same(got, want)
    assert got[-1].numpy() == 6.0


def test_functions_are_called_once_and_in_the_scope_of_the_variable():
    def run():
        seen = []

        def look(name):
            value = tf.ones([2]) * 3.0
            with tf.GradientTape() as tape:
                tape.watch(value)
                result = value * value
            inner = tf.Variable(value, name="inner")
            seen.append((name, tf.get_current_name_scope(), tape.gradient(result, value) is None))
            seen.append((inner.name, tf.executing_eagerly()))
            return inner if name == "inner" else value

        for step in range(TIMES):
            with tf.name_scope(f"outer_{step}"):
                for name in ("a", "b", "inner"):
                    seen.append(described(tf.Variable(functools.partial(look, name), name=name)))
                seen.append(described(tf.Variable(lambda: look("c"))))
            seen.append(tf.get_current_name_scope())
        return seen

    want, got = in_both(run)
    assert_same(got, want)


REFUSED = object()


def test_functions_that_fail():
    def run():
        def fail():
            raise KeyError(tf.get_current_name_scope())

        seen = []
        for step in range(TIMES):
            with tf.name_scope("outer"):
                seen.append(outcome(tf.Variable, (fail,), {"name": "failing"}))
                seen.append(outcome(tf.Variable, (lambda: REFUSED,), {}))
                seen.append(outcome(tf.Variable, (lambda: None,), {}))
                seen.append(outcome(tf.Variable, (lambda x: x,), {}))
                seen.append(outcome(tf.Variable, (lambda: len,), {}))
                seen.append(described(tf.Variable(lambda: tf.Variable(3.0))))
                seen.append(described(tf.Variable(lambda step=step: [1, step], dtype=tf.int64)))
                seen.append(outcome(tf.Variable, (lambda: "text",), {"dtype": "int32"}))
                seen.append(described(tf.Variable(lambda: M)))
            seen.append((tf.get_current_name_scope(), TFE_Py_TapeSetIsStopped()))
        return seen

    want, got = in_both(run)
    assert_same(got, want)


def test_name_scopes_share_a_template():
    def make(step, name="weight"):
        with tf.name_scope(f"scope_{step}"):
            return tf.Variable(M, name=name)

    with fastops.accelerated():
        for step in range(TIMES):
            assert make(step).name == f"scope_{step}/weight:0"
        assert not makes(make, "new")
        assert make("new")._handle_name == "scope_new/weight:0"
        assert not makes(make, "new", "other")  # names share it, too
        assert makes(make, "new", "absolute/")


def test_in_scopes():
    def run():
        results = []
        for _ in range(TIMES):
            with tf.name_scope("outer"):
                results.append(described(tf.Variable(M)))
                with tf.name_scope("inner"):
                    results.append(described(tf.Variable(M, name="weight")))
            results.append(described(tf.Variable(M)))
            with tf.device("CPU:0"):
                results.append(described(tf.Variable(M)))
            with tf.init_scope():
                results.append(described(tf.Variable(M)))
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_variable_creators_of_users():
    def run():
        results, seen = [], []

        def creator(following, **kwargs):
            seen.append(sorted(kwargs))
            return following(**{**kwargs, "name": "created"})

        for _ in range(TIMES):
            with tf.variable_creator_scope(creator):
                results.append(described(tf.Variable(M)))
            with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
                results.append(type(tf.Variable(M)).__name__)
            results.append(described(tf.Variable(M)))
        return results, seen

    want, got = in_both(run)
    assert_same(got, want)


def test_in_graphs():
    def run():
        results = []
        for _ in range(TIMES):
            with tf.Graph().as_default() as graph:
                v = tf.Variable(M)
                results.append(
                    (type(v.handle).__name__, [op.type for op in graph.get_operations()])
                )
            module = tf.Module()

            @tf.function
            def traced(x, module=module):
                if not hasattr(module, "v"):
                    module.v = tf.Variable(M)
                return module.v + x

            results.append((traced(tf.constant(1.0)), described(module.v)))
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_another_default_graph():
    def run():
        results = []
        for _ in range(TIMES):
            results.append(tf.Variable(M)._graph_key == tf.compat.v1.get_default_graph()._graph_key)
            tf.compat.v1.reset_default_graph()
        return results

    want, got = in_both(run)
    assert got == want == [True] * TIMES


def test_callbacks_see_the_same_ops():
    def run():
        seen = []

        def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
            seen.append((op_type, len(inputs), len(outputs)))

        for _ in range(TIMES):
            op_callbacks.add_op_callback(callback)
            try:
                tf.Variable(tf.constant(M))
            finally:
                op_callbacks.remove_op_callback(callback)
        return seen

    want, got = in_both(run)
    assert got == want
    assert ("VarHandleOp", 0, 1) in want


def test_initializers_that_are_replaced(monkeypatch):
    original, seen = ResourceVariable.__init__, []

    def init(self, *args, **kwargs):
        seen.append(kwargs["name"])
        original(self, *args, **kwargs)

    with fastops.accelerated():
        for _ in range(TIMES):
            tf.Variable(M, name="weight")
        monkeypatch.setattr(ResourceVariable, "__init__", init)
        tf.Variable(M, name="weight")
        monkeypatch.undo()
        tf.Variable(M, name="weight")
    assert seen == ["weight"]


def test_creators_that_are_replaced(monkeypatch):
    original, seen = resource_variable_ops.default_variable_creator_v2, []

    def create(next_creator=None, **kwargs):
        seen.append(kwargs["name"])
        return original(next_creator, **kwargs)

    with fastops.accelerated():
        for _ in range(TIMES):
            tf.Variable(M, name="weight")
        monkeypatch.setattr(resource_variable_ops, "default_variable_creator_v2", create)
        tf.Variable(M, name="weight")
    assert seen == ["weight"]


def test_subclasses():
    class Mine(ResourceVariable):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.mine = True

    class Odd(tf.Variable):
        def __init__(self, value):
            self.value_given = value

    def run():
        results = []
        for step in range(TIMES):
            one, odd = Mine(M + step), Odd(step)
            results.append((described(one), one.mine, type(odd).__name__, odd.value_given))
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_checkpoints(tmp_path):
    def run():
        results = []
        for step in range(TIMES):
            v = tf.Variable(M + step, name="weight")
            path = tf.train.Checkpoint(v=v).write(str(tmp_path / f"{step}"))
            restored = tf.Variable(M * 0.0, name="weight")
            tf.train.Checkpoint(v=restored).read(path).assert_consumed()
            late = tf.train.Checkpoint()
            status = late.read(path)
            late.v = tf.Variable(M * 0.0, name="weight")
            status.assert_consumed()
            results += [restored.read_value(), late.v.read_value()]
        return results

    want, got = in_both(run)
    assert_same(got, want)


def test_more_kinds_of_variables_than_are_kept():
    def run():
        return [
            described(tf.Variable(float(step), name=f"v{number}"))
            for number in range(300)
            for step in range(3)
        ]

    want, got = in_both(run)
    assert_same(got, want)


def test_eight_threads():
    problems, barrier = [], threading.Barrier(8)

    def work(number):
        barrier.wait()
        for step in range(50):
            value = float(number * 100 + step)
            with tf.name_scope(f"thread{number % 2}"):
                v = tf.Variable(value, name=f"v{step % 3}")
            if v.numpy() != value or v.name != f"thread{number % 2}/v{step % 3}:0":
                problems.append((v.name, v.numpy(), value))
            seen.append(v)

    seen = []
    with fastops.accelerated():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems
    assert len({v._unique_id for v in seen}) == len(seen) == 400


def dicts_of_handles():
    return {id(one) for one in gc.get_objects() if type(one) is dict and "_parent_trackable" in one}


def test_collections_while_variables_are_made():
    """CPython 3.11 may collect garbage while it makes the dict of a handle.

    TensorFlow's code that shows tensors to the collector makes the dict, too. Two dicts with one
    array of values would crash the process.
    """
    for _ in range(40):  # after these, tensors share only one name of attributes
        tf.constant(1.0)
    before, thresholds = dicts_of_handles(), gc.get_threshold()
    with fastops.accelerated():
        made = [tf.Variable(float(step), name="mine") for step in range(TIMES)]
        in_use = [{} for _ in range(200)]  # CPython reuses up to 80 dicts that have been freed
        try:
            # With some of these thresholds, a collection begins when a handle gets its dict.
            for threshold in range(1, 40):
                gc.set_threshold(threshold)
                made += [tf.Variable(float(step), name="mine") for step in range(TIMES, 40)]
        finally:
            gc.set_threshold(*thresholds)
    assert dicts_of_handles() - before <= {id(v.handle.__dict__) for v in made}
    assert len(in_use) == 200


def test_a_template_may_be_dropped_while_a_variable_is_made(monkeypatch):
    number, dropped = ops.uid, []

    def drop():
        if not dropped:
            dropped.append(True)
            for other in range(300):  # more kinds than templates are kept
                tf.Variable(1.0, name=f"kind{other}")
        return number()

    with fastops.accelerated():
        made = [tf.Variable(float(step), name="mine") for step in range(TIMES)]
        monkeypatch.setattr(ops, "uid", drop)
        made.append(tf.Variable(float(TIMES), name="mine"))
    assert dropped
    assert [v.numpy() for v in made] == list(range(TIMES + 1))
    assert {v.name for v in made} == {"mine:0"}


def test_generators():
    def run():
        results = []
        for step in range(TIMES):
            made = tf.random.Generator.from_seed(step)
            other = tf.random.Generator.from_state([1, step, 0], "philox")
            results += [made.normal([2]), made.state.read_value(), other.uniform([2])]
            results += [generator.normal([1]) for generator in other.split(2)]
            results.append(described(made.state))
        return results

    want, got = in_both(run)
    assert_same(got, want)


# Reasons ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason", "detail"),
    [
        ({"name": "counted"}, None, None),
        ({"dtype": np.float32}, None, None),
        ({"dtype": "float32"}, None, None),
        ({"caching_device": "CPU:0"}, "variable_not_plain", "that two variables cannot share"),
    ],
)
def test_variables_are_counted_by_what_made_them(options, reason, detail):
    value = np.zeros((3, 7), np.float32)  # no other test makes variables of this shape
    tf.Variable(0.0)  # the first variable of a process may be of another kind
    fastops.reset_stats()
    with fastops.accelerated():
        for step in range(TIMES):
            tf.Variable(value + step, **options)
    seen = fastops.stats().kinds["tf.Variable"]
    if reason is None:
        assert (seen.copied, seen.reasons) == (TIMES - 2, {"kind_new": 2})
    else:
        assert (seen.copied, seen.reasons) == (0, {"kind_new": 1, reason: TIMES - 1})
    assert seen.tensorflow == sum(seen.reasons.values())
    last = construction.describe()[-1]
    assert last["state"] == ("active" if reason is None else "refused")
    assert last["reason"] == (None if reason is None else REGISTRY[reason].sentence)
    assert detail is None or detail in last["detail"]
