"""The tools that check other processors and coming versions of TensorFlow, on made-up input."""

from pathlib import Path

import pytest

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
    lines = list(canary.moved_ops(after))
    assert lines[1:3] == ["came: Acorn", "went: Acos"]
    assert "is other: RandomUniform" in lines
    assert list(canary.moved_ops(before))[1:] == []
