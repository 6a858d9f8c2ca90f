"""The generator: whole files from synthetic ops, errors, up-to-date files, and its sources."""

import subprocess
import sys

import pytest
import tensorflow as tf

import fastops  # noqa: F401 - before `tools`, which works without fastops if it cannot be imported
from fastops._core import opdef
from tools import gen, load, render, snapshot

OPS = """\
# TensorFlow 9.8.7
op {
  name: "Assign"
  input_arg { name: "ref" type_attr: "T" is_ref: true }
  input_arg { name: "value" type_attr: "T" }
  output_arg { name: "output_ref" type_attr: "T" is_ref: true }
  attr { name: "T" type: "type" }
}
op {
  name: "Blend"
  input_arg { name: "x" type_attr: "T" }
  input_arg { name: "y" type_attr: "T" }
  output_arg { name: "z" type_attr: "T" }
  attr {
    name: "mode"
    type: "string"
    allowed_values { list { s: "HARD" s: "SOFT" } }
  }
  attr {
    name: "T"
    type: "type"
    allowed_values { list { type: DT_HALF type: DT_FLOAT } }
  }
  attr {
    name: "weights"
    type: "list(float)"
    default_value { list { f: 0.1 f: 0.9 } }
    has_minimum: true
    minimum: 2
  }
  attr { name: "Tout" type: "type" default_value { type: DT_INT32 } }
  attr { name: "shape" type: "shape" default_value { shape { unknown_rank: true } } }
}
op {
  name: "Cast2D"
  input_arg { name: "in" type: DT_STRING }
  output_arg { name: "values" type_list_attr: "types" }
  attr { name: "types" type: "list(type)" has_minimum: true minimum: 1 }
}
op {
  name: "Loop"
  input_arg { name: "input" type_list_attr: "T" }
  output_arg { name: "output" type_list_attr: "T" }
  attr { name: "T" type: "list(type)" }
  attr { name: "body" type: "func" }
}
op {
  name: "None"
  is_stateful: true
}
op {
  name: "Old"
  output_arg { name: "y" type: DT_FLOAT }
  deprecation { version: 8 }
}
op {
  name: "Sum"
  input_arg { name: "values" type_attr: "T" number_attr: "N" }
  input_arg { name: "reduction_indices" type_attr: "Tidx" }
  output_arg { name: "total" type_attr: "T" }
  output_arg { name: "count" type: DT_INT64 }
  attr { name: "N" type: "int" has_minimum: true minimum: 1 }
  attr { name: "keep" type: "bool" default_value { b: false } }
  attr { name: "T" type: "type" }
  attr {
    name: "Tidx"
    type: "type"
    default_value { type: DT_INT32 }
    allowed_values { list { type: DT_INT32 type: DT_INT64 } }
  }
}
op {
  name: "Throw"
  output_arg { name: "points" type: DT_INT32 }
  attr { name: "seed" type: "int" default_value { i: 0 } }
  attr { name: "seed2" type: "int" default_value { i: 0 } }
  attr { name: "sides" type: "int" default_value { i: 6 } }
  is_stateful: true
}
op {
  name: "Tick"
  output_arg { name: "time" type: DT_DOUBLE }
  is_stateful: true
}
"""

POLICY = """\
[names]
Sum = "_sum"
[raw_names]
None = "None_"
[renames]
Cast2D = { in = "in_" }
Sum = { reduction_indices = "axis" }
[defaults]
Sum = { keep = true }
[families]
other_ops = ["None", "Old", "Throw", "Tick"]
[replacements]
Assign = "AssignVariableOp"
[[exclude]]
reason = "it is special"
ops = ["Cast*"]
[direct]
handles = ["None"]
stateless = ["Tick"]
unseeded = ["Throw"]
binding = ["seed", "seed2"]
value_sized = ["B*"]
"""

FACTS = """\
[families]
math_ops = ["Blend", "Cast2D", "Sum"]
flow_ops = ["Assign", "Loop"]
[gradients]
Blend = ["x"]
Sum = ["values"]
[inputs]
Sum = { reduction_indices = "scalar or vector" }
[outputs]
Blend = { z = "`x` and `y` broadcast" }
"""


WITHOUT_WEIGHTS = """\
op {
  name: "Blend"
  input_arg { name: "x" type_attr: "T" }
  input_arg { name: "y" type_attr: "T" }
  output_arg { name: "z" type_attr: "T" }
  attr {
    name: "mode"
    type: "string"
    allowed_values { list { s: "HARD" s: "SOFT" } }
  }
  attr {
    name: "T"
    type: "type"
    allowed_values { list { type: DT_FLOAT } }
  }
  attr { name: "Tout" type: "type" default_value { type: DT_INT32 } }
  attr { name: "shape" type: "shape" default_value { shape { unknown_rank: true } } }
}
"""
EARLIER = {
    "9.6": f"# TensorFlow 9.6.0, the differences\n# lacks Cast2D\n{WITHOUT_WEIGHTS}",
    "9.7": f"# TensorFlow 9.7.1, the differences\n{WITHOUT_WEIGHTS}",
}


@pytest.fixture
def sources(tmp_path):
    """Return a function that writes the generator's inputs, with some replaced, and loads them."""

    def make(ops=OPS, policy=POLICY, facts=FACTS, earlier=EARLIER):
        for version, text in earlier.items():
            (tmp_path / f"ops-{version}.pbtxt").write_text(text)
        paths = [tmp_path / name for name in ("ops.pbtxt", "policy.toml", "facts.toml")]
        for path, text in zip(paths, (ops, policy, facts), strict=True):
            path.write_text(text)
        return load.load(*paths)

    return make


@pytest.mark.quick
def test_whole_files(sources, golden):
    for path, text in render.files(sources()).items():
        golden(f"gen/{path}.txt", text)


def test_rendering_is_a_function_of_its_sources(sources):
    assert render.files(sources()) == render.files(sources())


def test_generated_python_compiles(sources):
    for path, text in render.files(sources()).items():
        compile(text, path, "exec")


@pytest.mark.parametrize(
    ("source", "old", "new", "message"),
    [
        ("policy", "Cast2D = { in", "Cast3D = { in", r"\[renames\].* no op 'Cast3D'"),
        ("policy", '{ in = "in_" }', '{ out = "in_" }', r"op Cast2D: \['out'\] are not its inputs"),
        ("policy", '{ in = "in_" }', "{}", r"op Cast2D: .*argument 'in' .* see \[renames\]"),
        ("policy", "keep = true", "reduction_indices = 1", r"\[defaults\], op Sum"),
        ("policy", '"it is special"', '""', r"\[\[exclude\]\].*: no reason given"),
        ("policy", '"Cast*"', '"Cost*"', r"\[exclude\]: no op matches 'Cost\*'"),
        ("policy", '= ["None"]', '= ["Cast*"]', r"\[direct\.handles\]: Cast2D is excluded"),
        ("policy", '= ["Throw"]', '= ["Tick"]', r"\[direct\.unseeded\]: Tick is on another"),
        ("policy", '"seed", "seed2"', '"edges"', r"\[direct\.unseeded\]: Throw has none of"),
        ("policy", 'Sum = "_sum"', 'Sum = "blend"', r"op Sum: .*'blend' is taken by Blend"),
        ("policy", 'Sum = "_sum"', 'Sum = "not"', r"op Sum: 'not' .* see \[names\]"),
        ("policy", 'None = "None_"', "", r"op None: 'None' .* see \[raw_names\]"),
        ("policy", ', "Old"', "", r"op Old: no module .* see \[families\]"),
        ("ops", "# TensorFlow 9.8.7\n", "", r"ops\.pbtxt, first line"),
        ("ops", '"Blend"', '"Wind"', r"not sorted"),
        ("ops", "type: DT_STRING }", 'type_attr: "S" }', r"op Cast2D"),
        ("ops", '"func"', '"funk"', r"op Loop"),
    ],
)
@pytest.mark.quick
def test_errors_name_the_op_and_the_rule(sources, source, old, new, message):
    texts = {"ops": OPS, "policy": POLICY}
    assert old in texts[source]
    with pytest.raises(load.LoadError, match=f"(?s){message}"):
        sources(**{source: texts[source].replace(old, new)})


def test_write_touches_only_what_changes(sources, tmp_path):
    package = tmp_path / "package"
    api = sources()
    assert sorted(gen.write(api, package)) == sorted(render.files(api))
    times = {path: path.stat().st_mtime_ns for path in package.rglob("*.*")}
    assert gen.write(api, package) == []
    (package / "gen" / "orphan_ops.py").write_text("left over\n")
    (package / "gen" / "math_ops.py").write_text("edited\n")
    assert gen.write(api, package) == ["gen/math_ops.py", "gen/orphan_ops.py"]
    assert not (package / "gen" / "orphan_ops.py").exists()
    untouched = [path for path in times if path.name != "math_ops.py"]
    assert all(path.stat().st_mtime_ns == times[path] for path in untouched)


@pytest.mark.quick
def test_report_shows_diff_and_remedy(sources, tmp_path):
    api = sources()
    gen.write(api, tmp_path)
    edited = tmp_path / "_core" / "tables" / "signatures.py"
    edited.write_text(edited.read_text().replace('"_sum"', '"sum_"'))
    report = gen.report(gen.stale(api, tmp_path))
    assert '-    "Sum": ("sum_"' in report
    assert '+    "Sum": ("_sum"' in report
    assert "python tools/gen.py write" in report


@pytest.mark.quick
def test_generated_files_are_up_to_date(capsys):
    assert gen.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("command", [["tools/gen.py"], ["-m", "tools.gen"]])
def test_command_line(command):
    """A new interpreter runs the command, which must start without the generated files."""
    done = subprocess.run(
        [sys.executable, *command, "--help"], cwd=gen.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "snapshot" in done.stdout


@pytest.mark.slow
def test_generator_needs_nothing_generated():
    """The generator must run even if the rest of the package cannot be imported."""
    code = (
        "import sys; sys.modules['fastops._core.build'] = None\n"
        "from tools import load, render\n"
        "assert len(render.files(load.load())) > 100\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=gen.ROOT, check=True)


@pytest.mark.quick
def test_the_running_registry_is_known():
    """The registry is that of the snapshot's TensorFlow, or of another supported version."""
    known = {tuple(load.minor(load.OPS.read_text())): load.OPS.read_text()}
    for path in load.differing():
        difference = path.read_text()
        known[tuple(load.minor(difference))] = load.written(load.OPS.read_text(), difference)
    running = snapshot.op_defs()
    assert load.parse(running) == load.parse(known[tuple(load.minor(running))])


snapshot_runs = pytest.mark.skipif(
    f"# TensorFlow {tf.version.VERSION}\n" not in load.OPS.read_text()[:40],
    reason="the snapshot is of another TensorFlow",
)


@snapshot_runs
@pytest.mark.quick
def test_snapshot_is_the_live_registry():
    assert snapshot.op_defs() == load.OPS.read_text()


@snapshot_runs
def test_facts_are_those_of_the_running_tensorflow():
    facts = load.read_facts(load.FACTS)
    assert facts.families == {
        op: family for family, ops in snapshot.families().items() for op in ops
    }
    for name in ("AddV2", "FusedBatchNormV3", "MatMul", "NoOp", "Sum", "TopKV2", "Where"):
        op = opdef.registered(name)
        gradients = snapshot.differentiable_inputs(op)
        assert facts.gradients.get(name) == (None if gradients is None else tuple(gradients))
        inputs, outputs = snapshot.shapes(op)
        assert (facts.inputs.get(name, {}), facts.outputs.get(name, {})) == (inputs, outputs)


def test_snapshot_contains_no_descriptions():
    text = load.OPS.read_text()
    assert not any(field in text for field in ("summary:", "description:", "explanation:"))


def test_since_matches_the_running_tensorflow():
    running = tuple(map(int, tf.version.VERSION.split(".")[:2]))
    since = load.load().snapshot.since
    assert since["DecodeJxl"] == {"": "2.21"}
    for op_name, entries in since.items():
        op = opdef.registered(op_name)
        for feature, version in entries.items():
            attr, _, value = feature.partition("=")
            found = op if op is None or not attr else {a.name: a for a in op.attrs}.get(attr)
            present = found is not None and (not value or value in found.allowed)
            assert present == (running >= tuple(map(int, version.split(".")))), (op_name, feature)


def test_first_seen_is_after_the_last_that_lacks_it(sources):
    since = sources().snapshot.since
    assert since == {"Blend": {"T=float16": "9.8", "weights": "9.8"}, "Cast2D": {"": "9.7"}}


def test_an_op_that_was_removed_has_no_functions(sources):
    gone = EARLIER["9.7"] + 'op { name: "Bygone" }\n'
    with pytest.raises(load.LoadError, match=r"ops-9\.7\.pbtxt: \['Bygone'\] are not in"):
        sources(earlier=EARLIER | {"9.7": gone})


def test_a_difference_restores_the_original():
    text = load.written(OPS, EARLIER["9.6"])
    assert 'name: "Cast2D"' not in text
    difference = load.difference(OPS, text)
    assert "\n# lacks Cast2D\n" in difference
    assert 'name: "Sum"' not in difference
    assert load.written(OPS, difference) == text


@pytest.fixture
def kept(tmp_path):
    """Write a snapshot of version 9.8 and the differences of 9.7."""
    (tmp_path / "ops.pbtxt").write_text(OPS)
    (tmp_path / "ops-9.7.pbtxt").write_text(EARLIER["9.7"])
    return tmp_path / "ops.pbtxt"


def take(text, ops):
    facts = ops.with_name("facts.toml")
    gen.take(text, lambda: "facts", ops, facts)
    return facts.exists()


def test_an_earlier_tensorflow_is_kept_as_a_difference(kept):
    assert not take(load.written(OPS, EARLIER["9.6"]), kept)
    assert kept.read_text() == OPS
    assert "# lacks Cast2D" in kept.with_name("ops-9.6.pbtxt").read_text()


def test_a_later_tensorflow_becomes_the_snapshot(kept):
    later = OPS.replace("9.8.7", "9.9.0").replace('"Tick"', '"Tock"')
    assert take(later, kept)
    assert kept.read_text() == later
    before = load.restore(later, kept.with_name("ops-9.8.pbtxt").read_text())
    assert before == load.parse(OPS)
    first = load.restore(later, kept.with_name("ops-9.7.pbtxt").read_text())
    assert first == load.restore(OPS, EARLIER["9.7"])


def test_a_candidate_is_kept_as_a_difference_until_its_release(kept):
    later = OPS.replace("9.8.7", "9.9.0-rc0").replace('"Tick"', '"Tock"')
    assert not take(later, kept)
    assert kept.read_text() == OPS
    difference = kept.with_name("ops-9.9.pbtxt")
    assert load.restore(OPS, difference.read_text()) == load.parse(later)
    assert load.earlier(kept) == [kept.with_name("ops-9.7.pbtxt")]
    released = later.replace("9.9.0-rc0", "9.9.0")
    assert take(released, kept)
    assert kept.read_text() == released
    assert not difference.exists()


def test_policy_has_no_superfluous_entries():
    api = load.load()
    for module in api.modules:
        for binding in module.bindings:
            op = binding.op
            if op.name in api.policy.handles:
                assert op.obstacle is not None, f"{op.name} is eligible without being a handle op"
            if op.name in api.policy.stateless:
                assert op.obstacle == "stateful", f"{op.name} need not be on that list"
            if op.name in api.policy.unseeded:
                assert op.obstacle in ("stateful", None), f"{op.name} may not be direct"
                assert api.policy.bound_by(op), op.name
            if op.name in api.policy.makers:
                assert op.obstacle == "takes or returns resources", op.name
                assert any(attr.name == "shared_name" for attr in op.attrs), op.name
            for old, new in api.policy.renames.get(op.name, {}).items():
                assert old != new
            if op.name in api.policy.replacements:
                assert op.takes_refs or op.deprecated_since is not None, op.name
            assert api.policy.names.get(op.name) != opdef.snake_case(op.name)


def test_replacements_can_be_called():
    api = load.load()
    ops = {op.name: op for op in api.snapshot.ops}
    for name, replacement in api.policy.replacements.items():
        if replacement.startswith("tf."):
            assert eval(replacement, {"tf": tf}), replacement
        else:
            op = ops[replacement]
            assert not op.takes_refs, name
            assert op.deprecated_since is None, name
