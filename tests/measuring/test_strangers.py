"""The programs of `fastops_bench.programs`: which there are, and that they know nothing of fastops.

The suite `strangers` runs them. It fails if one computes something else with fastops than without;
`test_bench_smoke.py` runs all suites.
"""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fastops_bench import programs, whole
from fastops_bench.programs import shared

from tools import figures

pytestmark = pytest.mark.quick

FOLDER = Path(programs.__file__).parent
SHARED = {"data", "shared"}
"""The modules that the programs share, which import nothing of fastops themselves."""

MODULES = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", *SHARED}


def test_each_program_is_measured_and_has_its_like_in_pytorch():
    assert len(MODULES) == 10
    assert {module for module, *_ in programs.PROGRAMS.values()} == MODULES
    assert figures.STRANGERS.keys() == programs.PROGRAMS.keys()
    assert {path.stem for path in (FOLDER / "pytorch").glob("*.py")} == {"__init__", *MODULES}


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_programs_import_nothing_of_fastops(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{name.name}" for name in node.names}
    ours = {name for name in imported if name.startswith(("fastops", "pytest_fastops"))}
    allowed = tuple(f"fastops_bench.programs.{name}" for name in SHARED)
    assert all(name.startswith(allowed) for name in ours)


def defaults(module):
    """Return the options of a program and their defaults, which it states in one call."""
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "options":
            return {keyword.arg: keyword.value.value for keyword in node.keywords}
    raise AssertionError(module)


@pytest.mark.parametrize("label", programs.PROGRAMS)
def test_options_exist_in_both_libraries(label):
    module, full, short = programs.PROGRAMS[label]
    own = defaults(module)
    assert defaults(f"pytorch/{module}") == own
    for option in (*full, *short):
        name, _, number = option.removeprefix("--").partition("=")
        assert name in own
        assert int(number) >= 0


def test_times_and_results_are_printed_so_that_the_suite_reads_them(capsys, monkeypatch):
    clock = iter([10.0, 10.5, 10.7, 10.8, 10.9])
    monkeypatch.setattr(shared.time, "perf_counter", lambda: next(clock))
    times = shared.Times("step")
    for pieces in (1, 2, 1, 1):
        times.lap(pieces)
    times.report([0.5, 0.25], [np.zeros(3, np.float32)])
    printed = capsys.readouterr().out
    (mean, steady), computed = whole.read(printed)
    assert mean == pytest.approx(180_000, abs=1)
    assert steady == pytest.approx(100_000, abs=1)
    assert computed[0] == "values: 0.5 0.25"

    # A bit of a weight or of a value changes the digest.
    for values, weight in (([0.5, np.nextafter(0.25, 1)], 0), ([0.5, 0.25], np.float32(1e-45))):
        clock = iter([0.0, 1.0])
        times = shared.Times("step")
        times.lap()
        times.report(values, [np.array([0, 0, weight], np.float32)])
        assert whole.read(capsys.readouterr().out)[1][-1] != computed[-1]


def test_programs_that_compute_something_else_fail():
    def line(digest):
        return f"digest: {digest}\nseconds: 1.00, 2.0 us a step, 1.0 us when steady\n"

    stored = []

    def record(group, label, **about):
        stored.append((group, label, about["samples"]))

    outputs = {"stock": line("a"), "installed": line("a"), "torch": line("b")}
    whole.compare(record, "strangers", "x", 2, lambda: outputs)
    assert [group for group, *_ in stored] == ["strangers", "strangers, steady"]
    assert stored[1][2] == {"stock": [1e3] * 2, "installed": [1e3] * 2, "torch": [1e3] * 2}
    with pytest.raises(AssertionError):
        whole.compare(record, "strangers", "x", 1, lambda: outputs | {"installed": line("b")})


def test_another_environment_imports_the_programs_alone(tmp_path):
    whole.link_benchmarks(tmp_path)
    code = "import sys; from fastops_bench.programs import shared; print(shared.__file__)"
    code += "; print('fastops' in sys.modules)"
    environment = {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code]
    out = subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)
    assert out == f"{tmp_path / 'fastops_bench' / 'programs' / 'shared.py'}\nFalse\n"


@pytest.mark.parametrize("name", ["CartPole", "Pendulum"])
def test_environments_agree_with_gymnasium(name):
    """Both compute in double precision and return single precision: the last bits may differ."""
    gymnasium = pytest.importorskip("gymnasium")
    ours = getattr(shared, name)()
    theirs = gymnasium.make(f"{name}-v1").unwrapped
    ours.reset(seed=1)
    theirs.reset(seed=1)
    theirs.state = np.array(
        ours._state if name == "CartPole" else (ours._angle, ours._turn), np.float64
    )
    generator = np.random.default_rng(2)
    for _ in range(60):
        push = int(generator.integers(2)) if name == "CartPole" else generator.uniform(-3, 3, 1)
        observation, reward, ended, _, _ = ours.step(push)
        wanted, their_reward, their_end, _, _ = theirs.step(push)
        np.testing.assert_allclose(observation, wanted, rtol=1e-4, atol=1e-5)
        assert reward == pytest.approx(their_reward, rel=1e-4)
        assert ended == their_end
        if ended:
            break


def test_environments_end_episodes_and_repeat_them():
    cart = shared.CartPole()
    first, _ = cart.reset(seed=3)
    steps = 0
    ended = False
    while not ended:
        _, _, ended, _, _ = cart.step(1)
        steps += 1
    assert 5 < steps < 20
    np.testing.assert_array_equal(cart.reset(seed=3)[0], first)
    pendulum = shared.Pendulum()
    pendulum.reset(seed=3)
    over = [pendulum.step([0.0])[3] for _ in range(pendulum.LIMIT)]
    assert over == [False] * (pendulum.LIMIT - 1) + [True]
