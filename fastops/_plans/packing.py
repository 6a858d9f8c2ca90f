"""Results: what a function returns, made of the list of tensors that its graph returns."""

import itertools
import operator

import tensorflow as tf


def packer(concrete):
    """Return what makes a function's results of a list of tensors; None if there is but one."""
    structure = concrete.structured_outputs
    if isinstance(structure, tf.Tensor):
        return None
    flat = type(structure) in (tuple, list) and all(isinstance(o, tf.Tensor) for o in structure)
    if flat and structure:
        return type(structure)
    try:
        return nested(structure, itertools.count(), tf.Tensor, (tuple, list))
    except TypeError:
        return concrete.function_type.pack_output


def nested(structure, places, leaf, sequences):
    """Return what picks a structure's tensors out of a flat list of them.

    Parameters
    ----------
    structure : nest
        Of tensors, or of what stands for them.
    places : iterator of int
        The places in the list.
    leaf : type
        What stands for a tensor.
    sequences : tuple of type
        Which sequences are structures, beside dicts.

    Raises
    ------
    TypeError
        If there is anything else in it.
    """
    kind = type(structure)
    if isinstance(structure, leaf):
        return operator.itemgetter(next(places))
    if structure is None:
        return lambda results: None
    if kind in sequences:
        parts = [nested(item, places, leaf, sequences) for item in structure]
        return lambda results: kind([part(results) for part in parts])
    if kind is dict:
        parts = {}
        for name in sorted(structure):
            parts[name] = nested(structure[name], places, leaf, sequences)
        ordered = [(name, parts[name]) for name in structure]
        return lambda results: {name: part(results) for name, part in ordered}
    raise TypeError(kind)
