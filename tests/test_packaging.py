"""What pyproject.toml says in two places is the same in both."""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())


def test_build_group_is_what_an_isolated_build_has():
    isolated = PYPROJECT["build-system"]["requires"]
    tensorflow = PYPROJECT["project"]["optional-dependencies"]["cpu"]
    assert PYPROJECT["dependency-groups"]["build"] == isolated + tensorflow


def test_no_tensorflow_is_forced_on_anybody():
    required = PYPROJECT["project"]["dependencies"] + PYPROJECT["build-system"]["requires"]
    assert not [name for name in required if name.startswith("tensorflow")]
