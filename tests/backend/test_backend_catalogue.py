"""Descriptions, docstrings and examples of the backend's functions; the stub and the table."""

import doctest
import inspect
import re
import types

import pytest
import tensorflow as tf

from fastops import backend
from fastops._backend.catalogue import CATEGORIES
from tools import backend as tool

FUNCTIONS = {
    name: getattr(backend, name)
    for name in backend.__all__
    if isinstance(getattr(backend, name), types.FunctionType)
}
OWN = {"describe", "replayable", "scope"}


def test_stub_and_table_are_what_the_tool_writes(capsys):
    assert tool.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - OWN))
def test_each_function_is_described(name):
    description = backend.describe(name)
    assert description.category in CATEGORIES
    assert (description.op is None) == (description.category != "alias")
    assert description.adds or description.category == "alias"
    doc = FUNCTIONS[name].__doc__
    assert description.category.title() in doc.replace("An alias", "Alias")
    for one in (description.tensorflow, description.keras):
        assert one in re.sub(r"\s+", " ", doc)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_docstrings_describe_the_parameters(name):
    function = FUNCTIONS[name]
    doc = inspect.getdoc(function)
    parameters = inspect.signature(function).parameters
    assert ("\nParameters\n----------\n" in doc) == bool(parameters), name
    section = doc.partition("\nParameters\n----------\n")[2].partition("\n\n")[0]
    named = re.findall(r"^([\w*][\w*, ]*) :", section, re.MULTILINE)
    shown = [name.strip("* ") for names in named for name in names.split(",")]
    shown += re.findall(r"^\*\*(\w+)$", section, re.MULTILINE)
    shown += re.findall(r"^(\w+)$", section, re.MULTILINE)
    assert sorted(shown) == sorted(parameters), name
    order = ["Parameters", "Returns", "Raises", "Warns", "Notes", "Source", "See Also", "Examples"]
    titles = re.findall(r"^(\w[\w ]*)\n-+$", doc, re.MULTILINE)
    assert titles == sorted(titles, key=order.index), name


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_examples_print_what_they_show(name):
    doc = inspect.getdoc(FUNCTIONS[name])
    test = doctest.DocTestParser().get_doctest(doc, {}, name, f"{name}.py", 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list = []
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize("column", ["tensorflow", "keras"])
def test_suggested_replacements_exist(column):
    keras = pytest.importorskip("keras")
    for description in backend.describe().values():
        if name := getattr(description, column):
            value = {"tf": tf, "keras": keras}[name.partition(".")[0]]
            # Attributes that only an instance has.
            for part in name.removesuffix(".numpy").split(".")[1:]:
                value = getattr(value, part)


def test_the_catalogue_prints_as_a_table():
    lines = repr(backend.describe()).splitlines()
    assert lines[0].split()[:2] == ["name", "category"]
    assert any(line.startswith("exp ") and " alias " in line for line in lines)
    assert len(lines) == len(backend.describe()) + 1
    with pytest.raises(ValueError, match="no function 'nothing'"):
        backend.describe("nothing")
