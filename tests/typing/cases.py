"""Errors and types that mypy must find in calls of ops. This file is never run.

Every ``type: ignore`` marks an error that mypy has to report, since unused ones are errors.
"""

from typing import Any

import numpy as np
from typing_extensions import assert_type

from fastops import backend, gen, ops, raw_ops


def functions_of_the_backend(x: np.ndarray) -> None:
    """Check keywords and types of functions of the backend, which take positional arguments."""
    backend.conv2d(x, x, (1, 1), padding="same", data_format=None)
    assert_type(backend.floatx(), str)
    assert_type(backend.ndim(x), int | None)
    backend.exp()  # type: ignore[call-arg]
    backend.sum(x, keepdims="yes")  # type: ignore[arg-type]
    backend.nothing(x)  # type: ignore[attr-defined]


def arguments(x: np.ndarray) -> None:
    """Check that keywords, their types and their choices are known."""
    ops.add_v2(x=x, y=1.0)
    ops.add_v2(x=[1, 2], y=x, name="sum")
    ops.sum(input=x, axis=[0], keep_dims=True)
    ops.conv2d(input=x, filter=x, strides=[1, 1, 1, 1], padding="SAME")
    ops.cast(x=x, DstT=np.float32)
    raw_ops.MatMul(a=x, b=x, transpose_a=True)
    gen.math_ops.mul(x=x, y=x)

    ops.add_v2(x, x)  # type: ignore[call-arg]
    ops.add_v2(x=x)  # type: ignore[call-arg]
    ops.add_v2(x=x, y=x, z=x)  # type: ignore[call-arg]
    ops.sum(input=x, axis=0, keep_dims="yes")  # type: ignore[arg-type]
    ops.conv2d(input=x, filter=x, strides=[1], padding="FULL")  # type: ignore[arg-type]
    raw_ops.MatMul(a=x, b=x, transposed=True)  # type: ignore[call-arg]
    ops.add_v3(x=x, y=x)  # type: ignore[attr-defined]
    raw_ops.add_v2(x=x, y=x)  # type: ignore[attr-defined]


def results(x: np.ndarray) -> None:
    """Check that lists, namedtuples and ops without outputs have different types."""
    assert_type(ops.split(axis=0, value=x, num_split=2), list[Any])
    unique = ops.unique(x=x)
    assert_type(unique.idx, Any)
    assert_type(unique[0], Any)
    print(unique.counts)  # type: ignore[attr-defined]
    assert_type(ops.top_kv2(input=x, k=1)[1], Any)
    assert_type(ops.no_op(), Any | None)


def one_object() -> None:
    """Check that the modules of ops have the same object."""
    assert_type(ops.sum(input=1, axis=0), Any)
    raw_ops.Sum(input=1, axis=0)
    ops._sum(input=1, axis=0)
    gen.math_ops.sum(input=1, axis=0)
