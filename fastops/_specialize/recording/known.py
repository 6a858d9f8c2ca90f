"""What recordings ask of an op: found out once, since a training step has thousands of them."""

import tensorflow as tf

from fastops._dispatch import named

SEEDS = ("seed", "seed2")

_PLAIN_ATTRS = {"bool": bool, "float": float, "int": int, "type": tf.as_dtype}
"""By the kind of an attribute, what makes a value that can be compared of any, NumPy's as well."""


class Known:
    """What is known of an op.

    Parameters
    ----------
    record : fastops._core.record.Record
        All there is.

    Attributes
    ----------
    missing, makes, exclusion, bound_by, handles, draws, op_def
        As of the record.
    runs_always : bool
        Whether it has to run whatever becomes of its results, and in each call anew.
    has_seeds : bool
        Whether it takes two seeds.
    inferred : frozenset of str
        The attributes that the inputs determine.
    inputs : list of tuple
        Of each input its parameter, and the attributes that tell how long a list is: a number, and
        a list of types. Both are None of a single tensor.
    attrs : dict of str to tuple
        By its name, the parameter of an attribute, and what makes a plain value of one: None for
        those that are plain, and whether it is a list of them.
    """

    def __init__(self, record):
        self.record = record
        for name in ("missing", "makes", "exclusion", "bound_by", "handles", "draws", "op_def"):
            setattr(self, name, getattr(record, name))
        self.runs_always = self.draws or self.op_def.stateful
        self.has_seeds = {attr.name for attr in self.op_def.attrs}.issuperset(SEEDS)
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
    """Return the `Known` of an op."""
    record = named(op_name).record
    found = _known.get(op_name)
    if found is None or found.record is not record:
        found = _known[op_name] = Known(record)
    return found
