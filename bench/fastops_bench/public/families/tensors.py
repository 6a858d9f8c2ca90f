"""The methods and operators of `tf.Tensor`, and of `tf.TensorShape`."""

TEXT = """
tf.Tensor:
    __abs__: abs(t)
    __add__: x + y
    __and__: p & q
    __array__: np.asarray(x)
    __bool__: bool(a)
    __complex__: complex(a)
    __copy__: copy.copy(x)
    __dlpack__: np.from_dlpack(x)
    __dlpack_device__: x.__dlpack_device__()
    __deepcopy__: copy.deepcopy(x)
    __eq__: x == y
    __float__: float(a)
    __floordiv__: i // j
    __format__: f"{a}"
    __ge__: x >= y
    __getitem__: m[0, 1:]
    __gt__: x > y
    __index__: range(i[0])[0]
    __int__: int(a)
    __invert__: ~p
    __iter__: list(x)
    __le__: x <= y
    __len__: len(x)
    __lt__: x < y
    __matmul__: m @ n
    __mod__: i % j
    __mul__: x * y
    __ne__: x != y
    __neg__: -x
    __or__: p | q
    __pow__: x ** y
    __radd__: 1.0 + x
    __rand__: True & p
    __repr__: repr(x)
    __rfloordiv__: 9 // i
    __rmatmul__: np.asarray(m) @ n
    __rmod__: 9 % i
    __rmul__: 2.0 * x
    __ror__: True | p
    __rpow__: 2.0 ** x
    __rsub__: 1.0 - x
    __rtruediv__: 1.0 / x
    __rxor__: True ^ p
    __str__: str(x)
    __sub__: x - y
    __tf_tensor__: x.__tf_tensor__(tf.float32)
    __truediv__: x / y
    __xor__: p ^ q
    cpu: x.cpu()
    get_shape: m.get_shape()
    numpy: x.numpy()
    ref: x.ref().deref()
    set_shape: m.set_shape([None, None])
tf.TensorShape:
    __add__: m.shape + x.shape
    __getitem__: m.shape[0]
    __iter__: list(m.shape)
    __len__: len(m.shape)
    as_list: m.shape.as_list()
    concatenate: m.shape.concatenate(x.shape)
    is_compatible_with: m.shape.is_compatible_with(n.shape)
    is_fully_defined: m.shape.is_fully_defined()
    merge_with: m.shape.merge_with(n.shape)
    num_elements: m.shape.num_elements()
    with_rank: m.shape.with_rank(2)
    with_rank_at_least: m.shape.with_rank_at_least(1)
    with_rank_at_most: m.shape.with_rank_at_most(3)
    __bool__: bool(m.shape)
    __eq__: m.shape == n.shape
    __radd__: [2] + m.shape
    __repr__: repr(m.shape)
    __str__: str(m.shape)
    assert_has_rank: m.shape.assert_has_rank(2)
    assert_is_compatible_with: m.shape.assert_is_compatible_with(n.shape)
    assert_is_fully_defined: m.shape.assert_is_fully_defined()
    assert_same_rank: m.shape.assert_same_rank(n.shape)
    is_subtype_of: m.shape.is_subtype_of(n.shape)
    most_specific_common_supertype: m.shape.most_specific_common_supertype([n.shape])
    most_specific_compatible_shape: m.shape.most_specific_compatible_shape(n.shape)
"""
