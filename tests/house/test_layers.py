"""Each part of the package imports downwards only, in Python and in Cython."""

import re
import sys
from pathlib import Path

import pytest

import fastops

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.quick

PACKAGE = Path(fastops.__file__).parent
PYPROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())
(CONTRACT,) = PYPROJECT["tool"]["importlinter"]["contracts"]
LAYERS = [re.findall(r"\w+", layer) for layer in CONTRACT["layers"]]
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

STATEMENT = re.compile(
    r"^\s*(?:from\s+(?P<source>[\w.]+)\s+c?import\s+(?P<names>\([^)]*\)|[^\n]*)"
    r"|c?import\s+(?P<module>[\w.]+))",
    re.MULTILINE,
)


def part_of(path):
    """Return the part to which a file belongs: a package, or a module at the top level."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.partition(".")[0]


def imports(text):
    """Yield the imports and cimports of fastops in a source, as names below the package."""
    for match in STATEMENT.finditer(re.sub(r"#.*", "", text)):
        if match["module"]:
            if match["module"].startswith("fastops"):
                yield match["module"].removeprefix("fastops").lstrip("."), None
            continue
        if match["source"].partition(".")[0] != "fastops":
            continue
        source = match["source"].removeprefix("fastops").lstrip(".")
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", match["names"]):
            yield source, name


SOURCES = sorted(
    path
    for path in PACKAGE.rglob("*")
    if path.suffix in (".py", ".pyx", ".pxd", ".pyi") and part_of(path) != "__init__"
)


def test_every_part_has_its_layer():
    assert {part_of(path) for path in SOURCES} - {"ops", "raw_ops"} <= set(RANK)
    assert len({part_of(path) for path in SOURCES}) > 10


@pytest.mark.parametrize("suffix", [".py", ".pyx", ".pxd", ".pyi"])
def test_imports_lead_downwards(suffix):
    upwards, seen = [], 0
    for path in SOURCES:
        if path.suffix != suffix:
            continue
        here = part_of(path)
        for source, name in imports(path.read_text()):
            there = source.partition(".")[0] or name
            if there == here:
                continue
            seen += 1
            if there not in RANK or RANK[there] <= RANK[here]:
                upwards.append(f"{path.relative_to(PACKAGE)} imports {source or 'fastops'}.{name}")
    assert not upwards, "\n".join(upwards)
    assert seen > 5


def test_no_file_uses_private_names_of_another():
    taken = [
        f"{path.relative_to(PACKAGE)}: {name} of {source}"
        for path in SOURCES
        if path.name not in ("ops.pyi", "raw_ops.pyi")  # some ops have such names
        for source, name in imports(path.read_text())
        if source and name and name.startswith("_") and not name.endswith("__")
        if source != "_cpp.python"  # declares names of CPython
    ]
    assert not taken, "\n".join(taken)


def test_headers_of_declarations_include_no_other_headers():
    # Only modules that use TensorFlow's classes use definitions.h. Other modules compile in a tenth
    # of the time.
    declared = [path for path in SOURCES if path.suffix == ".pxd"]
    headers = {
        header
        for path in declared
        for header in re.findall(r'^\s*cdef extern from "([^"]+)"', path.read_text(), re.MULTILINE)
    } - {"Python.h"}
    assert "declarations.h" in headers
    for header in headers:
        includes = re.findall(r'#include "(.+)"', (PACKAGE / "_cpp" / header).read_text())
        assert not includes, header
    readers = [
        path for path in SOURCES if path.suffix == ".pyx" and '"definitions.h"' in path.read_text()
    ]
    assert 5 < len(readers) < 25
    assert [path.name for path in readers if part_of(path) == "_install"] == [
        "method.pyx",
        "replayed.pyx",
        "traced.pyx",
    ]


def test_import_statements_are_parsed():
    text = """
from fastops._core cimport conversion
from fastops._core.reasons cimport (
    R_OP,  # the reason
    R_ASYNC as other,
)
import fastops
    from fastops import _dispatch
import numpy as np
"""
    names = list(imports(text))
    assert ("_core", "conversion") in names
    assert ("_core.reasons", "R_OP") in names
    assert ("_core.reasons", "R_ASYNC") in names
    assert ("", None) in names
    assert ("", "_dispatch") in names
    assert not [source for source, _ in names if "numpy" in source]
