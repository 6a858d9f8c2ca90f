"""Makes the result of a function of the list of tensors that its graph returns."""

import itertools
import operator

import tensorflow as tf


def packer(concrete):
    """Return a function that makes the result of a list of tensors; None if it is one tensor."""
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


def nested(structure, positions, leaf, sequences):
    """Return a function that makes a structure of a flat list of its tensors.

    Parameters
    ----------
    structure : nest
        The structure; its leaves stand for the tensors.
    positions : iterator of int
        Counts the tensors: gives the index of each in the list.
    leaf : type
        The class of the leaves.
    sequences : tuple of type
        The classes of sequences that the structure may have, beside dicts.

    Raises
    ------
    TypeError
        If the structure has an object of another class.
    """
    kind = type(structure)
    if isinstance(structure, leaf):
        return operator.itemgetter(next(positions))
    if structure is None:
        return lambda results: None
    if kind in sequences:
        parts = [nested(item, positions, leaf, sequences) for item in structure]
        return lambda results: kind([part(results) for part in parts])
    if kind is dict:
        parts = {}
        for name in sorted(structure):
            parts[name] = nested(structure[name], positions, leaf, sequences)
        ordered = [(name, parts[name]) for name in structure]
        return lambda results: {name: part(results) for name, part in ordered}
    raise TypeError(kind)
