"""The methods and operators of `tf.Variable`."""

import tensorflow as tf


def beside(world):
    rows = world.m.shape[0]
    return {
        "flags": tf.Variable([True, False]),
        "whole": tf.Variable([5, 6, 7]),
        "scalar": tf.Variable(world.a),
        "flag": tf.Variable(True),
        "slices": tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([0, 2])),
        "columns": tf.IndexedSlices(world.m[:, :1], [[0]] * rows),
    }


TEXT = """
tf.Variable:
    __abs__: abs(v)
    __add__: v + x
    __and__: flags & True
    __array__: np.asarray(v)
    __bool__: bool(flag)
    __complex__: complex(scalar)
    __deepcopy__: copy.deepcopy(v)  # a variable is made
    __eq__: v == x
    __float__: float(scalar)
    __floordiv__: whole // 2
    __ge__: v >= x
    __getitem__: v[0]
    __gt__: v > x
    __int__: int(scalar)
    __invert__: ~flags
    __iter__: list(v)
    __le__: v <= x
    __lt__: v < x
    __matmul__: w @ m
    __mod__: whole % 2
    __mul__: v * x
    __ne__: v != x
    __neg__: -v
    __or__: flags | True
    __pow__: v ** 2.0
    __radd__: 1.0 + v
    __rand__: True & flags
    __repr__: repr(v)  # NumPy formats the numbers
    __rfloordiv__: 9 // whole
    __rmatmul__: np.asarray(m) @ w
    __rmod__: 9 % whole
    __rmul__: 2.0 * v
    __ror__: True | flags
    __rpow__: 2.0 ** v
    __rsub__: 1.0 - v
    __rtruediv__: 1.0 / v
    __rxor__: True ^ flags
    __sub__: v - x
    __truediv__: v / x
    __xor__: flags ^ True
    assign: v.assign(x)
    assign_add: v.assign_add(t)
    assign_sub: v.assign_sub(t)
    batch_scatter_update: w.batch_scatter_update(columns)
    gather_nd: w.gather_nd(places)
    get_shape: v.get_shape()
    is_initialized: v.is_initialized()
    numpy: v.numpy()
    read_value: v.read_value()
    read_value_no_copy: v.read_value_no_copy()
    ref: v.ref().deref()
    scatter_add: v.scatter_add(slices)
    scatter_div: v.scatter_div(slices)
    scatter_max: v.scatter_max(slices)
    scatter_min: v.scatter_min(slices)
    scatter_mul: v.scatter_mul(slices)
    scatter_nd_add: v.scatter_nd_add([[0], [2]], [1.0, 2.0])
    scatter_nd_max: v.scatter_nd_max([[0], [2]], [1.0, 2.0])
    scatter_nd_min: v.scatter_nd_min([[0], [2]], [1.0, 2.0])
    scatter_nd_sub: v.scatter_nd_sub([[0], [2]], [1.0, 2.0])
    scatter_nd_update: v.scatter_nd_update([[0], [2]], [1.0, 2.0])
    scatter_sub: v.scatter_sub(slices)
    scatter_update: v.scatter_update(slices)
    sparse_read: w.sparse_read(labels)
    value: v.value()
    count_up_to: count.count_up_to(2 ** 62)
"""
