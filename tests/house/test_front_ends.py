"""Builds by the real pip, oldest and newest, with an installed TensorFlow and without.

The project has the metadata, `setup.py` and build backend of fastops, and one module. TensorFlow
and NumPy are replaced by packages of a few lines, and the compiler by a script that copies files,
so a build takes some seconds. Only the two versions of pip are downloaded.
"""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from support import ROOT

from tools.pep517.fastops_build import systems

pytestmark = pytest.mark.slow

PIPS = {"oldest": "pip==23.2", "newest": "pip"}  # the oldest version that docs/quickstart.md names

METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

TENSORFLOW = """
import numpy
class version:
    VERSION, GIT_VERSION, COMPILER_VERSION = "{}", "{}", "some compiler"
class sysconfig:
    get_compile_flags = staticmethod(lambda: ["-I/include", "-DABI"])
    MONOLITHIC_BUILD = 0
"""
NUMPY = "get_include = lambda: '/numpy'\n"

COMPILER = """#!/bin/sh
while test $# -gt 1; do
  case "$1" in -o) : > "$2" ;; esac
  shift
done
"""

# The project's modules, in addition to those that the build itself reads.
PROJECT = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "THIRD_PARTY_LICENSES.md")
SOURCES = (
    *("fastops/_version.py", "fastops/_core/build.py", "fastops/_core/supported.py"),
    "tools/pep517",
)


def pack(folder, name, version, files, requires=""):
    """Write a wheel; its files are given as text, by path."""
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": METADATA.format(name, version) + requires,
        f"{info}/WHEEL": WHEEL,
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    return _write(folder / f"{name}-{version}-py3-none-any.whl", files)


def pack_installed(folder, name):
    """Write a wheel of a package that is installed in this environment, without its scripts."""
    installed = distribution(name)
    paths = {
        path.as_posix(): path.locate()
        for path in installed.files
        if ".." not in path.parts and path.suffix != ".pyc" and path.name != "RECORD"
    }
    files = {path: place.read_bytes() for path, place in paths.items() if place.is_file()}
    [info] = {path.split("/")[0] for path in files if path.partition("/")[2] == "WHEEL"}
    tag = next(line[5:] for line in files[f"{info}/WHEEL"].decode().splitlines() if "Tag:" in line)
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    return _write(folder / f"{name}-{installed.version}-{tag}.whl", files)


def _write(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tensorflow(version, build):
    """Return the files of a package that replaces TensorFlow."""
    libraries = {
        f"tensorflow/{place}/{name}".replace("//", "/"): ""
        for name, place in systems.LIBRARIES.items()
    }
    return {"tensorflow/__init__.py": TENSORFLOW.format(version, build), **libraries}


class Wheels:
    """The wheels of a test: `index` is where pip looks, `installed` is what an environment has."""

    def __init__(self, folder):
        self.index, self.installed, self._pips = folder / "index", folder / "installed", {}
        self._folder = folder
        for place in (self.index, self.installed):
            place.mkdir()
        for name in ("setuptools", "cython"):  # `build-system.requires`
            pack_installed(self.index, name)
        name = systems.distribution("").replace("-", "_")
        requires = "Requires-Dist: numpy\n"
        pack(self.index, name, "2.21.0", tensorflow("2.21.0", "of the index"), requires)
        pack(self.installed, name, "2.20.0", tensorflow("2.20.0", "installed"), requires)
        for place in (self.index, self.installed):
            pack(place, "numpy", "2.0.0", {"numpy/__init__.py": NUMPY})
            pack(place, "rich", "14.0.0", {"rich.py": ""})

    def pip(self, which):
        """Return a wheel of pip. Without a package index, Python's bundled pip is the oldest."""
        if which not in self._pips:
            place = self._folder / which
            command = [*(sys.executable, "-m", "pip", "download"), "--no-deps", "--quiet"]
            done = subprocess.run(
                [*command, "--dest", place, PIPS[which]], capture_output=True, text=True
            )
            if done.returncode != 0 and which == "newest":
                pytest.skip(f"pip cannot be downloaded: {done.stderr}")
            if done.returncode != 0:
                import ensurepip  # Debian has it in a package that is not always installed

                place = Path(ensurepip.__file__).with_name("_bundled")
            [self._pips[which]] = place.glob("pip-*.whl")
        return self._pips[which]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    return Wheels(tmp_path_factory.mktemp("wheels"))


class Environment:
    """An environment with pip, and a project."""

    def __init__(self, folder, wheels, pip, installed):
        self.project, self.out = folder / "project", folder / "out"
        venv.create(folder / "env", with_pip=False, symlinks=True)
        self.python = folder / "env" / "bin" / "python"
        version = "python{}.{}".format(*sys.version_info)
        place = folder / "env" / "lib" / version / "site-packages"
        for wheel in (wheels.pip(pip), *installed):
            zipfile.ZipFile(wheel).extractall(place)
        self._make_project()
        compiler = folder / "compiler"
        compiler.write_text(COMPILER)
        compiler.chmod(0o755)
        ours = ("PYTHON", "PIP_", "FASTOPS_", "VIRTUAL_ENV")
        self._variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            **dict.fromkeys(("CC", "CXX", "LDSHARED", "LDCXXSHARED"), str(compiler)),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": str(wheels.index),
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def _make_project(self):
        for name in (*PROJECT, *SOURCES):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.project / name)
        for name in ("fastops", "fastops/_core", "bench/pytest_fastops"):
            (self.project / name).mkdir(parents=True, exist_ok=True)
            (self.project / name / "__init__.py").touch()
        (self.project / "fastops" / "_first.pyx").write_text("first = 1\n")

    def run(self, *arguments, **options):
        done = subprocess.run(
            [self.python, *arguments],
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def build(self, command):
        """Run a pip command in the project; return the TensorFlow version it has compiled for."""
        name, *arguments = command.split()
        place = ["--wheel-dir", self.out] if name == "wheel" else []
        self.run("-m", "pip", name, *arguments, *place, cwd=self.project)
        if name == "wheel":
            [wheel] = self.out.glob("fastops-*.whl")
            self.run("-m", "pip", "install", "--no-deps", wheel)
        ask = "from fastops._build_info import BUILDS; print(BUILDS[''][0]['build'])"
        return self.run("-c", ask, cwd=self.out.parent).strip()


@pytest.mark.parametrize("pip", PIPS)
@pytest.mark.parametrize("command", ["install .[cpu]", "install -e .", "wheel --no-deps ."])
def test_a_build_uses_the_installed_tensorflow(pip, command, wheels, tmp_path):
    environment = Environment(tmp_path, wheels, pip, wheels.installed.iterdir())
    assert environment.build(command) == "installed"


@pytest.mark.parametrize("pip", PIPS)
def test_a_build_requires_tensorflow_if_none_is_installed(pip, wheels, tmp_path):
    environment = Environment(tmp_path, wheels, pip, ())
    assert environment.build("install .[cpu]") == "of the index"


def test_a_tensorflow_in_a_pth_file_counts_as_installed(wheels, tmp_path):
    """An environment that is layered on another one has such a file."""
    environment = Environment(tmp_path, wheels, "newest", ())
    for wheel in wheels.installed.iterdir():
        zipfile.ZipFile(wheel).extractall(tmp_path / "lower")
    [place] = tmp_path.glob("env/lib/python*/site-packages")
    (place / "lower.pth").write_text(f"{tmp_path / 'lower'}\n")
    assert environment.build("install --no-deps .") == "installed"


def test_packages_of_the_environment_do_not_affect_the_build(wheels, tmp_path):
    """One such package is a plugin of setuptools, which fails to import here."""
    environment = Environment(tmp_path, wheels, "oldest", wheels.installed.iterdir())
    [place] = tmp_path.glob("env/lib/python*/site-packages")
    info = place / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format("plugin", "1.0"))
    (info / "entry_points.txt").write_text(
        "[setuptools.finalize_distribution_options]\nplugin = nothing:nothing\n"
    )
    assert environment.build("install .") == "installed"
