"""The guides for maintainers name all files, folders, helpers and fixtures that there are."""

import importlib
import re
import shlex
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
RELEASING = (ROOT / "docs" / "releasing.md").read_text()
GUIDE = (TESTS / "README.md").read_text()


# A new TensorFlow ---------------------------------------------------------------------------------

(COMMAND,) = re.findall(r"^git grep (?:.*\\\n)*.*$", RELEASING, re.MULTILINE)


@pytest.fixture(scope="module")
def files():
    """Return the files that the command of docs/releasing.md finds."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    git, grep, *options = shlex.split(COMMAND.replace("\\\n", " "))
    found = subprocess.run([git, grep, "-l", *options], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


def test_each_file_that_names_a_version_of_tensorflow_is_in_the_guide(files):
    _, section = RELEASING.split("## A new TensorFlow\n")
    named = set(re.findall(r"`([\w./]+)`", section))
    assert len(files) > 30
    assert not [file for file in files if file not in named]


# Tests --------------------------------------------------------------------------------------------


def rows(title):
    """Return the names in the first column of the table with a title."""
    _, table = GUIDE.split(f"| {title} |", 1)
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [name for line in lines for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])]


def test_each_folder_of_tests_is_in_the_guide():
    folders = {f"{path.parent.relative_to(TESTS)}/" for path in TESTS.rglob("README.md")}
    folders |= {f"{path.parent.relative_to(TESTS)}/" for path in TESTS.rglob("test_*.py")}
    assert sorted(rows("folder")) == sorted(folders - {"./"})


@pytest.mark.parametrize("name", rows("name"))
def test_each_helper_of_the_guide_exists(name):
    module, _, attribute = re.match(r"[\w.]+", name)[0].partition(".")
    assert hasattr(importlib.import_module(module), attribute or "__name__")


def test_each_helper_module_is_in_the_guide():
    modules = {path.stem for path in TESTS.glob("*.py")} - {"conftest"}
    named = {re.match(r"\w+", name)[0] for name in rows("name")}
    assert modules == named


def test_each_shared_fixture_is_in_the_guide():
    text = (TESTS / "conftest.py").read_text()
    fixtures = re.findall(r"@pytest\.fixture.*\ndef ([a-z]\w+)\(", text)
    assert len(fixtures) > 3
    named = {re.match(r"\w+", name)[0] for name in rows("fixture")}
    assert set(fixtures) <= named, set(fixtures) - named


@pytest.mark.parametrize("name", rows("fixture"))
def test_each_fixture_of_the_guide_exists(name):
    places = [path.read_text() for path in (*TESTS.glob("conftest.py"), *TESTS.rglob("test_*.py"))]
    function = re.match(r"\w+", name)[0]
    definition = rf"@pytest\.fixture.*\ndef {function}\("
    assert any(re.search(definition, text) for text in places)
