"""The tensors among a call's arguments, and where a traced function takes them."""

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from fastops._plans.plan import place_of


class Leaves:
    """The tensors among the arguments of a call, in the order of `Caller`'s signatures.

    TensorFlow's binding of arguments shows what becomes of each: it is given others in their
    places, which are nowhere else.

    Attributes
    ----------
    tensors : list of EagerTensor
        What stands for the leaves: new tensors, or the handles of variables and iterators.
    variables : list of tf.Variable
        The variables among the arguments.
    """

    def __init__(self):
        self.tensors = []
        self.variables = []
        self._devices = {}

    def replaced(self, value):
        """Return an argument with its tensors and arrays replaced."""
        if type(value) in (list, tuple):
            return type(value)(map(self.replaced, value))
        if type(value) is dict:
            return {name: self.replaced(item) for name, item in value.items()}
        if isinstance(value, tf.Variable):
            self.variables.append(value)
            self.tensors.append(value.handle)
        elif isinstance(value, OwnedIterator):
            self.tensors.append(value._iterator_resource)
        elif isinstance(value, (tf.Tensor, np.ndarray, np.generic)):
            place = place_of(value) if isinstance(value, tf.Tensor) else ""
            value = value._copy() if isinstance(value, tf.Tensor) else tf.constant(value)
            self._devices[id(value)] = place
            self.tensors.append(value)
        return value

    def places(self, flat):
        """Return for each tensor that a function takes the place of its leaf, or itself."""
        places = {id(leaf): place for place, leaf in reversed(list(enumerate(self.tensors)))}
        return [places.get(id(one), one) for one in flat]

    def devices(self, flat):
        """Return for each tensor that a function takes the name of its device, empty for the host.

        Of the handles of variables and iterators it is where these are.
        """
        found = (self._devices.get(id(one)) for one in flat)
        return [
            place_of(one) if device is None else device
            for one, device in zip(flat, found, strict=True)
        ]

    def hide(self, takes, defaults):
        """Tell whether what a function takes comes from leaves that are not among it."""
        found = {one for one in takes if isinstance(one, int)}
        if all(isinstance(one, int) for one in takes):
            return False
        # The rest must come from numbers and texts, which are the same in all of these calls.
        mutable = any(isinstance(one, np.ndarray) for one in tf.nest.flatten([*defaults.values()]))
        return mutable or bool(self.variables) or not found.issuperset(range(len(self.tensors)))
