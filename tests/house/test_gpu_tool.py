"""The tool that carries fastops to a GPU: pieces, their assembly, verdicts of steps."""

import io
import json
import lzma
import os
import struct
import sys
import tarfile
from types import SimpleNamespace

import pytest

from tools.gpu import LARGEST_PIECE, packing, pieces, proving, reducing, report
from tools.gpu.__main__ import main, parser
from tools.gpu.assembling import STAND_IN, Assembly
from tools.gpu.pieces import MANIFEST, RefusedError
from tools.gpu.steps.request import Request

pytestmark = pytest.mark.quick

PYTHON = "{}.{}".format(*sys.version_info)
LIBRARY = "lib/python/nvidia/cudnn/lib/libcudnn.so.9"
FILES = {
    "first": {"tree/a.py": b"a = 1\n", "bin/run": b"#!/bin/sh\n", STAND_IN: b"\x7fELF, empty"},
    "second": {LIBRARY: os.urandom(5000), "tree/deep/er/b.py": b""},
}


def pack(folder, files=FILES, largest=1000, **others):
    """Pack small files with the tool; return the folder of the pieces."""
    out = folder / "pieces"
    out.mkdir(exist_ok=True)
    tiers = []
    for tier, contents in files.items():
        paths = {}
        for number, (name, content) in enumerate(contents.items()):
            paths[name] = folder / f"{tier}-{number}"
            paths[name].write_bytes(content)
            paths[name].chmod(0o755 if name.startswith("bin/") else 0o644)
        with pieces.Splitter(out, tier, largest) as stream:
            pieces.pack(paths, stream, 0)
        made = "".join(piece["sha256"] for piece in stream.pieces)
        tiers.append({"name": tier, "contents": made, "bytes": 0, "pieces": stream.pieces})
    manifest = {"format": 1, "python": PYTHON, "stand-ins": [LIBRARY], "tiers": tiers} | others
    pieces.write_json(out / MANIFEST, manifest)
    return out


@pytest.fixture
def packed(tmp_path):
    return pack(tmp_path)


@pytest.fixture
def assembly(tmp_path):
    return Assembly(tmp_path / "there", say=lambda text: None)


def contents(assembly, tier):
    return {name: (assembly.target / name).read_bytes() for name in FILES[tier]}


# Pieces ------------------------------------------------------------------------------------------


def test_pieces_do_not_exceed_the_size_limit(packed):
    assert LARGEST_PIECE < 56 << 20
    sizes = [path.stat().st_size for path in sorted(packed.glob("second-*"))]
    assert len(sizes) > 4
    assert {*sizes[:-1]} == {1000}
    assert 0 < sizes[-1] <= 1000


def test_the_same_files_make_the_same_pieces(tmp_path):
    made = []
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
        out = pack(tmp_path / place)
        made.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert made[0] == made[1]


def test_assembled_files_are_the_packed_files(packed, assembly):
    assembly.add([packed])
    for tier in FILES:
        assert contents(assembly, tier) == FILES[tier]
    assert os.access(assembly.target / "bin" / "run", os.X_OK)
    assert (assembly.target / "bin" / "python").exists()
    assert assembly.summary() == ["first: complete", "second: complete"]
    assert not [*assembly.notes.glob(f"*{pieces.SUFFIX}")]


def test_pieces_may_come_one_by_one_and_in_any_order(packed, assembly):
    given = sorted(packed.glob("*.piece"), reverse=True)
    assembly.add([packed / MANIFEST, given[0]])
    for piece in given[1:]:
        assembly.add([piece])
    assert contents(assembly, "second") == FILES["second"]
    assert assembly.summary() == ["first: complete", "second: complete"]


def test_finished_work_is_not_repeated(packed, assembly):
    assembly.add([packed])
    kept = {path: path.stat() for path in assembly.target.rglob("*") if path.is_file()}
    for _ in range(2):
        assembly.add([packed / MANIFEST, *packed.glob("*.piece")])
    now = {path: path.stat() for path in assembly.target.rglob("*") if path.is_file()}
    assert kept.keys() == now.keys()
    for path, before in kept.items():
        if path.name != MANIFEST:
            assert (before.st_ino, before.st_mtime_ns) == (now[path].st_ino, now[path].st_mtime_ns)


def test_missing_pieces_are_named(packed, assembly):
    lacking = packed / "second-002.piece"
    others = [path for path in packed.glob("*.piece") if path != lacking]
    assembly.add([packed / MANIFEST, *others])
    count = len([*packed.glob("second-*")])
    expected = f"second: 1 of {count} pieces missing: second-002.piece"
    assert assembly.summary() == ["first: complete", expected]
    assert contents(assembly, "first") == FILES["first"]
    assert not (assembly.target / "tree" / "deep").exists()
    assembly.add([lacking])
    assert assembly.summary()[1] == "second: complete"


def test_a_damaged_piece_is_refused_and_the_others_are_kept(packed, assembly):
    damaged = packed / "second-003.piece"
    good = damaged.read_bytes()
    damaged.write_bytes(bytes([good[0] ^ 1]) + good[1:])
    with pytest.raises(RefusedError, match=r"second-003\.piece is damaged"):
        assembly.add([packed])
    assert "1 of" in assembly.summary()[1]
    assert "second-003.piece" in assembly.summary()[1]
    damaged.write_bytes(good[:-1])
    with pytest.raises(RefusedError, match="damaged"):
        assembly.add([damaged])
    damaged.write_bytes(good)
    assembly.add([damaged])
    assert contents(assembly, "second") == FILES["second"]


def test_a_piece_of_another_packing_is_refused(packed, assembly):
    assembly.add([packed / MANIFEST])
    stranger = packed / "third-001.piece"
    stranger.write_bytes(b"")
    with pytest.raises(RefusedError, match=r"third-001\.piece is no piece of this packing"):
        assembly.add([stranger])


def test_the_first_call_needs_the_manifest(packed, assembly):
    with pytest.raises(RefusedError, match="the first call needs"):
        assembly.add([packed / "first-001.piece"])


def test_a_packing_for_another_python_is_refused(tmp_path, assembly):
    with pytest.raises(RefusedError, match=r"is for Python 2\.7"):
        assembly.add([pack(tmp_path, python="2.7")])


def test_a_file_that_is_not_a_manifest_is_refused(packed, assembly):
    for text in ("", "[]", '{"format": 0, "tiers": []}'):
        (packed / MANIFEST).write_text(text)
        with pytest.raises(RefusedError, match="is not a manifest"):
            assembly.add([packed])


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "a/../../outside.py"])
def test_no_file_leaves_the_folder(tmp_path, assembly, name):
    (tmp_path / "bad").mkdir()
    out = pack(tmp_path / "bad", {"first": {name: b"out"}})
    if name.startswith("/"):  # an absolute path is taken as relative to the folder, as in tar
        assembly.add([out])
        assert (assembly.target / "outside.py").read_bytes() == b"out"
    else:
        with pytest.raises(RefusedError, match="outside"):
            assembly.add([out])
    assert not (tmp_path / "outside.py").exists()
    assert not os.path.exists("/outside.py")


def test_a_link_is_refused(tmp_path):
    path = tmp_path / "first-001.piece"
    with lzma.open(path, "wb") as out, tarfile.open(fileobj=out, mode="w|") as archive:
        info = tarfile.TarInfo("inside")
        info.type, info.linkname = tarfile.SYMTYPE, "elsewhere"
        archive.addfile(info)
    with pytest.raises(RefusedError, match="neither a file nor a folder"):
        pieces.unpack([path], tmp_path)


@pytest.mark.parametrize("name", ["../first", "a/b", "", ".hidden"])
def test_a_manifest_names_no_other_folder(packed, assembly, name):
    manifest = json.loads((packed / MANIFEST).read_text())
    manifest["tiers"][0]["pieces"][0]["name"] = name
    pieces.write_json(packed / MANIFEST, manifest)
    with pytest.raises(RefusedError, match="invalid name"):
        assembly.add([packed])


def test_an_empty_library_is_used_until_the_right_one_arrives(packed, assembly):
    place = assembly.target / LIBRARY
    assembly.add([packed / MANIFEST, *packed.glob("first-*")])
    assert place.read_bytes() == FILES["first"][STAND_IN]
    assert assembly.stand_ins() == ["libcudnn.so.9"]
    assembly.add([packed])
    assert place.read_bytes() == FILES["second"][LIBRARY]
    assert assembly.stand_ins() == []


def test_an_empty_library_does_not_replace_an_earlier_one(packed, assembly):
    assembly.add([packed / MANIFEST, *packed.glob("second-*")])
    assembly.add([packed])
    assert contents(assembly, "second") == FILES["second"]


def test_a_new_packing_unpacks_only_changed_files(tmp_path, packed, assembly):
    assembly.add([packed])
    kept = (assembly.target / LIBRARY).stat()
    other = FILES | {"first": {"tree/c.py": b"c = 3\n", STAND_IN: FILES["first"][STAND_IN]}}
    (tmp_path / "again").mkdir()
    again = pack(tmp_path / "again", other)
    assembly.add([again / MANIFEST])
    assert assembly.summary() == ["first: all of its 1 pieces missing", "second: complete"]
    assembly.add([again / "first-001.piece"])
    assert (assembly.target / "tree" / "c.py").read_bytes() == b"c = 3\n"
    assert not (assembly.target / "tree" / "a.py").exists()
    assert (assembly.target / LIBRARY).stat().st_ino == kept.st_ino


def test_the_command_names_missing_pieces_and_its_status_is_1_on_refusal(packed, capsys):
    there = str(packed.parent / "there")
    first = [str(packed / MANIFEST), str(packed / "first-001.piece")]
    assert main(["assemble", *first, "--to", there]) == 0
    assert "second: all of its" in capsys.readouterr().out
    (packed / "second-001.piece").write_bytes(b"rubbish")
    assert main(["assemble", str(packed / "second-001.piece"), "--to", there]) == 1
    assert "second-001.piece is damaged" in capsys.readouterr().err


# Tiers of packages -----------------------------------------------------------------------


def install(site, name, files, *requires):
    """Make up a package."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        if not file.startswith(".."):  # later Pythons check that listed files exist
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).touch()


def test_packages_for_the_first_proof_are_in_the_first_tier(tmp_path):
    install(
        tmp_path,
        "tensorflow",
        ["tensorflow/__init__.py", "tensorflow/x.pyc", "tensorflow/include/a.h", "../../bin/tf"],
        "absl-py>=1",
        'nvidia-cudnn-cu12; extra == "and-cuda"',
    )
    install(tmp_path, "absl_py", ["absl/__init__.py"])
    install(tmp_path, "scikit-learn", ["sklearn/__init__.py"])
    install(tmp_path, "pip", ["pip/__init__.py"])
    install(tmp_path, "nvidia-cublas-cu12", ["nvidia/cublas/lib/libcublas.so.12"])
    install(tmp_path, "nvidia-cudnn-cu12", ["nvidia/cudnn/lib/libcudnn.so.9"])
    install(tmp_path, "nvidia-cufft-cu12", ["nvidia/cufft/lib/libcufft.so.11", "nvidia/x/lib/l.a"])
    tiers = packing.tiers(tmp_path)
    assert list(tiers) == ["tensorflow", "programs", "cudnn", "others"]
    assert tiers["tensorflow"] == [
        "absl/__init__.py",
        "nvidia/cublas/lib/libcublas.so.12",
        "tensorflow/__init__.py",
    ]
    assert tiers["programs"] == ["sklearn/__init__.py", "tensorflow/include/a.h"]
    assert tiers["cudnn"] == ["nvidia/cudnn/lib/libcudnn.so.9"]
    named = {tier: [f"lib/{name}" for name in names] for tier, names in tiers.items()}
    assert packing.stand_ins(named) == [
        "lib/nvidia/cudnn/lib/libcudnn.so.9",
        "lib/nvidia/cufft/lib/libcufft.so.11",
    ]


def test_the_requirements_of_tests_are_those_of_pyproject():
    required = packing.requirements("test")
    names = {packing.name_of(requirement) for requirement in required}
    assert {"numpy", "pytest", "pytest-benchmark", "hypothesis", "scikit-learn"} <= names
    assert not any(name.startswith("fastops") or name == "ray" for name in names)


# Libraries ---------------------------------------------------------------------------------------


def fat_binary(*entries):
    """Make a fat binary of (kind, architecture, code)."""
    body = b"".join(
        reducing.ENTRY.pack(kind, 0x101, 64, len(code), 0, 0, architecture).ljust(64, b"\0") + code
        for kind, architecture, code in entries
    )
    return reducing.CONTAINER.pack(reducing.MAGIC, 1, 16, len(body)) + body


def code(letter):
    return letter.encode() * 24


def test_code_for_other_gpus_becomes_zeros():
    binary = fat_binary(
        (reducing.CUBIN, 80, code("a")),
        (reducing.CUBIN, 90, code("b")),
        (reducing.CUBIN, 100, code("c")),
        (reducing.PTX, 90, code("d")),
        (8, 50, code("e")),
    )
    content = b"before" * 3 + binary + b"after"
    reduced = reducing.reduce(content, 90)
    assert len(reduced) == len(content)
    letters = {letter for letter in "abcde" if code(letter) in reduced}
    assert letters == {"b", "e"}
    assert reduced.startswith(b"before")
    assert reduced.endswith(b"after")
    headers = [entry[:3] for entries in reducing.fat_binaries(reduced) for entry in entries]
    assert headers == [e[:3] for entries in reducing.fat_binaries(content) for e in entries]


def test_without_machine_code_the_newest_ptx_stays():
    binary = fat_binary(
        (reducing.PTX, 60, code("a")), (reducing.PTX, 80, code("b")), (reducing.PTX, 120, code("c"))
    )
    reduced = reducing.reduce(binary, 90)
    assert [letter for letter in "abc" if code(letter) in reduced] == ["b"]


def test_machine_code_for_an_older_gpu_of_the_generation_stays():
    binary = fat_binary((reducing.CUBIN, 80, code("a")), (reducing.CUBIN, 90, code("b")))
    assert code("a") in reducing.reduce(binary, 86)
    assert code("b") not in reducing.reduce(binary, 86)


@pytest.mark.parametrize("cut", [1, 10, 40, 100])
def test_data_that_only_looks_like_a_fat_binary_is_unchanged(cut):
    content = fat_binary((reducing.CUBIN, 80, code("a")))[:cut]
    assert reducing.reduce(content, 90) == content
    assert reducing.reduce(b"", 90) == b""
    magic = struct.pack("<I", reducing.MAGIC)
    assert reducing.reduce(magic * 40, 90) == magic * 40


# The proof ---------------------------------------------------------------------------------------


def test_the_steps_are_listed(capsys):
    assert main(["prove", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(proving.STEPS)
    assert next(iter(proving.STEPS)) == "doctor"


def test_a_step_is_a_module():
    for name in proving.STEPS:
        assert (packing.ROOT / "tools" / "gpu" / "steps" / f"{name}.py").exists()


def test_without_a_gpu_the_command_says_so(monkeypatch, capsys):
    monkeypatch.setattr(proving, "gpus", lambda: 0)
    assert main(["prove"]) == 2
    assert "finds no GPU" in capsys.readouterr().err
    assert main(["prove", "--step", "dance", "--device", "CPU:0"]) == 2
    assert "no such step: dance" in capsys.readouterr().err


def test_a_verdict_holds_or_does_not():
    assert report.at_least("speed", 3.0, 3.0)["holds"]
    assert not report.at_least("speed", 2.99, 3.0)["holds"]
    assert report.at_most("time", 1.5, 1.5, " us") == {
        "what": "time",
        "bound": "<= 1.5 us",
        "found": "1.5 us",
        "holds": True,
    }
    assert not report.at_most("time", float("nan"), 1.5)["holds"]
    assert report.undecided("speed", "no kernel")["holds"] is None


def test_a_step_succeeds_if_its_verdicts_hold():
    good, bad = report.holds("one", True), report.holds("two", False)
    unknown = report.undecided("three", "not yet")
    assert report.outcome([good, unknown]) == report.PASSED
    assert report.outcome([good, bad, unknown]) == report.FAILED
    assert report.outcome([unknown]) == report.outcome([]) == report.OPEN


def test_the_report_survives_an_interrupted_run(tmp_path):
    first = report.Report(tmp_path, "GPU:0")
    verdicts = [report.at_least("Add: faster", 3.5, 3, " times"), report.undecided("conv", "empty")]
    step = {"outcome": report.PASSED, "seconds": 1.0, "verdicts": verdicts, "machine": {"a": "b"}}
    first.keep("ladder", step)
    text = (tmp_path / "report.txt").read_text()
    assert "holds  Add: faster: 3.5 times, >= 3 times" in text
    assert "open   conv: empty" in text
    again = report.Report(tmp_path, "GPU:0", resume=True)
    assert again.done("ladder")
    assert not again.done("plan")
    again.keep("plan", {"outcome": report.DIED, "seconds": 2.0})
    assert not again.done("plan")
    assert again.good(["ladder"])
    assert not again.good(["ladder", "plan"])
    assert not report.Report(tmp_path, "CPU:0", resume=True).done("ladder")
    assert not report.Report(tmp_path, "GPU:0").done("ladder")


def runner(tmp_path, program, monkeypatch):
    """Return a runner of steps whose processes are small programs, and the requests it received."""
    (tmp_path / "tree").mkdir()
    options = SimpleNamespace(
        out=tmp_path / "out",
        step_limit=None,
        quick=False,
        ops=None,
        share=(1, 1),
        resume=False,
        limit=None,
        direct_on="all",
    )
    made = proving.Runner(tmp_path, "CPU:0", options)
    requests = []

    def process(name, request, seconds):
        requests.append(request)
        (tmp_path / "out" / f"{name}.log").touch()
        return program(len(requests), tmp_path / "out" / f"{name}.json")

    monkeypatch.setattr(made, "_process", process)
    return made, requests


def write(path, *verdicts):
    pieces.write_json(path, {"verdicts": verdicts, "notes": ["a note"], "outcome": ""})
    return 0


def test_a_crash_is_reported_and_parity_continues(tmp_path, monkeypatch):
    def program(number, result):
        return -11 if number < 3 else write(result, report.holds("bits", True))

    made, requests = runner(tmp_path, program, monkeypatch)
    step = made.step("parity")
    assert step["outcome"] == report.PASSED
    assert step["notes"] == ["a note", "processes ended: SIGSEGV, SIGSEGV"]
    assert [request["resume"] for request in requests] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("ladder", -6, report.DIED),
        ("ladder", None, report.CUT),
        ("ladder", 0, report.DIED),
        ("parity", None, report.CUT),
        ("parity", -6, report.DIED),
    ],
)
def test_a_step_without_a_result_fails(tmp_path, monkeypatch, name, status, expected):
    made, requests = runner(tmp_path, lambda number, result: status, monkeypatch)
    assert made.step(name)["outcome"] == expected
    assert len(requests) == (proving.MOST_DEATHS + 1 if (name, status) == ("parity", -6) else 1)


def test_failures_set_the_exit_status(tmp_path, monkeypatch):
    made, _ = runner(tmp_path, lambda number, result: write(result), monkeypatch)
    assert made.run(["doctor"])  # the step has no verdicts, and did not fail
    bad = report.holds("bits", False)
    monkeypatch.setattr(
        made,
        "_process",
        lambda name, request, seconds: write(tmp_path / "out" / f"{name}.json", bad),
    )
    assert not made.run(["doctor", "ladder"])
    kept = json.loads((tmp_path / "out" / "report.json").read_text())["steps"]
    assert {name: step["outcome"] for name, step in kept.items()} == {
        "doctor": report.FAILED,
        "ladder": report.FAILED,
    }


def test_a_joined_stream_concatenates_its_files(tmp_path):
    paths = []
    for number, content in enumerate((b"abc", b"", b"defgh")):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(content)
    with io.BufferedReader(pieces.Joined(paths), 2) as joined:
        assert joined.read() == b"abcdefgh"


def test_shares_of_parity_are_all_ops_once(monkeypatch):
    from parity import recipes

    from tools.gpu.steps import parity

    recipes.load()
    shares = [
        parity.chosen(Request("parity", "CPU:0", "", "", quick=True, share=(part, 2)))
        for part in (1, 2)
    ]
    assert sorted(shares[0] + shares[1]) == sorted(parity.QUICK)
    assert abs(len(shares[0]) - len(shares[1])) == 1


@pytest.mark.parametrize("share", ["0/2", "3/2", "1", "a/b"])
def test_a_share_is_a_part_of_a_count(share, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["prove", "--share", share])
    assert f"'{share}' is not a share such as 1/4" in capsys.readouterr().err


def test_an_op_is_blamed_after_two_crashes(tmp_path):
    from tools.gpu.steps.parity import Journal

    path = tmp_path / "parity.jsonl"
    journal = Journal(path, resume=False)
    journal.begin("Abs")
    journal.end("Abs", calls=3, paths={"direct": 3}, problems=[])
    journal.begin("Add")
    journal.leave("Add")
    journal.begin("Mul")
    again = Journal(path, resume=True)
    assert list(again.ended) == ["Abs"]
    assert again.begun() == []
    again.begin("Mul")
    with path.open("a") as file:
        file.write('{"op": "Mul", "cal')
    last = Journal(path, resume=True)
    assert last.begun() == ["Mul"]
    last.end("Mul", died="TensorFlow")
    assert list(Journal(path, resume=True).ended) == ["Abs", "Mul"]
    assert Journal(path, resume=False).begun() == []
