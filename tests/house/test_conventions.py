"""Check the conventions of `docs/conventions.md`, as far as that can be automated.

`EXCEPTIONS` has the exceptions to the rules, with reasons. An exception that is no longer needed
fails the test, too.
"""

import ast
import enum
import inspect
import re
import textwrap

import pytest
import tensorflow as tf
from google.protobuf.message import Message

import fastops
from fastops import backend, raw_ops
from tools.website import numpydoc, plugin, reference

pytestmark = pytest.mark.quick

A_FILE = "the file to write, or none, which pandas takes by position as well"
TENSORFLOWS = "the signature is TensorFlow's, so that its callers work unchanged"

EXCEPTIONS = {
    "options": {
        "fastops.Explanation.to_chrome_trace": A_FILE,
        "fastops.Explanation.to_html": A_FILE,
        "fastops.Profile.to_chrome_trace": A_FILE,
        "fastops.Profile.to_html": A_FILE,
        "fastops.graph.Session": TENSORFLOWS,
        "fastops.graph.Session.run": TENSORFLOWS,
        "fastops.graph.Session.make_callable": TENSORFLOWS,
        "fastops.graph.load": "a file and its signature are like a path",
        "fastops.backend.describe": "the object to describe, as in help(); default: all",
        "fastops.function": "the function itself, left out where it is a decorator",
    },
    "choices": {
        "fastops.backend.scope": "the learning phase is a number, as in Keras",
    },
    "flags": {
        "fastops.graph.Session.make_callable": TENSORFLOWS,
    },
    "protobufs": {
        "fastops.raw_ops.DefaultAttrs": "an op of TensorFlow's own tests, which sets the default",
        "fastops.raw_ops.ImageSummary": "a color, whose default is TensorFlow's",
    },
    "examples": {
        "fastops.load_ipython_extension": "IPython calls it: `%load_ext fastops`",
        "fastops.load_op_library": "a library has to be compiled for it; tests do that",
        "fastops.unload_ipython_extension": "IPython calls it: `%unload_ext fastops`",
    },
}
"""The exceptions, by rule and public name, with the reason."""

OTHER_NAMES = {
    "axes": "axis",
    "dim": "axis",
    "dims": "axis",
    "dimension": "axis",
    "reduction_indices": "axis",
    "keep_dims": "keepdims",
    "data_type": "dtype",
    "dt": "dtype",
    "op_name": "name",
    "label": "name",
    "verbosity": "verbose",
}
"""Names that a parameter must not have, and the name to use instead."""


def public():
    """Yield names and objects of the public API, without ops and TensorFlow's objects."""
    modules = {name: reference.names(module) for name, (module, _) in reference.MODULES.items()}
    for module_name, values in (modules | {plugin.NAME: plugin.public()}).items():
        for name, value in values.items():
            if not callable(value) or reference.is_tensorflows(value):
                continue
            yield f"{module_name}.{name}", value
            if isinstance(value, type):
                for member, one in reference.members(value).items():
                    yield f"{module_name}.{name}.{member}", one


PUBLIC = dict(public())

RECORDS = {
    name
    for name, value in PUBLIC.items()
    if isinstance(value, type)
    and not issubclass(value, BaseException)
    and value not in (fastops.graph.Session,)
}
"""Classes of which users get instances but do not make any."""

CALLABLES = {
    name: value
    for name, value in PUBLIC.items()
    if callable(value)
    and name not in RECORDS
    and not (isinstance(value, type) and issubclass(value, BaseException))
}

KERAS = {
    f"fastops.backend.{name}"
    for name in reference.names(backend)
    if name not in ("Catalogue", "Description", "describe", "replayable", "scope")
} | {f"fastops.backend.experimental.{name}" for name in backend.experimental.__all__}
"""Names that `tf.keras.backend` has, too. Their parameters and defaults are those of Keras, so that
its programs run unchanged; tests/backend checks that. Only the rules for docstrings apply to
them."""

CHOSEN = {name: value for name, value in CALLABLES.items() if name not in KERAS}
"""The callables whose parameters fastops has chosen."""

OPS = {name: getattr(raw_ops, name) for name in dir(raw_ops)}


def parameters(value):
    """Return the parameters of a call, without `self`."""
    found = list(inspect.signature(value).parameters.values())
    return found[1:] if found and found[0].name in ("self", "cls") else found


def body_of(value):
    """Yield the nodes of a function's own code; nothing if it is not written in Python."""
    try:
        source = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return
    waiting = list(ast.iter_child_nodes(ast.parse(source).body[0]))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def leaves(value):
    """Yield the items of nested lists."""
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def hold(rule, departures):
    """Fail unless the departures from a rule are exactly its exceptions."""
    assert sorted(departures) == sorted(EXCEPTIONS.get(rule, {})), rule


# Names -------------------------------------------------------------------------------------------


def test_names_of_classes_and_functions():
    for name, value in PUBLIC.items():
        short = name.rpartition(".")[2]
        pattern = r"([A-Z][a-z0-9]*)+" if isinstance(value, type) else r"[a-z][a-z0-9_]*"
        assert re.fullmatch(pattern, short), name


def test_names_of_parameters():
    for name, value in CHOSEN.items():
        for parameter in parameters(value):
            assert re.fullmatch(r"[a-z][a-z0-9_]*", parameter.name), name
            assert parameter.name not in OTHER_NAMES, (name, OTHER_NAMES[parameter.name])


def test_names_of_exceptions_end_with_error():
    for name, value in PUBLIC.items():
        if isinstance(value, type) and issubclass(value, BaseException):
            ending = "Warning" if issubclass(value, Warning) else "Error"
            assert name.endswith(ending)
            assert value.__module__ == "fastops"


# Options -----------------------------------------------------------------------------------------


def test_options_are_keyword_only():
    hold(
        "options",
        [
            name
            for name, value in CHOSEN.items()
            if any(
                parameter.default is not parameter.empty
                and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
                for parameter in parameters(value)
            )
        ],
    )


def test_no_flag_is_positional():
    hold(
        "flags",
        [
            name
            for name, value in CHOSEN.items()
            if any(
                isinstance(parameter.default, bool) and parameter.kind is not parameter.KEYWORD_ONLY
                for parameter in parameters(value)
            )
        ],
    )


def test_defaults_are_plain():
    for name, value in CHOSEN.items():
        for parameter in parameters(value):
            if parameter.default is not parameter.empty:
                assert parameter.default is None or type(parameter.default) in (bool, int, str), (
                    name
                )


def test_defaults_for_not_given_are_none():
    """No empty string or negative number means "not given"."""
    for name, value in CHOSEN.items():
        for parameter in parameters(value):
            if type(parameter.default) is int:
                assert parameter.default >= 0, name
            if parameter.name == "name" and parameter.default is not parameter.empty:
                assert parameter.default is None, name


# Kinds -------------------------------------------------------------------------------------------


def test_no_enumerations_and_no_protobufs():
    for name, value in PUBLIC.items():
        if isinstance(value, type):
            assert not issubclass(value, enum.Enum | Message), name
    for name, value in CALLABLES.items():
        for parameter in parameters(value):
            assert not isinstance(parameter.default, enum.Enum | Message), name
            assert "Proto" not in str(parameter.annotation), name


def test_choices_are_listed_as_strings():
    """A parameter that takes one of several strings lists them in braces."""
    found = []
    for name, value in CHOSEN.items():
        text = numpydoc.parse(value.__doc__).sections.get("Parameters", "")
        found += [(name, choice) for choice in re.findall(r"\{([^{}]+)\}", text)]
    assert len(found) > 4
    hold(
        "choices",
        [
            name
            for name, choices in found
            if not all(re.fullmatch(r'"\w+"|None', choice) for choice in choices.split(", "))
        ],
    )


# Stages ------------------------------------------------------------------------------------------


def test_experimental_objects_are_in_their_namespace():
    for name, value in PUBLIC.items():
        said = numpydoc.parse(value.__doc__).summary.lower()
        is_inside = ".experimental." in f"{name}."
        assert is_inside or ("experimental" not in name and "experimental" not in said), name


def test_deprecations_name_versions_and_what_to_use():
    pattern = (
        r"Deprecated since fastops \d+\.\d+, to be removed in \d+\.\d+: use `[\w.]+` instead\."
    )
    for name, value in PUBLIC.items():
        text = value.__doc__ or ""
        if "Deprecated since" in text:
            assert re.search(pattern, text), name


# Docstrings --------------------------------------------------------------------------------------


def test_summaries():
    for name, value in PUBLIC.items():
        first = (value.__doc__ or "").strip().splitlines()[:1]
        assert first, name
        assert first[0].endswith("."), name
        assert len(first[0]) <= 100, name


def test_parameters_are_documented():
    departs = []
    for name, value in CALLABLES.items():
        wanted = [parameter.name for parameter in parameters(value)]
        section = numpydoc.parse(value.__doc__).sections.get("Parameters", "")
        named = [
            name.strip().lstrip("*")
            for head, _ in (numpydoc.entries(section) if section else ())
            for name in head.partition(" : ")[0].split(",")
        ]
        if wanted != named:
            departs.append(name)
    hold("parameters", departs)


def test_results_are_documented():
    departs = []
    for name, value in CALLABLES.items():
        sections = numpydoc.parse(value.__doc__).sections
        gives = any(
            isinstance(node, ast.Return)
            and node.value is not None
            and ast.unparse(node.value) != "None"
            for node in body_of(value)
        )
        said = numpydoc.parse(value.__doc__).summary
        if not parameters(value) and re.match(r"(Return|Tell whether) ", said):
            continue  # the type says everything
        if not isinstance(value, type) and gives and not {"Returns", "Yields"} & set(sections):
            departs.append(name)
    hold("results", departs)


def test_errors_are_documented():
    departs = []
    for name, value in CALLABLES.items():
        text = numpydoc.parse(value.__doc__).sections.get("Raises", "")
        raised = {
            ast.unparse(node.exc.func)
            for node in body_of(value)
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        }
        if not all(error in text for error in raised):
            departs.append(name)
    hold("errors", departs)


def test_functions_have_an_example():
    hold(
        "examples",
        [
            name
            for name, value in CALLABLES.items()
            if inspect.isfunction(value)
            and name.rpartition(".")[0] in reference.MODULES
            and "Examples" not in numpydoc.parse(value.__doc__).sections
        ],
    )


# The ops -----------------------------------------------------------------------------------------


def test_ops_take_only_keywords_and_a_name_at_the_end():
    for name, op in OPS.items():
        parameters = list(inspect.signature(op).parameters.values())
        assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}, (
            name
        )
        assert parameters[-1].name == "name", name
        assert parameters[-1].default is None, name


def test_ops_have_plain_defaults():
    plain = bool | int | float | str | tf.DType | tf.TensorShape | None
    hold(
        "protobufs",
        [
            f"fastops.raw_ops.{name}"
            for name, op in OPS.items()
            if any(
                value is not inspect.Parameter.empty and not isinstance(value, plain)
                for parameter in inspect.signature(op).parameters.values()
                for value in leaves(parameter.default)
            )
        ],
    )


def test_only_names_of_keras_are_exempt_from_the_rules():
    described = {description.name for description in backend.describe().values()}
    assert {name.rpartition(".")[2] for name in KERAS} == described


def test_every_exception_has_a_reason():
    for rule, names in EXCEPTIONS.items():
        for name, reason in names.items():
            assert name in PUBLIC or name.rpartition(".")[2] in OPS, (rule, name)
            assert len(reason) > 10, (rule, name)
