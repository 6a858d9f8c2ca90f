"""Events of the process: exits, forks, interrupts, subinterpreters, and the import.

Code that could end or hang a process runs in its own process. This process is a new interpreter and
not a fork if the test is about the import of TensorFlow, environment variables, or the exit.
"""

import signal
import sys
import threading
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from apart import Fork, Process, within
from support import assert_same, floats, interpreter, one_in, outcome, python

import fastops
from fastops import ops, raw_ops

# ---------------------------------------------------------------------------------------------
# Exits
# ---------------------------------------------------------------------------------------------


LOADS = {
    "kernels": ("ops.mat_mul(a=x, b=x), ops.mat_mul(a=big, b=big)", "pass", 0),
    "conversions": (
        "ops.add_v2(x=x, y=1.5), ops.add_v2(x=array, y=x), ops.mat_mul(a=x, b=v), "
        "ops.assign_add_variable_op(resource=v.handle, value=x)",
        "raise RuntimeError",
        1,
    ),
    "capi": ("ops.random_uniform(shape=shape, dtype=tf.float32, seed=1)", "sys.exit(3)", 3),
    "mixed": (
        "ops.add_v2(x=x, y=x), ops.random_uniform(shape=shape, dtype=tf.float32, seed=1)",
        "os.kill(os.getpid(), signal.SIGINT)",
        -signal.SIGINT,
    ),
}
"""The calls of threads, how the process ends while they run, and its exit status.

No call takes TensorFlow's own path: its conversion of lists sometimes aborts at exit, also without
fastops, because Python before 3.14 unwinds the stack of such a thread through C++ code.
"""


@pytest.mark.parametrize("load", one_in(4, LOADS))
def test_an_exit_under_load(load):
    """At exit, daemon threads never get the GIL again, inside a kernel or waiting for it."""
    calls, end, status = LOADS[load]
    out = python(
        f"""
        import os, signal, sys, threading, time
        x, big, shape = tf.ones([2, 2]), tf.ones([200, 200]), tf.constant([2])
        v, array = tf.Variable(x), np.ones([2, 2], np.float32)
        calls = 0

        def call():
            {calls}

        def loop():
            global calls
            while True:
                call()
                calls += 1

        call()

        for _ in range(4):
            threading.Thread(target=loop, daemon=True).start()
        while calls < 200:
            time.sleep(0.01)
        seen = fastops.stats()
        print((seen.capi if {load!r} == "capi" else seen.direct) > 150)
        sys.stdout.flush()
        {end}
        """,
        timeout=60,
        status=status,
        forked=False,
    )
    assert out == "True\n"


def test_an_exit_with_live_objects():
    """Kernels, tensors, variables and tapes are in cycles and in modules that are freed last."""
    python(
        """
        import atexit, builtins, sys
        x = tf.constant([1.0, 2.0])
        v = tf.Variable([1.0, 2.0])
        recording = tf.GradientTape()
        recording.__enter__()  # the tape is never exited
        with tf.GradientTape(persistent=True) as tape:
            for _ in range(2):
                y = ops.mul(x=v, y=x)
        assert fastops.stats().ops["Mul"].direct == 1
        cycle = [tape, y, ops.mul]
        cycle.append(cycle)
        builtins.kept = sys.kept = cycle
        handle = v.handle
        atexit.register(lambda: ops.add_v2(x=x, y=x))

        class Late:
            def __init__(self, op, x):
                self.op, self.x = op, x
            def __del__(self):
                self.op(x=self.x, y=self.x)

        late = Late(ops.add_v2, x)
        sys.late = late
        """,
        forked=False,
    )


# ---------------------------------------------------------------------------------------------
# Forks
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def alone():
    """Yield a process with few other threads."""
    process = Process()
    yield process
    process.end()


def paths():
    """Return the reasons that have been counted, and "direct" if there were direct calls."""
    seen = fastops.stats()
    return {*seen.reasons, *(["direct"] if seen.direct else [])}


@within("alone")
def test_forks_after_use():
    """A forked child can make all calls that work in TensorFlow.

    Thread pools do not survive a fork: kernels that need them, such as large ones, hang in both.
    """
    x, v, two = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0]), tf.constant([2])

    def update(m):
        m.AssignAddVariableOp(resource=v.handle, value=x)
        return m.ReadVariableOp(resource=v.handle, dtype=tf.float32)

    def gradient(m):
        with tf.GradientTape() as tape:
            y = m.Mul(x=v, y=m.Exp(x=x))
        return tape.gradient(y, v)

    used = {
        "small": lambda m: m.AddV2(x=x, y=x),
        "product": lambda m: m.MatMul(a=x[None], b=x[:, None]),
        "converted": lambda m: m.Sub(x=np.float32([1, 2]), y=3),
        "several": lambda m: m.Unpack(value=x, num=2),
        "texts": lambda m: m.StringJoin(inputs=[tf.constant("a"), tf.constant("b")]),
        "variable": update,
        "gradient": gradient,
        "random": lambda m: m.RandomUniform(shape=two, dtype=tf.float32, seed=1, seed2=2),
        "random without a seed": lambda m: m.RandomShuffle(value=tf.ones([9])),
        "error": lambda m: outcome(m.AddV2, x=x, y=tf.ones([3])),
        "fallback": lambda m: m.Add(x=[x[0], tf.Variable(2.0)], y=x),
        "packed": lambda m: m.Add(x=[x[0], 2.0], y=x),
    }
    for call in used.values():
        for m in (raw_ops, raw_ops, tf.raw_ops):
            call(m)
    calls = used | {
        "new op": lambda m: m.Cosh(x=x),
        "new attributes": lambda m: m.StringJoin(inputs=[tf.constant("a")], separator="!"),
    }
    expected = {
        "random": {"op"},
        "error": {"kernel_error"},
        "fallback": {"input_type"},
        "new op": {"first_call", "direct"},
        "new attributes": {"first_call", "direct"},
    }

    def run(m, call):
        fastops.reset_stats()
        results = [call(m) for _ in range(3)]
        return tf.nest.map_structure(
            lambda leaf: leaf.numpy() if isinstance(leaf, tf.Tensor) else leaf, results
        ), paths()

    children = {
        (name, m is raw_ops): Fork(partial(run, m, call))
        for name, call in calls.items()
        for m in (tf.raw_ops, raw_ops)
    }
    sent = {key: child.result() for key, child in children.items()}
    for name in calls:
        want, got = sent[name, False], sent[name, True]
        assert want is not None, f"{name}: TensorFlow itself hangs"
        assert got is not None, name
        assert_same(got[0], want[0])
        assert got[1] == expected.get(name, {"direct"}), name
    # The parent is not affected.
    assert_same(update(raw_ops), v.read_value())
    assert run(raw_ops, used["small"])[1] == {"direct"}


@within("alone")
def test_forks_while_ops_are_loaded():
    """A thread that holds a lock in the parent does not exist in the child."""
    sys.setswitchinterval(1e-6)
    names = [name for name in dir(raw_ops) if name != "Cosh"][::4]
    x = tf.constant([1.0, 2.0])
    want = tf.raw_ops.Cosh(x=x).numpy()

    def load():
        for name in names:
            with suppress(TypeError, fastops.DeprecatedOpError, fastops.MissingOpError):
                getattr(raw_ops, name)(nonsense=1)

    thread = threading.Thread(target=load)
    thread.start()
    hung = count = 0
    while thread.is_alive():
        children = [Fork(lambda: raw_ops.Cosh(x=x).numpy()) for _ in range(4)]
        for child in children:
            got = child.result()
            hung += got is None
            count += 1
            assert got is None or got.tobytes() == want.tobytes()
    assert not hung, f"{hung} of {count} children hung"
    assert count >= 8


@pytest.mark.quick
def test_forks_that_exit_like_other_processes():
    """Children finalize their interpreters, and nothing waits for threads of the parent."""
    python(
        """
        import multiprocessing, os, signal, sys, warnings
        warnings.simplefilter("ignore")
        x = tf.constant([1.0, 2.0])
        for _ in range(2):
            ops.add_v2(x=x, y=x)

        def double(number):
            fastops.reset_stats()
            return ops.add_v2(x=x, y=number).numpy().tolist(), fastops.stats().direct

        child = os.fork()
        if child == 0:
            signal.alarm(20)
            assert double(1) == ([2.0, 3.0], 1)
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        signal.alarm(40)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(double, range(20)) == [([n + 1.0, n + 2.0], 1) for n in range(20)]
        """,
        timeout=60,
    )


# ---------------------------------------------------------------------------------------------
# Interrupts
# ---------------------------------------------------------------------------------------------


def test_an_interrupt_in_the_middle_of_calls():
    """At whatever instruction it comes, a call is made or not made, and later calls work.

    Cases that fail in TensorFlow are left out: if it is interrupted while it converts a list, or a
    number for a gradient, it sometimes crashes. Scopes are entered and left without interrupts,
    because an interrupt there leaves them open.
    """
    out = python("""
        import random, signal
        from contextlib import nullcontext
        from functools import partial
        from itertools import product
        from support import took
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        pick = random.Random(0)
        one, big = tf.ones([3]), tf.random.stateless_normal([300, 300], [1, 2])
        square = tf.raw_ops.MatMul(a=big, b=big).numpy().tobytes()
        v = tf.Variable([0.0, 0.0, 0.0])
        begun = done = 0

        def kernels():
            ops.mat_mul(a=ops.add_v2(x=big, y=0.0), b=big)

        def first_call():
            fastops.clear_cache()
            ops.leaky_relu(features=one, alpha=pick.random())

        def variables():
            ops.add_n(inputs=[ops.mul(x=v, y=v), v])

        def failing():
            try:
                ops.mat_mul(a=one, b=one)
            except tf.errors.InvalidArgumentError:
                pass

        scopes = (
            nullcontext,
            tf.GradientTape,
            partial(fastops.options, path="capi"),
            partial(fastops.options, path="tensorflow"),
        )
        works = (kernels, variables, first_call, failing)
        for scope, work, _ in product(scopes, works, range(3)):
            with scope():
                try:
                    # The signal repeats: TensorFlow drops exceptions while a tape reads a handle.
                    signal.setitimer(signal.ITIMER_REAL, pick.uniform(0.001, 0.01), 0.2)
                    while True:
                        begun += 1
                        ops.assign_add_variable_op(resource=v.handle, value=one)
                        done += 1
                        work()
                except (KeyboardInterrupt, RuntimeError) as error:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    # TensorFlow may wrap the interrupt in another exception.
                    assert "KeyboardInterrupt" in repr(error), error
            made = v.numpy().tolist()
            assert made in ([done] * 3, [begun] * 3), (made, done, begun)
            begun = done = int(made[0])
            assert tf.raw_ops.AddV2(x=one, y=one).numpy().tolist() == [2.0] * 3
            for _ in range(2):
                result, path = took(ops.mat_mul, a=big, b=big)
                assert result.numpy().tobytes() == square
            assert path == "direct", path
            with tf.GradientTape() as tape:
                y = ops.mul(x=v, y=v)
            assert tape.gradient(y, v).numpy().tolist() == [2.0 * done] * 3
        print("fine")
    """)
    assert out == "fine\n"


def test_an_interrupt_while_ops_are_loaded():
    """The interrupt comes at one of the lines of the first call: first, second, and some later."""
    out = python("""
        import sys
        from support import check
        unary = ("Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh", "Exp", "Log", "Neg", "Sqrt")
        interrupted = 0

        def load(name):
            global interrupted
            last = 0
            while True:
                last += max(1, last // 2)
                lines = 0

                def interrupt(frame, event, argument):
                    nonlocal lines
                    if event == "line" and frame.f_code is not load.__code__:
                        lines += 1
                        if lines == last:
                            raise KeyboardInterrupt
                    return interrupt

                try:
                    sys.settrace(interrupt)
                    getattr(raw_ops, name)(nonsense=1)
                except KeyboardInterrupt:
                    interrupted += 1
                except (TypeError, fastops.DeprecatedOpError, fastops.MissingOpError):
                    return
                finally:
                    sys.settrace(None)

        for name in (*unary, *vars(tf.raw_ops)):
            if not name.startswith("_"):
                load(name)
        assert interrupted > 1000, interrupted
        x = tf.constant([0.5, 0.25])
        for name in unary:
            check(name, x=x)
        print("fine")
    """)
    assert out == "fine\n"


def test_handlers_that_call_ops():
    """A handler runs between any two instructions of the main thread."""
    x, m = tf.constant([1.0, 2.0]), tf.constant(floats(30, 30))
    product = tf.raw_ops.MatMul(a=m, b=m)
    handled, depth, pause = [], 0, 0.0

    def handle(number=None, frame=None):
        nonlocal depth
        count, depth = float(len(handled)), depth + 1
        if depth < 4:  # the handler may be interrupted itself, but must not overflow the stack
            signal.setitimer(signal.ITIMER_REAL, pause)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.mul(x=ops.add_v2(x=x, y=count), y=x)
        gradient = tape.gradient(y, x).numpy().tolist()
        handled.append(gradient == [2.0 + count, 4.0 + count])
        ops.mat_mul(a=m, b=m)
        fastops.clear_cache()
        depth -= 1
        signal.setitimer(signal.ITIMER_REAL, pause)

    handle()  # the first run imports what the handler needs
    pause = 0.001
    before = signal.signal(signal.SIGALRM, handle)
    try:
        handle()
        while len(handled) < 100:
            assert_same(ops.mat_mul(a=ops.add_v2(x=m, y=0.0), b=m), product)
            assert ops.add_v2(x=[1.0, 2.0], y=x).numpy().tolist() == [2.0, 4.0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(handled)
    assert fastops.stats().ops["MatMul"].direct > 0


# ---------------------------------------------------------------------------------------------
# Subinterpreters
# ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("imported", [True, False], ids=["after", "instead"])
def test_the_import_in_a_subinterpreter_is_refused(imported):
    """The import raises, whether or not the main interpreter has imported fastops."""
    out = interpreter(
        f"""
        import os
        try:
            import _interpreters as interpreters
        except ImportError:  # before Python 3.13
            import _xxsubinterpreters as interpreters
        if {imported}:
            import fastops
        reading, writing = os.pipe()
        lines = [
            "import os, sys",
            "for name in ('fastops', 'fastops.ops', 'fastops'):",
            "    try:",
            "        __import__(name)",
            "    except ImportError as error:",
            f"        os.write({{writing}}, (str(error) + chr(10)).encode())",
            "assert 'tensorflow' not in sys.modules",
            f"os.write({{writing}}, b'fine')",
        ]
        interpreters.run_string(interpreters.create(), "\\n".join(lines))
        print(os.read(reading, 1000).decode())
        import fastops
        for _ in range(3):
            assert fastops.ops.add_v2(x=1.0, y=2.0).numpy() == 3.0
        assert fastops.stats().direct >= 1
        """,
        timeout=60,
    )
    assert out == "fastops, like TensorFlow, runs in the main interpreter only\n" * 3 + "fine\n"


# ---------------------------------------------------------------------------------------------
# Import
# ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cost_of_the_import():
    """It costs 1/50 of the function calls of TensorFlow's import, 20 MB, and makes no context."""
    out = interpreter("""
        import sys
        calls = 0

        def count(frame, event, arg):
            global calls
            calls += event == "call"

        sys.setprofile(count)
        import tensorflow as tf
        tf.raw_ops, tf.config, tf.Variable
        theirs, calls = calls, 0
        sys.setprofile(None)

        from memory import allocated
        memory, blocks = allocated(), sys.getallocatedblocks()
        sys.setprofile(count)
        import fastops
        sys.setprofile(None)
        print(calls, theirs, allocated() - memory, sys.getallocatedblocks() - blocks)

        from tensorflow.python.eager import context
        assert context._context is None or context._context._context_handle is None
        fastops.ops.add_v2, fastops.raw_ops.MatMul, fastops.gen.nn_ops.conv2d, fastops.stats()
        fastops.cache_info(), fastops.clear_cache(), dir(fastops.ops)
        with fastops.options(path="capi"):
            pass
        assert context._context is None or context._context._context_handle is None
        # This raises once the context is initialized.
        tf.config.threading.set_intra_op_parallelism_threads(1)
        fastops.ops.add_v2(x=1.0, y=2.0)
    """)
    ours, theirs, allocated, blocks = map(int, out.split())
    print(f"import fastops: {ours} calls of {theirs}, {allocated} bytes, {blocks} blocks")
    assert ours < theirs / 50
    assert allocated + 100 * blocks < 20 * 2**20


@pytest.mark.quick
def test_the_first_call_initialises_the_context_and_is_right():
    python("""
        from tensorflow.python.eager import context
        assert context._context is None or context._context._context_handle is None
        results = [ops.add_v2(x=np.float32([1, 2]), y=np.float32([3, 4])) for _ in range(3)]
        assert all(result.numpy().tolist() == [4.0, 6.0] for result in results)
        assert fastops.stats().reasons in ({"context": 1, "first_call": 1}, {"first_call": 1})
        assert fastops.stats().direct >= 1
    """)


def test_the_environment_sets_what_threads_start_with():
    python(
        """
        import threading
        from fastops._core import threads
        want = {"path": "capi", "on_fallback": "warn", "onednn": "off", "threads": "pool"}
        seen = [threads.get_options()]
        thread = threading.Thread(target=lambda: seen.append(threads.get_options()))
        thread.start()
        thread.join()
        assert seen == [want, want], seen
        assert fastops.cache_info()["entries_per_op"] == 7
        """,
        forked=False,
        FASTOPS_PATH="capi",
        FASTOPS_ON_FALLBACK="warn",
        FASTOPS_ONEDNN="off",
        FASTOPS_THREADS="pool",
        FASTOPS_CACHE_SIZE="7",
    )


def test_a_bad_environment_is_named():
    out = interpreter("""
        import os
        for variable, value in (
            ("FASTOPS_PATH", "fast"), ("FASTOPS_CACHE_SIZE", "-1"), ("FASTOPS_DEVICES", "GPU"),
        ):
            os.environ[variable] = value
            try:
                import fastops
            except ValueError as error:
                print(error)
            del os.environ[variable]
    """)
    path, size, devices = out.splitlines()
    assert "FASTOPS_PATH" in path
    assert "fast" in path
    assert "FASTOPS_CACHE_SIZE" in size
    assert "-1" in size
    assert "FASTOPS_DEVICES" in devices
    assert "plugins" in devices
