"""The public names of fastops."""

import sys as _sys

from fastops._core import build as _build

_build.check()

from fastops import gen, graph, ops, raw_ops  # noqa: E402
from fastops._core.errors import (  # noqa: E402
    DeprecatedOpError,
    FallbackError,
    FallbackWarning,
    MissingOpError,
)
from fastops._core.options import options  # noqa: E402
from fastops._core.reasons import REASONS as _REASONS  # noqa: E402
from fastops._install.placement import accelerated, install, is_installed, uninstall  # noqa: E402
from fastops._plans.description import PlanDescription, PlanNode  # noqa: E402
from fastops._plans.function import Function, function  # noqa: E402
from fastops._registry import load_op_library  # noqa: E402
from fastops._reports.cache import cache_info, clear_cache, set_cache_size  # noqa: E402
from fastops._reports.profile import (  # noqa: E402
    Change,
    Detour,
    Explanation,
    FunctionProfile,
    OpProfile,
    Profile,
    explain,
    profile,
)
from fastops._reports.stats import FunctionStats, OpStats, Stats, reset_stats, stats  # noqa: E402
from fastops._shell.environment import read_environment  # noqa: E402
from fastops._shell.ipython import (  # noqa: E402
    load_ipython_extension,
    unload_ipython_extension,
)
from fastops._version import __version__  # noqa: E402

REASONS = dict(_REASONS)

# The names that pickles and signatures know the classes of reports by.
for _former, _classes in {
    "fastops._description": (PlanDescription, PlanNode),
    "fastops._profile": (Change, Detour, Explanation, FunctionProfile, OpProfile, Profile),
    "fastops._stats": (FunctionStats, OpStats, Stats),
}.items():
    _sys.modules[_former] = _sys.modules[_classes[0].__module__]
    for _class in _classes:
        _class.__module__ = _former

if read_environment():
    install()
del read_environment

__all__ = [
    "REASONS",
    "Change",
    "DeprecatedOpError",
    "Detour",
    "Explanation",
    "FallbackError",
    "FallbackWarning",
    "Function",
    "FunctionProfile",
    "FunctionStats",
    "MissingOpError",
    "OpProfile",
    "OpStats",
    "PlanDescription",
    "PlanNode",
    "Profile",
    "Stats",
    "__version__",
    "accelerated",
    "cache_info",
    "clear_cache",
    "explain",
    "function",
    "gen",
    "graph",
    "install",
    "is_installed",
    "load_ipython_extension",
    "load_op_library",
    "ops",
    "options",
    "profile",
    "raw_ops",
    "reset_stats",
    "set_cache_size",
    "stats",
    "uninstall",
    "unload_ipython_extension",
]
