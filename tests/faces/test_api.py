"""The ops as Python objects: names, modules, signatures, documentation, pickling, missing ops."""

import copy
import inspect
import pickle
import pydoc
import subprocess
import sys

import pytest
import tensorflow as tf

import fastops
from fastops import _dispatch, _registry, gen, ops, raw_ops
from fastops._core import base, opdef
from fastops._core.tables import facts, index
from tools import load

pytestmark = pytest.mark.quick

RAW_OPS = [name for name in dir(tf.raw_ops) if not name.startswith("_")]

DEFINED = [name for name in RAW_OPS if name in index.FAMILIES]
"""Ops of `tf.raw_ops` that are also in the snapshot."""


def of_candidates():
    """Return the ops that only candidates of a release of TensorFlow have."""
    texts = [file.read_text() for file in load.differing() if file not in load.earlier()]
    return {name for text in texts for name in load.parse(text)} - index.FAMILIES.keys()


def refused(call, *args, **kwargs):
    """Return the exception that a call raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any exception
        call(*args, **kwargs)
    return caught.value


@pytest.mark.skipif(facts.VERSION != tf.version.VERSION, reason="the file is of another TensorFlow")
def test_public_names_and_signatures(golden):
    lines = [f"fastops.{name}{_signature(getattr(fastops, name))}" for name in fastops.__all__]
    for name in dir(ops):
        op = getattr(ops, name)
        lines.append(f"fastops.ops.{name} = {op.__module__}.{op.__name__}{op.__signature__}")
    lines += [
        f"fastops.raw_ops.{name} = {getattr(raw_ops, name).__name__}" for name in dir(raw_ops)
    ]
    golden("api.txt", "\n".join(lines) + "\n")


def _signature(value):
    if inspect.ismodule(value) or not callable(value):
        return ""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return f"({', '.join(base.__name__ for base in value.__bases__)})"
    return str(inspect.signature(value))


def test_every_registered_op_is_in_three_modules():
    registered = {proto.name for proto in opdef.registry().op if not proto.name.startswith("_")}
    assert registered == {_registry.op(name).op_name for name in registered}
    shown = {getattr(ops, name).op_name for name in dir(ops)}
    assert registered <= shown
    for name in dir(raw_ops):
        op = getattr(raw_ops, name)
        assert op is getattr(ops, op.__name__)
        if op.op_name in of_candidates():
            continue  # it is made of the running registry
        assert op is getattr(getattr(gen, index.FAMILIES[op.op_name]), op.__name__)
        assert op.__module__ == f"fastops.gen.{index.FAMILIES[op.op_name]}"
        assert op.__qualname__ == op.__name__


def test_raw_ops_can_replace_tf_raw_ops():
    assert set(RAW_OPS) <= set(dir(raw_ops))


def test_reports_are_pickled_under_their_original_names():
    seen = fastops.stats()
    text = pickle.dumps(seen, protocol=0)
    assert b"fastops._stats\nStats" in text
    assert pickle.loads(text) == seen
    assert pickle.loads(b"cfastops._profile\nProfile\n.") is fastops.Profile
    assert pickle.loads(b"cfastops._description\nPlanNode\n.") is fastops.PlanNode


@pytest.mark.parametrize("plain", ["abs", "all", "max", "min", "pow", "range", "slice", "sum"])
def test_names_of_builtins_are_bound_too(plain):
    assert getattr(ops, plain) is getattr(ops, f"_{plain}")
    assert getattr(gen.math_ops, plain, None) or getattr(gen.array_ops, plain)


def test_keywords_keep_their_underscore():
    assert ops._if is raw_ops.If
    assert not hasattr(ops, "if")


def test_star_import_brings_every_op():
    namespace = {}
    exec("from fastops.raw_ops import *", namespace)
    assert namespace["AddV2"] is ops.add_v2
    assert set(dir(raw_ops)) <= set(namespace)


@pytest.mark.parametrize("name", ["Add_V2", "addv2", "__wrapped__", "if"])
def test_unknown_names(name):
    assert str(refused(getattr, ops, name)) == f"module 'fastops.ops' has no attribute {name!r}"


def test_signatures_are_those_of_tensorflow():
    for name in DEFINED:
        op = getattr(raw_ops, name)
        own = inspect.signature(op).parameters.values()
        theirs = inspect.signature(getattr(tf.raw_ops, name)).parameters.values()
        assert [(p.name, p.default) for p in own] == [(p.name, p.default) for p in theirs], name
        assert {p.kind for p in own} == {inspect.Parameter.KEYWORD_ONLY}
        assert op.__name__ == getattr(tf.raw_ops, name).__name__


def test_documentation():
    for name in dir(raw_ops):
        op = getattr(raw_ops, name)
        if op.record.missing:
            continue
        text = op.__doc__
        summary, _, rest = text.partition("\n")
        assert summary.endswith("."), name
        assert len(summary) <= 100, name
        for section in ("Parameters", "Returns", "Raises", "Notes", "Source"):
            assert f"\n{section}\n{'-' * len(section)}\n" in rest, (name, section)


def test_help_shows_the_text_of_fastops_and_of_tensorflow():
    text = pydoc.plain(pydoc.render_doc(ops.conv2d))
    signature = "".join(text.split())  # Python 3.13 writes each argument on its own line
    assert "conv2d(*,input,filter,strides,padding,use_cudnn_on_gpu=True" in signature
    assert 'padding : {"SAME", "VALID", "EXPLICIT"}' in text
    assert "Differentiable with respect to `input` and `filter`." in text
    assert f"TensorFlow {tf.version.VERSION} says" in text
    assert inspect.getdoc(tf.raw_ops.Conv2D).splitlines()[0] in text


@pytest.mark.parametrize("name", ["add_v2", "unique", "assign"])
def test_ops_are_routines_that_pickle_and_copy(name):
    op = getattr(ops, name)
    assert inspect.isroutine(op)
    assert pickle.loads(pickle.dumps(op)) is op
    assert copy.copy(op) is op
    assert copy.deepcopy([op])[0] is op


def test_an_op_as_a_class_attribute_does_not_bind():
    class Layer:
        activation = ops.relu

    assert Layer().activation is ops.relu


def test_deprecated_ops_name_the_version_and_a_replacement():
    error = refused(ops.batch_cholesky, input=[[1.0]])
    assert type(error) is fastops.DeprecatedOpError
    assert "BatchCholesky is deprecated since GraphDef version 13" in str(error)
    assert "use Cholesky instead" in str(error)


def test_ops_on_references_are_deprecated():
    error = refused(raw_ops.Assign, ref=tf.Variable(1.0), value=2.0)
    assert type(error) is fastops.DeprecatedOpError
    assert "since TensorFlow 2.0" in str(error)
    assert "use AssignVariableOp instead" in str(error)


def test_every_op_that_tensorflow_rejects_is_deprecated():
    for proto in opdef.registry().op:
        op = opdef.from_proto(proto)
        if not op.name.startswith("_") and (op.takes_refs or op.deprecated_since is not None):
            assert type(refused(_registry.op(op.name))) is fastops.DeprecatedOpError, op.name


@pytest.fixture
def fresh(monkeypatch):
    """Empty the modules of ops and the registry of op objects for one test."""
    doors = {
        ops: _registry.flat_door,
        raw_ops: _registry.raw_door,
        gen.math_ops: _registry.family_door,
        gen.image_ops: _registry.family_door,
    }

    def close():
        for module, door in doors.items():
            for name in [name for name, value in vars(module).items() if hasattr(value, "op_name")]:
                delattr(module, name)
            vars(module).pop("__all__", None)
            module.__getattr__, module.__dir__ = door(module.__name__)

    made = _dispatch.known.copy()
    monkeypatch.setattr(_dispatch, "known", {})
    monkeypatch.setattr(base, "records", {})
    close()
    yield monkeypatch
    monkeypatch.setattr(_dispatch, "known", made)
    close()


def test_ops_of_a_later_tensorflow_raise_on_use(fresh):
    registered = opdef.registered
    fresh.setattr(
        opdef, "registered", lambda name: None if name == "DecodeJxl" else registered(name)
    )
    op = ops.decode_jxl
    assert op is gen.image_ops.decode_jxl
    assert "contents" in inspect.signature(op).parameters
    error = refused(op, contents=b"")
    assert type(error) is fastops.MissingOpError
    assert str(error) == (
        f"DecodeJxl exists since TensorFlow 2.21, and this is {tf.version.VERSION}"
    )
    assert op.__doc__ == f"{error}.\n"
    assert pickle.loads(pickle.dumps(op)) is op


def test_ops_the_snapshot_lacks_are_bound_at_run_time(fresh):
    fresh.delitem(index.FAMILIES, "AddV2")
    fresh.delitem(index.NAMES, "add_v2")
    op = ops.add_v2
    assert op is raw_ops.AddV2
    assert "add_v2" in dir(ops)
    assert "AddV2" in dir(raw_ops)
    assert op.__module__ == "fastops.ops"
    assert list(inspect.signature(op).parameters) == ["x", "y", "name"]
    assert op(x=1.0, y=2.0).numpy() == 3.0
    assert "Compute `z` from `x` and `y`." in op.__doc__


def test_one_object_per_op_under_threads(fresh):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        objects = list(pool.map(lambda _: _registry.op("AddV2"), range(64)))
    assert len(set(map(id, objects))) == 1


def test_pickle_of_an_op_whose_library_is_not_loaded():
    error = refused(_registry.op, "NoSuchOp")
    assert type(error) is fastops.MissingOpError
    assert "the ops of a library exist once it is loaded" in str(error)


def test_import_makes_no_ops_and_no_context():
    """A new interpreter runs the import, since this process has imported the package already."""
    code = (
        "import sys, fastops\n"
        "from tensorflow.python.eager import context\n"
        "families = [name for name in sys.modules if name.startswith('fastops.gen.')]\n"
        "assert not families\n"
        "assert 'fastops._core.tables.signatures' not in sys.modules\n"
        "assert not fastops._dispatch.known\n"
        "assert context._context is None or not context._context._initialized\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
