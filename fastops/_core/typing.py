"""The types that the stubs of ops use."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto as TensorProto

Tensor: TypeAlias = tf.Tensor
Operation: TypeAlias = tf.Operation

TensorLike: TypeAlias = (
    tf.Tensor
    | tf.Variable
    | np.ndarray
    | np.generic
    | bool
    | int
    | float
    | complex
    | str
    | bytes
    | Sequence[Any]
)
"""The values that an op accepts as a tensor."""

DTypeLike: TypeAlias = tf.DType | np.dtype | type | str | int
"""The values that `tf.as_dtype` accepts."""

ShapeLike: TypeAlias = tf.TensorShape | Sequence[int | None] | None
"""The values that `tf.TensorShape` accepts. `None` means an unknown rank."""
