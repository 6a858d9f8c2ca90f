"""Private parts of TensorFlow are used in two headers only, and exist in the running TensorFlow."""

import ctypes
import os
import platform
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import tensorflow as tf

import fastops
from fastops._core import build
from tools import wheels

pytestmark = pytest.mark.quick

PACKAGE = Path(fastops.__file__).parent
HELPERS = PACKAGE / "_cpp"
ONEDNN = HELPERS / "onednn"
SYMBOLS = ONEDNN / "symbols.h"
COMPAT = HELPERS / "compat.h"
LIBRARY = "libtensorflow_cc.so.2"


class Entry(NamedTuple):
    """A symbol or layout: the comment before it, and the code up to the next empty line."""

    sources: list
    name: str
    checked: list
    code: str

    @property
    def text(self):
        """The string literal of a symbol or class, which may consist of several parts."""
        return "".join(re.findall(r'"([^"]*)"', self.code))


PLACE = r"// Source: (.+)\n// Name: (.+)\n"
ENTRY = re.compile(
    rf"^((?:{PLACE.replace('(', '(?:')})+)// Checked: (.+)\n(?://.*\n)*((?:.+\n)+)", re.MULTILINE
)


def entries(text):
    """Return the entries of a header."""
    found = []
    for where, checked, code in ENTRY.findall(text):
        sources, names = zip(*re.findall(PLACE, where), strict=True)
        found.append(Entry([*sources], ", ".join(names), checked.split(", "), code))
    return found


def without_comments(text):
    return re.sub(r"//.*", "", text)


def layouts(code):
    """Return the names of the classes with members that code declares."""
    return re.findall(
        r"^\s*(?:struct|class)(?: alignas\([^)]*\))? (\w+)[^;{]*\{(?!\})", code, re.MULTILINE
    )


TABLE = entries(SYMBOLS.read_text())
FUNCTIONS = {
    re.search(r"(\w+)\(", entry.code)[1]: entry
    for entry in TABLE
    if "FASTOPS_SYMBOL(" in entry.code
}
CLASSES = {
    match[1]: entry
    for entry in TABLE
    if (match := re.match(r"constexpr char (k\w+Class)\[\]", entry.code))
}
VARIABLES = {
    match[1]: entry
    for entry in TABLE
    if (match := re.match(r'constexpr char (k\w+)\[\] =\s*"_Z', entry.code))
}
IN_SOME = {
    "MklPrimitiveFactory<float>::GetOp": ["2.19", "2.20", "2.21"],
    "LRUCache<MklPrimitive>::GetOp": ["2.22"],
    "MklPrimitiveFactory<float>::GetLRUCache": ["2.22"],
    "if_onednn_async": ["2.22"],
}
"""Entries that concern only some versions: each version has one way to look up a primitive."""
RUNNING = ".".join(tf.version.VERSION.split(".")[:2])
HEADERS = sorted(HELPERS.rglob("*.h"))
USERS = [path for path in ONEDNN.glob("*.h") if path != SYMBOLS]


def test_entries_are_parsed():
    text = """
// Source: core/some.cc
// Name: Some::Get
// Checked: 2.1, 2.2
// Why.
int* Get(int)
    FASTOPS_SYMBOL("_ZN4Some"
                   "3GetEi");

int other;

// Source: core/one.cc
// Name: One
// Source: core/two.cc
// Name: Two, Three
// Checked: 2.1
struct Layout {
};
"""
    entry, layout = entries(text)
    assert entry[:3] == (["core/some.cc"], "Some::Get", ["2.1", "2.2"])
    assert entry.text == "_ZN4Some3GetEi"
    assert "other" not in entry.code
    assert layout[:3] == (["core/one.cc", "core/two.cc"], "One, Two, Three", ["2.1"])
    assert layouts(layout.code) == ["Layout"]


def test_the_table_is_complete():
    text = without_comments(SYMBOLS.read_text())
    assert len(FUNCTIONS) == len(re.findall(r"FASTOPS_SYMBOL\((?!name)", text)) > 10
    assert len(CLASSES) == len(re.findall(r'= "N\d', text)) == 5
    assert all(entry.text.startswith("_ZN10tensorflow") for entry in FUNCTIONS.values())
    declared = re.findall(r"^(?:struct|inline const) .*?(\w+)(?: \{|\(\))", text, re.MULTILINE)
    assert declared == ["ConvolutionParams", "EmptyDescription"]
    assert [*VARIABLES] == ["kCache", "kCacheGuard"]
    named = (*FUNCTIONS.values(), *CLASSES.values(), *VARIABLES.values())
    assert [entry.name for entry in TABLE if entry not in named] == [
        "onednn_v3_define",
        "if_onednn_async",
        "MklConvFwdParams",
        "dnnl::memory::desc",
    ]


def test_layouts_and_functions_without_a_header_are_in_compat():
    text = COMPAT.read_text()
    code = without_comments(text)
    structs = layouts(code)
    namespaces = re.findall(r"^namespace (?:tensorflow|tsl) \{\n(.*?)^\}", code, re.M | re.S)
    functions = [
        name for block in namespaces for name in re.findall(r"^\S+ (\w+)\(", block, re.MULTILINE)
    ]
    listed = " ".join(entry.code for entry in entries(text))
    assert structs == [
        *("PyTapeTensor", "GradientTape", "TFE_Py_Tape", "AccumulatorSet"),
        *("Expose", "GraphObject", "SessionObject", "RandomKernel", "SamplerKernel"),
    ]
    assert len(functions) == 4
    functions += re.findall(r"^\S+ (\w+)\(.*\);", code[: code.index("namespace fastops")], re.M)
    functions += re.findall(r"^extern \S+ (\w+);", code, re.M)
    assert {"PyEagerTensor_ID", "GetAccumulatorSet", "py_vspace"} <= {*functions}
    for name in (*structs, *functions):
        assert name == "Expose" or re.search(rf"\b{name}\b", listed), name


@pytest.mark.parametrize("header", [SYMBOLS, COMPAT], ids=lambda path: path.name)
def test_entries_were_checked_in_each_supported_version(header):
    """Add a new version of TensorFlow to an entry after checking its sources and binaries."""
    supported = wheels.SUPPORTED["minors"]()
    assert RUNNING in supported
    for entry in entries(header.read_text()):
        assert entry.checked == IN_SOME.get(entry.name, supported), entry.name
        for source in entry.sources:
            assert re.fullmatch(r"[\w/]+\.(h|cc|hpp|bzl)", source), entry.name


ELSEWHERE = {
    "a mangled name": (r'\b_Z[A-Z]*\d|"N\d+[A-Za-z]\w*E"', [SYMBOLS]),
    "a weak declaration": (r"\(\(weak|#pragma weak|\basm\(", [SYMBOLS]),
    "a private member": (r"\bFASTOPS_EXPOSE\b|\bExpose<", [COMPAT]),
    "the layout of an object": (r"\btp_basicsize\b|\boffsetof\(", [COMPAT]),
    "the size of a class": (r"\bstatic_assert\(\s*sizeof\b", [SYMBOLS]),
    "a declaration for TensorFlow": (
        r"(?m)^namespace (tensorflow|tsl|dnnl|pybind11)\b",
        [COMPAT, HELPERS / "declarations.h", *(HELPERS / "shim").rglob("*.h")],
    ),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_no_other_file_uses_private_parts(what):
    pattern, places = ELSEWHERE[what]
    cython = [path for path in PACKAGE.rglob("*.p*") if path.suffix in (".pyx", ".pxd")]
    assert any(re.search(pattern, without_comments(path.read_text())) for path in places)
    found = [
        str(path.relative_to(PACKAGE))
        for path in (*HEADERS, *cython)
        if path not in places and re.search(pattern, without_comments(path.read_text()))
    ]
    assert not found


OWN = {"KeptValue", "TapeRecord"}
"""Classes of objects that this package makes itself."""

CAST = re.compile(r"\b(?:static|reinterpret)_cast<\s*(?:const )?(\w+)(?: const)?\s*[*&]>")


def test_objects_of_tensorflow_are_cast_to_layouts_with_an_entry_only():
    """A class of this package that TensorFlow's objects are cast to describes their layout."""
    declared = {name for path in HEADERS for name in layouts(without_comments(path.read_text()))}
    assert {"GraphObject", "SamplerKernel", "PreparedKernel"} <= declared
    assert CAST.findall("static_cast<const Layout*>(x)") == ["Layout"]
    cast = {
        (path, name)
        for path in HEADERS
        for name in CAST.findall(without_comments(path.read_text()))
        if name in declared - OWN
    }
    assert {path for path, _ in cast} == {COMPAT}
    listed = " ".join(entry.code for entry in entries(COMPAT.read_text()))
    for _, name in cast:
        assert re.search(rf"\b{name}\b", listed), name


def test_cython_declares_no_layouts():
    """C code in a Cython module declares no class; a module may declare those of CPython."""
    found = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.p*")
        if path.suffix in (".pyx", ".pxd")
        for code in re.findall(r'cdef extern from \*:\n\s*"""(.*?)"""', path.read_text(), re.DOTALL)
        if layouts(code)
    ]
    assert not found


def test_each_entry_is_used():
    used = {name for path in USERS for name in re.findall(r"symbols::(\w+)", path.read_text())}
    assert {*FUNCTIONS, *CLASSES, *VARIABLES, "kNoConvolutionParams", "EmptyDescription"} <= used


def test_no_function_is_called_where_tensorflow_may_lack_it():
    """`MakePrimitive` and `MakeFor` check first; if a function is missing, the kernel runs."""
    guarded = {
        path: {
            name
            for arguments in re.findall(r"AreExported\(([^)]*)\)", path.read_text())
            for name in re.findall(r"symbols::(\w+)", arguments)
        }
        for path in USERS
    }
    everywhere = guarded[ONEDNN / "primitives.h"]
    assert everywhere == {"CreateStream"}
    assert "!CanFindPrimitives()" in (ONEDNN / "primitives.h").read_text()
    called = set()
    for path in USERS:
        here = {*re.findall(r"symbols::(\w+)\(", path.read_text())} & {*FUNCTIONS}
        assert here <= guarded[path] | everywhere, path
        called |= here
    assert called == {*FUNCTIONS}


class Found(ctypes.Structure):
    """The result of dladdr for an address."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


@pytest.fixture(scope="module")
def library():
    """Return TensorFlow's library; skip systems on which primitives run only in their kernels."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("primitives run in their kernels only")
    path = Path(tf.__file__).parent / build.LIBRARIES[LIBRARY] / LIBRARY
    return ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tensorflow_exports_the_functions(library, name):
    if RUNNING not in FUNCTIONS[name].checked:
        assert not hasattr(library, FUNCTIONS[name].text)
        return
    address = ctypes.addressof(ctypes.c_char.in_dll(library, FUNCTIONS[name].text))
    info = Found()
    assert ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    assert Path(info.file.decode()).name == LIBRARY
    assert info.address == address


@pytest.mark.parametrize("name", VARIABLES)
def test_threads_have_their_own_variables(library, name):
    def address():
        return ctypes.addressof(ctypes.c_char.in_dll(library, VARIABLES[name].text))

    if RUNNING in VARIABLES[name].checked:
        with ThreadPoolExecutor(1) as thread:
            assert address() == address() != thread.submit(address).result()


@pytest.mark.parametrize("name", CLASSES)
def test_primitives_have_one_base(library, name):
    """Their type information describes a class with one base at offset 0: name, then base."""
    mangled = CLASSES[name].text
    _, own_name, base = (ctypes.c_void_p * 3).in_dll(library, f"_ZTI{mangled}")
    assert ctypes.string_at(own_name).decode() == mangled
    primitive = ctypes.c_char.in_dll(library, "_ZTIN10tensorflow12MklPrimitiveE")
    assert base == ctypes.addressof(primitive)
