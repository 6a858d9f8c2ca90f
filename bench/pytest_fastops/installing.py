"""``--fastops-install`` and ``FASTOPS_INSTALL=1``: tests run under `fastops.install`.

This module imports neither fastops nor TensorFlow. So settings that a conftest makes before it
imports TensorFlow count, as in a plain run. `fastops.install` is called at the end of that import.
"""

import os
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

OPTION = "--fastops-install"
VERIFICATION = "--fastops-verify"
VARIABLE = "FASTOPS_INSTALL"

_begun = pytest.StashKey[bool]()


def asked_by(config):
    """Return the option or variable that enables `fastops.install` in this run, or `None`."""
    namespace = getattr(config, "known_args_namespace", config.option)
    if _verification(config) is not None:
        return VERIFICATION
    if getattr(namespace, "fastops_install", False):
        return OPTION
    value = os.environ.get(VARIABLE) or "0"
    if value not in ("0", "1"):
        raise pytest.UsageError(f"{VARIABLE} must be one of '0', '1', not {value!r}")
    return f"{VARIABLE}=1" if value == "1" else None


def begin(config):
    """Install at the first import of TensorFlow or fastops, until the end of this run."""
    if config.stash.get(_begun, False) or asked_by(config) is None:
        return
    config.stash[_begun] = True
    installed = []
    imports, garbage = _module("imports"), _module("garbage")
    forget = imports.when_imported(lambda: installed.append(_install(config)), garbage.importing)

    def end():
        forget()
        if any(installed):
            sys.modules["fastops"].uninstall()

    config.add_cleanup(end)


def _verification(config):
    namespace = getattr(config, "known_args_namespace", config.option)
    return getattr(namespace, "fastops_verify", None)


def _install(config):
    """Install fastops if this run requires it; return whether it was not installed before."""
    import fastops

    if (mode := _verification(config)) is not None:
        from fastops._install.verify.results import set_default
        from fastops._shell.verification import parse

        set_default(*parse(mode))
    new = not fastops.is_installed()
    fastops.install()
    return new


def _module(name):
    """Return a module of `fastops._core` without importing fastops, which imports TensorFlow."""
    package = Path(find_spec("fastops").origin).parent
    spec = spec_from_file_location(f"pytest_fastops._{name}", package / "_core" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def header(config):
    """Return the line for pytest's header, or `None` if fastops is not enabled."""
    asked = asked_by(config)
    if asked is None:
        return None
    return f"fastops: install is active from the import of TensorFlow on ({asked})"
