"""The tensors among a call's arguments, and which input of a traced function each becomes."""

import numpy as np
import tensorflow as tf
from tensorflow.core.function.trace_type import default_types, trace_type_builder
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from fastops._plans.plan import device_name_of

_VALUES = frozenset({bool, int, float, str, type(None)})
"""Classes of arguments that signatures take by their values."""


class Leaves:
    """The tensors among the arguments of a call, in the order of the signature's leaves.

    To find out which input of the function each leaf becomes, TensorFlow binds stand-ins instead
    of the leaves: new tensors, which are found again in the bound arguments by identity.

    Attributes
    ----------
    tensors : list of EagerTensor
        The stand-ins for the leaves: new tensors, or the handles of variables and iterators.
    variables : list of tf.Variable
        The variables among the arguments.
    objects : list
        The objects among the arguments that signatures take by identity.
    """

    def __init__(self):
        self.tensors = []
        self.variables = []
        self.objects = []
        self._devices = {}

    def replaced(self, value):
        """Return an argument with stand-ins for its tensors and arrays."""
        if type(value) in (list, tuple):
            return type(value)(map(self.replaced, value))
        if type(value) is dict:
            return {name: self.replaced(item) for name, item in value.items()}
        if isinstance(value, tuple):  # a namedtuple
            return tuple.__new__(type(value), map(self.replaced, value))
        if isinstance(value, tf.Variable):
            self.variables.append(value)
            self.tensors.append(value.handle)
        elif isinstance(value, OwnedIterator):
            self.tensors.append(value._iterator_resource)
        elif isinstance(value, (tf.Tensor, np.ndarray, np.generic)):
            device = device_name_of(value) if isinstance(value, tf.Tensor) else ""
            value = value._copy() if isinstance(value, tf.Tensor) else tf.constant(value)
            self._devices[id(value)] = device
            self.tensors.append(value)
        elif type(value) not in _VALUES and not isinstance(value, tf.DType):
            self.objects.append(value)
        return value

    def are_identified(self):
        """Tell whether `tf.function`, too, takes all objects among the arguments by identity."""
        kinds = [trace_type_builder.from_value(value) for value in self.objects]
        return all(type(kind) is default_types.Weakref for kind in kinds) and all(
            kind.placeholder_value(None) is value
            for kind, value in zip(kinds, self.objects, strict=True)
        )

    def sources(self, flat):
        """Return for each tensor that a function takes the number of its leaf, or the tensor."""
        numbers = {id(leaf): number for number, leaf in reversed(list(enumerate(self.tensors)))}
        return [numbers.get(id(tensor), tensor) for tensor in flat]

    def devices(self, flat):
        """Return for each tensor that a function takes the name of its device, empty for the host.

        For the handle of a variable or iterator it is the device of the handle.
        """
        known = (self._devices.get(id(tensor)) for tensor in flat)
        return [
            device_name_of(tensor) if device is None else device
            for tensor, device in zip(flat, known, strict=True)
        ]

    def hide(self, takes, defaults):
        """Tell whether a tensor that a function takes may be computed from a leaf.

        A conversion in the binding makes such a tensor, which later calls must not reuse.
        """
        used = {source for source in takes if isinstance(source, int)}
        if all(isinstance(source, int) for source in takes):
            return False
        # The other tensors must come from numbers and strings, which are part of the signature.
        mutable = any(
            isinstance(value, np.ndarray) for value in tf.nest.flatten([*defaults.values()])
        )
        return mutable or bool(self.variables) or not used.issuperset(range(len(self.tensors)))
