"""The tool that makes wheels, as far as it can be tested without compiling for an hour."""

import base64
import csv
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest
from test_packaging import PYPROJECT

from fastops._core import supported
from tools import wheels
from tools.pep517.fastops_build.compile import PORTABLE
from tools.wheels import __main__ as making
from tools.wheels import archive, bill, checking
from tools.wheels.layout import layout

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
RECORD = "some-1.0.dist-info/RECORD"
NUMPY = wheels.numpy("3.14")


def test_wheels_cover_the_supported_versions():
    assert wheels.PYTHONS == supported.PYTHONS
    assert wheels.releases("3.10") == [*supported.RELEASES]
    for python, minors in (("3.13", {"2.19"}), ("3.14", {"2.19", "2.20", "2.21"})):
        without = set(wheels.releases("3.10")).difference(wheels.releases(python))
        assert {supported.minor(release) for release in without} == minors


def test_wheels_for_aarch64_leave_out_releases_without_functions_that_fastops_calls():
    found = wheels.releases("3.11", "aarch64")
    without = {supported.minor(name) for name in wheels.releases("3.11") if name not in found}
    assert without == {*supported.ONLY_CPU}
    assert [*wheels.MACHINES] == ["x86_64", "aarch64"]
    assert wheels.MACHINES["aarch64"] == wheels.PLATFORM.replace("x86_64", "aarch64")


def test_a_wheel_for_aarch64_is_compiled_with_the_settings_of_the_emulated_python(monkeypatch):
    monkeypatch.setattr(making.environments, "find_python", lambda version: sys.executable)
    wheel = making.WheelForAarch64("3.11", "tensorflow-cpu", print)
    assert wheel._suffix() == ".cpython-311-aarch64-linux-gnu.so"
    variables = wheel._cross("2.21.0")
    assert variables["CXX"].startswith("aarch64-linux-gnu-g++ ")
    assert "aarch64" in variables["_PYTHON_SYSCONFIGDATA_NAME"]
    wheel.only(["2.21.0"])
    assert wheel._releases == ["2.21.0"]
    assert making.Wheel("3.11", "tensorflow", print)._cross("2.21.0") == {}


def test_a_wheel_for_aarch64_without_the_emulator_names_its_package(tmp_path, monkeypatch):
    monkeypatch.setattr(making.environments, "find_python", lambda version: sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    wheel = making.WheelForAarch64("3.11", "tensorflow-cpu", print)
    with pytest.raises(SystemExit, match=r"apt-get install qemu-user g\+\+-aarch64-linux-gnu"):
        wheel._tensorflow("2.21.0")


def test_pinned_versions_satisfy_the_build_requirements():
    required = PYPROJECT["build-system"]["requires"]
    pinned = dict(pin.split("==") for pin in wheels.BUILDER)
    for requirement in required:
        name, least = requirement.split(">=")
        assert [*map(int, pinned[name].split("."))] >= [*map(int, least.split("."))]
    assert len(pinned) == len(required)


@pytest.mark.parametrize("folder", ["tools", "tools/pep517", "tests", "bench"])
def test_modules_on_the_path_do_not_hide_modules_of_python(folder):
    # CPython 3.10 would import a `site` from there, and the environment would have no packages.
    modules = [path for path in (ROOT / folder).iterdir() if path.suffix == ".py"]
    packages = [path.parent for path in (ROOT / folder).glob("*/__init__.py")]
    names = {path.stem for path in modules + packages}
    assert names
    assert names.isdisjoint(sys.stdlib_module_names)


def compiled(version, interface, *others):
    return {
        "known_by": {"version": version},
        "interface": interface,
        "readers": ["fastops._part.reader"],
        "libraries": {
            "fastops._part.reader": f"reader.{interface}.so",
            "fastops._part.other": "other.so",
            **dict(others),
        },
    }


def test_equal_builds_share_a_folder():
    releases = {"2.19.0": "a", "2.19.1": "a", "2.20.0": "b"}
    files, builds = layout(
        {version: compiled(version, seen) for version, seen in releases.items()}, ".x.so"
    )
    assert files == {
        "fastops/_builds/tf2_19_0/_part/reader.x.so": "reader.a.so",
        "fastops/_builds/tf2_20_0/_part/reader.x.so": "reader.b.so",
        "fastops/_part/other.x.so": "other.so",
    }
    assert builds == {
        "_builds/tf2_19_0": [{"version": "2.19.0"}, {"version": "2.19.1"}],
        "_builds/tf2_20_0": [{"version": "2.20.0"}],
    }


def test_modules_without_headers_must_be_the_same_for_all():
    one = compiled("2.19.0", "a")
    other = compiled("2.20.0", "b", ("fastops._part.other", "another.so"))
    with pytest.raises(SystemExit, match=r"fastops\._part\.other differs for TensorFlow"):
        layout({"2.19.0": one, "2.20.0": other}, ".so")


def test_the_bytes_of_an_archive_do_not_depend_on_order_and_dates(tmp_path):
    files = {"some/b.so": b"b" * 1000, RECORD: b"", "some/__init__.py": b"", "a.py": b"1"}
    first, second = tmp_path / "first.whl", tmp_path / "second.whl"
    archive.write(first, files)
    os.umask(os.umask(0o077))
    with zipfile.ZipFile(second, "w") as other:
        for name in reversed(files):
            other.writestr(zipfile.ZipInfo(name, time.gmtime(10**9)[:6]), files[name])
    archive.write(second, archive.read(second))
    assert first.read_bytes() == second.read_bytes()
    assert not [*tmp_path.glob("*.incomplete")]
    with zipfile.ZipFile(first) as made:
        names = made.namelist()
        modes = {info.filename: info.external_attr >> 16 for info in made.infolist()}
    assert names == [*sorted({*files} - {RECORD}), RECORD]
    assert modes["some/b.so"] == 0o100755
    assert modes["a.py"] == 0o100644
    lines = {name: rest for name, *rest in csv.reader(made_record(first).splitlines())}
    assert lines.keys() == files.keys()
    digest = base64.urlsafe_b64encode(hashlib.sha256(files["a.py"]).digest()).rstrip(b"=")
    assert lines["a.py"] == [f"sha256={digest.decode()}", "1"]
    assert lines[RECORD] == ["", ""]


def made_record(path):
    return archive.read(path)[RECORD].decode()


def test_the_bill_of_materials():
    files = {"fastops/a.so": b"a", "fastops/b.py": b"b"}
    builds = [{"version": "2.20.0"}, {"version": "2.19.0"}]
    made = json.loads(bill.bill("1.0", builds, files, NUMPY))
    assert bill.bill("1.0", builds, files, NUMPY) == bill.bill("1.0", builds, files, NUMPY)
    assert made["bomFormat"] == "CycloneDX"
    assert made["metadata"]["component"]["purl"] == "pkg:pypi/fastops@1.0"
    purls = [component["purl"] for component in made["components"] if "purl" in component]
    assert purls[:2] == ["pkg:pypi/tensorflow@2.19.0", "pkg:pypi/tensorflow@2.20.0"]
    (library,) = (component for component in made["components"] if component["type"] == "file")
    assert library["hashes"][0]["content"] == hashlib.sha256(b"a").hexdigest()
    references = [component["bom-ref"] for component in made["components"]]
    assert len({*references}) == len(references)
    assert made["dependencies"][0]["dependsOn"] == references
    licensed = (ROOT / "THIRD_PARTY_LICENSES.md").read_text()
    for component in made["components"]:
        for terms in component.get("licenses", ()):
            assert terms["license"]["id"] in licensed
    other = json.loads(bill.bill("1.0", builds, files | {"fastops/a.so": b"c"}, NUMPY))
    assert other["serialNumber"] != made["serialNumber"]


def test_a_symbol_that_no_library_defines_is_found(tmp_path):
    compiler = shlex.split(sysconfig.get_config_var("CXX"))
    texts = {
        "module": 'extern "C" { int there(); int gone(); int PyList_New(); int puts(char*); }\n'
        'extern "C" int f() { return there() + gone() + PyList_New() + puts(nullptr); }',
        "exporter": 'extern "C" int there() { return 1; }',
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.cc").write_text(text)
        command = [*compiler, "-shared", "-fPIC", "-w", f"{name}.cc", "-o", f"{name}.so"]
        subprocess.run(command, check=True, cwd=tmp_path)
    module, exporter = (tmp_path / f"{name}.so" for name in texts)
    assert checking.missing_symbols([module], [exporter]) == ["gone"]


@pytest.mark.parametrize("machine", wheels.MACHINES)
def test_auditwheel_is_told_for_which_processor_a_wheel_is(machine, tmp_path):
    package = tmp_path / "auditwheel"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "main.py").write_text(
        "import platform, sys\ndef main():\n    print(platform.machine(), *sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", checking.AUDITWHEEL.format(machine=machine), "repair"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines()[-1] == f"{machine} repair"


NEWEST = {"GLIBC": wheels.PLATFORM.split("_")[1:3], "GLIBCXX": ["3", "4", "24"]}
"""The newest versions of symbols that the tag of a wheel allows."""


def test_symbols_of_newer_systems_are_replaced_in_wheels():
    modules = sorted((ROOT / "fastops").rglob("*.so"))
    if not modules:
        pytest.skip("the modules are not in the checkout")
    nm = ["nm", "--dynamic", "--undefined-only", *modules]
    listed = subprocess.run(nm, check=True, capture_output=True, text=True).stdout
    newer = {
        name
        for name, kind, version in re.findall(r"(\w+)@(GLIBC|GLIBCXX)_([\d.]+)", listed)
        if [*map(int, version.split("."))] > [*map(int, NEWEST[kind])]
    }
    replaced = re.findall(r'FASTOPS_INSTEAD_OF\("(\w+)"\)', PORTABLE.read_text())
    assert newer <= {*replaced}
