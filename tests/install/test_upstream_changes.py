"""If a name that `install` uses is missing or changed, only what needs it is left out."""

import io
import subprocess
import sys
import tempfile

import faults
import keras
import pytest
import tensorflow as tf
import zygote
from rich.console import Console
from support import one_in
from tensorflow.python.framework import dtypes

import fastops
from fastops._core import opdef
from fastops._core.reasons import text_of
from fastops._install import calls, targets, upstream
from fastops._install.replacement import Replacement
from fastops._shell import doctor
from tools import upstream as tool

TRAINER = "keras.src.models.model.Trainer"
ADAPTER = "keras.src.trainers.data_adapters.array_data_adapter"
NEST = "tensorflow.python.util.nest_util"

SECONDS = 600


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()
    upstream.begin()


def run(*options):
    """Run tests/faults.py in a process with TensorFlow and Keras; return its output."""
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as errors:
        process = zygote.of(("keras", "tf_keras")).start(
            f"import faults, sys; sys.exit(faults.main({list(options)!r}))",
            zygote.environment_of(),
            *(0, said.fileno(), errors.fileno()),
        )
        status = process.wait(SECONDS)
        said.seek(0)
        errors.seek(0)
        text = said.read()
        return status, text if status in (0, 1) else text + errors.read()[-2000:]


# Every name --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_handfuls(seed):
    """Every name is in one of the handfuls."""
    status, said = run("--size=20", "--step=3", f"--seed={seed}")
    assert status == 0, said


def test_a_module_of_datasets():
    """Pipelines look up the classes of datasets in modules that may be missing."""
    status, said = run("tensorflow.python.data.ops.prefetch_op")
    assert status == 0, said


@pytest.mark.slow
def test_faults_of_single_names():
    """Some names are tested here; ``python tests/faults.py`` tests all."""
    status, said = run("--step=40", "--seed=7")
    assert status == 0, said


@pytest.mark.slow
def test_faults_before_fastops_is_imported():
    code = "import faults, sys; sys.exit(faults.main(['--early', '--step=120', '--seed=11']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=zygote.environment_of(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


of_the_table = pytest.mark.skipif(
    tool.versions() != upstream.table()["versions"],
    reason="The table is written with other versions",
)


@pytest.mark.quick
@of_the_table
def test_the_table_matches_the_sources(capsys):
    assert tool.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.quick
@of_the_table
def test_all_names_exist():
    fastops.install()
    assert upstream.left_out() == {}


# What is left out, and how that is reported
# ----------------------------------------------------------------------


def in_force(layer):
    """Return the names of the patch points of a layer that are active."""
    return {target.name for target in targets.targets() if target.layer == layer}


def said_by_doctor():
    """Return the output of the doctor command, on one line."""
    console = Console(file=io.StringIO(), width=400)
    assert doctor.doctor(console) == 0
    return console.file.getvalue()


@pytest.mark.quick
@pytest.mark.parametrize("fault", [fault for fault in faults.FAULTS if fault != "class"])
def test_a_missing_class_of_keras(fault):
    """Versions of Keras move and rename classes."""
    before = {layer: in_force(layer) for layer in targets.LAYERS}
    with faults.injected([(TRAINER, fault)]):
        fastops.install()
        assert isinstance(vars(keras.Layer)["__call__"], Replacement)
        left = upstream.left_out()
        fastops.uninstall()
        after = {layer: in_force(layer) for layer in targets.LAYERS}
        said = said_by_doctor()
    gone = {f"{TRAINER}.{name}" for name in ("predict_step", "test_step", "train_step")}
    left = {name: why for (_, name), why in left.items() if TRAINER in why}
    assert left.keys() == gone
    assert before.pop("models") - after.pop("models") == gone
    assert before == after
    assert all(why in said for why in left.values())


def test_a_missing_module_of_keras():
    with faults.injected([(ADAPTER, "deleted")]):
        fastops.install()
        assert ADAPTER in upstream.left_out()["keras", "batches"]
        assert isinstance(vars(keras.Layer)["__call__"], Replacement)


def test_a_module_of_tensorflow_that_is_another_object():
    before = in_force("helpers")
    with faults.injected([(f"{NEST}._tf_core_pack_sequence_as", "number")]):
        left = before - in_force("helpers")
    assert "nest.pack_sequence_as" in left
    assert "dtypes.as_dtype" not in left


@pytest.mark.quick
def test_restored_names_are_used_again():
    with faults.injected([(TRAINER, "deleted")]):
        fastops.install()
        fastops.uninstall()
    fastops.install()
    assert not any(TRAINER in why for why in upstream.left_out().values())


@pytest.mark.quick
def test_the_definition_of_an_op_without_the_tables_of_dtypes(monkeypatch):
    expected = opdef.registered("Cumsum")
    monkeypatch.setattr(dtypes, "_ANY_TO_TF", None)
    with pytest.raises(TypeError):
        tf.as_dtype(3)
    assert opdef.registered("Cumsum") == expected


@pytest.mark.quick
def test_an_op_whose_definition_cannot_be_read_runs_in_tensorflow(monkeypatch):
    asked = []

    def find(op_name):
        asked.append(op_name)
        raise RuntimeError(op_name)

    monkeypatch.setattr(calls, "_find", find)
    x = tf.constant([1.0, 3.0])
    with fastops.accelerated(only=["dispatch"]):
        assert tf.cumsum(x).numpy().tolist() == [1.0, 4.0]
        assert tf.cumsum(x).numpy().tolist() == [1.0, 4.0]
    assert asked.count("Cumsum") == 2


# Names -------------------------------------------------------------------------------------------


@pytest.fixture
def module(monkeypatch):
    """Return a module as a package of its own, with a few attributes."""

    class Odd(type(sys)):
        @property
        def raising(self):
            raise OSError("no")

    made = Odd("tf_keras.made")
    made.number, made.function, made.kind, made.none = 1, len, int, None
    monkeypatch.setitem(sys.modules, "tf_keras.made", made)
    return made


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "expected", "why"),
    [
        ("number", "int", None),
        ("number", "any", None),
        ("function", "function", None),
        ("kind", "class", None),
        ("kind.from_bytes", "function", None),
        ("number", "class", ("name_kind", "tf_keras.made.number is an int")),
        ("none", "function", ("name_kind", "tf_keras.made.none is None")),
        ("kind", "function", ("name_kind", "tf_keras.made.kind is a class")),
        ("missing", "any", ("name_missing", "tf_keras.made.missing")),
        ("missing.more", "any", ("name_missing", "tf_keras.made.missing")),
        ("number.real", "any", ("name_kind", "tf_keras.made.number is an int")),
        ("raising", "any", ("name_raises", "tf_keras.made.raising raises OSError")),
    ],
)
def test_messages_about_wrong_names(module, name, expected, why):
    expects = None if why is None else text_of(*why)
    assert upstream.objection_to(f"tf_keras.made.{name}", expected) == expects


def test_an_object_that_raises_on_every_access(module):
    module.number = faults.value_of("raising")
    assert upstream.objection_to("tf_keras.made.number", "int").endswith("is a Raising")
    assert upstream.objection_to("tf_keras.made.number.real", "int").endswith("is a Raising")


def test_a_package_that_is_not_imported():
    why = text_of("package_missing", "nowhere")
    assert upstream.objection_to("nowhere.name", "any") == why


@pytest.mark.quick
def test_modules_that_are_none_in_sys_modules(monkeypatch):
    """Python uses `None` in `sys.modules` to block an import."""
    monkeypatch.setitem(sys.modules, "keras.nothing", None)
    monkeypatch.setitem(sys.modules, "tensorflow.odd", faults.value_of("raising"))
    fastops.install()
    assert isinstance(tf.math.sinh, Replacement)
