"""Write the names of TensorFlow, Keras and tf_keras that `fastops.install` uses.

`fastops/_install/upstream.json` has the names and imports in the code of each module, and for each
name the kind of its object in the running versions. Before anything is installed,
`fastops._install.upstream` compares the table with the objects that exist.

Examples
--------
``python tools/upstream.py`` writes the table. ``--check`` tells whether the checked-in table is up
to date.
"""

import argparse
import difflib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402
import tf_keras  # noqa: E402

from fastops._install import upstream  # noqa: E402

PARTS = ("_install", "_plans", "_autodiff", "_situation", "_specialize")
"""Where modules are, below `fastops`. The parts below name TensorFlow alone, which is pinned."""

PACKAGES = ("keras", "tensorflow", "tf_keras")

ANY = frozenset(
    {
        "tensorflow.python.eager.context._context",  # it is None until there is a context
        # It is a bool or another object with a truth value.
        "tensorflow.python.framework.ops._numpy_style_slicing",
    }
)
"""Names whose objects may have several kinds."""

_TEXT = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*', re.DOTALL
)
_FROM = re.compile(r"^[ ]*from +([\w.]+) +c?import +(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ ]*import +([^\n]*)", re.MULTILINE)
_CHAIN = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_REGISTERED = re.compile(r'^register\(\s*(?:"(?:helpers|keras)",\s*)?"([^"]+)"', re.MULTILINE)
_FOUND = re.compile(r'= find\("([^"]+)"\)')


def sources():
    """Return the source of each module by name, all its files as one text."""
    texts = {}
    for part in PARTS:
        folder = ROOT / "fastops" / part
        paths = [*folder.rglob("*.py*"), *folder.parent.glob(f"{part}.p*")]
        for path in sorted(paths):
            if path.suffix in (".py", ".pyx", ".pxd") and "tables" not in path.parts:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                name = name.removesuffix(".__init__")
                texts[name] = texts.get(name, "") + path.read_text() + "\n"
    return texts


def imported(text):
    """Yield the imports of a source: the module, the name there or `None`, and the local name."""
    for module, names in _FROM.findall(text):
        for clause in names.strip("()").replace("\\", "").split(","):
            name, _, alias = clause.strip().partition(" as ")
            if name:
                yield module, name.strip(), (alias or name).strip()
    for names in _IMPORT.findall(text):
        for clause in names.split(","):
            name, _, alias = clause.strip().partition(" as ")
            if name:
                yield name.strip(), None, (alias or name.partition(".")[0]).strip()


def names_in(module, text):
    """Return the names of objects of other packages that a source uses."""
    text = _TEXT.sub("''", text)
    aliases, names = {}, set()
    for source, name, alias in imported(text):
        if source.partition(".")[0] in PACKAGES:
            aliases[alias] = f"{source}.{name}" if name else source
            names |= {source, aliases[alias]}
    if module.startswith(("fastops._install.keras.", "fastops._install.models.")):
        aliases["keras"] = "keras.src"  # in these modules, arguments of this name are this module
    if module.startswith("fastops._install.helpers."):
        aliases["tf_keras"] = "tf_keras.src"
    for chain in _CHAIN.findall(text):
        first, _, rest = chain.partition(".")
        if first in aliases and rest:
            names |= set(reached(f"{aliases[first]}.{rest}"))
    return {name for name in names if not name.endswith("__") and kind_of(name) is not None}


def kind_of(name):
    """Return the kind of object to which a name refers, `None` if it does not exist."""
    try:
        return upstream.kind_of(upstream.look_up(name))
    except LookupError:
        return None


def reached(name):
    """Yield the names along a path, up to the first object that is neither module nor class."""
    parts = name.split(".")
    if name.startswith("tensorflow.keras"):  # this import would import Keras
        return
    for n in range(2, len(parts) + 1):
        prefix = ".".join(parts[:n])
        kind = kind_of(prefix)
        if kind is None:
            return
        yield prefix
        if kind not in ("module", "class"):
            return


def table():
    """Return the content of the file."""
    texts = sources()
    parts, kinds, registered = {}, {}, {}
    for module, text in texts.items():
        names = sorted(names_in(module, text))
        needs = set()
        for source, name, _ in imported(_TEXT.sub("''", text)):
            needs |= {source, f"{source}.{name}"} & texts.keys()
        for title in _FOUND.findall(text):  # that part has to register the names first
            needs |= {name for name, other in texts.items() if title in _REGISTERED.findall(other)}
        needs.discard(module)
        needs = {name for name in needs if not any(other.startswith(f"{name}.") for other in needs)}
        parts[module] = {"names": names, "needs": sorted(needs)}
        kinds |= {name: "any" if name in ANY else kind_of(name) for name in names}
        for title in _REGISTERED.findall(text):
            for one in title.split() if "._autodiff." in module else [title]:
                registered.setdefault(module, []).append(one)
    return {
        "versions": versions(),
        "kinds": dict(sorted(kinds.items())),
        "parts": parts,
        "registered": registered,
    }


def versions():
    """Return the running versions."""
    running = {"TensorFlow": tf.__version__, "Keras": keras.__version__}
    return running | {"tf_keras": tf_keras.__version__}


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="tools/upstream.py", description="Write fastops/_install/upstream.json."
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if the table is out of date"
    )
    options = parser.parse_args(argv)
    text = json.dumps(table(), indent=1) + "\n"
    if options.check:
        old = upstream.TABLE.read_text()
        print("".join(difflib.unified_diff(old.splitlines(True), text.splitlines(True))), end="")
        return int(old != text)
    upstream.TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
