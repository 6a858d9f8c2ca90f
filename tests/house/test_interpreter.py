"""Uses of CPython that are not documented list the versions in which they were read."""

import re
from pathlib import Path

import pytest

import fastops
from fastops._core import supported

pytestmark = pytest.mark.quick

PACKAGE = Path(fastops.__file__).parent

INTERNAL = re.compile(
    r"\b(ma_version_tag|tp_version_tag|tp_versions_used|_PyObject_GetDictPtr|"
    r"PyDict_Watch|current_frame|recursion_remaining|recursion_depth)\b"
)
"""Members and functions that differ between the versions of CPython."""

READ = re.compile(r"// Read: CPython ([\d., ]+\d)")


def sources():
    for pattern in ("*.h", "*.pyx", "*.pxd"):
        yield from PACKAGE.rglob(pattern)


USING = sorted(
    str(path.relative_to(PACKAGE)) for path in sources() if INTERNAL.search(path.read_text())
)


def test_the_uses_are_in_few_files():
    assert {*USING} == {
        *("_core/classes.pyx", "_cpp/changes.h", "_cpp/classes.h", "_cpp/dicts.h"),
        "_shell/bottom.pyx",
    }


@pytest.mark.parametrize("name", ["_cpp/changes.h", "_cpp/classes.h", "_shell/bottom.pyx"])
def test_a_use_was_read_in_each_supported_version(name):
    found = READ.findall((PACKAGE / name).read_text())
    versions = {version for text in found for version in text.split(", ")}
    assert versions == {*supported.PYTHONS}


def test_dicts_are_read_by_documented_functions_from_3_12_on():
    found = READ.findall((PACKAGE / "_cpp" / "dicts.h").read_text())
    assert {version for text in found for version in text.split(", ")} == {"3.10", "3.11"}


def test_versions_of_classes_are_limited_from_3_13_on():
    found = READ.findall((PACKAGE / "_core" / "classes.pyx").read_text())
    limited = {name for name in supported.PYTHONS if int(name.partition(".")[2]) >= 13}
    assert {version for text in found for version in text.split(", ")} == limited


@pytest.mark.parametrize(
    "name", ["_core/classes.pyx", "_cpp/changes.h", "_cpp/classes.h", "_shell/bottom.pyx"]
)
def test_a_use_is_left_out_of_newer_versions(name):
    newest = max(int(python.partition(".")[2]) for python in supported.PYTHONS)
    assert f"0x03{newest + 1:02x}0000" in (PACKAGE / name).read_text().lower()


def test_readers_of_bytecode_ask_whether_it_was_read():
    reading = {
        str(path.relative_to(PACKAGE)): path.read_text()
        for path in (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx"))
        if re.search(r"^import (dis|opcode)$", path.read_text(), re.MULTILINE)
    }
    ask = {name for name, text in reading.items() if "bytecode.REVIEWED" in text}
    # `proof.py` asks for the first two, `lookups.py` for the last one.
    others = {
        "_install/loops.py",
        "_specialize/recording/instructions.py",
        "_install/reads.pyx",
    }
    assert reading.keys() - ask == others
    for name in ("_specialize/recording/proof.py", "_install/lookups.py"):
        assert "bytecode.REVIEWED" in (PACKAGE / name).read_text()
