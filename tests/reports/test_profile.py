"""`fastops.profile` and `fastops.explain`, the log of fallbacks, and the magics of IPython."""

import json
import logging
import threading
import time
import warnings

import numpy as np
import pytest
import tensorflow as tf
from support import python, walks_in_full

import fastops
from fastops import ops
from fastops._core.measuring import ProfileRecorder
from fastops._core.reasons import REGISTRY, hint_of

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant([1.0, 2.0])
REASON_IDS = {reason.sentence: name for name, reason in REGISTRY.items()}
MIXED = [X[0], tf.Variable(2.0)]  # a list with a variable, which TensorFlow converts


@pytest.fixture(autouse=True)
def not_installed():
    yield
    fastops.uninstall()


def detours(report, op_name):
    """Return the reasons why calls of an op were not direct, as text."""
    return [str(detour) for detour in report.ops[op_name].detours]


def paths(report):
    return {name: (op.direct, op.capi, op.tensorflow) for name, op in report.ops.items()}


# ---------------------------------------------------------------------------------------------
# Counts
# ---------------------------------------------------------------------------------------------


def test_calls_and_paths():
    with fastops.profile() as report:
        for _ in range(3):
            ops.add_v2(x=X, y=X)
        ops.random_uniform(shape=[2], dtype=tf.float32)
        ops.add_v2(x=MIXED, y=X)
    ops.add_v2(x=X, y=X)
    assert paths(report) == {"AddV2": (2, 0, 2), "RandomUniform": (0, 0, 1)}
    assert detours(report, "AddV2") == ["1 first_call", "1 input_type (x is of type list)"]
    assert report.ops["AddV2"].calls == 4


def test_reasons_of_the_capi_path():
    arguments = {"shape": tf.constant([2]), "dtype": tf.float32, "seed": 1}
    ops.random_uniform(**arguments)
    report = fastops.explain(ops.random_uniform, **arguments)
    assert paths(report) == {"RandomUniform": (0, 1, 0)}
    (detour,) = report.ops["RandomUniform"].detours
    assert (detour.path, detour.reason) == ("capi", "op")
    assert detour.detail == "with seed or seed2, TensorFlow's kernel keeps its state between calls"
    assert report.ops["RandomUniform"].kernel_ns == 0
    assert report.ops["RandomUniform"].tensorflow_ns > 0


def test_first_calls_show_the_difference_from_the_nearest_key():
    def one(**arguments):
        (text,) = detours(fastops.explain(ops.sum, axis=0, **arguments), "Sum")
        return text

    assert one(input=X) == "1 first_call"
    assert one(input=tf.cast(X, tf.int32)) == (
        "1 first_call (dtypes: float32, int32 -> int32, int32)"
    )
    assert one(input=X, keep_dims=True) == "1 first_call (keep_dims: False (default) -> True)"
    with tf.device("CPU:0"):
        assert one(input=X).startswith("1 first_call (device:  -> /")
    with fastops.options(onednn="off"):
        assert one(input=X) == "1 first_call (oneDNN: auto -> off)"
    ops.concat_v2(values=[X, X, X], axis=0)
    report = fastops.explain(ops.concat_v2, values=[tf.cast(X, tf.float64)] * 2, axis=0)
    (change,) = report.ops["ConcatV2"].detours[0].changes
    assert (change.part, change.before, change.now) == (
        "dtypes", "[float32, float32, float32], int32", "[float64, float64], int32",
    )  # fmt: skip


def test_the_nearest_key_is_the_one_with_the_fewest_differences():
    for dtype in (tf.float32, tf.float64):
        ops.cumsum(x=tf.cast(X, dtype), axis=0, reverse=dtype == tf.float32)
    report = fastops.explain(ops.cumsum, x=X, axis=0, exclusive=True, reverse=True)
    assert detours(report, "Cumsum") == ["1 first_call (exclusive: False (default) -> True)"]


@pytest.mark.parametrize("call", [lambda: X + X, lambda: tf.math.sinh(X), lambda: tf.add(X, X)])
def test_a_call_through_several_stand_ins_counts_once(call):
    fastops.install()
    first, second = (fastops.explain(call) for _ in range(2))
    assert [op.calls for op in first.ops.values()] == [1]
    assert first.ops.keys() == second.ops.keys()
    assert [op.direct for op in (*first.ops.values(), *second.ops.values())] == [1, 1]
    seen = fastops.stats()
    assert (seen.direct, seen.tensorflow, seen.reasons) == (2, 0, {})


def test_a_fallback_counts_once():
    fastops.install()
    tf.raw_ops.AddV2(x=X, y=X)
    fastops.reset_stats()
    with fastops.options(on_fallback="warn"), pytest.warns(fastops.FallbackWarning) as caught:
        tf.raw_ops.AddV2(x=MIXED, y=X)
    assert len(caught) == 1
    with fastops.options(on_fallback="warn"), pytest.warns(fastops.FallbackWarning) as caught:
        ops.add_v2(x=MIXED, y=X)
    assert len(caught) == 1
    assert fastops.stats().ops["AddV2"].reasons == {"input_type": 2}


def test_calls_of_an_op_inside_of_a_call_of_it_count():
    """Only the first nested call is the same call; others are calls of a conversion function."""

    class Doubled:
        def __init__(self, value):
            self.value = value

    def convert(value, dtype=None, name=None, as_ref=False):
        return tf.constant(value.value) * 2.0 * 2.0

    tf.register_tensor_conversion_function(Doubled, convert)
    fastops.install()
    x = tf.constant(1.0)
    x * 2.0
    fastops.reset_stats()
    assert (x * Doubled(1.0)).numpy() == 4.0
    mul = fastops.stats().ops["Mul"]
    assert (mul.direct, mul.reasons) == (2, {"input_type": 1})


def test_ops_that_never_run_here_are_in_the_report_of_an_unchanged_program():
    fastops.install()
    queue = tf.queue.FIFOQueue(2, tf.float32)
    report = fastops.explain(tf.raw_ops.QueueCloseV2, handle=queue.queue_ref)
    assert report.ops["QueueCloseV2"].tensorflow == 1
    (detour,) = report.ops["QueueCloseV2"].detours
    assert (detour.reason, detour.detail) == ("op", ops.queue_close_v2.never_direct)
    assert "QueueCloseV2" not in fastops.stats().ops


@pytest.mark.parametrize("layer", ["functions", "dispatch"])
def test_calls_with_a_seed_are_in_the_report_of_an_unchanged_program(layer):
    fastops.install(only=[layer])
    arguments = {"shape": tf.constant([2]), "dtype": tf.float32, "seed": 1}
    for _ in range(2):
        report = fastops.explain(tf.raw_ops.RandomStandardNormal, **arguments)
        assert report.ops["RandomStandardNormal"].tensorflow == 1
        (detour,) = report.ops["RandomStandardNormal"].detours
        assert (detour.reason, detour.detail[:9]) == ("op", "with seed")
    assert "RandomStandardNormal" not in fastops.stats().ops


def test_variables():
    v = tf.Variable([1.0, 2.0])
    for _ in range(2):
        ops.mul(x=v, y=X)
    report = fastops.explain(ops.mul, x=v, y=X)
    assert paths(report) == {"Mul": (1, 0, 0), "ReadVariableOp": (1, 0, 0)}
    with tf.GradientTape():
        report = fastops.explain(ops.mul, x=v, y=X)
    assert paths(report) == {"Mul": (1, 0, 0), "ReadVariableOp": (1, 0, 0)}
    assert min(op.kernel_ns for op in report.ops.values()) > 0


def test_the_gradient_of_a_tape():
    fastops.install()

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = X * X
        return tape.gradient(y, X)

    with walks_in_full():
        gradient()
        report = fastops.explain(gradient)
    assert report.ops["Mul"].direct == report.ops["Mul"].calls == 3
    np.testing.assert_array_equal(report.result, [2.0, 4.0])


def test_inside_a_function():
    @tf.function
    def traced(x):
        return ops.neg(x=x)

    report = fastops.explain(traced, X)
    assert detours(report, "Neg") == ["1 graph"]
    assert fastops.explain(traced, X).ops == {}


# ---------------------------------------------------------------------------------------------
# Where and when
# ---------------------------------------------------------------------------------------------


def test_nothing_is_measured_when_no_profile_is_open():
    with fastops.profile() as report:
        pass
    ops.neg(x=X)
    assert report.ops == {}
    assert report.total_ns == report.total_ns > 0


def test_profiles_nest():
    ops.neg(x=X)
    with fastops.profile() as outer:
        ops.neg(x=X)
        with fastops.profile() as inner:
            ops.neg(x=X)
        ops.neg(x=X)
    assert (outer.ops["Neg"].calls, inner.ops["Neg"].calls) == (3, 1)
    assert inner.total_ns < outer.total_ns


def test_profiles_that_end_in_the_order_they_began():
    ops.neg(x=X)
    first, second = fastops.profile(), fastops.profile()
    one, other = first.__enter__(), second.__enter__()
    ops.neg(x=X)
    first.__exit__(None, None, None)
    ops.neg(x=X)
    second.__exit__(None, None, None)
    ops.neg(x=X)
    assert (one.ops["Neg"].calls, other.ops["Neg"].calls) == (1, 2)


def test_a_profile_belongs_to_its_thread():
    ops.neg(x=X)

    def work():
        for _ in range(5):
            ops.neg(x=X)

    with fastops.profile() as report:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        ops.neg(x=X)
    assert report.ops["Neg"].calls == 1


def test_a_profile_that_ends_on_another_thread():
    ops.neg(x=X)
    block = fastops.profile()
    report = block.__enter__()
    ops.neg(x=X)
    thread = threading.Thread(target=block.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    ops.neg(x=X)
    assert report.ops["Neg"].calls == 1


def test_threads_that_profile_at_once():
    ops.neg(x=X)
    profiles = []

    def work():
        for _ in range(50):
            with fastops.profile() as report:
                for _ in range(20):
                    ops.neg(x=X)
            profiles.append(report.ops["Neg"].direct)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert profiles == [20] * 200


def test_exceptions():
    def wrong():
        ops.neg(x=X)
        ops.add_v2(x=X, y=tf.ones([5]))

    ops.add_v2(x=X, y=X)
    with fastops.profile() as report, pytest.raises(tf.errors.InvalidArgumentError):
        wrong()
    assert detours(report, "AddV2") == ["1 kernel_error"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        fastops.explain(wrong)
    assert not fastops.explain(time.sleep, 0).ops


def test_profiles_inside_of_calls():
    """One profile opens and another closes while TensorFlow makes a call."""
    fastops.install()
    seen = []

    class Odd:
        def __init__(self, act):
            self.act = act

    def convert(value, dtype=None, name=None, as_ref=False):
        value.act()
        return tf.constant([1.0, 2.0])

    tf.register_tensor_conversion_function(Odd, convert)

    def opens():
        with fastops.profile() as report:
            tf.raw_ops.Neg(x=X)
        seen.append(report)

    tf.raw_ops.Neg(x=X)
    with fastops.profile() as outer:
        tf.raw_ops.AddV2(x=Odd(opens), y=X)
    assert paths(seen[0]) == {"Neg": (1, 0, 0)}
    assert paths(outer) == {"Neg": (1, 0, 0), "AddV2": (0, 0, 1)}

    block = fastops.profile()
    report = block.__enter__()
    tf.raw_ops.AddV2(x=Odd(lambda: block.__exit__(None, None, None)), y=X)
    assert report.ops == {}


def test_reasons_are_shown_with_their_meaning_and_what_to_do(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")  # one line for each row
    ops.add_v2(x=X, y=X)
    text = str(fastops.explain(ops.add_v2, x=MIXED, y=X))
    reason = REGISTRY["input_type"]
    (line,) = [line for line in text.splitlines() if reason.sentence in line]
    assert line.split()[0] == reason.id
    assert hint_of(reason.sentence).partition(";")[0] in line  # the rest stands in further lines
    assert "what to do" in text
    assert "what to do" not in str(fastops.explain(ops.add_v2, x=X, y=X))


def test_the_hint_of_a_reason():
    sentence = REGISTRY["user_class"].sentence
    assert hint_of(sentence) == "declare it: docs/keras.md, Accelerating Keras"
    assert hint_of(f"{sentence}: the particulars") == hint_of(sentence)
    assert hint_of(REGISTRY["kind_varies"].sentence) == hint_of("another text") == ""


def test_results_are_the_same_and_none_is_kept_alive():
    fastops.install()
    want = tf.reduce_sum(X * 3.0)
    with fastops.profile():
        assert tf.reduce_sum(X * 3.0).numpy() == want.numpy()
    python("""
        import gc, weakref
        with fastops.profile() as report:
            x = ops.add_v2(x=1.0, y=tf.constant(2.0))
        seen = weakref.ref(x)
        del x
        assert seen() is None and report.ops["AddV2"].calls == 1
    """)


# ---------------------------------------------------------------------------------------------
# Time
# ---------------------------------------------------------------------------------------------


def test_times_add_up():
    fastops.install()
    big = tf.ones([512, 512])

    def work():
        time.sleep(0.02)
        for _ in range(5):
            tf.matmul(big, big)
        return tf.random.normal([4])

    work()
    reports = [fastops.explain(work) for _ in range(20)]
    for report in reports:
        matmul = report.ops["MatMul"]
        assert matmul.direct == 5
        assert matmul.tensorflow_ns == 0
        assert min(matmul.kernel_ns, matmul.dispatch_ns) > 0
        assert report.above_ns >= 20e6
        parts = report.above_ns + report.dispatch_ns + report.kernel_ns + report.tensorflow_ns
        assert parts <= report.total_ns
        if matmul.kernel_ns > 10 * matmul.dispatch_ns and parts > 0.95 * report.total_ns:
            break  # otherwise another process had the processor in the meantime
    else:
        pytest.fail(str(reports))


def test_time_in_a_nested_op_belongs_to_that_op():
    """The nested ops are a read of a variable, and a call that TensorFlow makes."""
    fastops.install()

    class Slow:
        pass

    def convert(value, dtype=None, name=None, as_ref=False):
        big = tf.ones([600, 600])
        return tf.matmul(big, big)[0, :2]

    tf.register_tensor_conversion_function(Slow, convert)
    tf.raw_ops.Neg(x=Slow())
    report = fastops.explain(tf.raw_ops.Neg, x=Slow())
    assert report.ops["MatMul"].kernel_ns > 0
    inside = report.ops["MatMul"].total_ns + report.ops["Neg"].total_ns
    assert inside < report.total_ns


# ---------------------------------------------------------------------------------------------
# Display
# ---------------------------------------------------------------------------------------------


def plain(value):
    if isinstance(value, dict):
        return all(type(key) is str and plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(plain, value))
    return value is None or type(value) in (int, str)


def test_plain_data():
    ops.neg(x=X)
    data = fastops.explain(ops.neg, x=tf.cast(X, tf.float64)).to_dict()
    assert plain(data)
    assert list(data) == [
        "total_ns", "above_ns", "dispatch_ns", "kernel_ns", "tensorflow_ns", "ops",
        "functions", "methods", "public_functions", "walks",
    ]  # fmt: skip
    (detour,) = data["ops"]["Neg"]["detours"]
    assert detour == {
        "path": "tensorflow",
        "reason": "first_call",
        "detail": None,
        "changes": [{"part": "dtypes", "before": "float32", "now": "float64"}],
        "calls": 1,
    }


def test_a_table():
    ops.neg(x=X)
    report = fastops.explain(ops.neg, x=tf.cast(X, tf.float64))
    for text in (str(report), repr(report)):
        assert "first_call  dtypes: float32 -> float64" in text
        assert "Without fastops.install()" in text
        assert max(map(len, text.splitlines())) <= 120
    with fastops.accelerated():
        assert "Without" not in str(report)
    ops.neg(x=X)
    text = str(fastops.explain(ops.neg, x=X))
    assert "not direct" not in text
    assert "above the dispatch" in text


def test_a_table_for_notebooks():
    ops.add_v2(x=X, y=X)
    report = fastops.explain(ops.decode_raw, bytes=tf.constant("<b>"), out_type=tf.uint8)
    text = report._repr_html_()
    assert "<table>" in text
    assert "DecodeRaw" in text
    report = fastops.explain(ops.add_v2, x=tf.cast(X, tf.float64), y=tf.cast(X, tf.float64))
    assert "float32, float32 -&gt; float64, float64" in report._repr_html_()


# ---------------------------------------------------------------------------------------------
# The log of fallbacks
# ---------------------------------------------------------------------------------------------


def test_the_log(caplog):
    ops.add_v2(x=X, y=X)
    with caplog.at_level(logging.WARNING), fastops.options(on_fallback="log"):
        ops.add_v2(x=X, y=X)
        ops.add_v2(x=MIXED, y=X)
        ops.identity(input=MIXED)
    first, second = caplog.records
    assert (first.name, first.levelname) == ("fastops.fallback", "WARNING")
    assert (first.op, first.path, first.reason) == ("AddV2", "tensorflow", "input_type")
    assert first.detail == "x is of type list"
    assert first.pathname == __file__
    assert first.getMessage() == (
        "AddV2 ran through 'tensorflow' instead of its kernel: an input is not a tensor, "
        "variable, array, number, string, or a list of these: x is of type list [input_type]"
    )
    assert (second.op, second.reason) == ("Identity", "input_type")


def test_the_environment_enables_the_log():
    """The variable is read when fastops is imported, so a new interpreter is needed."""
    python("""
        import logging
        seen = []
        handler = logging.Handler()
        handler.emit = seen.append
        logging.getLogger("fastops.fallback").addHandler(handler)
        ops.neg(x=[tf.Variable(1.0)])
        assert [record.op for record in seen] == ["Neg"]
    """, forked=False, FASTOPS_ON_FALLBACK="log")  # fmt: skip


def test_a_log_without_handlers_is_not_an_error():
    with warnings.catch_warnings(), fastops.options(on_fallback="log"):
        logging.getLogger("fastops.fallback").disabled = True
        try:
            assert ops.neg(x=[tf.Variable(1.0)]).numpy() == [-1.0]
        finally:
            logging.getLogger("fastops.fallback").disabled = False


def test_threads_that_start_later():
    """`python -m fastops --profile` also profiles threads that the program starts."""
    python("""
        import threading
        from fastops._reports import explain
        x = tf.constant(1.0)
        ops.neg(x=x)
        report = explain.start()
        threads = [threading.Thread(target=lambda: [ops.neg(x=x) for _ in range(10)])
                   for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        ops.neg(x=x)
        assert report.ops["Neg"].calls == 31
        assert 0 < report.above_ns < report.total_ns
    """)


# ---------------------------------------------------------------------------------------------
# IPython
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def shell():
    interactiveshell = pytest.importorskip(
        "IPython.core.interactiveshell", reason="IPython is not installed"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield interactiveshell.InteractiveShell()


def test_ipython(shell):
    shell.run_line_magic("load_ext", "fastops")
    assert fastops.is_installed()
    shell.user_ns["x"] = X
    report = shell.run_cell_magic("fastops_profile", "", "y = x + x\nz = y + y\n")
    assert report.ops["AddV2"].calls == 2
    np.testing.assert_array_equal(shell.user_ns["z"], [4.0, 8.0])
    assert shell.run_line_magic("fastops_profile", "x + x").ops["AddV2"].direct == 1
    result = shell.run_cell("%%fastops_profile\nx + x\n")
    assert result.success
    assert "AddV2" in result.result._repr_html_()
    shell.run_line_magic("unload_ext", "fastops")
    assert not fastops.is_installed()
    assert shell.find_line_magic("fastops_profile") is None
    assert shell.find_cell_magic("fastops_profile") is None


def test_errors_in_ipython(shell, capsys):
    shell.run_line_magic("load_ext", "fastops")
    result = shell.run_cell("%%fastops_profile\na = 1\nb = a / 0\n")
    assert type(result.error_in_exec) is ZeroDivisionError
    assert "b = a / 0" in capsys.readouterr().out
    assert shell.user_ns["a"] == 1
    assert not ProfileRecorder().calls()
    shell.run_line_magic("unload_ext", "fastops")


# ---------------------------------------------------------------------------------------------
# Walks over tapes
# ---------------------------------------------------------------------------------------------


def slope(sources=X, **options):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.sin(X) * X
    return tape.gradient(y, sources, **options)


def test_walks():
    fastops.install()
    with fastops.profile() as report:
        for _ in range(8):
            slope()
        slope({"x": X})
        slope([X, tf.ones([])], unconnected_gradients="zero")
    found = {(walk.executor, REASON_IDS.get(walk.reason)): walk for walk in report.walks}
    assert set(found) == {
        ("replay", None),
        ("fastops", "recording_not_due"),
        ("fastops", "recorded"),
        ("tensorflow", "walk_arguments"),
        ("tensorflow", "walk_placement"),
    }
    walk = found["replay", None]
    assert walk.walks >= 4
    assert walk.records == 2 * walk.walks
    assert 0 < walk.ns < report.total_ns
    assert all(walk.walks == 1 for walk in report.walks if walk.executor == "tensorflow")
    assert report.to_dict()["walks"][0]["ns"] == report.walks[0].ns
    assert "a walk makes zeros" in str(report)
    names = [event["name"] for event in json.loads(report.to_chrome_trace())["traceEvents"]]
    assert names.count("walk over a tape (replay)") == walk.walks


def test_walks_of_nested_profiles_and_of_other_threads():
    fastops.install()
    with fastops.profile() as outer:
        slope()
        with fastops.profile() as inner:
            slope()
            other = threading.Thread(target=slope)
            other.start()
            other.join()
    slope()
    assert sum(walk.walks for walk in outer.walks) == 2
    assert sum(walk.walks for walk in inner.walks) == 1
    with fastops.profile() as report:
        pass
    assert report.walks == []


def test_a_walk_that_raises_is_not_noted():
    fastops.install()
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.sin(X)
    tape.gradient(y, X)
    with fastops.profile() as report, pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(y, X)
    assert report.walks == []
