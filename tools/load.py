"""Load the model from files and the registry, with all validations.

Of the modules of the generator, only this one and `tools.snapshot` use protobufs, and only this one
reads TOML.
"""

import hashlib
import itertools
import keyword
import re
import sys
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2

from fastops._core import docstring, opdef
from tools.model import Api, Binding, Facts, Module, Policy, Snapshot

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
OPS, POLICY, FACTS = HERE / "ops.pbtxt", HERE / "policy.toml", HERE / "facts.toml"


class LoadError(Exception):
    """An input of the generator is wrong; the message names the op and the rule."""


@contextmanager
def context(subject):
    """Add the name of the subject to the message of every error in the block."""
    try:
        yield
    except LoadError as error:
        raise LoadError(f"{subject}: {error}") from None
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise LoadError(f"{subject}: {type(error).__name__}: {error}") from error


def load(ops=OPS, policy=POLICY, facts=FACTS):
    """Read the three inputs; return the `Api` to render."""
    snapshot = read_snapshot(ops)
    facts = read_facts(facts)
    policy = read_policy(policy, snapshot, facts)
    return bind(snapshot, policy, facts)


def read_snapshot(path):
    """Return the `Snapshot` in a file of OpDefs (text format) and its files of earlier versions."""
    text = Path(path).read_text()
    version = _version(path, text)
    ops = _from_protos(path, parse(text).values())
    if (names := [op.name for op in ops]) != sorted(set(names)):
        raise LoadError(f"{path.name}: ops are not sorted or not unique")
    known = {version: {op.name: op for op in ops}}
    for file in earlier(path):
        difference = file.read_text()
        earlier_ops = _from_protos(file, restore(text, difference).values())
        known[_version(file, difference)] = {op.name: op for op in earlier_ops}
        if gone := known[_version(file, difference)].keys() - known[version].keys():
            # No op has been removed so far. The functions of a removed op would have to be made of
            # its earlier OpDef.
            raise LoadError(f"{file.name}: {sorted(gone)} are not in {path.name}: not supported")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Snapshot(version, digest, tuple(ops), first_seen(known))


def _version(path, text):
    with context(f"{path.name}, first line"):
        return re.match(r"# TensorFlow (\S+)", text)[1].rstrip(",")


def _from_protos(path, protos):
    changes = []
    for proto in protos:
        with context(f"{path.name}, op {proto.name}"):
            changes.append(opdef.from_proto(proto))
    return changes


def differing(path=OPS):
    """Return the files with the differences of other TensorFlow versions from a snapshot."""
    return sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"))


def earlier(path=OPS):
    """Return those of earlier versions. A later version has a file before its release."""
    newest = minor(path.read_text())
    return [file for file in differing(path) if minor(file.read_text()) < newest]


def parse(text):
    """Return the OpDefs in a text, by name."""
    return {op.name: op for op in text_format.Parse(text, op_def_pb2.OpList()).op}


LACKS = "# lacks "
"""The beginning of a line that names an op missing in another TensorFlow."""


def difference(text, other):
    """Return the difference of a text of OpDefs from the snapshot: missing and changed ops.

    Parameters
    ----------
    text, other : str
        The snapshot, and the result of `tools.snapshot.op_defs` in another TensorFlow.
    """
    new, old = parse(text), parse(other)
    head = f"{other.splitlines()[0]}, the differences from tools/{OPS.name}\n"
    lacks = "".join(f"{LACKS}{name}\n" for name in sorted(new.keys() - old.keys()))
    own = [op for name, op in sorted(old.items()) if new.get(name) != op]
    return head + lacks + text_format.MessageToString(op_def_pb2.OpList(op=own))


def restore(text, difference):
    """Return all OpDefs of another TensorFlow, by name, given its difference from the snapshot."""
    lacks = {line.removeprefix(LACKS) for line in difference.splitlines() if line.startswith(LACKS)}
    op_defs = parse(text) | parse(difference)
    return {name: op for name, op in sorted(op_defs.items()) if name not in lacks}


def written(text, difference):
    """Return the text of `tools.snapshot.op_defs` in another TensorFlow, given the difference."""
    ops = op_def_pb2.OpList(op=restore(text, difference).values())
    head = difference.splitlines()[0].partition(",")[0]
    return f"{head}\n{text_format.MessageToString(ops)}"


def minor(text):
    """Return the minor version of TensorFlow in a text of OpDefs, as numbers."""
    return [*map(int, re.match(r"# TensorFlow (\d+)\.(\d+)", text).groups())]


def first_seen(known):
    """Return the first version that has a feature, for new features: see `Snapshot.since`.

    Parameters
    ----------
    known : dict
        By version, the ops by name.
    """
    versions = sorted(known, key=lambda version: [*map(int, version.split(".")[:2])])
    since = {}
    for before, after in itertools.pairwise(versions):
        for name, op in known[versions[-1]].items():
            old = known[before].get(name)
            lacked = _features(op) - _features(old) if old else {""}
            for feature in lacked:
                if "=" in feature and feature.partition("=")[0] in lacked:
                    continue  # a value of a new attribute
                since.setdefault(name, {})[feature] = ".".join(after.split(".")[:2])
    return {name: dict(sorted(features.items())) for name, features in sorted(since.items())}


def _features(op):
    """Return the attributes of an op, and their allowed values."""
    return {
        feature
        for attr in op.attrs
        for feature in (attr.name, *(f"{attr.name}={value}" for value in attr.allowed or ()))
    }


def read_facts(path):
    """Return the `Facts` in a file written by ``snapshot``."""
    data = tomllib.loads(Path(path).read_text())
    return Facts(
        families={op: family for family, ops in data["families"].items() for op in ops},
        gradients={op: tuple(names) for op, names in data["gradients"].items()},
        inputs=data["inputs"],
        outputs=data["outputs"],
    )


def read_policy(path, snapshot, facts):
    """Return the `Policy` in a file, checked against the snapshot, with resolved patterns."""
    data = tomllib.loads(Path(path).read_text())
    ops = {op.name: op for op in snapshot.ops}

    def known(table, names):
        for name in names:
            if name not in ops:
                raise LoadError(f"{path.name}, [{table}]: the snapshot has no op {name!r}")
        return names

    def matching(table, patterns):
        """Return the ops that match patterns. Each pattern must match at least one op."""
        matches = []
        for pattern in patterns:
            names = [name for name in ops if fnmatchcase(name, pattern)]
            if not names:
                raise LoadError(f"{path.name}, [{table}]: no op matches {pattern!r}")
            matches += names
        return matches

    for table in ("names", "raw_names", "renames", "defaults", "replacements"):
        known(table, data.get(table, {}))
    for table, members in (("renames", "inputs and attributes"), ("defaults", "attributes")):
        for name, entries in data.get(table, {}).items():
            op = ops[name]
            has = {attr.name for attr in op.attrs}
            has |= {arg.name for arg in op.inputs} if table == "renames" else set()
            if unknown := set(entries) - has:
                raise LoadError(
                    f"{path.name}, [{table}], op {name}: {sorted(unknown)} are not its {members}"
                )
    families = {}
    for family, patterns in data.get("families", {}).items():
        for name in matching("families", patterns):
            if name not in facts.families:
                families.setdefault(name, family)

    excluded = {}
    for rule in data.get("exclude", []):
        if not rule.get("reason"):
            raise LoadError(f"{path.name}, [[exclude]] {rule['ops']}: no reason given")
        for name in matching("exclude", rule["ops"]):
            excluded.setdefault(name, rule["reason"])
    direct = {
        table: tuple(matching(f"direct.{table}", data.get("direct", {}).get(table, [])))
        for table in (
            *("handles", "stateless", "unseeded", "seeded", "unread_seeds", "makers"),
            "value_sized",
        )
    }
    binding = tuple(data.get("direct", {}).get("binding", ()))
    allowed = set()
    for table in ("handles", "stateless", "unseeded", "makers"):
        for name in direct[table]:
            if name in excluded or name in allowed:
                where = "excluded" if name in excluded else "on another allow-list"
                raise LoadError(f"{path.name}, [direct.{table}]: {name} is {where}, too")
            allowed.add(name)
    for name in direct["unseeded"]:
        if not any(attr.name in binding for attr in ops[name].attrs):
            raise LoadError(f"{path.name}, [direct.unseeded]: {name} has none of {list(binding)}")
    for name in direct["seeded"]:
        if name not in direct["unseeded"] or not {"seed", "seed2"} <= {
            attr.name for attr in ops[name].attrs
        }:
            raise LoadError(
                f"{path.name}, [direct.seeded]: {name} is not a random op with two seeds"
            )
    for name in direct["unread_seeds"]:
        if name in allowed or not {"seed", "seed2"} <= {attr.name for attr in ops[name].attrs}:
            raise LoadError(
                f"{path.name}, [direct.unread_seeds]: {name} is on an allow-list or lacks two seeds"
            )
    return Policy(
        names=data.get("names", {}),
        raw_names=data.get("raw_names", {}),
        renames=data.get("renames", {}),
        defaults=data.get("defaults", {}),
        families=families,
        excluded=excluded,
        **direct,
        binding=binding,
        replacements=data.get("replacements", {}),
    )


def bind(snapshot, policy, facts):
    """Return the `Api`: each op of the snapshot with its names, keywords and docstring."""
    families = {}
    taken = {}
    for op in snapshot.ops:
        with context(f"op {op.name}"):
            binding = _bind(op, snapshot, policy, facts)
            for name in filter(None, (binding.name, binding.alias)):
                if name in taken:
                    raise LoadError(f"its name {name!r} is taken by {taken[name]}: see [names]")
                taken[name] = op.name
            family = policy.families.get(op.name) or facts.families.get(op.name)
            if not family:
                raise LoadError("no module of TensorFlow defines it: see [families]")
            families.setdefault(family, []).append(binding)
    modules = tuple(
        Module(name, tuple(sorted(bindings, key=lambda binding: binding.name.lstrip("_"))))
        for name, bindings in sorted(families.items())
    )
    return Api(snapshot, policy, facts, modules)


def _bind(op, snapshot, policy, facts):
    """Return the `Binding` of one op."""
    name = policy.names.get(op.name) or opdef.snake_case(op.name)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise LoadError(f"{name!r} cannot be a Python name: see [names]")
    plain = name.lstrip("_")
    alias = "" if plain == name or keyword.iskeyword(plain) else plain
    raw_name = policy.raw_names.get(op.name) or op.name
    if not raw_name.isidentifier() or keyword.iskeyword(raw_name):
        raise LoadError(f"{raw_name!r} cannot be a Python name: see [raw_names]")
    params = opdef.params(op, policy.renames.get(op.name, {}), policy.defaults.get(op.name, {}))
    for param in params:
        if not param.name.isidentifier() or keyword.iskeyword(param.name):
            raise LoadError(f"its argument {param.name!r} cannot be a Python name: see [renames]")
    doc = docstring.render(
        op,
        params,
        docstring.DocstringFacts(
            snapshot.version,
            facts.inputs.get(op.name, {}),
            facts.outputs.get(op.name, {}),
            facts.gradients.get(op.name),
            policy.exclusion(op),
            policy.bound_by(op),
            op.name in policy.makers,
            snapshot.since.get(op.name, {}),
            policy.replacements.get(op.name, ""),
        ),
    )
    return Binding(op, name, raw_name, alias, params, doc)
