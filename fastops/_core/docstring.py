"""Renders an OpDef as a numpydoc docstring, for the stubs and for ``__doc__``."""

import re
import textwrap
from dataclasses import dataclass, field

from fastops._core.opdef import REQUIRED

WIDTH = 96
"""The width of a docstring's lines, so that they fit in 100 columns of a stub."""


@dataclass(frozen=True)
class DocstringFacts:
    """The facts in a docstring that are not in the OpDef.

    Attributes
    ----------
    version : str
        The version of TensorFlow that the OpDef is from.
    inputs, outputs : dict of str
        Shapes in words, by the OpDef's names.
    gradients : tuple of str or None
        The inputs the op is differentiable with respect to; `None` if it is not differentiable.
    exclusion : str or None
        The reason why the op never runs in a kernel of fastops.
    bound_by : tuple of str
        The OpDef names of the attributes that bind a call to TensorFlow's kernel.
    makes : bool
        Whether each call creates a new resource, unless it has a "shared_name".
    since : dict of str
        The first version of TensorFlow with an argument, by the OpDef's names. The key "" stands
        for the op itself, and ``"T=uint64"`` for a value of `T`.
    replacement : str
        The op to use instead, if this one cannot run.
    """

    version: str
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    gradients: tuple[str, ...] | None = None
    exclusion: str | None = None
    bound_by: tuple[str, ...] = ()
    makes: bool = False
    since: dict[str, str] = field(default_factory=dict)
    replacement: str = ""


def render(op, params, facts):
    """Return the docstring of an op.

    Parameters
    ----------
    op : fastops._core.opdef.OpSpec
        The op.
    params : tuple of fastops._core.opdef.Param
        Its keywords.
    facts : DocstringFacts
        The facts that are not in the OpDef.
    """
    names = {param.op_def_name: param.name for param in params}
    sections = {
        "Parameters": [*_parameters(op, params, names, facts), *_entry("name : str, optional")],
        "Returns": _returns(op, names, facts),
        "Raises": _raises(op, facts),
        "Notes": _notes(op, names, facts),
        "Source": [f"Op {op.name} of TensorFlow {facts.version}."],
    }
    lines = [_summary(op, names)]
    for title, body in sections.items():
        lines += ["", title, "-" * len(title), *body]
    return "\n".join(lines) + "\n"


def unavailable(op):
    """Return why no call of the op can succeed, or "" if one can."""
    if op.takes_refs:
        return "since TensorFlow 2.0, because it works on reference variables of TensorFlow 1"
    if op.deprecated_since is not None:
        return f"since GraphDef version {op.deprecated_since}"
    return ""


def _summary(op, names):
    """Return one line that names the inputs and outputs."""
    inputs = _listed([names[arg.name] for arg in op.inputs])
    outputs = _listed([arg.name for arg in op.outputs])
    if inputs and outputs:
        text = f"Compute {outputs} from {inputs}."
    elif outputs:
        text = f"Produce {outputs}."
    elif inputs:
        text = f"Run {op.name} on {inputs}."
    else:
        text = f"Run {op.name}."
    return text if len(text) < WIDTH - 4 else f"Run {op.name} on {len(op.inputs)} inputs."


def _listed(names):
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))


def _parameters(op, params, names, facts):
    args = {arg.name: arg for arg in op.inputs}
    for param in params:
        added = facts.since.get(param.op_def_name)
        remark = [f"Since TensorFlow {added}."] if added else []
        if param.is_input:
            arg = args[param.op_def_name]
            remark += _newer(arg.type_attr or arg.type_list_attr, facts)
            shape = facts.inputs.get(arg.name)
            yield from _entry(
                f"{param.name} : {'list of tensors' if arg.is_list else 'tensor'}",
                _sentence(_dtype_of_input(op, arg, names)),
                _sentence(shape and f"shape: {shape}"),
                *remark,
            )
        else:
            attr = op.attr(param.op_def_name)
            remark += _newer(attr.name, facts)
            default = "" if param.default is REQUIRED else f", default {_shown(param.default)}"
            yield from _entry(
                f"{param.name} : {_kind(attr)}{default}", *_restrictions(attr), *remark
            )


def _newer(attr, facts):
    """Return sentences about the values of an attribute that older versions lack."""
    by_version = {}
    for feature, version in facts.since.items():
        name, _, value = feature.partition("=")
        if value and name == attr:
            by_version.setdefault(version, []).append(value)
    return [
        f"{', '.join(values)} since TensorFlow {version}." for version, values in by_version.items()
    ]


def _returns(op, names, facts):
    if not op.outputs:
        return _entry("None", "Inside a graph, the `tf.Operation`.")
    lines = []
    for arg in op.outputs:
        shape = facts.outputs.get(arg.name)
        if shape:
            shape = re.sub(r"`(\w+)`", lambda quoted: f"`{names[quoted[1]]}`", shape)
        lines += _entry(
            f"{arg.name} : {'list of tensors' if arg.is_list else 'tensor'}",
            _sentence(_dtype_of_output(op, arg, names)),
            _sentence(shape and f"shape: {shape}"),
        )
    return lines


def _raises(op, facts):
    if unavailable(op):
        return _entry("fastops.DeprecatedOpError", "Always.")
    since = facts.since.get("")
    missing = _entry("fastops.MissingOpError", f"Before TensorFlow {since}.") if since else []
    return [
        *missing,
        *_entry("TypeError", "An argument is missing, unknown, positional or of a wrong dtype."),
        *_entry(
            "ValueError, tf.errors.InvalidArgumentError",
            "A shape or a value is refused: what TensorFlow's own function raises.",
        ),
    ]


def _notes(op, names, facts):
    if reason := unavailable(op):
        instead = f"Use {facts.replacement} instead." if facts.replacement else ""
        notes = [f"Deprecated {reason}. {instead}".rstrip()]
    else:
        wrt = _listed([names[name] for name in facts.gradients or ()])
        notes = [f"Differentiable with respect to {wrt}." if wrt else "Not differentiable."]
        if facts.exclusion:
            notes.append(f"Every call runs through TensorFlow's runtime: {facts.exclusion}.")
        else:
            notes.append("Falls back to TensorFlow's runtime where its kernel cannot run alone.")
            if facts.makes:
                notes.append(
                    f"So does every call whose `{names['shared_name']}` is not "
                    "`tensorflow.python.eager.context.anonymous_name()`."
                )
            elif facts.bound_by:
                given = " or ".join(f"`{names[name]}`" for name in facts.bound_by)
                notes.append(
                    f"So does every call with {given}: TensorFlow's kernel keeps its state."
                )
    if "" in facts.since:
        notes.append(f"Exists since TensorFlow {facts.since['']}.")
    return [line for note in notes for line in textwrap.wrap(note, WIDTH - 4)]


def _dtype_of_input(op, arg, names):
    """Return the rule for an input's dtype in words."""
    if arg.dtype:
        return f"dtype {arg.dtype}"
    attr = op.attr(arg.type_attr or arg.type_list_attr)
    several = "dtypes" if arg.type_list_attr else "dtype"
    first = _deciding(op, attr)
    if first != arg.name:
        return f"{several} of `{names[first]}`"
    rule = f"{several} among {', '.join(attr.allowed)}" if attr.allowed else f"any {several}"
    if attr.default is not REQUIRED and isinstance(attr.default, str):
        rule += f"; numbers of Python become {attr.default}"
    return rule


def _dtype_of_output(op, arg, names):
    """Return the rule for an output's dtype in words."""
    if arg.dtype:
        return f"dtype {arg.dtype}"
    attr = arg.type_attr or arg.type_list_attr
    decides = _deciding(op, op.attr(attr)) or attr
    return f"{'dtypes' if arg.type_list_attr else 'dtype'} of `{names[decides]}`"


def _deciding(op, attr):
    """Return the first input whose dtype the attribute gives, or `None`."""
    return next(
        (arg.name for arg in op.inputs if attr.name in (arg.type_attr, arg.type_list_attr)), None
    )


def _kind(attr):
    """Return the Python type of an attribute in words."""
    if attr.type.startswith("list("):
        return f"list of {_KINDS[attr.type[len('list(') : -1]]}"
    if attr.type == "string" and attr.allowed:
        return "{" + ", ".join(f'"{value}"' for value in attr.allowed) + "}"
    return _KINDS[attr.type]


_KINDS = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "string": "str",
    "type": "tf.DType",
    "shape": "tf.TensorShape",
    "tensor": "TensorProto",
    "func": "tf.function",
}


def _restrictions(attr):
    """Return sentences about the values that an attribute may have."""
    sentences = []
    if attr.allowed and attr.type != "string":
        sentences.append(f"One of {', '.join(attr.allowed)}.")
    if attr.minimum is not None:
        unit = (" item" if attr.minimum == 1 else " items") if attr.type.startswith("list(") else ""
        sentences.append(f"At least {attr.minimum}{unit}.")
    return sentences


def _shown(default):
    """Return a default as a caller would write it."""
    if isinstance(default, str):
        return f'"{default}"'
    if hasattr(default, "as_datatype_enum"):
        return f"tf.{default.name}"
    if isinstance(default, list):
        return f"[{', '.join(map(_shown, default))}]"
    text = str(default)
    return text if "\n" not in text else "a constant"


def _sentence(text):
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _entry(head, *sentences):
    """Return the lines of one item of a section."""
    body = " ".join(filter(None, sentences))
    return [
        *textwrap.wrap(head, WIDTH - 4, subsequent_indent="        ", break_long_words=False),
        *textwrap.wrap(
            body, WIDTH - 4, initial_indent="    ", subsequent_indent="    ", break_long_words=False
        ),
    ]
