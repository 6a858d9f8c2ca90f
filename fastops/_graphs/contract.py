"""Checks the inputs of a saved model's calls, and converts them to tensors."""

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from fastops._graphs.definition import listed
from fastops._graphs.shapes import dims_of, fits
from fastops._plans.planned import Planned


class Contract:
    """Checks and converts the inputs of a model's calls.

    Parameters
    ----------
    signature : ModelSignature
        The signature that calls run.

    Attributes
    ----------
    signature : ModelSignature
        The signature that calls run.
    inputs : dict of str to tf.TensorSpec
        The dtypes and shapes of the inputs, by name.
    planned : Planned
        Runs the signature's function, by a plan or by TensorFlow.
    """

    def __init__(self, signature):
        self.signature = signature
        self.inputs = signature.inputs
        self.planned = _PlannedModel(signature)
        self._takes = [
            (name, spec.dtype, spec.dtype.as_datatype_enum, dims_of(spec.shape))
            for name, spec in signature.inputs.items()
        ]

    def __call__(self, /, *args, **inputs):
        """Have TensorFlow make a call, even while a graph is under construction."""
        given = self.tensors(self.named(args, inputs))
        return self.signature.pack(self.planned.run_original(*given))

    def tensors(self, inputs):
        """Return the tensors that the concrete function takes, for the inputs by name."""
        given = []
        for name, dtype, number, dims in self._takes:
            value = inputs[name]
            if type(value) is not ops.EagerTensor:
                value = self._convert(name, dtype, value)
            elif value._datatype_enum() != number:
                raise TypeError(self._about(name, f"a tensor of {value.dtype.name}"))
            if not fits(value._shape_tuple(), dims):
                raise TypeError(self._about(name, f"a tensor of shape {value.shape}"))
            given.append(value)
        return given

    def named(self, args, inputs):
        """Return the inputs by name. If there is only one input, it may be positional."""
        if args:
            if len(self.inputs) != 1 or len(args) != 1:
                raise TypeError(f"{self.title} takes its inputs by name: {listed(self.inputs)}")
            (name,) = self.inputs
            if name in inputs:
                raise TypeError(f"{self.title} got input {name!r} twice")
            inputs = {name: args[0], **inputs}
        for name in self.inputs:
            if name not in inputs:
                raise TypeError(f"{self.title} misses its input {name!r}")
        for name in inputs:
            if name not in self.inputs:
                have = listed(self.inputs)
                raise TypeError(f"{self.title} has no input {name!r}: it has {have}")
        return inputs

    def are_as_taken(self, inputs):
        """Tell whether valid inputs become tensors without a conversion of their dtypes."""
        return all(
            type(value) is ops.EagerTensor
            or (type(value) is np.ndarray and value.dtype == self.inputs[name].dtype.as_numpy_dtype)
            for name, value in inputs.items()
        )

    def _convert(self, name, dtype, value):
        here = context.context()
        if (
            type(value) is np.ndarray
            and value.dtype == dtype.as_numpy_dtype
            and here.executing_eagerly()
        ):
            # Copy: the tensor may share the array's memory, and the model may return it.
            return ops.EagerTensor(value.copy(), here.device_name, dtype.as_datatype_enum)
        try:
            value = tf.convert_to_tensor(_restored(value, dtype), dtype)
        except (TypeError, ValueError, tf.errors.OpError) as error:
            text = f"{type(value).__name__}: {error}"
            raise TypeError(self._about(name, text)) from None
        return value

    def _about(self, name, got):
        spec = self.inputs[name]
        return (
            f"{self.title} takes {spec.dtype.name} of shape {spec.shape} as its input {name!r}, "
            f"not {got}"
        )

    @property
    def title(self):
        """The name of the model in messages."""
        return f"{self.signature.name} of {self.signature.source}"


class _PlannedModel(Planned):
    """The concrete function of a model. Its results are a dict."""

    def __init__(self, signature):
        super().__init__(signature.concrete)
        self.pack = signature.pack

    def run_bare(self, inputs):
        return self.pack(tf.nest.flatten(super().run_bare(inputs), expand_composites=True))


def _restored(value, dtype):
    """Restore the dtype of an array, such as bfloat16, that NumPy files store as raw bytes."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "V" and value.dtype.names is None:
        return value.view(dtype.as_numpy_dtype)
    return value
