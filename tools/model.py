"""The model of the generator: snapshot, policy, facts, and the modules to write."""

from dataclasses import dataclass, field

from fastops._core import opdef


@dataclass(frozen=True)
class Snapshot:
    """The checked-in OpDefs, and their origin.

    Attributes
    ----------
    version : str
        The version of TensorFlow that has this registry.
    digest : str
        Start of the SHA-256 of the file.
    ops : tuple of fastops._core.opdef.OpSpec
        Sorted by name.
    since : dict of dict of str
        By op and feature, the first TensorFlow version with the feature, if an earlier supported
        version lacks it. A feature is ``""`` for the op itself, the name of an attribute, or
        ``"T=uint64"`` for a value of `T`.
    """

    version: str
    digest: str
    ops: tuple[opdef.OpSpec, ...]
    since: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """The content of policy.toml, with patterns resolved to ops. Each field is a table."""

    names: dict[str, str] = field(default_factory=dict)
    raw_names: dict[str, str] = field(default_factory=dict)
    renames: dict[str, dict[str, str]] = field(default_factory=dict)
    defaults: dict[str, dict[str, object]] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)
    handles: tuple[str, ...] = ()
    stateless: tuple[str, ...] = ()
    unseeded: tuple[str, ...] = ()
    seeded: tuple[str, ...] = ()
    unread_seeds: tuple[str, ...] = ()
    makers: tuple[str, ...] = ()
    binding: tuple[str, ...] = ()
    value_sized: tuple[str, ...] = ()
    replacements: dict[str, str] = field(default_factory=dict)

    def exclusion(self, op):
        """Return why an op is never run directly, or `None`."""
        if op.name in (*self.handles, *self.stateless, *self.unseeded, *self.makers):
            return None
        return self.excluded.get(op.name) or op.obstacle

    def bound_by(self, op):
        """Return the attributes that make a call of an op depend on TensorFlow's own kernel."""
        if op.name not in self.unseeded:
            return ()
        return tuple(attr.name for attr in op.attrs if attr.name in self.binding)


@dataclass(frozen=True)
class Facts:
    """The content of facts.toml: facts from a running TensorFlow that are not in OpDefs.

    Attributes
    ----------
    families : dict of str
        The family of each op that TensorFlow has generated a Python function for.
    gradients : dict
        The inputs with respect to which each op is differentiable. Ops without a gradient are
        absent.
    inputs, outputs : dict
        For each op, a description of its shape function: the shapes it accepts and returns.
    """

    families: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Binding:
    """An op with its public Python names.

    Attributes
    ----------
    op : fastops._core.opdef.OpSpec
        The op.
    name, raw_name : str
        The names of the op in `fastops.ops` and `fastops.raw_ops`.
    alias : str
        A second name in `fastops.ops`, or "".
    params : tuple of fastops._core.opdef.Param
        Its keywords.
    doc : str
        Its docstring.
    """

    op: opdef.OpSpec
    name: str
    raw_name: str
    alias: str
    params: tuple[opdef.Param, ...]
    doc: str


@dataclass(frozen=True)
class Module:
    """A family of ops: the bindings in one module of `fastops.gen`, sorted by name."""

    name: str
    bindings: tuple[Binding, ...]


@dataclass(frozen=True)
class Api:
    """Everything that is rendered."""

    snapshot: Snapshot
    policy: Policy
    facts: Facts
    modules: tuple[Module, ...]
