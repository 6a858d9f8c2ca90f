"""The record of an op: all facts about the op in one place.

A record combines the OpDef of the running TensorFlow with the generated data (names, order,
policy).
"""

import inspect
from dataclasses import dataclass
from functools import cache
from inspect import Parameter

import tensorflow as tf

from fastops._core import docstring, opdef
from fastops._core.errors import DeprecatedOpError, MissingOpError
from fastops._core.fallback import reference
from fastops._core.loading import LOCK
from fastops._core.tables import index, policy

_ALLOWED = policy.HANDLES | policy.STATELESS | policy.UNSEEDED | policy.MAKERS


@dataclass(frozen=True, eq=False)
class OpRecord:
    """The facts about one op of the running TensorFlow.

    Attributes
    ----------
    op_def : fastops._core.opdef.OpSpec
        The OpDef.
    name, module : str
        The Python name and the module the op shows as its own.
    order : tuple of str
        Names of the arguments as TensorFlow's own function orders them. Arguments that are not
        listed come last.
    missing : bool
        Whether only other supported versions of TensorFlow have the op. `op_def` then has names
        only.
    """

    op_def: opdef.OpSpec
    name: str
    module: str
    order: tuple[str, ...] = ()
    missing: bool = False

    @property
    def op_name(self):
        """The name in TensorFlow's registry."""
        return self.op_def.name

    @property
    @cache  # noqa: B019 - records live as long as the process
    def error(self):
        """The exception of every call, or `None` if the op can run."""
        if self.missing:
            since = policy.SINCE.get(self.op_name, {}).get("")
            where = f"exists since TensorFlow {since}" if since else "exists in another TensorFlow"
            return MissingOpError(f"{self.op_name} {where}, and this is {tf.version.VERSION}")
        withdrawn = self.op_def.deprecated_since
        if self.op_def.takes_refs or (withdrawn and withdrawn <= tf.version.GRAPH_DEF_VERSION):
            replacement = policy.REPLACEMENTS.get(self.op_name)
            instead = f"use {replacement} instead" if replacement else "nothing replaces it"
            since = docstring.unavailable(self.op_def)
            return DeprecatedOpError(f"{self.op_name} is deprecated {since}; {instead}")
        return None

    @property
    @cache  # noqa: B019 - and `cached_property` has a lock before Python 3.12, which forks inherit
    def params(self):
        """The keywords in the order of TensorFlow's own function, without ``name``."""
        params = opdef.params(
            self.op_def,
            policy.RENAMES.get(self.op_name, {}),
            policy.DEFAULTS.get(self.op_name, {}),
        )
        known = {param.name: param for param in params}
        return tuple(known[name] for name in dict.fromkeys((*self.order, *known)) if name in known)

    @property
    def exclusion(self):
        """The reason why the op never runs in a kernel of fastops, or `None`."""
        if self.op_name in _ALLOWED:
            return None
        return policy.EXCLUDED.get(self.op_name) or self.op_def.obstacle

    @property
    def handles(self):
        """Whether the state is behind a handle, so that a kernel of fastops shares the state."""
        return self.op_name in policy.HANDLES

    @property
    def draws(self):
        """Whether it draws from a random generator of its kernel.

        Without seeds, the generator of any kernel will do.
        """
        return self.op_name in policy.UNSEEDED

    @property
    def makes(self):
        """Whether each call creates a new resource, unless it has a "shared_name"."""
        return self.op_name in policy.MAKERS

    @property
    def bound_by(self):
        """The OpDef names of the attributes that bind a call to TensorFlow's kernel.

        With such an attribute, TensorFlow's kernel keeps state between calls.
        """
        if not self.draws:
            return ()
        return tuple(attr.name for attr in self.op_def.attrs if attr.name in policy.BINDING)

    @property
    def bound(self):
        """The reason why a call with these attributes never runs in a kernel of fastops.

        `None` if the op has no such attributes.
        """
        if self.makes:
            return "with a shared_name the resource is shared with other kernels"
        given = " or ".join(self.bound_by)
        return f"with {given}, TensorFlow's kernel keeps its state between calls" if given else None

    @property
    def seeded(self):
        """Whether one kernel can make the first draw of any pair of seeds."""
        return self.op_name in policy.SEEDED

    @property
    def value_sized(self):
        """Whether the cost of a call depends on the values of the inputs, not on their sizes."""
        return self.op_name in policy.VALUE_SIZED

    def signature(self):
        """Return the `inspect.Signature`: keywords only, ``name`` last."""
        defaults = {param.name: param.default for param in self.params} | {"name": None}
        return inspect.Signature(
            [
                Parameter(name, Parameter.KEYWORD_ONLY)
                if default is opdef.REQUIRED
                else Parameter(name, Parameter.KEYWORD_ONLY, default=default)
                for name, default in defaults.items()
            ]
        )

    def doc(self):
        """Return the docstring, with the running TensorFlow's own text below it."""
        if self.missing:
            return f"{self.error}.\n"
        from fastops._core.tables import facts

        name = self.op_name
        known = name in index.FAMILIES
        told = docstring.DocstringFacts(
            version=facts.VERSION if known else tf.version.VERSION,
            inputs=facts.INPUTS.get(name, {}),
            outputs=facts.OUTPUTS.get(name, {}),
            gradients=facts.GRADIENTS.get(name),
            exclusion=self.exclusion,
            bound_by=self.bound_by,
            makes=self.makes,
            since=policy.SINCE.get(name, {}),
            replacement=policy.REPLACEMENTS.get(name, ""),
        )
        ours = docstring.render(self.op_def, self.params, told)
        theirs = inspect.getdoc(reference(name))
        if not theirs:
            return ours
        heading = f"TensorFlow {tf.version.VERSION} says"
        return f"{ours}\n{heading}\n{'-' * len(heading)}\n{theirs}\n"


def record_of(op_name):
    """Return the `OpRecord` of an op. `Op` calls this at its first use."""
    name, module, order = opdef.snake_case(op_name), "fastops.ops", ()
    with LOCK:
        if op_name in index.FAMILIES:
            from fastops._core.tables.signatures import SIGNATURES

            module = f"fastops.gen.{index.FAMILIES[op_name]}"
            name, order = SIGNATURES[op_name]
        op_def = opdef.registered(op_name)
    if op_def is None:
        bare = opdef.OpSpec(op_name, inputs=tuple(map(opdef.Arg, order)))
        return OpRecord(bare, name, module, order, missing=True)
    return OpRecord(op_def, name, module, order)
