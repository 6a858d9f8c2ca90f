"""Libraries of custom ops, compiled with the headers of TensorFlow's wheel."""

import inspect
import pickle
import tempfile
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from apart import Process, within
from recorder import distinct, settled
from support import (
    DIRECT,
    FIRST,
    assert_same,
    failure,
    floats,
    outcome,
    python,
    took,
)

import fastops
from fastops import ops, raw_ops

pytestmark = pytest.mark.usefixtures("fresh")

X = tf.constant([1.0, 2.0, 3.0])
ONE = tf.constant(1, tf.int64)


@pytest.fixture(scope="module")
def apart(custom_op_library):
    """Yield a process that has loaded the library, which cannot be unloaded again."""
    process = Process(partial(load, custom_op_library))
    yield process
    process.end()


def load(path):
    """Return the path, the ops of fastops, and TensorFlow's functions.

    Also register gradients in Python, as a user does.
    """
    given = {
        "path": path,
        "library": fastops.load_op_library(path),
        "reference": tf.load_op_library(str(path)),
    }

    @tf.RegisterGradient("FastopsTestScale")
    def scale(op, gradient):
        # This is not the exact derivative. It depends on the input so that it has a derivative,
        # too.
        return gradient * op.get_attr("factor") * op.inputs[0]

    @tf.RegisterGradient("FastopsTestMix")
    def mix(op, *gradients):
        count = op.get_attr("N")
        assert op.get_attr("mode") in ("up", b"up")
        assert len(op.inputs) == count + len(op.get_attr("Rest"))
        assert len(op.outputs) == len(gradients) == len(op.inputs) + 1
        factor = tf.constant(np.prod(op.get_attr("factors")), op.get_attr("T"))
        total = gradients[count]
        return [factor * (gradient + total) for gradient in gradients[:count]] + [
            *gradients[count + 1 :]
        ]

    return given


# ---------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------


@within("apart")
def test_attributes(reference):
    def program(m):
        return [
            m.FastopsTestScale(x=X),
            m.FastopsTestScale(x=X, factor=3.0),
            m.FastopsTestScale(x=X, factor=-0.5, name="named"),
            m.FastopsTestScale(x=np.float32([[0.5]]), factor=3),
            m.FastopsTestScale(x=tf.zeros([0, 2])),
            m.FastopsTestScale(x=2.0),
        ]

    _, paths = settled(program, reference)
    assert distinct(paths) == {DIRECT}


@within("apart")
def test_lists_in_and_out(reference):
    y = tf.constant([0.5, -1.0, 4.0])
    words, flags = tf.constant(["a", "b"]), tf.constant([True])
    variable = tf.Variable(X)

    def program(m):
        return [
            m.FastopsTestMix(values=[X, y], rest=[words, flags], factors=[2.0, 0.5]),
            m.FastopsTestMix(values=[X], rest=[y], factors=[3.0], mode="down", times=4),
            m.FastopsTestMix(values=(X, y, X), rest=[ONE], factors=[], negate=True),
            m.FastopsTestMix(values=[tf.cast(X, tf.float64)], rest=[variable], factors=[2.0]),
            m.FastopsTestMix(values=[X], rest=[], factors=[1.5]),
        ]

    want, paths = settled(program, reference)
    assert type(want[0]).__name__ == "FastopsTestMix"
    assert want[0]._fields == ("scaled", "sum", "same")
    assert distinct(paths) == {DIRECT}


@within("apart")
def test_a_kernel_that_may_write_into_its_input(reference):
    """An input with another reference is not changed."""
    variable = tf.Variable(X)
    array = X.numpy()

    def program(m):
        h = m.FastopsTestScale(x=X)
        chain = m.FastopsTestScale(x=m.FastopsTestScale(x=h))
        results = [h, chain, m.FastopsTestScale(x=variable), m.FastopsTestScale(x=array)]
        return [*results, X, variable.read_value(), tf.constant(array)]

    want, paths = settled(program, reference)
    assert [result.numpy().tolist() for result in want[-3:]] == [[1.0, 2.0, 3.0]] * 3
    assert distinct(paths) == {DIRECT}


@within("apart")
def test_errors_of_kernels(reference):
    """Class and message are TensorFlow's if construction or computation of a kernel fails."""
    wrong = tf.constant([0.5, -1.5])

    def program(m):
        return [
            m.FastopsTestScale(x=X),
            outcome(m.FastopsTestScale, x=wrong),
            outcome(m.FastopsTestScale, x=wrong, name="named"),
            outcome(m.FastopsTestScale, x=X, factor=13.0),
            outcome(m.FastopsTestScale, x=ONE),
            outcome(m.FastopsTestScale, x=X, factor="two"),
            m.FastopsTestMix(values=[X, X], rest=[X], factors=[2.0]),
            outcome(m.FastopsTestMix, values=[X, wrong], rest=[X], factors=[2.0]),
            outcome(m.FastopsTestMix, values=[X], rest=[X], factors=[2.0], mode="sideways"),
            outcome(m.FastopsTestMix, values=[ONE], rest=[X], factors=[2.0]),
            outcome(m.FastopsTest_Pair),
        ]

    want, paths = settled(program, reference)
    assert [failure.kind for failure in want if hasattr(failure, "kind")] == [
        tf.errors.OutOfRangeError,
        tf.errors.OutOfRangeError,
        tf.errors.UnimplementedError,
        ValueError,
        TypeError,
        tf.errors.InvalidArgumentError,
        tf.errors.InvalidArgumentError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    ]
    assert 'x is negative at 1: "-1.5"' in want[1].message
    assert paths == {
        "FastopsTestScale": [DIRECT, *["tensorflow:kernel_error"] * 2, *[FIRST] * 3],
        "FastopsTestMix": [DIRECT, "tensorflow:kernel_error", FIRST, FIRST],
        "FastopsTest_Pair": [FIRST],
    }


@within("apart")
def test_a_kernel_with_state(library, reference):
    """All calls use TensorFlow's kernel, whose state counts them."""
    step = tf.constant(2, tf.int64)
    first = int(reference.FastopsTestCounter(step=step))
    counts, paths = [], []
    for i in range(6):
        counts.append(int(reference.FastopsTestCounter(step=step)))
        result, path = took(library.FastopsTestCounter, step=step)
        counts.append(int(result))
        paths.append(path)
        if i % 2:
            wrong = [failure(m.FastopsTestCounter, step=-step) for m in (reference, library)]
            assert wrong[0] == wrong[1]
            assert wrong[0].kind is tf.errors.FailedPreconditionError
    assert counts == [first + 2 * n for n in range(1, 13)]
    assert paths == [FIRST, *["capi:op"] * 5]
    assert library.FastopsTestCounter.never_direct


@within("apart")
def test_kernels_that_are_not_run_directly(reference):
    """An asynchronous kernel, and one that does not set an output, which TensorFlow makes empty."""

    def program(m):
        return m.FastopsTestLater(x=X), m.FastopsTestUnset(x=X)

    want, paths = settled(program, reference)
    assert want[1].unset.shape == [0]
    assert paths == {
        "FastopsTestLater": ["capi:kernel"],
        "FastopsTestUnset": ["tensorflow:kernel_error"],
    }


@within("apart")
def test_a_kernel_gets_a_complete_context(reference):
    def program(m):
        return [m.FastopsTestContext(x=x) for x in (X, tf.constant(["a", "b"]), tf.zeros([0]))]

    want, paths = settled(program, reference)
    assert b"step container: there" in want[0].numpy()
    assert distinct(paths) == {DIRECT}


@within("apart")
def test_threads_and_graphs(library, reference):
    @tf.function
    def function(m):
        h = m.FastopsTestScale(x=X, factor=0.5, name="half")
        return m.FastopsTestMix(values=[h, X], rest=[X], factors=[2.0])

    nodes = [
        str(function.get_concrete_function(m).graph.as_graph_def().node)
        for m in (reference, library)
    ]
    assert nodes[0] == nodes[1]
    assert_same(function(library), function(reference))
    assert fastops.stats().reasons == {"graph": 2}

    large = tf.constant(floats(1000) ** 2)
    want = reference.FastopsTestScale(x=large, factor=7.0).numpy().tobytes()
    wrong = []

    def work():
        for _ in range(500):
            if library.FastopsTestScale(x=large, factor=7.0).numpy().tobytes() != want:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert fastops.stats().ops["FastopsTestScale"].direct >= 4 * 500 - 4


# ---------------------------------------------------------------------------------------------
# Gradients
# ---------------------------------------------------------------------------------------------


@within("apart")
def test_gradients(reference):
    y = tf.Variable([0.5, 1.0, 4.0])

    def loss(m, x):
        h = m.FastopsTestScale(x=x, factor=0.5)
        mixed = m.FastopsTestMix(values=[h, y], rest=[h, ONE], factors=[2.0, 3.0])
        return mixed.sum * mixed.scaled[0] + mixed.same[0]

    def program(m):
        with tf.GradientTape(persistent=True) as second:
            second.watch(X)
            with tf.GradientTape() as first:
                first.watch(X)
                z = loss(m, X)
            gradient = first.gradient(z, [X, y])
        with tf.GradientTape() as tape:
            tape.watch(X)
            traced = tf.function(lambda x: loss(m, x))(X)
        with tf.autodiff.ForwardAccumulator(X, tf.ones([3])) as accumulator:
            z = loss(m, X)
        return [
            z,
            *gradient,
            *second.gradient(gradient[0], [X, y]),
            tape.gradient(traced, X),
            accumulator.jvp(z),
        ]

    want, paths = settled(program, reference)
    assert all(gradient is not None for gradient in want)
    for op_name in ("FastopsTestScale", "FastopsTestMix"):
        assert paths[op_name] == [DIRECT, "tensorflow:graph", DIRECT]


@within("apart")
def test_an_op_without_a_gradient(reference):
    def program(m):
        def gradient():
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = m.FastopsTestUnset(x=X).set
            return tape.gradient(y, X)

        return outcome(gradient)

    want, _ = settled(program, reference)
    assert want.kind is LookupError


# ---------------------------------------------------------------------------------------------
# Libraries
# ---------------------------------------------------------------------------------------------


@within("apart")
def test_library_of_ops(library, path):
    scale = library.fastops_test_scale
    assert scale is library.FastopsTestScale
    assert scale is ops.fastops_test_scale
    assert scale is raw_ops.FastopsTestScale
    assert str(inspect.signature(scale)) == "(*, x, factor=2.0, name=None)"
    assert list(inspect.signature(library.fastops_test_pair).parameters) == ["name"]
    assert library.FastopsTest_Pair.op_name == "FastopsTest>Pair"
    assert "factor : float, default 2.0" in scale.__doc__
    assert pickle.loads(pickle.dumps(scale)) is scale
    assert scale.__module__ == "fastops.ops"
    assert library.__name__ == path.stem


def test_libraries_that_cannot_be_loaded(tmp_path):
    path = tmp_path / "text.so"
    missing = failure(fastops.load_op_library, path=path)
    assert missing.kind is FileNotFoundError
    assert "text.so" in missing.message
    path.write_text("not a library")
    assert failure(fastops.load_op_library, path=path) == failure(
        tf.load_op_library, library_filename=str(path)
    )


@within("apart")
def test_a_library_that_is_loaded_again(library, reference, path):
    """Ops and kernels are unchanged. Loaded under another name, the library has no new ops."""
    assert took(library.FastopsTestScale, x=X)[1] == FIRST
    for same in (path, str(path)):
        again = fastops.load_op_library(same)
        assert again.FastopsTestScale is library.FastopsTestScale
        assert took(again.FastopsTestScale, x=X)[1] == DIRECT
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder, "link.so")
        link.symlink_to(path)
        assert not hasattr(tf.load_op_library(str(link)), "FastopsTestScale")
        assert not hasattr(fastops.load_op_library(link), "FastopsTestScale")
    assert tf.load_op_library(str(path)) is reference
    assert took(library.FastopsTestScale, x=X)[1] == DIRECT


def test_threads_that_load_a_library(custom_op_library):
    """Several threads load the library at once, in a process that has not loaded it before."""
    python(f"""
        import threading
        together, loaded = threading.Barrier(4), []

        def load():
            together.wait(60)
            loaded.append(fastops.load_op_library({str(custom_op_library)!r}).FastopsTestScale)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(loaded) == 4 and len(set(map(id, loaded))) == 1
        x = tf.constant(2.0)
        for _ in range(2):
            assert loaded[0](x=x).numpy() == 4.0
        assert fastops.stats().direct == 1
    """)


def test_libraries_are_never_unloaded(custom_op_library, tmp_path):
    """Ops remain after the result of `load_op_library` and the file have been deleted."""
    python(f"""
        import gc, os, shutil, weakref
        path = shutil.copy({str(custom_op_library)!r}, {str(tmp_path / "gone.so")!r})
        library = fastops.load_op_library(path)
        scale = library.FastopsTestScale
        x = tf.constant(2.0)
        assert scale(x=x).numpy() == scale(x=x).numpy() == 4.0
        gone = weakref.ref(library)
        del library
        os.remove(path)
        gc.collect()
        assert gone() is None
        with open("/proc/self/maps") as maps:
            assert "gone.so" in maps.read()
        for _ in range(3):
            assert scale(x=x).numpy() == raw_ops.FastopsTestScale(x=x).numpy() == 4.0
        assert fastops.stats().ops["FastopsTestScale"].direct == 7
        fastops.clear_cache()
        for _ in range(2):
            assert ops.fastops_test_scale(x=x, factor=0.5).numpy() == 1.0
        assert fastops.stats().ops["FastopsTestScale"].direct == 8
    """)
