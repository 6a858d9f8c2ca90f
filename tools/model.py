"""What the generator knows beyond OpDefs: policy, facts, and the modules it will write."""

from dataclasses import dataclass, field

from fastops._core import opdef


@dataclass(frozen=True)
class Snapshot:
    """The checked-in OpDefs and where they come from.

    Attributes
    ----------
    version : str
        The TensorFlow whose registry it is.
    digest : str
        Start of the SHA-256 of the file.
    ops : tuple of fastops._core.opdef.OpSpec
        Sorted by name.
    since : dict of dict of str
        By op and, in it, by attribute, the TensorFlow that first has it, where an earlier one that
        is supported lacks it: ``""`` stands for the op, ``"T=uint64"`` for a value of `T`.
    """

    version: str
    digest: str
    ops: tuple[opdef.OpSpec, ...]
    since: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """The content of policy.toml, patterns resolved to ops. Each field is a table there."""

    names: dict[str, str] = field(default_factory=dict)
    raw_names: dict[str, str] = field(default_factory=dict)
    renames: dict[str, dict[str, str]] = field(default_factory=dict)
    defaults: dict[str, dict[str, object]] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)
    handles: tuple[str, ...] = ()
    stateless: tuple[str, ...] = ()
    unseeded: tuple[str, ...] = ()
    makers: tuple[str, ...] = ()
    binding: tuple[str, ...] = ()
    value_sized: tuple[str, ...] = ()
    replacements: dict[str, str] = field(default_factory=dict)

    def exclusion(self, op):
        """Return why an op never runs in a kernel of ours, or `None`."""
        if op.name in (*self.handles, *self.stateless, *self.unseeded, *self.makers):
            return None
        return self.excluded.get(op.name) or op.obstacle

    def bound_by(self, op):
        """Return the attributes that bind a call of an op to the kernel that TensorFlow keeps."""
        if op.name not in self.unseeded:
            return ()
        return tuple(attr.name for attr in op.attrs if attr.name in self.binding)


@dataclass(frozen=True)
class Facts:
    """The content of facts.toml: what a running TensorFlow tells and OpDefs do not.

    Attributes
    ----------
    families : dict of str
        The family of each op that TensorFlow has generated a Python function for.
    gradients : dict
        The inputs each op is differentiable with respect to; ops without a gradient are absent.
    inputs, outputs : dict
        For each op, its shape function in words: what it accepts and what it returns.
    """

    families: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Binding:
    """An op with its Python face.

    Attributes
    ----------
    op : fastops._core.opdef.OpSpec
        The op.
    name, raw_name : str
        The attributes of `fastops.ops` and `fastops.raw_ops` that it is.
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
    """A family: the bindings of one module of `fastops.gen`, sorted by name."""

    name: str
    bindings: tuple[Binding, ...]


@dataclass(frozen=True)
class Api:
    """All that is rendered."""

    snapshot: Snapshot
    policy: Policy
    facts: Facts
    modules: tuple[Module, ...]
