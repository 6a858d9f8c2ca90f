"""Write the digests of reimplemented upstream code: `fastops/_install/originals.json`.

A *piece* is a function of TensorFlow, Keras or Python that fastops reimplements. The pieces are
those of the running environment. Their code is looked up there, together with the functions that it
calls directly. tools/restated.toml has other dependencies of a piece, and other code that is
equivalent. Each ROOT has more versions: a folder of installed packages, as made by ``pip install
--target``, or the library of another Python.

Examples
--------
``python tools/restated.py ROOT...`` writes the table, and docs/versions.md. It needs a ROOT for
each version in the table, and names missing ones; ``--drop`` leaves these out of the table.
``--check`` tells whether the table is up to date for the running environment. ``--diff ROOT`` shows
the code that differs there.
"""

import argparse
import ast
import contextlib
import difflib
import importlib.metadata
import json
import re
import sys
import sysconfig
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from fastops._install import moved, restated, targets  # noqa: E402

with contextlib.suppress(ImportError):
    import tf_keras  # noqa: F401

DOC = ROOT / "docs" / "versions.md"
POLICY = tomllib.loads((ROOT / "tools" / "restated.toml").read_text())

PACKAGES = {
    "TensorFlow": ("tensorflow", "tensorflow-cpu", "tensorflow_cpu"),
    "Keras": ("keras", "keras-nightly"),
    "tf_keras": ("tf_keras",),
}
PLACES = {
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "tf_keras": "tf_keras",
    "inspect": "Python",
}
"""The package of a module, by the first part of its name."""


class Installed:
    """Packages in a folder.

    Attributes
    ----------
    versions : dict of str to str
        By the name of a package, or ``"Python"``.
    """

    def __init__(self, root):
        self.root = Path(root)
        self.modules = {}
        self.versions = {}
        versions = {
            distribution.name: distribution.version
            for distribution in importlib.metadata.distributions(path=[str(root)])
        }
        for package, names in PACKAGES.items():
            for name in names:
                if name in versions:
                    self.versions[package] = versions[name]
        if (self.root / "inspect.py").exists():
            self.versions["Python"] = self.root.name.removeprefix("python")

    def order(self, package):
        """Return the sort key of a version of a package."""
        return [int(part) for part in re.findall(r"\d+", self.versions.get(package, ""))]

    def module(self, name):
        """Return a module by its earlier or later name, or `None` if it does not exist."""
        name = moved.earlier_name(name)
        if name not in self.modules:
            file = self.file(name) or self.file(moved.MOVED.get(name, name))
            self.modules[name] = file and Module(self, name, file.read_bytes())
        return self.modules[name]

    def file(self, name):
        """Return the file of a module, or `None` if it does not exist."""
        path = self.root.joinpath(*name.split("."))
        files = (path.with_suffix(".py"), path / "__init__.py")
        return next((file for file in files if file.exists()), None)


class Module:
    """The source of a module.

    Parameters
    ----------
    installed : Installed
        The packages with the module.
    name : str
        Its name.
    source : bytes
        Its text.
    """

    def __init__(self, installed, name, source):
        self.installed = installed
        self.name = name
        self.source = source
        self.tree = ast.parse(source)
        self.definitions = restated.definitions(self.tree)
        self.classes = {
            node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)
        }

    @cached_property
    def imported(self):
        """The imports of the module: by name, the other module, and the name there or `None`."""
        imports = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                imports |= {
                    alias.asname or alias.name: (alias.name, None)
                    for alias in node.names
                    if alias.asname or "." not in alias.name
                }
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imports |= {
                    alias.asname or alias.name: (node.module, alias.name) for alias in node.names
                }
        return imports

    def resolve(self, path):
        """Return the module and name of the definition to which a dotted name refers.

        Returns `None` if it is not a definition in one of these Python modules.
        """
        name, _, rest = path.partition(".")
        if path in self.definitions:
            return self, path
        if name in self.classes:
            return self._of_class(name, rest) if rest else None
        if name not in self.imported:
            return None
        module, inner = self.imported[name]
        if inner is not None and (beside := self.installed.module(f"{module}.{inner}")):
            return beside.resolve(rest) if rest else None
        found = self.installed.module(module)
        path = ".".join(part for part in (inner, rest) if part)
        return found.resolve(path) if found and path else None

    def _of_class(self, name, method):
        """Return the definition of a method that a class defines or inherits."""
        if f"{name}.{method}" in self.definitions:
            return self, f"{name}.{method}"
        for base in self.classes[name].bases:
            found = self.resolve(f"{ast.unparse(base)}.{method}")
            if found is not None:
                return found
        return None

    def calls(self, definition):
        """Return the definitions that the code of a definition names, and constructors."""
        owner = definition.rpartition(".")[0]
        names = set()
        for part in ast.walk(ast.Module(self.definitions[definition][0].body, [])):
            for node, suffix in ((part, ""), (getattr(part, "func", None), ".__init__")):
                if isinstance(node, (ast.Attribute, ast.Name)):
                    path = ast.unparse(node)
                    if owner and path.startswith(("self.", "cls.")):
                        path = f"{owner}.{path.partition('.')[2]}"
                    if re.fullmatch(r"[\w.]+", path):
                        names.add(self.resolve(path + suffix))
        return names - {None, (self, definition)}


def package_of(name):
    """Return the package of an original."""
    return PLACES[name.partition(":")[0].partition(".")[0]]


def pieces():
    """Return the originals of everything that is replaced, by layer and name."""
    originals = {}
    for layer, title, piece in targets.originals():
        if piece is None or originals.setdefault(layer, {}).setdefault(title, piece) != piece:
            raise SystemExit(f"{layer}, {title}: there are several originals, or none")
    return {
        layer: dict(sorted(originals[layer].items()))
        for layer in targets.LAYERS
        if layer in originals
    }


def called(name, running):
    """Return the other definitions that a piece depends on."""
    module, definition = find(name, running)
    found = {f"{one.name}:{called}" for one, called in module.calls(definition)}
    found = {
        one
        for one in found
        if ".gen_" not in one
        and POLICY["passed_over"].keys().isdisjoint((one, one.partition(":")[0]))
        and package_of(one) == package_of(name)
    }
    return found | set(POLICY["rests_on"].get(name, ()))


def find(name, running):
    """Return the module and the definition of an original, by name.

    The running version need not have a definition for which tools/restated.toml has digests.
    """
    module, _, definition = name.partition(":")
    for installed in running:
        source = installed.module(module)
        if source is not None and (definition in source.definitions or equivalent(name)):
            return source, definition
    raise SystemExit(f"there is no {name}")


def running_environment():
    """Return the folders from which this Python imports."""
    paths = [sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), *sys.path]
    installed = [Installed(path) for path in dict.fromkeys(paths) if path and Path(path).is_dir()]
    return [folder for folder in installed if folder.versions]


def tables(running, others):
    """Return the table for the running versions and for others.

    Returns
    -------
    dict
        ``"digests"``: by module and name, the digests of the reimplemented code, and of equivalent
        code. ``"rests_on"``: by piece, the names of the definitions that it depends on.
        ``"files"``: by module and fingerprint of its source, the names in it whose code differs.
        ``"pieces"``: by layer and name of what is replaced, the piece. ``"left_out"``: by package,
        version, layer and name, the definition whose code differs, so that a piece is left out
        there. ``"running"``: by package, the version of the other entries.
    """
    by_layer = pieces()
    names = {name for titles in by_layer.values() for name in titles.values()}
    rests_on = dict(POLICY["groups"])
    for name in sorted(names - rests_on.keys()):
        rests_on[name] = [name, *sorted(called(name, running) - {name})]
    digests, files, used = {}, {}, {}
    for name in sorted({part for parts in rests_on.values() for part in parts}):
        module, definition = find(name, running)
        used.setdefault(module, []).append(definition)
    for module, names in used.items():
        own = restated.digests(module.source, names)
        digests[module.name] = {
            name: list(dict.fromkeys([own[name], *equivalent(f"{module.name}:{name}")]))
            for name in names
        }
    for name, accepted in digests.items():
        files[name] = {
            fingerprint: restated.others(source, accepted)
            for fingerprint, source in _sources(name, (*running, *others))
        }
    table = {"digests": digests, "rests_on": rests_on, "files": files, "pieces": by_layer}
    table["variants"] = variants((*running, *others))
    left_out = {
        package: {
            installed.versions[package]: missing(package, installed, table)
            for installed in sorted(
                (*running, *others), key=lambda installed: installed.order(package)
            )
            if package in installed.versions
        }
        for package in PLACES.values()
    }
    return table | {"left_out": left_out, "running": versions(running)}


def _sources(name, folders):
    """Return the different sources of a module, with their fingerprints, in the order of these."""
    modules = filter(None, (installed.module(name) for installed in folders))
    found = {restated.fingerprint(module.source): module.source for module in modules}
    return sorted(found.items())


def equivalent(name):
    """Return the digests of other code of a definition that is equivalent, or a variant."""
    entries = [entry for entry in POLICY["as_good"] if entry["name"] == name]
    return [digest for entry in entries for digest in entry["digests"]]


def variants(folders):
    """Return the variants of definitions: by module, by name and digest, and by file and name."""
    found = {}
    for entry in POLICY["as_good"]:
        if "variant" in entry:
            module, _, definition = entry["name"].partition(":")
            known = found.setdefault(module, {"digests": {}, "files": {}})["digests"]
            known.setdefault(definition, {}).update(
                dict.fromkeys(entry["digests"], entry["variant"])
            )
    for name, known in found.items():
        known["files"] = {
            fingerprint: restated.variants(source, known["digests"])
            for fingerprint, source in _sources(name, folders)
        }
    return found


def versions(running):
    """Return the running versions, by package."""
    return {
        package: installed.versions[package]
        for installed in running
        for package in installed.versions
    }


def missing(package, installed, table):
    """Return the pieces left out with a package, by layer and name, and the changed definitions."""
    pieces_left = {}
    for layer, titles in table["pieces"].items():
        for title, piece in titles.items():
            for part in table["rests_on"][piece]:
                name, _, definition = part.partition(":")
                if package_of(part) != package:
                    continue
                module = installed.module(name)
                if (
                    module is None
                    or definition in table["files"][name][restated.fingerprint(module.source)]
                ):
                    pieces_left.setdefault(layer, {}).setdefault(title, part)
    return pieces_left


HEAD = """\
# Versions

`tools/restated.py` writes this page, and a test checks it.

A stand-in for a Python function of TensorFlow or Keras reimplements that function. It is active
if the code of the function, and of the functions that it names, is the code that was reimplemented.
`fastops/_install/originals.json` has the digests of that code, which is the code of
{running}.

- Comments, formatting, docstrings and annotations do not change a digest.
- If other code was reviewed and found equivalent, `tools/restated.toml` lists its digest with the
  reason.
- If the code differs, or has no source, the original function runs. `python -m fastops doctor`
  reports this for the running versions.
- fastops compares code, and not version numbers. Other versions than those below may have the same
  code.
- If a name that a piece depends on is missing, or stands for another kind of object, `doctor`
  reports that name.

Ops, generated functions and recordings of TensorFlow's functions ("replayed") reimplement no
Python, and are active in all versions. Recordings of calls of Keras and tf_keras ("models") are
compared with their own Python before they are used. They depend on how Keras and tf_keras keep
names, masks and the state of a thread, and are left out if that code differs. Three kinds of calls
depend on more:

- Calls with arrays are recorded only if `Layer.__call__` converts them to tensors first.
- Steps of tf_keras's optimizers are recorded only if `apply_gradients` makes a list of its argument
  first.
- Methods whose Python control flow depends on assigned values are not recorded. More training steps
  of Keras 3.8 are of this kind than of later versions.

The tables count pieces by the layers of [install.md](install.md).
"""


def document(table):
    """Return the text of docs/versions.md."""
    running = ", ".join(map(" ".join, sorted(table["running"].items(), reverse=True)))
    parts = [HEAD.format(running=running)]
    for package, pieces_left in table["left_out"].items():
        counts = {
            layer: count
            for layer, titles in table["pieces"].items()
            if (count := sum(owner(table, title) == package for title in titles.values()))
        }
        parts.append(f"\n## {package}\n\n")
        parts.append(row("layer", *map(short, pieces_left)))
        parts.append(row("---", *("---:" for _ in pieces_left)))
        for layer, count in counts.items():
            cells = (count - len(layers.get(layer, ())) for layers in pieces_left.values())
            parts.append(row(layer, *(n if n == count else f"{n} of {count}" for n in cells)))
        parts += exceptions(pieces_left)
    return "".join(parts)


def exceptions(left_out):
    """Yield a table of the pieces that are left out, and the versions."""
    where = {}
    for version, layers in left_out.items():
        for titles in layers.values():
            for title, part in titles.items():
                where.setdefault((title, part), []).append(short(version))
    groups = {}
    for (title, part), releases in where.items():
        title = title.removeprefix("keras.src.").removeprefix("backend.tensorflow.")
        groups.setdefault((", ".join(releases), part), []).append(f"`{title}`")
    if groups:
        yield f"\n{row('of', 'left out is', 'because of another')}{row('---', '---', '---')}"
    for (releases, part), titles in groups.items():
        yield row(releases, ", ".join(titles), f"`{part.replace(':', '.')}`")


def short(version):
    return ".".join(version.split(".")[:2])


def row(*cells):
    return f"| {' | '.join(map(str, cells))} |\n"


def owner(table, piece):
    """Return the package with the original of a piece."""
    return package_of(table["rests_on"][piece][0])


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="tools/restated.py",
        description="Write fastops/_install/originals.json and docs/versions.md.",
    )
    parser.add_argument("roots", nargs="*", metavar="ROOT", help="a folder of other versions")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if the table is out of date"
    )
    parser.add_argument(
        "--diff", action="store_true", help="change nothing; show the code that differs there"
    )
    parser.add_argument(
        "--drop", action="store_true", help="leave versions without a ROOT out of the table"
    )
    options = parser.parse_args(argv)
    running, others = running_environment(), [Installed(root) for root in options.roots]
    if empty := [str(other.root) for other in others if not other.versions]:
        print(f"no known package is in {', '.join(empty)}", file=sys.stderr)
        return 2
    if options.diff:
        print("".join(differences(running, others)), end="")
        return 0
    table = tables(running, others)
    if options.check:
        wrong = list(problems(table, restated.table()))
        print("".join(wrong), end="")
        return 1 if wrong else 0
    if (missed := lost(table, restated.table())) and not options.drop:
        print(f"no ROOT has {', '.join(missed)}: give one for each, or --drop", file=sys.stderr)
        return 2
    restated.TABLE.write_text(json.dumps(table, indent=1) + "\n")
    DOC.write_text(document(table))
    return 0


def lost(new, table):
    """Return the versions in a table that another table does not have, as texts."""
    return [
        f"{package} {version}"
        for package, releases in table["left_out"].items()
        for version in releases
        if version not in new["left_out"].get(package, {})
    ]


def problems(found, table):
    """Yield the differences of a table from the running versions."""
    packages = dict(found["running"].items() & table["running"].items())
    old, new = (json.dumps(of(packages, one), indent=1).splitlines(True) for one in (table, found))
    yield from difflib.unified_diff(old, new, "checked in", "running")
    for package, version in found["running"].items():
        left_out = found["left_out"][package][version]
        if table["left_out"][package].get(version, left_out) != left_out:
            yield f"{package} {version}: left out is {left_out}\n"
    if DOC.read_text() != document(table):
        yield "docs/versions.md is stale\n"


def of(packages, table):
    """Return the parts of a table that some packages have in all their versions."""
    return {
        "digests": {
            name: digests
            for name, digests in table["digests"].items()
            if package_of(name) in packages
        },
        "rests_on": {
            piece: parts
            for piece, parts in table["rests_on"].items()
            if package_of(parts[0]) in packages
        },
        "pieces": {
            layer: {
                title: piece for title, piece in titles.items() if owner(table, piece) in packages
            }
            for layer, titles in table["pieces"].items()
        },
    }


def differences(running, others):
    """Yield diffs of code that differs between other versions and the running ones."""
    table = restated.table()
    for name, accepted in table["digests"].items():
        here = next(module for installed in running if (module := installed.module(name)))
        for installed in others:
            there = installed.module(name)
            for definition in restated.others(there.source, accepted) if there else ():
                texts = [
                    [
                        f"{line}\n"
                        for node in module.definitions.get(definition, ())
                        for line in ast.unparse(node).splitlines()
                    ]
                    for module in (here, there)
                ]
                digest = restated.digests(there.source, [definition]).get(definition)
                yield from difflib.unified_diff(
                    *texts, f"{name}:{definition}", f"{installed.root} {digest}"
                )


if __name__ == "__main__":
    sys.exit(main())
