"""No module binds a name twice, and no two test modules have the same name.

Otherwise the first one would be lost without notice.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path for part in ("fastops", "tests", "bench", "tools") for path in (ROOT / part).rglob("*.py")
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
