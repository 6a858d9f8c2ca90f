"""Each part of the package imports downwards only, in Python and in Cython.

The same holds for the parts of `_install`, which also load modules by name.
"""

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
RANKS = {
    container.removeprefix("fastops").lstrip("."): {
        part: rank
        for rank, layer in enumerate(contract["layers"])
        for part in re.findall(r"\w+", layer)
    }
    for contract in PYPROJECT["tool"]["importlinter"]["contracts"]
    for container in contract["containers"]
}
"""By package (the whole one is ""), the ranks of its parts: 0 is the highest layer."""

STATEMENT = re.compile(
    r"^\s*(?:from\s+(?P<source>[\w.]+)\s+c?import\s+(?P<names>\([^)]*\)|[^\n]*)"
    r"|c?import\s+(?P<module>[\w.]+))",
    re.MULTILINE,
)


def part_of(name, package=""):
    """Return the part of a package that a dotted name is in; `None` if it is in none."""
    below = f"{package}." if package else ""
    return name.removeprefix(below).partition(".")[0] if name.startswith(below) else None


def module_of(path):
    """Return the dotted name of a file's module, without the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


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


LOAD = re.compile(r"\bupstream\.load\w*\(")
LOADED = re.compile(r'\bupstream\.load\w*\(\s*f?"([\w.]+)')
GROUP = re.compile(r'\bGroup\(\s*\d+,\s+"\w+",\s+"[^"]+",\s+"([\w. ]+)"')
"""A load of a module of `_install` by its name; such a load that names its part; the modules that
the targets of a group need, which `targets` loads."""


def loads(text):
    """Yield the parts of `_install` that a source loads by name."""
    for name in LOADED.findall(text):
        if not name.startswith("fastops."):  # the full name of a lower part
            yield name.partition(".")[0]
    for modules in GROUP.findall(text):
        yield from modules.split()


SOURCES = sorted(
    path
    for path in PACKAGE.rglob("*")
    if path.suffix in (".py", ".pyx", ".pxd", ".pyi") and part_of(module_of(path)) != "__init__"
)


def sources_in(package):
    """Yield each source of a package with its part."""
    for path in SOURCES:
        part = part_of(module_of(path), package)
        if part not in (None, "__init__"):
            yield path, part


def needs(path):
    """Yield the dotted names, without the package, that a source imports or loads."""
    text = path.read_text()
    for source, name in imports(text):
        yield ".".join(filter(None, (source, name)))
    for part in loads(text) if part_of(module_of(path)) == "_install" else ():
        yield f"_install.{part}"


@pytest.mark.parametrize("package", RANKS)
def test_every_part_has_its_layer(package):
    parts = {part for _, part in sources_in(package)}
    assert parts - {"ops", "raw_ops"} <= RANKS[package].keys()
    assert len(parts) > 10


@pytest.mark.parametrize("suffix", [".py", ".pyx", ".pxd", ".pyi"])
@pytest.mark.parametrize("package", RANKS)
def test_imports_lead_downwards(package, suffix):
    ranks = RANKS[package]
    upwards, seen = [], 0
    for path, here in sources_in(package):
        if path.suffix != suffix:
            continue
        for name in needs(path):
            there = part_of(name, package)
            if there in (None, here):
                continue
            seen += 1
            if there not in ranks or ranks[there] <= ranks[here]:
                upwards.append(f"{path.relative_to(PACKAGE)} imports fastops.{name}")
    assert not upwards, "\n".join(upwards)
    assert seen > 2


def test_each_load_by_name_tells_its_part():
    found = {}
    for path, _ in sources_in("_install"):
        text = path.read_text()
        if unknown := len(LOAD.findall(text)) - len(LOADED.findall(text)):
            found[module_of(path)] = unknown
        assert not re.search(r"import_module|__import__", text) or path.stem == "upstream", path
        assert not [name for name in needs(path) if name.startswith("_install.upstream.")], path
    # `targets` loads the modules of its groups, here and when it is imported.
    assert found == {"_install.targets": 2}
    text = (PACKAGE / "_install" / "targets.py").read_text()
    assert len(GROUP.findall(text)) == len(re.findall(r"^ +Group\(", text, re.MULTILINE)) > 10


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
    assert 5 < len(readers) < 38
    assert [path.name for path in readers if part_of(module_of(path)) == "_install"] == [
        "mapped.pyx",
        "learning.pyx",
        "method.pyx",
        "receivers.pyx",
        "replayed.pyx",
        "rows.pyx",
        "traced.pyx",
    ]


def test_the_loads_are_understood():
    text = """
rules = upstream.load("gradients.targets")
upstream.load_all(
    "helpers",
    "attributes classes",
)
upstream.load_for(f"keras.{part}", "keras", "batches")
    Group(
        34, "operators", "iteration over tensors", "iteration traced", find, together=True
    ),
"""
    assert [*loads(text)] == ["gradients", "helpers", "keras", "iteration", "traced"]
    assert len(LOAD.findall(text)) == 3


def test_the_statements_are_understood():
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
