"""``python -m fastops``: programs run as Python itself would run them, and the commands.

The tests are about the start and the end of an interpreter, so each program runs in a new one.
"""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from rich.console import Console
from support import ROOT, one_in

import fastops
from fastops.__main__ import main
from fastops._shell import doctor

ABOUT = """
import os, pickle, sys
print(__name__, __package__, globals().get("__file__"), __spec__ and __spec__.name)
print(globals().get("__cached__"), getattr(__loader__, "__name__", type(__loader__)), __builtins__)
print(sorted(globals()))
print(sys.argv, sys.path)
class Thing: pass
thing = pickle.loads(pickle.dumps(Thing()))
print(type(thing) is Thing, Thing, sys.modules["__main__"].Thing is Thing)
"""

ENDS = {
    "end": "",
    "status": "sys.exit(3)",
    "message": "sys.exit('bye')",
    "none": "sys.exit()",
    "error": "def deeper():\n    raise ValueError('no')\n\ndeeper()",
    "chain": "try:\n    1 / 0\nexcept Exception as error:\n    raise KeyError(1) from error",
    "group": "class Odd(BaseException): pass\nraise Odd",
    "interrupt": "import signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
    "hook": (
        "def hook(kind, value, traceback):\n"
        "    print(kind, traceback.tb_lineno, traceback.tb_frame.f_globals is globals())\n"
        "    print(sys.last_traceback is traceback, value.__traceback__ is traceback)\n"
        "sys.excepthook = hook\n"
        "1 / 0"
    ),
    "thread": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    "atexit": "import atexit\natexit.register(lambda: print(thing, Thing))\nos.write(1, b'x')",
    "os._exit": "sys.stdout.flush()\nos._exit(7)",
}


def start(arguments, cwd, *, text=None, timeout=120, **environment):
    """Run Python and return its exit status, standard output and standard error."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=variables,
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    # TensorFlow prints messages when it is imported, and objects have addresses.
    error = re.sub(r"^(WARNING: All log|[IWE]\d{4} ).*\n", "", done.stderr, flags=re.M)
    return done.returncode, *(re.sub(r"0x\w+", "0x", seen) for seen in (done.stdout, error))


def assert_as_plain(arguments, cwd, **settings):
    """Run a program by Python and by fastops, and compare; return status, output and errors."""
    plain = start(arguments, cwd, **settings)
    assert start(["-m", "fastops", *arguments], cwd, **settings) == plain
    return plain


# --------------------------------------------------------------------------------------------- The
# same as in a plain run
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ENDS)
def test_scripts(end, tmp_path):
    (tmp_path / "script.py").write_text(ABOUT + ENDS[end])
    status, out, _ = assert_as_plain(["script.py", "--profile", "-x", "a b"], tmp_path)
    assert status == {
        "status": 3, "message": 1, "error": 1, "chain": 1, "group": 1, "hook": 1,
        "interrupt": -signal.SIGINT, "os._exit": 7,
    }.get(end, 0)  # fmt: skip
    assert "['script.py', '--profile', '-x', 'a b']" in out


@pytest.mark.parametrize("name", ["./sub/script.py", "sub/../sub/script.py", "link.py"])
def test_names_of_scripts(name, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "script.py").write_text(ABOUT + "import beside")
    (tmp_path / "sub" / "beside.py").write_text("print(__name__)")
    (tmp_path / "link.py").symlink_to("sub/script.py")
    assert assert_as_plain([name], tmp_path)[0] == 0


def test_scripts_that_do_not_start(tmp_path):
    (tmp_path / "wrong.py").write_text("a = 1\ndef f(:\n")
    assert assert_as_plain(["wrong.py"], tmp_path)[0] == 1
    assert assert_as_plain(["none.py"], tmp_path)[0] == 2


def test_scripts_in_another_encoding(tmp_path):
    text = "# -*- coding: latin-1 -*-\nprint(len('\xe9'))"
    (tmp_path / "script.py").write_text(text, encoding="latin-1")
    assert assert_as_plain(["script.py"], tmp_path)[:2] == (0, "1\n")


def test_compiled_scripts(tmp_path):
    (tmp_path / "script.py").write_text(ABOUT + ENDS["error"])
    code = "import py_compile; py_compile.compile('script.py', cfile='script.pyc')"
    assert start(["-c", code], tmp_path)[0] == 0
    assert assert_as_plain(["script.pyc"], tmp_path)[0] == 1


@pytest.mark.parametrize("arguments", [["-m", "package"], ["-m", "package.tool", "x"]])
def test_modules(arguments, tmp_path):
    (tmp_path / "package").mkdir()
    for name in ("__init__", "__main__", "tool"):
        text = "" if name == "__init__" else ABOUT + ENDS["error"]
        (tmp_path / "package" / f"{name}.py").write_text(text)
    assert assert_as_plain(arguments, tmp_path)[0] == 1


@pytest.mark.parametrize("name", ["nothing", "package.nothing", "json.nothing"])
def test_modules_that_do_not_exist(name, tmp_path):
    assert assert_as_plain(["-m", name], tmp_path)[0] == 1


def test_code(tmp_path):
    assert assert_as_plain(["-c", ABOUT + ENDS["status"], "-m", "x"], tmp_path)[0] == 3


def test_the_standard_input(tmp_path):
    assert assert_as_plain(["-", "x"], tmp_path, text=ABOUT + ENDS["status"])[0] == 3


def test_directories_and_zip_files(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(ABOUT + ENDS["error"])
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", ABOUT + ENDS["error"])
    (tmp_path / "empty").mkdir()
    for name in ("app", "./app/", "app.zip", "empty"):
        assert assert_as_plain([name, "x"], tmp_path)[0] == 1


# A program that uses all functions of Python that show the stack.
STACK = """
import faulthandler, inspect, sys, traceback, tracemalloc, warnings
tracemalloc.start(9)

def deeper():
    print(tracemalloc.get_object_traceback(object()))
    traceback.print_stack()
    print([(frame.filename, frame.lineno, frame.function) for frame in inspect.stack()])
    warnings.warn("of a frame that is not there", stacklevel=9)
    faulthandler.dump_traceback()
    print(len(traceback.format_stack()), len(sys._current_frames()))

def endless():
    endless()

deeper()
endless()
"""

PROGRAMS = {
    "script": ["program.py"],
    "module": ["-m", "program"],
    "code": ["-c"],
    "directory": ["app"],
}


def put(text, way, folder):
    """Write a program for one of the ways to run it; return the command-line arguments."""
    (folder / "app").mkdir()
    for place in ("program.py", "app/__main__.py"):
        (folder / place).write_text(text)
    return [*PROGRAMS[way], text] if way == "code" else PROGRAMS[way]


@pytest.mark.parametrize("way", PROGRAMS)
def test_the_stack_begins_with_the_program(way, tmp_path):
    arguments = put(STACK, way, tmp_path)
    status, out, error = assert_as_plain(arguments, tmp_path)
    assert status == 1
    assert "deeper" in out
    assert "RecursionError" in error
    assert "fastops" not in (out + error).replace(str(tmp_path), "")


def test_the_standard_input_has_no_frames_below(tmp_path):
    status, _, error = assert_as_plain(["-"], tmp_path, text=STACK)
    assert status == 1
    assert "RecursionError" in error


def test_processes_that_are_spawned(tmp_path):
    (tmp_path / "script.py").write_text("""
import multiprocessing, os, sys

class Thing:
    def __init__(self, value):
        self.value = value

def work(thing):
    return Thing(thing.value + 1), __name__, sys.argv

if __name__ == "__main__":
    for method in ("spawn", "fork", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            thing, name, arguments = pool.apply(work, (Thing(1),))
            print(thing.value, name, arguments)
""")
    assert assert_as_plain(["script.py", "x"], tmp_path)[0] == 0


def test_without_the_script_s_directory(tmp_path):
    (tmp_path / "script.py").write_text("import sys; print(sys.path)")
    plain = start(["-I", "script.py"], tmp_path)[1]
    code = f"import sys; sys.path.append({str(ROOT)!r}); import runpy; "
    code += "sys.argv = ['fastops', 'script.py']; runpy._run_module_as_main('fastops', False)"
    assert start(["-I", "-c", code], tmp_path)[1] == plain.replace("]", f", {str(ROOT)!r}]")


# ---------------------------------------------------------------------------------------------
# With fastops
# ---------------------------------------------------------------------------------------------

PROGRAM = """
import sys, threading, tensorflow as tf
x = tf.constant([1.0, 2.0])
def work():
    for _ in range(10):
        tf.math.cosh(x)
work()
thread = threading.Thread(target=work)
thread.start()
thread.join()
import fastops
print(fastops.is_installed(), fastops.stats().ops["Cosh"].direct)
print("noise", file=sys.stderr)
"""


@pytest.mark.quick
def test_fastops_is_installed(tmp_path):
    assert start(["-m", "fastops", "-c", PROGRAM], tmp_path) == (0, "True 20\n", "noise\n")


@pytest.mark.parametrize("end", one_in(3, ["1 / 0", "sys.exit(3)", ""]))
def test_the_profile(end, tmp_path):
    (tmp_path / "script.py").write_text(PROGRAM + end)
    status, out, error = start(["-m", "fastops", "--profile", "script.py"], tmp_path)
    assert (status, out) == ({"": 0, "sys.exit(3)": 3, "1 / 0": 1}[end], "True 20\n")
    words = [line.split()[:5] for line in error.splitlines()]
    assert words[0] == ["noise"]
    assert ["Cosh", "20", "20", "0", "0"] in words
    if end == "1 / 0":
        assert error.index("ZeroDivisionError") < error.index("Cosh")


def test_the_profile_as_files(tmp_path):
    (tmp_path / "script.py").write_text("import os; os.mkdir('in'); os.chdir('in')" + PROGRAM)
    options = ["--html=page.html", "--trace=trace.json", "--frames"]
    ended = start(["-m", "fastops", *options, "script.py"], tmp_path)
    assert ended == (0, "True 20\n", "noise\n")
    assert "Cosh" in (tmp_path / "page.html").read_text()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = [event["tid"] for event in events if event["name"] == "thread_name"]
    cosh = [event["tid"] for event in events if event["name"].startswith("Cosh")]
    assert [cosh.count(track) for track in tracks] == [10, 10]
    assert "work" in {event["name"] for event in events}


def test_a_file_that_cannot_be_written(tmp_path):
    options = ["--html=nowhere/page.html", "--trace=trace.json"]
    status, _, error = start(["-m", "fastops", *options, "-c", "import fastops"], tmp_path)
    assert status == 0
    assert "fastops: cannot write" in error
    assert (tmp_path / "trace.json").exists()


def test_the_profile_of_functions(tmp_path):
    code = (
        "import tensorflow as tf\nfrom fastops._specialize import policy\npolicy.set_share(0)\n"
        "@tf.function\ndef squared(x): return x * x\n"
        "for _ in range(20): squared(tf.ones([3]))"
    )
    status, _, error = start(["-m", "fastops", "--functions", "--profile", "-c", code], tmp_path)
    assert status == 0
    # The plan is made in the second call.
    assert [line.split()[:2] for line in error.splitlines() if "squared(" in line] == [
        ["plan", "18"]
    ]


@pytest.mark.slow
def test_forked_processes_print_no_profile(tmp_path):
    code = "import os, fastops; pid = os.fork(); pid and os.waitpid(pid, 0)"
    status, _, error = start(["-m", "fastops", "--profile", "-c", code], tmp_path)
    assert (status, error.count("above the dispatch")) == (0, 1)


def test_verify(tmp_path):
    code = "import tensorflow as tf; print(float(tf.constant(1.0) + 1.0))"
    for option, mode in (("--verify", "raise"), ("--verify=warn:2", "warn")):
        asked = f"{code}; import fastops; print(fastops.verified().mode)"
        status, out, error = start(["-m", "fastops", option, "-c", asked], tmp_path)
        assert (status, out) == (0, f"2.0\n{mode}\n"), error
        assert "fastops verified " in error
        assert ": 0 differences; " in error
    status, _, error = start(["-m", "fastops", "--verify=always", "-c", code], tmp_path)
    assert status == 2
    assert "'always' is not raise, warn, raise:N or warn:N" in error


@pytest.mark.slow
def test_strict(tmp_path):
    code = "import tensorflow as tf; x = tf.raw_ops.Neg(x=[1.0]); print(x.numpy())"
    assert start(["-m", "fastops", "-c", code], tmp_path) == (0, "[-1.]\n", "")
    status, out, error = start(["-m", "fastops", "--strict", "-c", code], tmp_path)
    assert (status, out) == (1, "")
    assert "FallbackError: Neg ran through 'tensorflow'" in error
    code = f"import tensorflow, threading; threading.Thread(target=exec, args=[{code!r}]).start()"
    status, out, error = start(["-m", "fastops", "--strict", "-c", code], tmp_path)
    assert (status, out) == (0, "")
    assert "FallbackError" in error


@pytest.mark.slow
def test_the_program_imports_tensorflow(tmp_path):
    """The program may set how TensorFlow is imported."""
    code = (
        "import os, sys\n"
        "assert not {'tensorflow', 'fastops'} & set(sys.modules)\n"
        "os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'\n"
        "import importlib.util\n"
        "assert importlib.util.find_spec('tensorflow')\n"
        "import FIRST\n"
        "import fastops\n"
        "from fastops._reports import counters\n"
        "print(fastops.is_installed(), counters.onednn_enabled())\n"
        "from keras.src.layers import layer\n"
        "print(type(vars(layer.Layer)['__call__']).__name__)\n"
        "followers = [one for one in sys.meta_path if type(one).__name__ == 'ImportFollower']\n"
        "assert [list(one.names) for one in followers] == [['tf_keras']]\n"
        "import tf_keras\n"
        "print(type(vars(tf_keras.layers.Layer)['__call__']).__name__)\n"
        "assert followers[0] not in sys.meta_path\n"
    )
    for first in ("tensorflow", "keras", "fastops.ops", "tensorflow.python.ops.math_ops"):
        ended = start(["-m", "fastops", "-c", code.replace("FIRST", first)], tmp_path)
        assert ended == (0, "True False\nRecordedMethod\nRecordedMethod\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "before", ["pass", "gc.disable()", "gc.freeze()", "gc.set_threshold(900, 7, 11)"]
)
def test_an_import_is_not_interrupted_by_full_collections(tmp_path, before):
    code = (
        "import gc\n"
        "def state():\n"
        "    return gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0\n"
        f"{before}\n"
        "was, full = state(), []\n"
        "def visited(phase, info):\n"
        "    if phase == 'start' and info['generation'] == 2 and len(gc.get_objects()) > 10000:\n"
        "        full.append(gc.get_stats())\n"
        "gc.callbacks.append(visited)\n"
        "import keras\n"
        "assert not full\n"
        "assert state() == was\n"
        "objects = [[] for _ in range(3 * gc.get_threshold()[0])]\n"
        "assert gc.get_freeze_count() or not full\n"  # none is due at once, either
    )
    assert start(["-m", "fastops", "-c", code], tmp_path) == (0, "", "")


def test_a_tensorflow_that_cannot_be_imported(tmp_path):
    (tmp_path / "tensorflow.py").write_text("import nothing")
    code = "import sys\ntry:\n    import tensorflow\nfinally:\n    print(sys.argv)"
    status, out, error = start(["-m", "fastops", "-c", code], tmp_path)
    assert (status, out) == (1, "['-c']\n")
    assert "No module named 'nothing'" in error


@pytest.mark.slow
def test_errors_of_tensorflow_show_no_line_of_fastops(tmp_path):
    (tmp_path / "script.py").write_text(
        "import tensorflow as tf\n"
        "x = tf.ones([2])\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        x + tf.ones([3])\n"
        "    except tf.errors.InvalidArgumentError:\n"
        "        pass\n"
        "x + tf.ones([3])\n"
    )
    assert assert_as_plain(["script.py"], tmp_path)[0] == 1


# Programs whose error messages contain Python's stack or a traceback, written by TensorFlow or
# Keras.
TEXTS = """
import logging, sys, traceback
import keras
import tensorflow as tf

logging.basicConfig(format="%(filename)s:%(lineno)d %(funcName)s %(message)s", stream=sys.stdout)

def show(title, work):
    print("---", title)
    try:
        print(work())
    except Exception as error:
        print(type(error).__name__, error, *traceback.format_exception(error))

@tf.function
def raises(x):
    if x > 0:
        raise ValueError("no")
    return x

@tf.function
def shapes(x):
    return tf.matmul(x, tf.ones([3, 3]))

@tf.function
def asserts(x):
    with tf.control_dependencies([tf.debugging.assert_less(x, 1.0, message="too large")]):
        return tf.identity(x)

@tf.function
def branches(x):
    return tf.cond(x > 0, lambda: tf.reshape(x, [2]), lambda: tf.reshape(x, [1]))

@tf.function
def loops(x):
    while x < 10:
        x = tf.concat([x, x], 0)
    return x

@tf.function
def makes_a_variable(x):
    return tf.Variable(x)

@tf.function
def leaks(x):
    kept.append(x + 1.0)
    return x

@tf.function
def retraced(x):
    return x

kept = []

class Layer(keras.layers.Layer):
    def call(self, x):
        return tf.matmul(x, tf.ones([7, 2]))

def fitted():
    model = keras.Sequential([keras.layers.Dense(2), Layer()])
    model.compile("sgd", "mse")
    model.fit(tf.ones([4, 3]), tf.ones([4, 2]), verbose=0)

def wrong_shape():
    keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(2)])(tf.ones([2, 4]))

def mapped():
    less = lambda x: tf.debugging.assert_less(x, tf.constant(1, tf.int64))
    return list(tf.data.Dataset.range(3).map(less))

def session():
    with tf.Graph().as_default():
        a = tf.compat.v1.placeholder(tf.float32, name="a")
        print([(frame.name, frame.lineno) for frame in a.op.traceback])
        with tf.compat.v1.Session() as session:
            session.run(tf.reshape(a, [3], name="b"), {a: [1.0]})

def twice():
    with tf.Graph().as_default():
        for _ in range(2):
            tf.compat.v1.get_variable("v", [1])

def of_python():
    def python(x):
        raise TypeError("in Python")
    return tf.py_function(python, [1.0], tf.float32)

show("raises", lambda: raises(tf.constant(1.0)))
show("shapes", lambda: shapes(tf.ones([2, 2])))
show("asserts", lambda: asserts(tf.constant(3.0)))
show("branches", lambda: branches(tf.constant(5.0)))
show("loops", lambda: loops(tf.constant([5.0])))
show("variable", lambda: makes_a_variable(tf.constant(1.0)))
show("leaks", lambda: leaks(tf.constant(1.0)) + kept[0])
show("retraced", lambda: [retraced(i) for i in range(9)])
for work in (fitted, wrong_shape, mapped, session, twice, of_python):
    show(work.__name__, work)
asserts(tf.constant(3.0))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["script", "module", "code"])
def test_error_messages_are_the_same_as_in_a_plain_run(way, tmp_path):
    arguments = put(TEXTS, way, tmp_path)
    plain, ours = (
        # Names of files and graphs that TensorFlow generates differ between processes.
        [re.sub(r"(__autograph_generated_file|id=)\w+", r"\1", str(text)) for text in ended]
        for ended in (start([*run, *arguments], tmp_path) for run in ([], ["-m", "fastops"]))
    )
    assert ours == plain
    status, out, error = plain
    assert status == "1"
    assert "defined at (most recent call last):" in out
    assert "Arguments received by" in out
    assert ("in user code:" in out) == (way != "code")  # AutoGraph does not find the source of code
    assert "too large" in error


# ---------------------------------------------------------------------------------------------
# The command line
# ---------------------------------------------------------------------------------------------


def test_help_and_version(tmp_path):
    status, out, error = start(["-m", "fastops", "--help"], tmp_path)
    assert (status, error) == (0, "")
    assert all(
        word in out
        for word in (
            "--profile",
            "--html",
            "--trace",
            "--frames",
            "--strict",
            "doctor",
            "config",
            "-m module",
        )
    )
    assert start(["-m", "fastops", "--version"], tmp_path)[1] == f"fastops {fastops.__version__}\n"


@pytest.mark.slow
def test_commands(tmp_path):
    status, out, _ = start(["-m", "fastops", "config"], tmp_path)
    assert status == 0
    assert "FASTOPS_ON_FALLBACK" in out
    status, out, _ = start(["-m", "fastops", "doctor"], tmp_path)
    assert status == 0
    assert all(word in out for word in ("direct path", "active", "operators", "models"))


def test_doctor_lists_what_is_left_out(monkeypatch):
    reasons = {"helpers": {"a": None, "b": "of b", "c": "of c", "d": "of b"}, "keras": {"e": None}}
    monkeypatch.setattr(doctor.targets, "in_force", lambda: reasons)
    console = Console(width=100, record=True)
    assert doctor.doctor(console) == 0
    rows = [
        [cell.strip() for cell in line.split("│")] for line in console.export_text().split("\n")
    ]
    for row in (
        ["helpers", "1 of 4", "b, d", "of b"],
        ["", "", "c", "of c"],
        ["keras", "1", "", ""],
    ):
        assert ["", *row, ""] in rows


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Write a SavedModel with two signatures, one of which cannot run as a plan."""
    path = tmp_path_factory.mktemp("saved") / "model"
    module = tf.Module()
    module.w = tf.Variable([[1.0], [2.0]])
    signature = [tf.TensorSpec([None, 2], tf.float32, "x")]
    product = tf.function(lambda x: {"y": x @ module.w, "words": tf.as_string(x)}, signature)
    number = tf.function(lambda x: {"y": x + tf.random.normal([2], seed=1)}, signature)
    signatures = {"serving_default": product, "noisy": number}
    tf.saved_model.save(
        module, str(path), {k: f.get_concrete_function() for k, f in signatures.items()}
    )
    return path


def test_run(model, tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "in.npy", [[3.0, 4.0]])
    arguments = ["--input", "x=in.npy", "--output", "y=out.npy", "--output", "words=words.npy"]
    status, out, error = start(
        ["-m", "fastops", "run", str(model), *arguments, "--repeat", "20"], tmp_path
    )
    assert (status, error) == (0, "")
    assert np.load(tmp_path / "out.npy").tolist() == [[11.0]]
    assert np.load(tmp_path / "words.npy").tolist() == [[b"3.000000", b"4.000000"]]
    assert "20, after one that is not timed" in out
    for title in ("fastest", "median", "90 %", "99 %", "slowest"):
        assert re.search(rf"{title} *│ [\d.,]+ us", out)
    # The times decide which executor is kept, so this test disables timing.
    monkeypatch.chdir(tmp_path)
    main(["run", str(model), "--input", "x=in.npy"])
    assert re.search(r"runs as *│ a plan of \d+ nodes", capsys.readouterr().out)


@pytest.mark.quick
def test_run_with_wrong_arguments(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "in.npy", [[3.0, 4.0]])
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY")
    for arguments, message in (
        ([str(model)], f"serving_default of {model} misses its input 'x'"),
        (["nothing"], "No such file or directory: 'nothing'"),
        ([str(model), "--signature", "other"], "has no signature 'other'"),
        ([str(model), "--tags", "gpu"], "no MetaGraph with the tags 'gpu'"),
        ([str(model), "--input", "x=none.npy"], "No such file or directory: 'none.npy'"),
        ([str(model), "--input", "x=bad.npy"], "bad.npy is not a .npy file, or is damaged"),
        ([str(model), "--input", "x=in.npy", "--output", "z=o.npy"], "has no output 'z'"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["run", *arguments])
        assert ended.value.code.startswith("python -m fastops run: ")
        assert message in ended.value.code
    assert sorted(os.listdir(tmp_path)) == ["bad.npy", "in.npy"]


@pytest.mark.quick
def test_inspect(model, tmp_path):
    status, out, error = start(["-m", "fastops", "inspect", str(model)], tmp_path)
    assert (status, error) == (0, "")
    words = " ".join(re.sub("[^\\w., ():']", " ", out).split())
    assert "serving_default input x float32 (None, 2) output" in words
    assert "output y float32 (None, 1)" in words
    assert "AsString 1," in words
    assert "runs as a plan of" in words
    assert "noisy input x" in words
    assert "runs as TensorFlow's: a random op has a seed" in words
    with pytest.raises(SystemExit, match="No such file or directory: 'nothing'"):
        main(["inspect", "nothing"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "the following arguments are required: model"),
        (["run", "m", "--input", "x"], "'x' is not of the form NAME=FILE"),
        (["run", "m", "--repeat", "0"], "'0' is not a positive number"),
        (["inspect", "m", "x"], "unrecognized arguments: x"),
        (["--strict", "run", "m"], "run takes no options before it"),
        ([], "a program or a command is missing"),
        (["--profile"], "a program or a command is missing"),
        (["--frames", "script.py"], "--frames needs --html=FILE or --trace=FILE"),
        (["--html", "script.py"], "argument --html: expected one argument"),
        (["--wrong", "script.py"], "unrecognized arguments: --wrong"),
        (["-m"], "argument expected for the -m option"),
        (["config", "x"], "config takes no arguments"),
    ],
)
@pytest.mark.quick
def test_wrong_usage(arguments, message, tmp_path):
    status, out, error = start(["-m", "fastops", *arguments], tmp_path)
    assert (status, out) == (2, "")
    assert message in error
