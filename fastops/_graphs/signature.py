"""Signatures: the parts of a saved model that can be called."""

from dataclasses import dataclass

DEFAULT = "serving_default"


@dataclass
class ModelSignature:
    """A part of a model that can be called.

    Attributes
    ----------
    source : str
        The model's path.
    name : str
        The key of the signature in the model.
    concrete : ConcreteFunction
        The function that a call runs.
    inputs : dict of str to tf.TensorSpec
        In the order in which `concrete` takes them.
    outputs : dict of str to tf.TensorSpec
        In the order of the dict that `pack` returns.
    pack : callable
        Makes the dict of outputs of the list that `concrete` returns.
    kept : object
        An object that must stay alive as long as the signature.
    """

    source: str
    name: str
    concrete: object
    inputs: dict
    outputs: dict
    pack: object
    kept: object = None


def packer(names, flat):
    """Return a function that makes a dict, in the order of `names`, of a flat list of results."""
    flat = list(flat)
    positions = [(name, flat.index(name)) for name in names]
    return lambda results: {name: results[position] for name, position in positions}
