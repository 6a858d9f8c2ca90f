"""Facts about ops that recordings need, cached: a training step runs thousands of ops."""

import tensorflow as tf

from fastops._dispatch import named

SEEDS = ("seed", "seed2")

_PLAIN_ATTRS = {"bool": bool, "float": float, "int": int, "type": tf.as_dtype}
"""By type of attribute: converts any value, including NumPy's, to one that can be compared."""


class KnownOp:
    """The facts about an op.

    Parameters
    ----------
    record : fastops._core.record.OpRecord
        The record of the op.

    Attributes
    ----------
    missing, makes, exclusion, bound_by, handles, draws, op_def
        The same as in the record.
    runs_always : bool
        Whether each call must run the op, even if its results are constant or not used.
    has_seeds : bool
        Whether the op takes two seeds.
    calls : bool
        Whether the op calls functions: TensorFlow chooses the trace by shapes.
    inferred : frozenset of str
        The attributes that the inputs determine.
    inputs : list of tuple
        For each input the parameter, and the two attributes that may give the length of a list: a
        number, or a list of types. Both are None for a single tensor.
    attrs : dict of str to tuple
        For each attribute by name: the parameter; the converter to a plain value, None if values
        are plain already; and whether the attribute is a list.
    """

    def __init__(self, record):
        self.record = record
        for name in ("missing", "makes", "exclusion", "bound_by", "handles", "draws", "op_def"):
            setattr(self, name, getattr(record, name))
        self.runs_always = self.draws or self.op_def.stateful
        self.has_seeds = {attr.name for attr in self.op_def.attrs}.issuperset(SEEDS)
        self.calls = any("func" in attr.type for attr in self.op_def.attrs)
        self.inferred = self.op_def.inferred
        names = {param.op_def_name: param.name for param in record.params}
        self.inputs = [
            (names[arg.name], arg.number_attr, arg.type_list_attr)
            if arg.is_list
            else (names[arg.name], None, None)
            for arg in self.op_def.inputs
        ]
        self.attrs = {
            attr.name: (
                names.get(attr.name),
                _PLAIN_ATTRS.get(attr.type.removeprefix("list(").removesuffix(")")),
                "list" in attr.type,
            )
            for attr in self.op_def.attrs
        }


_known: dict = {}


def known(op_name):
    """Return the `KnownOp` of an op."""
    record = named(op_name).record
    op = _known.get(op_name)
    if op is None or op.record is not record:
        op = _known[op_name] = KnownOp(record)
    return op
