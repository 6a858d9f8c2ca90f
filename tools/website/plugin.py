"""The reference page of the pytest plugin: its fixtures, marker and options.

The page has the texts that the plugin passes to pytest about the marker and the options.
"""

import inspect

import pytest_fastops
from pytest_fastops.comparison import Comparison
from pytest_fastops.fixtures import NoFallback, OpBenchmark

from . import numpydoc

NAME = "pytest_fastops"


class _Registrations:
    """Replaces the objects that pytest passes to a plugin, and stores what the plugin registers."""

    def __init__(self):
        self.options, self.markers = {}, []
        self.pluginmanager = self

    def getgroup(self, name, description):
        return self

    def addoption(self, name, **how):
        self.options[name] = how

    def addinivalue_line(self, name, line):
        self.markers.append(line)

    def getoption(self, name):
        return None

    def register(self, plugin, name):
        pass


def registered():
    """Return the options and markers that the plugin registers.

    Returns
    -------
    options : dict of dict
        By name, the arguments with which an option is added.
    markers : list of str
        Each marker with its parameters, a colon, and a description.
    """
    registrations = _Registrations()
    pytest_fastops.pytest_addoption(registrations)
    pytest_fastops.pytest_configure(registrations)
    return registrations.options, registrations.markers


def fixtures():
    """Return the functions of the plugin's fixtures, by name."""
    functions = {name: inspect.unwrap(value) for name, value in vars(pytest_fastops).items()}
    return {
        name: value for name, value in functions.items() if value is not vars(pytest_fastops)[name]
    }


def public():
    """Return the public objects of the plugin, by name."""
    return {
        "op_benchmark": OpBenchmark.__call__,
        "no_fallback.fallbacks": NoFallback.fallbacks,
        "no_fallback.check": NoFallback.check,
        "Comparison": Comparison,
    }


def page(entry, signature):
    """Return the page.

    Parameters
    ----------
    entry : callable
        Returns the reference entry for a name and a value.
    signature : callable
        Returns the signature of a value as text.
    """
    options, markers = registered()
    functions, called = fixtures(), public()
    parts = [f"# {NAME}\n", numpydoc.markdown(numpydoc.parse(pytest_fastops.__doc__))]
    parts.append("[Measuring](../measuring.md) shows how to use it.\n\n## Fixtures\n")
    for name, function in functions.items():
        title = name.replace("_", r"\_")
        parts.append(f"### {title} {{ #{NAME}.{name} }}\n")
        parts.append(numpydoc.markdown(numpydoc.parse(function.__doc__)))
        for one, value in called.items():
            if one == name:
                parts.append(f"```python\n{one}{signature(value)}\n```\n")
                parts.append(numpydoc.markdown(numpydoc.parse(value.__doc__)))
            elif one.partition(".")[0] == name:
                parts.append(entry(f"{NAME}.{one}", value, 4))
    parts.append("## Markers\n")
    for marker in markers:
        head, _, said = marker.rpartition("): ")
        parts.append(f"`@pytest.mark.{head})`: {numpydoc.prose(said)}\n")
    parts.append("## Options\n\n| option | what it does |\n| --- | --- |")
    for name, how in options.items():
        shown = f"{name}={how['metavar']}" if "metavar" in how else name
        parts.append(f"| `{shown}` | {numpydoc.prose(how['help'])} |")
    parts += ["", entry(f"{NAME}.Comparison", Comparison)]
    return "\n".join(parts)
