"""The public names of fastops."""

import sys as _sys
import warnings as _warnings
from types import ModuleType as _ModuleType

from fastops._core import build as _build
from fastops._core import supported as _supported

with _build.chosen() as _running:
    from fastops import gen, graph, keras, ops, raw_ops
    from fastops._core.errors import (
        DeprecatedOpError,
        FallbackError,
        FallbackWarning,
        MissingOpError,
        VerificationError,
        VerificationWarning,
    )
    from fastops._core.options import options
    from fastops._core.reasons import REGISTRY as _REGISTRY
    from fastops._install.placement import accelerated, install, is_installed, uninstall
    from fastops._install.verify.results import VerificationReport, verified
    from fastops._plans import description as _description
    from fastops._plans.description import PlanDescription, PlanNode
    from fastops._plans.function import Function, function
    from fastops._registry import load_op_library
    from fastops._reports import explain as _explain
    from fastops._reports import profile as _profile
    from fastops._reports import stats as _stats
    from fastops._reports.cache import cache_info, clear_cache, set_cache_size
    from fastops._reports.explain import explain, profile
    from fastops._reports.profile import (
        Change,
        Detour,
        Explanation,
        FunctionProfile,
        MethodProfile,
        OpProfile,
        Profile,
        PublicFunctionProfile,
        RecordingProfile,
        WalkProfile,
    )
    from fastops._reports.stats import (
        FunctionStats,
        KindStats,
        MethodStats,
        OpStats,
        Stats,
        reset_stats,
        stats,
    )
    from fastops._shell.environment import read_environment
    from fastops._shell.ipython import (
        load_ipython_extension,
        unload_ipython_extension,
    )
    from fastops._version import __version__

if _deprecation := _supported.deprecation(_running):
    _warnings.warn(_deprecation, stacklevel=3)  # at the import of fastops

REASONS = {reason.id: reason.sentence for reason in _REGISTRY.values()}

# Pickles and signatures name the classes of reports by their former modules. Each of these modules
# is made here, with its former contents.
for _former, _modules in {
    "fastops._description": [_description],
    "fastops._profile": [_profile, _explain],
    "fastops._stats": [_stats],
}.items():
    _sys.modules[_former] = _alias = _ModuleType(_former, _modules[0].__doc__)
    _alias.__file__ = _modules[0].__file__
    for _module in _modules:
        for _name, _value in vars(_module).items():
            if getattr(_value, "__module__", None) == _module.__name__:
                setattr(_alias, _name, _value)
                if isinstance(_value, type):
                    _value.__module__ = _former

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
    "KindStats",
    "MethodProfile",
    "MethodStats",
    "MissingOpError",
    "OpProfile",
    "OpStats",
    "PlanDescription",
    "PlanNode",
    "Profile",
    "PublicFunctionProfile",
    "RecordingProfile",
    "Stats",
    "VerificationError",
    "VerificationReport",
    "VerificationWarning",
    "WalkProfile",
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
    "keras",
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
    "verified",
]
