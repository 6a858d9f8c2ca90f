"""Warnings that recorded calls issue. Replays issue them again, for the same lines.

`warnings.warn` finds out which line it is called from, and whether this line has issued the warning
before. `warnings.warn_explicit` takes all of that as arguments, and does the rest.
"""

import _warnings
import io
import sys
import warnings
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType

from fastops._specialize.guards.names import upstream
from fastops._specialize.libraries import is_own

_FUNCTIONS = {"warn": _warnings.warn, "warn_explicit": _warnings.warn_explicit}
_ACTIONS = frozenset({"always", "all", "default", "ignore", "module", "once"})
"""The actions of filters that do not raise."""

_STREAMS = frozenset({io.StringIO, io.TextIOWrapper, type(None)})
_OF_STREAMS = frozenset({"_pytest", "ipykernel"})
"""Classes of error streams, and packages with such classes, that only write."""

_SHOWS = vars(sys.modules.get("_py_warnings", warnings))
"""The globals of the function that shows warnings: since CPython 3.14 those of another module."""


@dataclass(frozen=True)
class Warned:
    """A warning, and the line of code that issues it.

    Attributes
    ----------
    text : str
        The message.
    category : type
        The class of the warning.
    filename, line, module : str, int, str
        Where the code is.
    namespace : dict
        The globals of the code. Python notes there which warnings its lines have issued.
    """

    text: str
    category: type
    filename: str
    line: int
    module: str
    namespace: dict = field(compare=False, repr=False)

    def action(self):
        """Return what the filters say is to be done, as `warnings.warn` finds it."""
        for action, message, category, module, line in _filters():
            if (
                _matches(message, self.text)
                and issubclass(self.category, category)
                and _matches(module, self.module)
                and line in (0, self.line)
            ):
                return action
        return warnings.defaultaction

    def issue(self):
        """Issue the warning."""
        registry = self.namespace.setdefault("__warningregistry__", {})
        warnings.warn_explicit(
            self.text, self.category, self.filename, self.line, self.module, registry
        )


def _filters():
    """Return the filters of this thread: since CPython 3.14, a context may have its own.

    No function of Python's library is called: it would count as code of the recorded call.
    """
    if getattr(sys.flags, "context_aware_warnings", False):
        context = warnings._warnings_context.get(None)
        own = None if context is None else vars(context).get("_filters")
        if own is not None:
            return own
    return warnings.filters


def _matches(pattern, text):
    """Tell whether a part of a filter matches. Filters of Python itself have plain texts."""
    if pattern is None or type(pattern) is str:
        return pattern is None or pattern == text
    return bool(pattern.match(text))


def warned(args, kwargs, frame):
    """Return the `Warned` for a call of `warnings.warn`; None if replays cannot repeat it.

    Parameters
    ----------
    args, kwargs : tuple, dict
        The arguments of the call.
    frame : frame
        The frame of the code that calls it.
    """
    if kwargs or len(args) not in (1, 2):
        return None
    text, category = args if len(args) == 2 else (*args, UserWarning)
    namespace = frame.f_globals
    name = namespace.get("__name__")
    if (
        type(text) is not str
        or not (isinstance(category, type) and issubclass(category, Warning))
        or category.__module__ != "builtins"
        or type(name) is not str
        or not is_own(name)
        or getattr(sys.modules.get(name), "__dict__", None) is not namespace
    ):
        return None
    return Warned(text, category, frame.f_code.co_filename, frame.f_lineno, name, namespace)


def may_issue(notes):
    """Tell whether issuing warnings raises nothing and runs no code of users."""
    for name, function in _FUNCTIONS.items():
        if upstream(getattr(warnings, name)) is not function:
            return False
    try:
        actions = {note.action() for note in notes}
    except Exception:  # a filter that is none: Python raises the error
        return False
    return actions <= _ACTIONS and (actions == {"ignore"} or _is_shown_by_python())


def _is_shown_by_python():
    """Tell whether Python itself shows warnings, on an ordinary stream or in a list."""
    if warnings.showwarning is not warnings._showwarning_orig:
        return False
    shows = warnings._showwarnmsg_impl
    if type(shows) is BuiltinFunctionType:  # `warnings.catch_warnings` collects them
        return type(shows.__self__) is list
    if type(shows) is not FunctionType or shows.__globals__ is not _SHOWS:
        return False
    kind = type(sys.stderr)
    return kind in _STREAMS or kind.__module__.partition(".")[0] in _OF_STREAMS


def issue(notes):
    """Issue warnings, in their order."""
    for note in notes:
        note.issue()
