"""Which extensions an import chooses, and its error message if none fits.

These tests imitate a wheel by a folder of links to the sources and the compiled extensions.
Extensions that use TensorFlow's headers are in a subfolder for a build of TensorFlow.
"""

import os
import shlex
import subprocess
import sysconfig
import textwrap
from pathlib import Path

import pytest
import tensorflow as tf
from support import ROOT, has_primitives, interpreter

import fastops
from fastops._core import build

PACKAGE = Path(fastops.__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
RUNNING = build.describe(tf)
KNOWN = {
    "_builds/tf2_19": [
        RUNNING | {"version": version, "build": f"v{version}-x"} for version in ("2.19.0", "2.19.1")
    ],
    "_builds/running": [RUNNING],
}


@pytest.mark.quick
def test_the_running_tensorflow_is_known():
    assert build.choose(RUNNING, KNOWN) == "_builds/running"
    assert build.choose(KNOWN["_builds/tf2_19"][1], KNOWN) == "_builds/tf2_19"
    assert RUNNING["version"] == tf.version.VERSION
    assert "-D_GLIBCXX_USE_CXX11_ABI=" in RUNNING["flags"]
    assert "-I" not in RUNNING["flags"]


OTHERS = {
    "a newer one": {"version": "2.99.0", "build": "v2.99.0-x"},
    "an older one": {"version": "2.18.0", "build": "v2.18.0-x"},
    "another commit": {"build": "unknown"},
    "another ABI": {"flags": RUNNING["flags"].replace("ABI=1", "ABI=0")},
    "another flag": {"flags": f"{RUNNING['flags']} -DEIGEN_MAX_ALIGN_BYTES=16"},
    "one library": {"flags": f"{RUNNING['flags']} monolithic"},
    "another compiler": {"compiler": "13.2.0"},
    "a TensorFlow that does not describe its build": {"compiler": "unknown", "flags": "unknown"},
    "fewer libraries": {"libraries": "libtensorflow_framework.so.2 libtensorflow_cc.so.2"},
}


@pytest.mark.quick
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("wheel", [True, False])
def test_another_build_of_tensorflow_is_refused(other, wheel):
    running = RUNNING | OTHERS[other]
    with pytest.raises(ImportError) as caught:
        build.choose(running, KNOWN if wheel else {"": [RUNNING]})
    message = str(caught.value)
    assert "\n" not in message
    assert f"TensorFlow {running['version']} ({running['build']})" in message
    assert "pip install --no-binary fastops" in message
    # The versions are the same, so the message must name the difference.
    if "build" not in OTHERS[other]:
        for what, value in OTHERS[other].items():
            assert f"{build.TITLES[what]}: {value!r} rather than {RUNNING[what]!r}" in message
    elif wheel:
        assert f"for TensorFlow 2.19.0, 2.19.1, {tf.version.VERSION} as published" in message
    else:
        assert f"compiled for TensorFlow {RUNNING['version']} ({RUNNING['build']})" in message


@pytest.mark.quick
def test_a_tensorflow_with_other_names_is_described():
    class Version:
        VERSION, GIT_VERSION = "3.0.0", "v3.0.0-x"

    class TensorFlow:
        version = Version
        __file__ = "/nowhere/tensorflow/__init__.py"

    described = build.describe(TensorFlow)
    assert described["version"] == "3.0.0"
    assert described["flags"] == described["compiler"] == "unknown"
    assert described["libraries"] == ""


@pytest.mark.quick
def test_the_finder_finds_only_modules_in_its_folder(tmp_path):
    for place in ("_some", "_part/_other"):
        path = tmp_path / f"{place}{SUFFIX}"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    finder = build.Finder(str(tmp_path))
    for name, place in (("_some", "_some"), ("_part._other", "_part/_other")):
        assert finder.find_spec(f"fastops.{name}").origin == str(tmp_path / f"{place}{SUFFIX}")
    for name in ("fastops._none", "fastops._none._other", "_some", "fastops", "numpy._some"):
        assert finder.find_spec(name) is None
    # The import compares finders to add each of them only once.
    assert finder == build.Finder(str(tmp_path))


def source_of(library):
    return library.with_name(f"{library.name.partition('.')[0]}.pyx")


def make_wheel(place, builds):
    """Make a folder as a wheel installs it, with some extensions in a subfolder for a build."""
    tree = place / "fastops"
    for path in PACKAGE.rglob("*"):
        link = tree / path.relative_to(PACKAGE)
        if path.suffix == ".so" and '"definitions.h"' in source_of(path).read_text():
            link = tree / "_builds" / "running" / path.relative_to(PACKAGE)
        if path.suffix in (".py", ".so", ".json") and path.name != "_build_info.py":
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    if builds is not None:
        text = f"COMPILER = 'some compiler'\nBUILDS = {builds!r}\n"
        (tree / "_build_info.py").write_text(text)
    return tree


# Only the tree may be on the path: neither the current folder nor an editable install.
ALONE = """
import os, sys
sys.path.remove("")
sys.path.remove(os.environ["CHECKOUT"])
sys.meta_path = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")]
places = os.environ["PLACES"].split(os.pathsep)
"""


def in_trees(code, *trees):
    """Run code in a new process whose path contains `places` and no other copy of fastops."""
    places = os.pathsep.join(str(tree.parent) for tree in trees)
    return interpreter(
        ALONE + textwrap.dedent(code), PLACES=places, CHECKOUT=str(ROOT)
    ).splitlines()


def test_a_wheel_loads_the_extensions_that_fit(tmp_path):
    tree = make_wheel(tmp_path, KNOWN)
    out = in_trees(
        """
        sys.path.insert(0, *places)
        import pickle
        import fastops
        import tensorflow as tf
        from fastops import _dispatch, ops
        from fastops._core import locals as shared
        print(_dispatch.__file__)
        print(shared.__file__)
        assert sum(type(finder).__name__ == "Finder" for finder in sys.meta_path) == 1
        results = [ops.add_v2(x=tf.constant(1.0), y=tf.constant(2.0)) for _ in range(3)]
        assert all(result.numpy() == 3.0 for result in results)
        assert fastops.stats().direct >= 1
        assert pickle.loads(pickle.dumps(ops.add_v2)) is ops.add_v2
        fastops.install()
        """,
        tree,
    )
    assert out == [
        str(tree / "_builds" / "running" / f"_dispatch{SUFFIX}"),
        str(tree / "_core" / f"locals{SUFFIX}"),
    ]


def test_the_kernel_runs_if_tensorflow_lacks_a_symbol(tmp_path):
    """The extensions here look up a softmax primitive under a name that does not exist."""
    tree = make_wheel(tmp_path, KNOWN)
    symbol, missing = (
        f"19MklSoftmaxPrimitiveIfE7{name}E".encode() for name in ("Execute", "Missing")
    )
    for link in (tree / "_builds").rglob("*.so"):
        if symbol in (library := link.read_bytes()):
            link.unlink()
            link.write_bytes(library.replace(symbol, missing))
    out = in_trees(
        """
        sys.path.insert(0, *places)
        import fastops
        import tensorflow as tf
        from fastops import raw_ops
        from fastops._reports import counters
        x, image = tf.constant([[1.0, 2.0, 4.0]]), tf.ones([1, 4, 4, 1])
        attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
        with fastops.options(threads="caller"):
            for _ in range(5):
                result = raw_ops.Softmax(logits=x)
                raw_ops.MaxPool(input=image, **attrs)
        assert (result.numpy() == tf.raw_ops.Softmax(logits=x).numpy()).all()
        for op in (raw_ops.Softmax, raw_ops.MaxPool):
            (key,) = counters.cached_keys(op)
            print(key["reason"], key["primitive_runs"])
        """,
        tree,
    )
    assert out == ["None 0", "None 2" if has_primitives() else "None 0"]


STAND_IN = """
#include <Python.h>
extern "C" int TF_OfAnotherTensorFlow(void);
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_dispatch", nullptr, TF_OfAnotherTensorFlow()};
PyMODINIT_FUNC PyInit__dispatch() { return PyModule_Create(&module); }
"""


def test_if_nothing_fits_the_import_fails_and_the_process_continues(tmp_path):
    """There is no build, none for this TensorFlow, or one whose extension lacks a symbol."""
    trees = [
        make_wheel(tmp_path / "none", None),
        make_wheel(tmp_path / "other", {"_builds/tf2_19": KNOWN["_builds/tf2_19"]}),
        make_wheel(tmp_path / "symbol", KNOWN),
    ]
    (tmp_path / "stand_in.cc").write_text(STAND_IN)
    made = trees[-1] / "_builds" / "running" / f"_dispatch{SUFFIX}"
    made.unlink()
    command = shlex.split(sysconfig.get_config_var("CXX"))
    command += ["-shared", "-fPIC", f"-I{sysconfig.get_path('include')}"]
    subprocess.run([*command, str(tmp_path / "stand_in.cc"), "-o", str(made)], check=True)
    none, other, symbol = in_trees(
        """
        for place in places:
            sys.path.insert(0, place)
            try:
                import fastops
            except ImportError as error:
                print(error)
            assert not any(name.startswith("fastops._dispatch") for name in sys.modules)
            for name in [name for name in sys.modules if name.startswith("fastops")]:
                del sys.modules[name]
        """,
        *trees,
    )
    assert none.startswith("fastops is not compiled yet")
    assert other.startswith("this wheel of fastops is for TensorFlow 2.19.0, 2.19.1 as published")
    assert symbol.startswith(f"fastops does not fit this TensorFlow {tf.version.VERSION}")
    assert "undefined symbol: TF_OfAnotherTensorFlow" in symbol
    assert all("pip install --no-binary fastops" in line for line in (none, other, symbol))
