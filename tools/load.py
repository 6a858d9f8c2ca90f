"""From files and the registry to the model; every validation is here.

Only this module and `tools.snapshot` see protobufs; only this one sees TOML.
"""

import hashlib
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
def context(what):
    """Make every failure inside name what it was about."""
    try:
        yield
    except LoadError as error:
        raise LoadError(f"{what}: {error}") from None
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise LoadError(f"{what}: {type(error).__name__}: {error}") from error


def load(ops=OPS, policy=POLICY, facts=FACTS):
    """Read the three inputs and return the `Api` to render."""
    snapshot = read_snapshot(ops)
    facts = read_facts(facts)
    policy = read_policy(policy, snapshot, facts)
    return bind(snapshot, policy, facts)


def read_snapshot(path):
    """Return the `Snapshot` in a file of OpDefs in text format."""
    text = Path(path).read_text()
    with context(f"{path.name}, first line"):
        version = re.match(r"# TensorFlow (\S+)\n", text)[1]
    ops = []
    for proto in text_format.Parse(text, op_def_pb2.OpList()).op:
        with context(f"{path.name}, op {proto.name}"):
            ops.append(opdef.from_proto(proto))
    if (names := [op.name for op in ops]) != sorted(set(names)):
        raise LoadError(f"{path.name}: ops are not sorted or not unique")
    return Snapshot(version, hashlib.sha256(text.encode()).hexdigest()[:16], tuple(ops))


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
    """Return the `Policy` in a file, checked against the snapshot, patterns resolved."""
    data = tomllib.loads(Path(path).read_text())
    ops = {op.name: op for op in snapshot.ops}

    def known(table, names):
        for name in names:
            if name not in ops:
                raise LoadError(f"{path.name}, [{table}]: the snapshot has no op {name!r}")
        return names

    def matching(table, patterns):
        """Return the ops for patterns; each must match one."""
        found = []
        for pattern in patterns:
            names = [name for name in ops if fnmatchcase(name, pattern)]
            if not names:
                raise LoadError(f"{path.name}, [{table}]: no op matches {pattern!r}")
            found += names
        return found

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
    since = {}
    for key, version in data.get("since", {}).items():
        name, _, attr = key.partition(".")
        known("since", [name])
        since.setdefault(name, {})[attr] = version
        if attr:
            with context(f"{path.name}, [since], {key}"):
                ops[name].attr(attr)

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
        for table in ("handles", "stateless", "unseeded", "makers", "value_sized")
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
        since=since,
    )


def bind(snapshot, policy, facts):
    """Return the `Api`: every op of the snapshot with its names, keywords and docstring."""
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
        docstring.Facts(
            snapshot.version,
            facts.inputs.get(op.name, {}),
            facts.outputs.get(op.name, {}),
            facts.gradients.get(op.name),
            policy.exclusion(op),
            policy.bound_by(op),
            op.name in policy.makers,
            policy.since.get(op.name, {}),
            policy.replacements.get(op.name, ""),
        ),
    )
    return Binding(op, name, raw_name, alias, params, doc)
