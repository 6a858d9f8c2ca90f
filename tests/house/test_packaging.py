"""The build: its messages if something is missing, and its files if it ends early.

Cython and the compiler are replaced by scripts that copy their input, so a build takes a second.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tools.pep517.fastops_build import compile as building
from tools.pep517.fastops_build import needs, systems
from tools.pep517.fastops_build.command import BuildExtension
from tools.pep517.fastops_build.progress import Progress

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_build_group_has_the_requirements_of_isolated_builds():
    isolated = PYPROJECT["build-system"]["requires"]
    tensorflow = PYPROJECT["project"]["optional-dependencies"]["cpu"]
    assert PYPROJECT["dependency-groups"]["build"] == isolated + tensorflow


def test_tensorflow_is_not_a_hard_dependency():
    required = PYPROJECT["project"]["dependencies"] + PYPROJECT["build-system"]["requires"]
    assert not [name for name in required if name.startswith("tensorflow")]


def test_the_build_supports_the_same_versions_as_the_package():
    [tensorflow] = PYPROJECT["project"]["optional-dependencies"]["cpu"]
    assert tensorflow == f"tensorflow-cpu{needs.supported_tensorflow()}"


# Missing parts ---------------------------------------------------------------------------------


def one_line(function):
    with pytest.raises(SystemExit) as caught:
        function()
    assert "\n" not in caught.value.code
    return caught.value.code


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    message = one_line(needs.compiler)
    assert "needs a compiler for C++17, and 'no-such-compiler -O2' is not found" in message
    assert "apt install g++" in message


def test_a_compiler_that_is_too_old(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", script(tmp_path / "old", 'echo "error: #error C++17" >&2; exit 1'))
    message = one_line(needs.compiler)
    assert "cannot compile it (error: #error C++17)" in message
    assert "CXX=" in message


def test_no_headers_of_python(monkeypatch, tmp_path):
    monkeypatch.setattr(needs.sysconfig, "get_path", lambda name: str(tmp_path))
    message = one_line(needs.compiler)
    assert f"there are none in {tmp_path}" in message
    assert "apt install python3-dev" in message


def test_another_system(monkeypatch):
    monkeypatch.setattr(systems.sys, "platform", "win32")
    assert "runs on Linux and macOS" in one_line(needs.compiler)
    assert "not on win32" in one_line(needs.compiler)


@pytest.mark.parametrize(
    ("system", "machine"), [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]
)
def test_supported_systems_provide_the_functions_that_fastops_calls(monkeypatch, system, machine):
    monkeypatch.setattr(systems.sys, "platform", system)
    monkeypatch.setattr(systems.platform, "machine", lambda: machine)
    assert systems.unsupported() is None
    assert systems.distribution(">=2.19") == (
        "tensorflow-cpu>=2.19" if machine == "x86_64" else "tensorflow>=2.19"
    )


def test_macos_builds_without_onednn_and_resolve_symbols_at_load_time(monkeypatch):
    assert "-DINTEL_MKL" in systems.defines("")
    assert "libtensorflow_cc.so.2" in systems.needed_libraries()
    monkeypatch.setattr(systems, "MACOS", True)
    assert "-DINTEL_MKL" not in systems.defines("")
    assert systems.needed_libraries() == ()


@pytest.mark.parametrize(
    ("macros", "added"),
    [
        ("#define __aarch64__ 1\n", True),
        ("#define __aarch64__ 1\n#define __ARM_ACLE 202420\n", False),
        ("#define __x86_64__ 1\n", False),
    ],
)
def test_the_hash_function_is_that_of_the_wheels(macros, added):
    """TensorFlow's wheels are compiled by Clang, which defines a macro that GCC 12 does not."""
    assert ("-D__ARM_ACLE=200" in systems.defines(macros)) is added


@pytest.fixture
def tensorflow(monkeypatch, tmp_path):
    """Return a function that replaces TensorFlow by a module."""

    def write(text):
        (tmp_path / "instead").mkdir()
        (tmp_path / "instead" / "tensorflow.py").write_text(text)
        for name, folder in systems.LIBRARIES.items():
            (tmp_path / "instead" / folder).mkdir(exist_ok=True)
            (tmp_path / "instead" / folder / name).touch()
        monkeypatch.syspath_prepend(tmp_path / "instead")

    return write


SOME_TENSORFLOW = """
class version:
    VERSION, GIT_VERSION, COMPILER_VERSION = "{}", "v{}-x", "some compiler"
class sysconfig:
    get_compile_flags = staticmethod(lambda: ["-I/include", "-DABI"])
    MONOLITHIC_BUILD = 0
print("something that it says")
"""


SOME_BUILD = {
    "version": "2.20.0",
    "build": "v2.20.0-x",
    "compiler": "some compiler",
    "flags": "-DABI",
    "libraries": " ".join(systems.LIBRARIES),
}


def test_no_tensorflow(tensorflow):
    tensorflow("raise ImportError('libfoo.so: cannot open shared object file')")
    message = one_line(needs.tensorflow)
    assert "(ImportError: libfoo.so: cannot open shared object file)" in message
    assert f"pip install 'tensorflow-cpu{needs.supported_tensorflow()}'" in message


OTHERS = ["2.18.1", f"{systems.SUPPORTED['bounds']()[1]}.0-rc0", "3.0.0"]


@pytest.mark.parametrize("version", OTHERS)
def test_a_tensorflow_of_another_version(tensorflow, version):
    tensorflow(SOME_TENSORFLOW.format(version, version))
    message = one_line(needs.tensorflow)
    assert f"{version} is installed" in message
    assert f"pip install 'tensorflow-cpu{needs.supported_tensorflow()}'" in message


@pytest.mark.parametrize("version", OTHERS)
def test_a_tensorflow_of_another_version_can_be_tried(tensorflow, monkeypatch, version):
    monkeypatch.setenv("FASTOPS_ANY_TENSORFLOW", "1")
    tensorflow(SOME_TENSORFLOW.format(version, version))
    assert needs.tensorflow().known_by["version"] == version


def test_a_tensorflow_without_a_library(tensorflow, tmp_path):
    """The wheel `tensorflow` of 2.19 lacks a library that `tensorflow-cpu` has."""
    tensorflow(SOME_TENSORFLOW.format("2.20.0", "2.20.0"))
    (tmp_path / "instead" / "python" / "lib_pywrap_tensorflow_common.so").unlink()
    message = one_line(needs.tensorflow)
    assert "lib_pywrap_tensorflow_common.so, and TensorFlow 2.20.0 is installed without" in message
    assert f"pip install 'tensorflow-cpu{needs.supported_tensorflow()}'" in message


@pytest.mark.parametrize("onednn", systems.ONEDNN_HEADERS)
def test_a_suitable_tensorflow_is_accepted(tensorflow, tmp_path, onednn):
    tensorflow(SOME_TENSORFLOW.format("2.20.0", "2.20.0"))
    package = tmp_path / "instead"
    (package / "include" / onednn).mkdir(parents=True)
    place = package / "include" / onednn
    flags = ["-I/include", "-DABI", f"-I{np.get_include()}", f"-I{place}"]
    assert needs.tensorflow() == (package, SOME_BUILD, flags)


def test_the_compiler_is_checked_before_anything_is_downloaded():
    code = "import fastops_build; fastops_build.get_requires_for_build_wheel()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "tools" / "pep517",
        env={**os.environ, "CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "no-such-compiler" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_kind_of_build(monkeypatch):
    monkeypatch.setenv("FASTOPS_BUILD", "quick")
    assert "release, wheel, profile, debug, asan" in one_line(lambda: building.compile_all([], []))


# Files of builds -----------------------------------------------------------------------------

CYTHON = building.translate


def translated(modules, directives):
    for name, source, target in modules:
        shutil.copy(source, target)
        yield name


# This compiler sees the content of the file `headers` as TensorFlow's headers.
COMPILER = """
case "$*" in
  *" -E "*) cat headers > "${*##* -o }" 2> /dev/null; exit 0 ;;
esac
echo "$@" >> calls
test -e broken && { echo "error: broken" >&2; exit 1; }
while test $# -gt 1; do
  case "$1" in -o) output="$2" ;; -c) input="$2" ;; esac
  shift
done
cp "${input:-/dev/null}" "$output"
"""


@pytest.fixture
def project(tensorflow, monkeypatch, tmp_path):
    """Change to a project of two modules, with a compiler that only copies files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FASTOPS_BUILD", raising=False)
    monkeypatch.setattr(building, "translate", translated)
    package = tmp_path / "fastops"
    (package / "_part").mkdir(parents=True)
    for place in package, package / "_part":
        (place / "__init__.py").touch()
    (package / "_cpp" / "part").mkdir(parents=True)
    for place in "helper.h", "part/helper.h":
        (package / "_cpp" / place).write_text("// a header\n")
    (package / "_first.pyx").write_text("first = 1\n")
    (package / "_part" / "second.pyx").write_text("second = 2\n")
    tensorflow(SOME_TENSORFLOW.format("2.20.0", "2.20.0"))
    return tmp_path


def build(project):
    """Build; return the libraries of the modules, and the number of compilations."""
    compiler = script(project / "compiler", COMPILER)
    calls = project / "calls"
    calls.unlink(missing_ok=True)
    try:
        libraries = building.compile_all([compiler], [compiler]).libraries
    finally:
        assert not list(project.glob("build/*/incomplete-*"))
    assert all(path.exists() for path in libraries.values())
    count = calls.read_text().count(" -c ") if calls.exists() else 0
    return libraries, count


def test_modules_are_found_in_packages(project):
    assert building.sources() == {
        "fastops._first": Path("fastops/_first.pyx"),
        "fastops._part.second": Path("fastops/_part/second.pyx"),
    }


def test_unchanged_modules_are_not_compiled(project):
    before, count = build(project)
    assert count == 2
    assert build(project) == (before, 0)
    (project / "fastops" / "_first.pyx").write_text("first = 3\n")
    after, count = build(project)
    assert count == 1
    assert not before["fastops._first"].exists()
    assert before["fastops._part.second"] == after["fastops._part.second"]
    for place in "helper.h", "part/helper.h":
        (project / "fastops" / "_cpp" / place).write_text("// another one\n")
        assert build(project)[1] == 2


def test_a_module_with_headers_is_compiled_again_for_other_headers(project, monkeypatch):
    """A wheel keeps libraries for earlier headers, and shares modules without headers."""
    monkeypatch.setenv("FASTOPS_BUILD", "wheel")
    (project / "fastops" / "_first.pyx").write_text('cdef extern from "definitions.h": pass\n')
    before, count = build(project)
    assert count == 3  # two modules, and one source that is linked to both
    (project / "instead" / "tensorflow.py").write_text(SOME_TENSORFLOW.format("2.20.1", "2.20.1"))
    assert build(project) == (before, 0)
    (project / "headers").write_text("struct Tensor {};")
    after, count = build(project)
    assert count == 2
    assert after["fastops._first"] != before["fastops._first"]
    assert after["fastops._part.second"] == before["fastops._part.second"]
    (project / "headers").unlink()
    assert build(project) == (before, 0)


def test_modules_loaded_before_tensorflow_are_not_linked_to_it(project, monkeypatch):
    monkeypatch.setattr(building, "EARLY", {"fastops._first"})
    build(project)
    calls = (project / "calls").read_text().splitlines()
    links = {
        name: [call for call in calls if f"/{name}.o " in call and " -c " not in call]
        for name in building.sources()
    }
    assert {
        name: sum(f"-l:{library}" in call for call in links[name])
        for name in links
        for library in systems.needed_libraries()
    } == {"fastops._first": 0, "fastops._part.second": 1}


def test_another_kind_of_build_does_not_replace_the_ordinary_one(project, monkeypatch):
    ordinary, _ = build(project)
    monkeypatch.setenv("FASTOPS_BUILD", "debug")
    checked, count = build(project)
    assert count == 2
    assert not {*ordinary.values()} & {*checked.values()}
    monkeypatch.delenv("FASTOPS_BUILD")
    assert build(project) == (ordinary, 0)


def test_a_compiler_that_fails(project, capfd):
    (project / "broken").touch()
    message = one_line(lambda: build(project))
    assert "does not compile fastops/" in message
    assert "error: broken" in capfd.readouterr().err
    assert not list(project.glob("build/*/*.so"))
    (project / "broken").unlink()
    assert build(project)[1] == 2


def test_cython_that_fails(project, monkeypatch, capfd):
    before, _ = build(project)
    monkeypatch.setattr(building, "translate", CYTHON)
    (project / "fastops" / "_first.pyx").write_text("first = \n")
    assert "does not translate fastops/_first.pyx" in one_line(lambda: build(project))
    assert "_first.pyx:1:8" in capfd.readouterr().err
    assert all(path.exists() for path in before.values())


def test_headers_are_precompiled_for_several_modules(project, monkeypatch):
    monkeypatch.setenv("FASTOPS_JOBS", "1")
    for i in range(building.WORTH_PRECOMPILING - 1):
        (project / "fastops" / f"_{i}.pyx").write_text('cdef extern from "definitions.h": pass\n')
    build(project)
    assert "c++-header" not in (project / "calls").read_text()
    (project / "fastops" / "_cpp" / "helper.h").write_text("// another one\n")
    (project / "fastops" / "_last.pyx").write_text('cdef extern from "definitions.h": pass\n')
    build(project)
    ahead, *others = [
        call
        for call in (project / "calls").read_text().splitlines()
        if "headers.h" in call and "soname" not in call
    ]
    assert "c++-header" in ahead
    assert len(others) == building.WORTH_PRECOMPILING
    assert all("-include" in call and "definitions.h" not in call for call in others)


def test_files_of_a_killed_build_are_not_used(project):
    libraries, _ = build(project)
    library = libraries["fastops._first"]
    left = library.parent / "incomplete-1"
    left.mkdir()
    library.rename(left / library.name)
    assert build(project) == (libraries, 1)  # the build also checks that the leftover file is gone


class Command(BuildExtension):
    """A minimal version of setuptools' class, which only knows the compiled libraries."""

    def __init__(self, libraries):
        tensorflow = needs.TensorFlow(Path(), SOME_BUILD, [])
        self._compiled = building.Compiled(libraries, set(), tensorflow, "")


SUFFIX = needs.sysconfig.get_config_var("EXT_SUFFIX")


def test_the_package_is_replaced_as_a_whole_or_reports_that_it_is_not_compiled(project):
    libraries, _ = build(project)
    Command(libraries).copy_extensions_to_source()
    info = project / "fastops" / "_build_info.py"
    module = project / "fastops" / "_part" / f"second{SUFFIX}"
    assert "v2.20.0-x" in info.read_text()
    assert module.read_bytes() == libraries["fastops._part.second"].read_bytes()
    libraries["fastops._part.second"].unlink()
    with pytest.raises(FileNotFoundError):
        Command(libraries).copy_extensions_to_source()
    assert not info.exists()
    assert not list(project.glob("fastops/**/.*"))


def test_a_library_without_a_module_is_deleted(project):
    libraries, _ = build(project)
    Command(libraries).copy_extensions_to_source()
    moved = libraries.pop("fastops._first")
    Command(libraries | {"fastops._part.first": moved}).copy_extensions_to_source()
    found = sorted(path.name for path in project.glob("fastops/**/*.so"))
    assert found == [f"first{SUFFIX}", f"second{SUFFIX}"]


def test_there_is_a_job_for_each_processor_unless_set(monkeypatch):
    monkeypatch.delenv("FASTOPS_JOBS", raising=False)
    monkeypatch.setattr(systems, "LIMITS", ())
    monkeypatch.setattr(building.os, "sched_getaffinity", lambda process: range(3))
    monkeypatch.setattr(building.os, "sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 64 << 30}.get)
    assert building.jobs() == 3
    monkeypatch.setattr(building.os, "sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 5 << 30}.get)
    assert building.jobs() == 2
    monkeypatch.setenv("FASTOPS_JOBS", "7")
    assert building.jobs() == 7


@pytest.mark.parametrize(("text", "expected"), [(str(2 << 30), 1), ("max", 3), ("", 3)])
def test_a_containers_memory_limit_is_respected(monkeypatch, tmp_path, text, expected):
    monkeypatch.delenv("FASTOPS_JOBS", raising=False)
    limit = tmp_path / "memory.max"
    limit.write_text(f"{text}\n")
    monkeypatch.setattr(systems, "LIMITS", (tmp_path / "none", limit))
    monkeypatch.setattr(building.os, "sched_getaffinity", lambda process: range(3))
    monkeypatch.setattr(building.os, "sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 64 << 30}.get)
    assert building.jobs() == expected


def test_progress_is_a_line_for_each_module(project, capfd):
    build(project)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("compiling 2 modules for TensorFlow 2.20.0")
    assert {line.split()[0] for line in lines[1:]} == {"[1/2]", "[2/2]"}
    assert {line.split()[1] for line in lines[1:]} == {"fastops._first", "fastops._part.second"}


def test_progress_is_shown_although_pip_captures_output(monkeypatch, tmp_path):
    terminal = tmp_path / "terminal"
    progress = Progress(terminal)
    progress.say("[1/2] one")
    progress.end()
    assert terminal.read_text() == "\0337 [1/2] one\033[K\0338\0337\033[K\0338"
