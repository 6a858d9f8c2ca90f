"""The build backend: setuptools, for the TensorFlow of the environment of the installation.

The extensions fit only one TensorFlow, and an isolated build does not see the installed one. pip
runs such a build with the interpreter of the environment into which it installs. A process of that
interpreter without pip's variables can import the installed TensorFlow and describe it, so nothing
is downloaded, and no second TensorFlow is installed. Other front ends (uv, build) build in a new
environment. For them, and if no TensorFlow is installed, the build requires a TensorFlow, which
``-C tensorflow=tensorflow==2.20.0`` chooses.
"""

import shutil
import warnings
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (the hooks that are not replaced below)

from . import needs, systems


def _get_requires(config_settings=None):
    needs.compiler()  # check this before TensorFlow is downloaded
    if needs.has_tensorflow():
        return []
    if chosen := (config_settings or {}).get("tensorflow"):
        return [chosen]
    return [systems.distribution(needs.supported_tensorflow())]


get_requires_for_build_wheel = _get_requires
get_requires_for_build_editable = _get_requires


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build a wheel of the present files, without files that setuptools copied before."""
    for left in Path("build").glob("lib*"):
        shutil.rmtree(left)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Build an editable install of this folder, without warnings about its other files."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Editable installation")
        return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
