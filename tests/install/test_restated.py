"""Parts that reimplement upstream code are active only if that code is unchanged."""

import ast
import copy
import functools
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

import keras
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import math_grad
from tensorflow.python.util import nest

import fastops
from fastops._autodiff.rules import RULES
from fastops._core.reasons import text_of
from fastops._install import restated, targets
from fastops._install.moved import MOVED, earlier_name, running_name
from fastops._install.replacement import Replacement
from tools import restated as tool

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

FLATTEN = "tensorflow.python.util.nest:flatten"


def sources():
    """Return the sources of the modules whose code fastops reimplements."""
    texts = {}
    for module in restated.table()["digests"]:
        if module.partition(".")[0] in ("tensorflow", "keras", "inspect"):
            origin = importlib.util.find_spec(running_name(module)).origin
            texts[module] = Path(origin).read_text()
    return texts


@pytest.fixture
def table(monkeypatch):
    """Replace the table by a copy, which tests may change, without cached results."""

    def forget():
        restated.changed.cache_clear()
        restated.variant.cache_clear()
        restated._others.cache_clear()

    mine = copy.deepcopy(restated.table())
    mine["usual"] = left_out()  # parts that are always left out with these versions
    monkeypatch.setattr(restated, "table", lambda: mine)
    forget()
    yield mine
    fastops.uninstall()
    forget()


def left_out():
    """Return, by layer and name, why parts are left out, without those that always are."""
    usual = restated.table().get("usual", {})
    return {
        (layer, title): why
        for layer, pieces in targets.in_force().items()
        for title, why in pieces.items()
        if why is not None and (layer, title) not in usual
    }


# The code ----------------------------------------------------------------------------------------


def test_formatting_comments_docstrings_and_annotations_do_not_count():
    for module, source in sources().items():
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.returns = ast.Constant("something")
                node.body.insert(0, ast.Expr(ast.Constant("Something else.")))
                for arg in (*node.args.args, *node.args.kwonlyargs):
                    arg.annotation = ast.Constant("something")
        other = ast.unparse(ast.fix_missing_locations(tree))
        accepted = restated.table()["digests"][module]
        assert restated.digests(other, accepted) == restated.digests(source, accepted)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x + 1", "x + 2"),
        ("x + 1", "1 + x"),
        ("x=2", "x=3"),
        ("x=2", "*, x=2"),
        ('"a"', '"b"'),
        ("@property", "@classmethod"),
        ("return", "yield"),
        ("not y", "y"),
    ],
)
def test_all_other_changes_count(old, new):
    source = (
        'class C:\n  @property\n  def f(y, x=2):\n    """Text."""\n'
        '    if not y: g("a")\n    return x + 1\n'
    )
    assert source != source.replace(old, new)
    [digest], [other] = (
        restated.digests(text, {"C.f"}).values() for text in (source, source.replace(old, new))
    )
    assert digest != other


def test_definitions_of_one_name_count_together():
    source = "if a:\n  def f(): return 1\nelse:\n  def f(): return 2\n"
    other = source.replace("2", "3")
    assert restated.digests(source, {"f"}) != restated.digests(other, {"f"})
    assert restated.digests(source, {"g"}) == {"g": restated.MISSING}


# Active parts --------------------------------------------------------------------------------


def test_another_original_is_left_alone(table):
    original = nest.flatten
    table["files"]["tensorflow.python.util.nest"] = {}
    table["digests"]["tensorflow.python.util.nest"]["flatten"] = ["0" * 12]
    with fastops.accelerated():
        assert nest.flatten is original
        assert isinstance(nest.is_nested, Replacement)
    left = left_out()
    why = text_of("code_differs", "tensorflow.python.util.nest.flatten")
    assert left["helpers", "nest.flatten"] == why
    assert set(left) == {
        (layer, title)
        for layer, pieces in table["pieces"].items()
        for title, piece in pieces.items()
        if FLATTEN in table["rests_on"][piece]
    }


def test_a_rule_whose_code_calls_a_changed_function_is_left_out(table):
    table["files"]["tensorflow.python.ops.math_grad"] = {}
    table["digests"]["tensorflow.python.ops.math_grad"]["_MatMulGradAgainstFirstOnly"] = []
    assert list(left_out()) == [("gradients", "MatMul")]
    x = tf.constant([[1.0, 2.0]])
    with fastops.accelerated(), tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x) @ tf.transpose(x)
        before = RULES["MatMul"].taken, RULES["Exp"].taken
        tape.gradient(y, x)
    assert (RULES["MatMul"].taken, RULES["Exp"].taken - 1) == before


def test_code_in_unknown_files_is_read(table):
    table["files"] = {module: {} for module in table["files"]}
    assert left_out() == {}


@pytest.mark.parametrize("origin", [None, "/nowhere/nest.py", importlib.machinery.__file__])
def test_an_original_without_its_source_is_left_alone(table, monkeypatch, origin):
    def find(name, original=importlib.util.find_spec):
        spec = original(name)
        return type("Spec", (), {"origin": origin}) if name.endswith("util.nest") else spec

    monkeypatch.setattr(restated, "find_spec", find)
    why = left_out()["helpers", "nest.flatten"]
    assert why in (
        text_of("source_missing", "tensorflow.python.util.nest"),
        text_of("code_differs", "tensorflow.python.util.nest.flatten"),
    )
    original = nest.flatten
    with fastops.accelerated():
        assert nest.flatten is original


def test_a_source_that_is_not_python_has_no_digests(table, monkeypatch, tmp_path):
    for content in (b"\x00\x01", b"def f(:", "é".encode("latin-1")):
        path = tmp_path / "nest.py"
        path.write_bytes(content)
        monkeypatch.setattr(
            restated, "find_spec", lambda _, path=path: type("", (), {"origin": path})
        )
        restated._others.cache_clear()
        assert restated._others("tensorflow.python.util.nest") is None


def test_functions_that_users_have_wrapped_are_left_alone(monkeypatch):
    calls = []

    @functools.wraps(nest.flatten)
    def mine(*args, **kwargs):
        calls.append(args)
        return mine.__wrapped__(*args, **kwargs)

    monkeypatch.setattr(nest, "flatten", mine)
    with fastops.accelerated():
        assert nest.flatten is mine
        assert nest.flatten([1, [2]]) == [1, 2]
    assert calls == [([1, [2]],)]


def test_a_gradient_that_users_have_wrapped_is_left_alone():
    entry = ops._gradient_registry._registry["Tanh"]
    assert restated.objection("gradients", "Tanh", entry["type"]) is None

    @functools.wraps(math_grad._TanhGrad)
    def mine(op, grad):
        return math_grad._TanhGrad(op, grad)

    assert restated.objection("gradients", "Tanh", mine) == text_of("original_replaced")
    assert restated.objection("gradients", "Exp", math_grad._TanhGrad).endswith("_TanhGrad")
    assert restated.objection("gradients", "Fft", mine) == text_of("piece_unknown")


def test_recordings_of_keras_need_unchanged_code_of_its_global_state(table):
    state = "keras.src.backend.common.global_state"
    table["files"][state] = {}
    table["digests"][state]["set_global_attribute"] = []
    left = targets.in_force()["models"]
    left = {title: why for title, why in left.items() if title.startswith("keras.")}
    assert set(left.values()) == {text_of("code_differs", f"{state}.set_global_attribute")}
    original = vars(keras.losses.Loss)["__call__"]
    with fastops.accelerated():
        assert vars(keras.losses.Loss)["__call__"] is original


# The tool ----------------------------------------------------------------------------------------


def test_equivalent_code_is_listed_with_a_reason():
    digests = restated.table()["digests"]
    for entry in tool.POLICY["as_good"]:
        module, _, definition = entry["name"].partition(":")
        assert set(entry["digests"]) <= set(digests[module][definition])
        assert re.fullmatch(r"[A-Z].*\.", entry["why"])


def test_variants_are_told_apart_by_their_code(table):
    names = [entry["name"] for entry in tool.POLICY["as_good"] if "variant" in entry]
    before = {name: restated.variant(name) for name in names}
    for known in table["variants"].values():
        known["files"] = {}  # so that the code is read
    restated.variant.cache_clear()
    assert {name: restated.variant(name) for name in names} == before
    for name in names:
        module, _, definition = name.partition(":")
        running = restated.digests(sources()[module].encode(), {definition})[definition]
        table["variants"][module]["digests"][definition] = {running: "this"}
    restated.variant.cache_clear()
    assert {restated.variant(name) for name in names} == {"this"}
    assert restated.variant(FLATTEN) is None


def test_names_in_modules_that_have_moved(monkeypatch):
    earlier, later = next(iter(MOVED.items()))
    monkeypatch.setitem(sys.modules, later, None)
    monkeypatch.delitem(sys.modules, earlier, raising=False)
    assert running_name(f"{earlier}.cast") == f"{later}.cast"
    assert running_name(f"{earlier}s.cast") == f"{earlier}s.cast"
    assert earlier_name(later) == earlier
    monkeypatch.setitem(sys.modules, earlier, None)
    assert running_name(f"{earlier}.cast") == f"{earlier}.cast"


def test_the_tool_names_versions_that_would_be_lost():
    old = {"left_out": {"Keras": {"3.8.0": {}, "3.15.1": {}}, "TensorFlow": {"2.21.0": {}}}}
    new = {"left_out": {"Keras": {"3.15.1": {}}, "TensorFlow": {"2.21.0": {}}}}
    assert tool.lost(new, old) == ["Keras 3.8.0"]
    assert tool.lost(old, new) == []


def test_the_tool_finds_the_names_in_code(tmp_path):
    (tmp_path / "one.py").write_text(
        "import two\nfrom two import g as h, B\n"
        "def f(): return h() + two.k() + unknown() + B().method\n"
        "class A(B):\n"
        "  def method(self): return self.other() + self.inherited() + f()\n"
        "  def other(self): pass\n"
    )
    (tmp_path / "two.py").write_text(
        "def g(): pass\ndef k(): pass\n"
        "class B:\n  def __init__(self): pass\n  def inherited(self): pass\n"
    )
    module = tool.Installed(tmp_path).module("one")

    def names(definition):
        return {f"{owner.name}:{name}" for owner, name in module.calls(definition)}

    assert names("f") == {"two:g", "two:k", "two:B.__init__"}
    assert names("A.method") == {"one:A.other", "two:B.inherited", "one:f"}
