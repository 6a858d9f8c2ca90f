"""The types that the stubs of ops name."""

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
"""What an op takes for a tensor."""

DTypeLike: TypeAlias = tf.DType | np.dtype | type | str | int
"""What `tf.as_dtype` takes."""

ShapeLike: TypeAlias = tf.TensorShape | Sequence[int | None] | None
"""What `tf.TensorShape` takes; `None` is an unknown rank."""
