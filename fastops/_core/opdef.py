"""The contents of an OpDef as plain frozen data.

The generator reads OpDefs from the snapshot, and run-time binding reads them from the running
TensorFlow. Both use these classes and never protobufs.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import attr_value_pb2, op_def_pb2, tensor_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import _op_def_registry
from tensorflow.python.framework import dtypes as _dtypes


class _Required:
    """The type of `REQUIRED`."""

    def __repr__(self):
        return "REQUIRED"


REQUIRED = _Required()
"""Marks an argument without a default. (`None` and ``[]`` are defaults.)"""


@dataclass(frozen=True, slots=True)
class Arg:
    """An input or output tensor, or a list of them.

    Attributes
    ----------
    name : str
        The name in the OpDef.
    dtype : str
        The fixed dtype, or "" if an attribute determines it.
    type_attr, number_attr, type_list_attr : str
        The attributes that hold the dtype, the length of the list, or all dtypes of the list;
        "" if there is none.
    is_ref : bool
        Whether it is a reference to a variable of TensorFlow 1.
    """

    name: str
    dtype: str = ""
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False

    @property
    def is_list(self):
        return bool(self.number_attr or self.type_list_attr)


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute.

    Attributes
    ----------
    name : str
        The name in the OpDef.
    type : str
        "int", "float", "bool", "string", "type", "shape", "tensor", "func", or "list(...)" of one.
    default : object
        Plain data: the name of a dtype, the proto of a tensor in text format, a tuple for a shape,
        `None` for a shape of unknown rank, a tuple for a list. `REQUIRED` if there is no default.
    allowed : tuple of str
        The allowed values of a string or a dtype; empty for no restriction.
    minimum : int or None
        The smallest value, or the smallest length of a list.
    """

    name: str
    type: str
    default: object = REQUIRED
    allowed: tuple[str, ...] = ()
    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class OpSpec:
    """An op of the registry: the members of its OpDef under shorter names."""

    name: str
    inputs: tuple[Arg, ...] = ()
    outputs: tuple[Arg, ...] = ()
    attrs: tuple[Attr, ...] = ()
    stateful: bool = False
    distributed: bool = False
    deprecated_since: int | None = None
    deprecated_because: str = ""

    @property
    def inferred(self):
        """The names of the attributes that the inputs determine."""
        return frozenset(
            attr
            for arg in self.inputs
            for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr)
            if attr
        )

    @property
    def takes_refs(self):
        """Whether an input or output is a reference to a variable of TensorFlow 1."""
        return any(arg.is_ref for arg in self.inputs + self.outputs)

    @property
    def obstacle(self):
        """The fact in the OpDef that forbids a kernel of fastops, or `None`."""
        dtypes = {arg.dtype for arg in self.inputs + self.outputs}
        obstacles = {
            "private": self.name.startswith("_"),
            "takes or returns references": self.takes_refs,
            "takes or returns resources": "resource" in dtypes,
            "takes or returns variants": "variant" in dtypes,
            "calls functions": any("func" in attr.type for attr in self.attrs),
            "stateful": self.stateful,
            "distributed": self.distributed,
        }
        return next((reason for reason, holds in obstacles.items() if holds), None)

    def attr(self, name):
        """Return the attribute of that name."""
        for attr in self.attrs:
            if attr.name == name:
                return attr
        raise KeyError(f"{self.name} has no attribute {name!r}")


class Param(NamedTuple):
    """A keyword of an op.

    Attributes
    ----------
    name, op_def_name : str
        The name that callers use, and the name in the OpDef.
    is_input : bool
        Whether it is an input tensor and not an attribute.
    default : object
        The default of TensorFlow's own function, or `REQUIRED`.
    """

    name: str
    op_def_name: str
    is_input: bool
    default: object = REQUIRED


def params(op, renames, defaults):
    """Return the keywords of an op in the order TensorFlow's own functions take them.

    Inputs come first, then attributes without a default, then the others; attributes that the
    inputs determine are left out.

    Parameters
    ----------
    op : OpSpec
        The op.
    renames : dict of str
        Python names by OpDef names, for those that differ.
    defaults : dict
        Defaults by OpDef names, for those that differ between TensorFlow's function and the OpDef.

    Returns
    -------
    tuple of Param
    """
    inferred = op.inferred
    inputs = [Param(renames.get(arg.name, arg.name), arg.name, True) for arg in op.inputs]
    attrs = [
        Param(
            renames.get(attr.name, attr.name),
            attr.name,
            False,
            defaults.get(attr.name, _python_value(attr.default, attr.type)),
        )
        for attr in op.attrs
        if attr.name not in inferred
    ]
    return (*inputs, *sorted(attrs, key=lambda attr: attr.default is not REQUIRED))


def snake_case(op_name):
    """Return the Python name TensorFlow derives from an op's name.

    Examples
    --------
    >>> [snake_case(name) for name in ("BatchMatMulV2", "Conv2DBackpropInput", "L2Loss", "RFFT")]
    ['batch_mat_mul_v2', 'conv2d_backprop_input', 'l2_loss', 'rfft']
    """
    name = op_name.replace(">", "_")
    name = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z\d])(?!(?<=\d)D(?![a-z]))([A-Z])", r"\1_\2", name)
    return name.lower()


def from_proto(proto):
    """Return the `OpSpec` for an OpDef."""
    return OpSpec(
        name=proto.name,
        inputs=tuple(map(_arg, proto.input_arg)),
        outputs=tuple(map(_arg, proto.output_arg)),
        attrs=tuple(map(_attr, proto.attr)),
        stateful=proto.is_stateful,
        distributed=proto.is_distributed_communication,
        deprecated_since=proto.deprecation.version if proto.HasField("deprecation") else None,
        deprecated_because=proto.deprecation.explanation,
    )


def registered(op_name):
    """Return the `OpSpec` the running TensorFlow has under that name, or `None`."""
    proto = registered_proto(op_name)
    return proto and from_proto(proto)


def registered_proto(op_name):
    """Return the OpDef proto the running TensorFlow has under that name, or `None`."""
    # Do not use `op_def_registry.get`: a forked process may inherit its lock in the locked state.
    text = _op_def_registry.get(op_name)
    return None if text is None else op_def_pb2.OpDef.FromString(text)


def registry():
    """Return the OpList proto of every op the running TensorFlow has, private ones too."""
    return op_def_pb2.OpList.FromString(
        pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    )


def _arg(proto):
    return Arg(
        name=proto.name,
        dtype=_dtype(proto.type) if proto.type else "",
        type_attr=proto.type_attr,
        number_attr=proto.number_attr,
        type_list_attr=proto.type_list_attr,
        is_ref=proto.is_ref,
    )


def _attr(proto):
    has_default = proto.HasField("default_value")
    return Attr(
        name=proto.name,
        type=proto.type,
        default=_value(proto.default_value, proto.type) if has_default else REQUIRED,
        allowed=tuple(
            map(_dtype, proto.allowed_values.list.type)
            if proto.type.endswith(("type", "type)"))
            else map(_text, proto.allowed_values.list.s)
        ),
        minimum=proto.minimum if proto.has_minimum else None,
    )


def _value(proto: attr_value_pb2.AttrValue, kind):
    """Return the plain data for an attribute's value of that type."""
    if kind.startswith("list("):
        field, read = _FIELDS[kind[len("list(") : -1]]
        return tuple(map(read, getattr(proto.list, field)))
    field, read = _FIELDS[kind]
    return read(getattr(proto, field))


def _python_value(value, kind):
    """Return an attribute's plain value as TensorFlow's own functions write it."""
    if value is REQUIRED or value is None:
        return value
    if kind.startswith("list("):
        return [_python_value(item, kind[len("list(") : -1]) for item in value]
    match kind:
        case "type":
            return tf.as_dtype(value)
        case "shape":
            return list(value)
        case "tensor":
            return text_format.Parse(value, tensor_pb2.TensorProto())
    return value


_DTYPES = {number: dtype.name for number, dtype in _dtypes._INTERN_TABLE.items()}
"""The names of dtypes, by their numbers in protos. Calls use this table, not TensorFlow."""


def _dtype(number):
    return _DTYPES[number]


def _float(value):
    # The proto holds a float32. The shortest text that denotes it is the intended value.
    return float(str(np.float32(value)))


def _shape(proto):
    return None if proto.unknown_rank else tuple(dim.size for dim in proto.dim)


def _text(value):
    return value.decode()


_FIELDS = {
    "int": ("i", int),
    "float": ("f", _float),
    "bool": ("b", bool),
    "string": ("s", _text),
    "type": ("type", _dtype),
    "shape": ("shape", _shape),
    "tensor": ("tensor", text_format.MessageToString),
    "func": ("func", lambda proto: proto.name),
}
"""For each type of attribute: the field of AttrValue that holds it, and how to read it."""
