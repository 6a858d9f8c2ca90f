"""The tools that check other processors and coming versions of TensorFlow, on made-up input."""

import json
import subprocess
import sys
from pathlib import Path

import keras
import pytest
import tensorflow as tf
from support import ROOT

from tools import canary, cross, load

pytestmark = pytest.mark.quick

LINUX = "_ZN10tensorflow4NameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
MACOS = "_ZN10tensorflow4NameERKNSt3__112basic_stringIcNS0_11char_traitsIcEENS0_9allocatorIcEEEE"


def test_one_function_under_the_names_of_two_c_libraries():
    assert cross.plain([LINUX]) == cross.plain([MACOS])
    assert cross.plain([LINUX]) != cross.plain([LINUX.replace("4Name", "5Names")])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("std::__throw_length_error(char const*)", True),
        ("typeinfo for std::exception", True),
        ("operator new(unsigned long)", True),
        ("memcpy", True),
        ("tensorflow::Name()", False),
        ("typeinfo for tensorflow::Device", False),
        ("TFE_ContextAsyncWait", False),
    ],
)
def test_symbols_of_the_compilers_own_libraries(name, expected):
    assert cross.is_standard(name) is expected


def test_macos_compiles_without_onednn():
    linux, macos = (
        cross.command("g++ -v", Path("tensorflow"), macos=macos) for macos in (False, True)
    )
    assert {*linux} - {*macos} == {"-DINTEL_MKL"}
    assert linux[:2] == ["g++", "-v"]


def test_ops_that_were_added_removed_and_changed():
    before = load.OPS.read_text()
    after = before.replace('name: "Acos"', 'name: "Acorn"').replace(
        'name: "seed2"', 'name: "seed3"'
    )
    summary, lines = canary.moved_ops(after)
    assert summary.startswith("1 new, 1 gone, ")
    assert lines[:2] == ["came: Acorn", "went: Acos"]
    assert "is other: RandomUniform" in lines
    assert canary.moved_ops(before)[1] == []


def test_names_that_are_gone_are_counted_by_package():
    found = canary.moved_names(
        {"tensorflow.a": None, "tensorflow.b": "tensorflow.b is None", "keras.src.c": None}
    )
    assert found == {
        "TensorFlow": ("1 of 2 differ", ["tensorflow.b: tensorflow.b is None"]),
        "Keras": ("0 of 1 differ", []),
    }


def test_the_names_of_the_running_versions_are_as_expected():
    command = [sys.executable, "-c", canary.LOOK_UP]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found, versions = json.loads(done.stdout.splitlines()[-1])
    assert {name for name, why in found.items() if why} == set()
    assert len(found) > 300
    assert versions == {"TensorFlow": tf.__version__, "Keras": keras.__version__}


def test_the_code_of_the_running_versions_is_as_expected():
    found = canary.moved_code(Path(tf.__file__).parents[1])
    assert {"TensorFlow", "Keras"} <= found.keys()
    assert all(len(lines) == int(summary.partition(" of ")[0]) for summary, lines in found.values())


def test_the_report_has_one_table_and_the_particulars():
    counts = {"passed": 1999, "failed": 1, "skipped": 3, "failures": [["a.b", "assert 1 == 2"]]}
    found = {
        "build": {"TensorFlow": ("it builds", [])},
        "code": {
            "TensorFlow": ("0 of 9 are left out", []),
            "Keras": ("1 of 9", ["keras: a, by b"]),
        },
        "tests": {"TensorFlow": canary.tested(counts), "Keras": ("the same run", [])},
    }
    text = canary.report({"TensorFlow": "2.9.0.dev1", "Keras": "3.9.0.dev2"}, found)
    table, *sections = text.split("\n## ")
    lines = table.splitlines()
    assert lines[2] == "| step | TensorFlow 2.9.0.dev1 | Keras 3.9.0.dev2 |"
    assert len(lines) == 4 + len(canary.STEPS)
    assert "| 1. build | it builds |  |" in lines
    assert "| 6. quick tests | 1 of 2,000 failed, 3 were skipped | the same run |" in lines
    assert sections == [
        "Mirrored Python: pieces of `install`, Keras\n\n- keras: a, by b\n",
        "Quick tests, TensorFlow\n\n- a.b: assert 1 == 2\n",
    ]
