"""The versions that fastops supports: what follows from them, and where files name them."""

import re
import subprocess
import sys

import pytest
import tensorflow as tf
from packaging.requirements import Requirement
from support import ROOT

from fastops._core import supported
from tools import supported as tool

pytestmark = pytest.mark.quick

FOUR = {"2.5.0": (), "2.6.0": (), "2.6.1": (), "2.7.0": (), "2.8.0rc0": (), "2.8.0rc1": ()}


@pytest.fixture
def four(monkeypatch):
    """Replace the releases by three released minor versions and two candidates."""
    monkeypatch.setattr(supported, "RELEASES", FOUR)


@pytest.fixture
def released(monkeypatch):
    """Replace the releases by those after the release of the candidate."""
    monkeypatch.setattr(supported, "RELEASES", dict.fromkeys((*FOUR, "2.8.0"), ()))


def test_a_candidate_deprecates_nothing(four):
    assert supported.minors() == ["2.5", "2.6", "2.7", "2.8"]
    assert supported.released() == ["2.5", "2.6", "2.7"]
    assert supported.candidates() == {"2.8": "2.8.0rc1"}
    assert supported.deprecated() == []
    assert supported.remark("2.5.0") is None
    assert supported.remark("2.8.0-rc0") == "a release candidate"


def test_a_release_deprecates_the_oldest_version(released):
    assert supported.candidates() == {}
    assert supported.deprecated() == ["2.5"]
    assert supported.remark("2.5.0") == (
        "the next minor version of fastops drops TensorFlow 2.5: use 2.6 to 2.8"
    )
    assert supported.remark("2.8.0") is None
    assert supported.is_supported("2.5.0")


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.4.9", False), ("2.5.0", True), ("2.8.0-rc7", True), ("2.8.1", True), ("2.9.0", False)],
)
def test_the_range_of_builds(four, version, expected):
    assert supported.is_supported(version) is expected


def test_installations_choose_no_release_that_a_wheel_cannot_know(four):
    assert supported.specifier() == ">=2.5,<2.9,!=2.8.0"
    chosen = Requirement(f"tensorflow-cpu{supported.specifier()}").specifier
    releases = ["2.4.0", *FOUR, "2.8.0", "2.9.0rc0"]
    assert [*chosen.filter(releases)] == ["2.5.0", "2.6.0", "2.6.1", "2.7.0"]
    assert [*chosen.filter(releases, prereleases=True)] == [*FOUR]


def test_a_distribution_that_lacks_functions_starts_later(released, monkeypatch):
    monkeypatch.setattr(supported, "ONLY_CPU", ("2.5",))
    assert supported.specifier() == ">=2.5,<2.9"
    assert supported.specifier("tensorflow") == ">=2.6,<2.9"


# What a user sees ---------------------------------------------------------------------------------

IMPORT = """
import importlib.util, sys
from pathlib import Path

path = Path("fastops", "_core", "supported.py")
spec = importlib.util.spec_from_file_location("fastops._core.supported", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.RELEASES = {name: () for name in %s}
sys.modules[spec.name] = module
import fastops
from fastops.__main__ import main
main(["doctor"])
"""


def imported(later):
    """Import fastops and run the doctor after later releases of TensorFlow; return the output."""
    major, minor, _ = tf.version.VERSION.split(".", 2)
    releases = [f"{major}.{int(minor) + i}.0" for i in range(later + 1)]
    command = [sys.executable, "-W", "default", "-c", IMPORT % releases]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return f"{major}.{minor}", done.stderr, " ".join(re.sub("[│┃]", "", done.stdout).split())


def test_an_import_with_a_deprecated_tensorflow_warns():
    minor, errors, output = imported(supported.KEPT)
    warning = f"the next minor version of fastops drops TensorFlow {minor}: use "
    assert f"<string>:11: DeprecationWarning: {warning}" in errors
    # The doctor calls a candidate a candidate.
    assert (warning in output) != supported.is_candidate(tf.version.VERSION)


def test_an_import_with_another_tensorflow_does_not_warn():
    _, errors, output = imported(supported.KEPT - 1)
    assert "DeprecationWarning" not in errors
    assert "drops TensorFlow" not in output


# Where files name them ----------------------------------------------------------------------------


def test_files_name_the_supported_versions(capsys):
    assert tool.main(["--check"]) == 0, capsys.readouterr().out


def test_a_place_without_versions_is_an_error():
    with pytest.raises(LookupError, match=r"README\.md does not have"):
        tool.written("README.md", "fastops runs everywhere")


def test_the_tool_writes_other_versions(monkeypatch):
    monkeypatch.setitem(tool.SUPPORTED["minors"].__globals__, "RELEASES", FOUR)
    text = tool.written("pyproject.toml", (ROOT / "pyproject.toml").read_text())
    assert 'cpu = ["tensorflow-cpu>=2.5,<2.9,!=2.8.0"]' in text
    text = tool.written("docs/index.md", (ROOT / "docs" / "index.md").read_text())
    assert "TensorFlow 2.5 to 2.7 (and the candidate 2.8.0rc1)" in text


RANGES = (
    r"tensorflow(-cpu|\[and-cuda\])?[<>~]=?2\.",
    r"2\.\d\d to 2\.\d\d",
    r"3\.1\d to 3\.1\d",
    r"3\.1\d\"?, \"?3\.1\d",
)
"""Patterns of texts that name the supported versions."""

EXAMPLES = {
    "docs/compatibility.md": "the table of builds, and the processors that were tested",
    "fastops/_core/supported.py": "the one place",
    "tests/house/test_supported.py": "this test",
    "tests/house/test_packaging.py": "examples of requirements",
}
"""Files that have such texts of their own, each with the reason."""


def test_no_other_file_names_the_supported_versions():
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    left_out = ("CHANGELOG.md", "bench/README.md", "docs/matrix.md", "*.json", "fastops/gen")
    command = ["git", "grep", "-lE", "|".join(RANGES), "--", *(f":!{name}" for name in left_out)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.split()
    written = {place.file for place in tool.places()}
    assert not [name for name in found if name not in written | EXAMPLES.keys()]
