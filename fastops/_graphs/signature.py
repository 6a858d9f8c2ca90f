"""A part of a saved model that can be called, and the dict that a call of it returns."""

from dataclasses import dataclass

DEFAULT = "serving_default"


@dataclass
class Signature:
    """A part of a model that can be called.

    Attributes
    ----------
    source : str
        The model's path.
    name : str
        Its key in the model.
    concrete : ConcreteFunction
        What it calls.
    inputs : dict of str to tf.TensorSpec
        In the order in which `concrete` takes them.
    outputs : dict of str to tf.TensorSpec
        In the order in which `pack` has them.
    pack : callable
        Makes the outputs by name of the list that `concrete` returns.
    kept : object
        What has to live as long.
    """

    source: str
    name: str
    concrete: object
    inputs: dict
    outputs: dict
    pack: object
    kept: object = None


def packer(names, flat):
    """Return what makes a dict, with its items in that order, of a flat list of results."""
    flat = list(flat)
    places = [(name, flat.index(name)) for name in names]
    return lambda results: {name: results[place] for name, place in places}
