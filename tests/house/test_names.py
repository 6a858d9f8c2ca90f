"""Names are unique: in a module, among the modules of tests, and among the classes of the package.

Of two things with the same name in a module, the first one would be lost unseen. Two classes with
the same name cannot be told apart in a search, in a traceback or in a profile.
"""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path for part in ("fastops", "tests", "bench", "tools") for path in (ROOT / part).rglob("*.py")
)

PACKAGE = ROOT / "fastops"
SOURCES = sorted(
    path
    for path in PACKAGE.rglob("*")
    if path.suffix in (".py", ".pyx", ".pxd", ".pyi", ".h")
    and not path.is_relative_to(PACKAGE / "_cpp" / "shim")  # empty headers of other projects
    and not path.is_relative_to(PACKAGE / "gen")
    and path.name not in ("ops.pyi", "raw_ops.pyi")
)

CLASS = re.compile(
    r"^\s*(?:cdef |cpdef |ctypedef )?(?:packed )?(?:class|cppclass|struct|union|enum(?: class)?)"
    r" (?P<name>\w+)(?: \"[^\"]+\")?[:(]",
    re.MULTILINE,
)
NATIVE_CLASS = re.compile(
    r"^\s*(?:class|struct|union|enum(?: class)?) (?P<name>\w+)(?: : [^;{]+)? ?\{", re.MULTILINE
)


def bound(tree):
    """Yield the names that the statements of a module bind, without those in branches."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = getattr(statement, "targets", None) or [statement.target]
            for target in targets:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id


def test_no_name_is_bound_twice():
    assert len(MODULES) > 300
    twice = {
        str(path.relative_to(ROOT)): names
        for path in MODULES
        if (
            names := [
                name
                for name, count in Counter(bound(ast.parse(path.read_text()))).items()
                if count > 1 and name != "_"
            ]
        )
    }
    assert not twice


def test_no_two_test_modules_have_the_same_name():
    """Test modules are not in packages, so pytest imports them under their names alone."""
    counts = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(counts) > 80
    assert not {name for name, count in counts.items() if count > 1}


def classes(text, *, native):
    """Return the names of the classes, structs and enums that a source defines or declares."""
    pattern = NATIVE_CLASS if native else CLASS
    return {match["name"] for match in pattern.finditer(text)}


def classes_by_name():
    """Return the modules of each class by its name.

    The declarations of a Cython module belong to the module itself. A C++ class belongs to its
    header, even if a ``.pxd`` file declares it.
    """
    headers = {
        path: classes(path.read_text(), native=True) for path in SOURCES if path.suffix == ".h"
    }
    in_headers = set().union(*headers.values())
    modules = defaultdict(set)
    for path in SOURCES:
        names = headers.get(path)
        if names is None:
            names = classes(path.read_text(), native=False)
            if path.suffix == ".pxd" and path.parent.name == "_cpp":
                names -= in_headers
        for name in names:
            modules[name].add(str(path.relative_to(PACKAGE).with_suffix("")))
    return modules


def test_class_names_are_unique_in_the_package():
    modules = classes_by_name()
    assert len(modules) > 200
    assert {"Op", "Plan", "NativePlan", "Replacement", "Signature"} <= modules.keys()
    shared = {name: sorted(paths) for name, paths in modules.items() if len(paths) > 1}
    assert not shared


def test_classes_are_recognized():
    text = """
class First(Base):
    class Inner:
@dataclass
cdef class Second:
    cdef cppclass Third "fastops::Third":
    enum class Fourth:
cdef struct Fifth:  # a table
ctypedef enum Sixth "FastopsSixth":
    of the class that is meant, see the
    class of a layer
"""
    names = {"First", "Inner", "Second", "Third", "Fourth", "Fifth", "Sixth"}
    assert classes(text, native=False) == names
    text = """
class Later;
struct Given {
class Bound : public Base {
enum class Path : char { kAuto };
  enum State : char {
friend class Other;
// class of a tensor {
"""
    assert classes(text, native=True) == {"Given", "Bound", "Path", "State"}
