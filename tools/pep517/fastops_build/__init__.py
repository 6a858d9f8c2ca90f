"""The build backend: setuptools, given the TensorFlow that fastops is being installed beside.

The extension fits one TensorFlow only, and an isolated build does not see the installed one. pip
runs such a build with the interpreter of the environment that it installs into. A process of that
interpreter without pip's variables imports what is installed there, and describes TensorFlow:
nothing is downloaded, no second TensorFlow is installed. Other front ends (uv, build) build in a
new environment; for them, and where no TensorFlow is installed, one is required for the build,
which ``-C tensorflow=tensorflow==2.20.0`` chooses.
"""

import shutil
import warnings
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (the hooks that are not replaced below)

from . import needs, systems


def _get_requires(config_settings=None):
    needs.compiler()  # before a TensorFlow is downloaded for nothing
    if needs.has_tensorflow():
        return []
    if chosen := (config_settings or {}).get("tensorflow"):
        return [chosen]
    return [systems.distribution(needs.supported_tensorflow())]


get_requires_for_build_wheel = _get_requires
get_requires_for_build_editable = _get_requires


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build a wheel of what is there now: setuptools would pack what it once copied, too."""
    for left in Path("build").glob("lib*"):
        shutil.rmtree(left)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Build what makes this folder importable, without a warning of what else is in it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Editable installation")
        return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
