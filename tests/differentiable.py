"""Differentiable calls of each op that has a gradient rule in `install`, and their derivatives.

Importing this module makes no tensor, so that a process can load a device afterwards.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from support import Failure, floats

raw = tf.raw_ops
FLOATS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
COMPLEX = (tf.complex64, tf.complex128)


def ints(value, dtype=tf.int32):
    """Return integers (axes, a shape) as a tensor in host memory, also beside other devices."""
    with tf.device("CPU:0"):
        return tf.constant(value, dtype)


class Case(NamedTuple):
    """A differentiable call.

    Attributes
    ----------
    op : str
        The op whose gradient is tested.
    call : callable
        Makes the call from tensors.
    shapes : tuple
        The shapes of these tensors.
    dtypes : tuple
        The dtypes to test, each for all tensors.
    taken : bool
        Whether the rule of the op computes the gradient, and does not fall back to TensorFlow.
    positive : bool
        Whether the values must be positive.
    """

    op: str
    call: object
    shapes: tuple
    dtypes: tuple = FLOATS
    taken: bool = True
    positive: bool = False


def values(shape, dtype, seed, positive=False):
    def draw(seed):
        array = floats(*shape, seed=seed) if shape else np.float32(0.7 + seed)
        return np.abs(array) + 0.5 if positive else array

    array = draw(seed)
    if dtype.is_complex:
        array = array + 1j * draw(seed + 10)
    return tf.cast(tf.constant(array), dtype)


def condition():
    return tf.constant(floats(3, 4, seed=5) > 0)


def unary(op, argument="x", dtypes=FLOATS, **options):
    return Case(op, lambda x: getattr(raw, op)(**{argument: x}), ((3, 4),), dtypes, **options)


PAIRS = (
    ((3, 4), (3, 4)),
    ((), ()),
    ((3, 4), ()),
    ((), (3, 4)),
    ((3, 4), (4,)),
    ((3, 1), (1, 4)),
    ((1, 3, 1), (2, 1, 1)),
    ((2, 0), (1, 0)),
)


def binary(op, dtypes=FLOATS, pairs=PAIRS, **options):
    return [
        Case(op, lambda x, y: getattr(raw, op)(x=x, y=y), pair, dtypes, **options) for pair in pairs
    ]


def reductions(op, dtypes=FLOATS, taken=True):
    return [
        Case(
            op,
            lambda x, axis=axis, index=index, keep=keep: getattr(raw, op)(
                input=x, axis=ints(axis, index), keep_dims=keep
            ),
            (shape,),
            dtypes,
            taken,
        )
        for index in (tf.int32, tf.int64)
        for keep in (False, True)
        for shape, axis in (
            ((3, 4), [0, 1]),
            ((3, 4), 1),
            ((3, 4), [-1]),
            ((3, 4), [1, 0]),
            ((2, 3, 4), [0, -1]),
            ((5,), 0),
            ((5,), [0]),
            ((), []),
            ((0, 3), [0]),
        )
    ]


MATRICES = [
    Case(
        "MatMul",
        lambda a, b, ta=ta, tb=tb: raw.MatMul(a=a, b=b, transpose_a=ta, transpose_b=tb),
        ((4, 3) if ta else (3, 4), (5, 4) if tb else (4, 5)),
        (tf.float32, tf.float64, *COMPLEX),
    )
    for ta in (False, True)
    for tb in (False, True)
]

BATCHES = [
    Case(
        "BatchMatMulV2",
        lambda x, y, ax=ax, ay=ay: raw.BatchMatMulV2(x=x, y=y, adj_x=ax, adj_y=ay),
        ((*first, 4, 3) if ax else (*first, 3, 4), (*second, 5, 4) if ay else (*second, 4, 5)),
        (tf.float32, tf.float64, *COMPLEX),
    )
    for ax in (False, True)
    for ay in (False, True)
    for first, second in (((2,), (2,)), ((), (2,)), ((2,), ()), ((2, 1), (3,)), ((1,), (1,)))
]

EINSUMS = [
    Case(
        "Einsum",
        lambda *inputs, equation=equation: raw.Einsum(inputs=list(inputs), equation=equation),
        shapes,
        dtypes,
        taken,
    )
    for equation, shapes, dtypes, taken in (
        ("ij,jk->ik", ((3, 4), (4, 5)), (tf.float32, tf.float64, tf.bfloat16), True),
        ("abc,cde->abde", ((2, 3, 4), (4, 2, 5)), (tf.float32,), True),
        ("aecd,abcd->acbe", ((2, 3, 4, 5), (2, 6, 4, 5)), (tf.float32, tf.float64), True),
        ("i,j->ji", ((3,), (4,)), (tf.float32,), True),
        ("ii,ij->ij", ((3, 3), (3, 4)), (tf.float32,), True),
        ("i,i->", ((3,), (3,)), (tf.float32,), True),
        ("ij,jk->ik", ((3, 4), (4, 5)), COMPLEX, False),
        ("abc,cd->ad", ((2, 3, 4), (4, 5)), (tf.float32,), False),
        ("...ij,jk->...ik", ((2, 3, 4), (4, 5)), (tf.float32,), False),
        ("ij->ji", ((3, 4),), (tf.float32,), False),
        ("ij->i", ((3, 4),), (tf.float32,), False),
    )
]

IMAGE = (2, 6, 6, 3)
CONVOLUTION = {"strides": [1, 2, 2, 1], "padding": "SAME", "dilations": [1, 1, 1, 1]}
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}

CASES = [
    unary("Abs"),
    *(unary(op, dtypes=FLOATS + COMPLEX) for op in ("Exp", "Neg", "Sigmoid", "Square", "Tanh")),
    *(
        unary(op, dtypes=FLOATS + COMPLEX, positive=True)
        for op in ("Log", "Log1p", "Reciprocal", "Rsqrt", "Sqrt")
    ),
    *(unary(op) for op in ("Erf", "Erfc")),
    *(unary(op, "features") for op in ("Elu", "Relu", "Relu6", "Selu", "Softplus")),
    *(unary(op, "logits") for op in ("Softmax", "LogSoftmax")),
    unary("Identity", "input", dtypes=FLOATS + COMPLEX),
    *binary("Add", dtypes=FLOATS + COMPLEX),
    *binary("AddV2", dtypes=FLOATS + COMPLEX),
    *binary("Sub", dtypes=FLOATS + COMPLEX),
    *binary("Mul", dtypes=FLOATS + COMPLEX),
    *binary("RealDiv", dtypes=FLOATS + COMPLEX),
    *binary("DivNoNan", dtypes=FLOATS + COMPLEX),
    *binary("SquaredDifference"),
    *binary("Maximum"),
    *binary("Minimum"),
    Case("TanhGrad", lambda y, dy: raw.TanhGrad(y=y, dy=dy), ((3, 4), (3, 4)), FLOATS + COMPLEX),
    Case("LeakyRelu", lambda x: raw.LeakyRelu(features=x, alpha=0.3), ((3, 4),)),
    *(
        Case("SelectV2", lambda x, y: raw.SelectV2(condition=condition(), t=x, e=y), pair)
        for pair in (((3, 4), (3, 4)), ((), (3, 4)), ((3, 1), ()), ((2, 3, 4), (4,)))
    ),
    Case("AddN", lambda x, y, z: raw.AddN(inputs=[x, y, z]), ((3, 4),) * 3),
    Case("Cast", lambda x: raw.Cast(x=x, DstT=tf.float64), ((3, 4),)),
    Case("Cast", lambda x: raw.Cast(x=x, DstT=tf.complex128), ((3,),), (tf.complex64,)),
    *reductions("Sum", FLOATS + COMPLEX),
    *reductions("Mean", FLOATS + COMPLEX),
    *reductions("Max"),
    *reductions("Min", (tf.float32,)),
    *MATRICES,
    *BATCHES,
    *EINSUMS,
    Case("BiasAdd", lambda x, b: raw.BiasAdd(value=x, bias=b), ((3, 4), (4,))),
    Case(
        "BiasAdd",
        lambda x, b: raw.BiasAdd(value=x, bias=b, data_format="NHWC"),
        ((2, 3, 3, 4), (4,)),
        (tf.float32,),
    ),
    Case(
        "SoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=raw.Softmax(logits=y))[0],
        ((3, 4), (3, 4)),
        (tf.float32, tf.float64),
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=ints([0, 1, 3]))[0],
        ((3, 4),),
        (tf.float32, tf.float64),
    ),
    Case(
        "Conv2D",
        lambda x, f: raw.Conv2D(input=x, filter=f, **CONVOLUTION),
        (IMAGE, (3, 3, 3, 4)),
        (tf.float32, tf.float64),
    ),
    Case("MaxPool", lambda x: raw.MaxPool(input=x, **POOL), (IMAGE,), (tf.float32, tf.float64)),
    Case("AvgPool", lambda x: raw.AvgPool(value=x, **POOL), (IMAGE,), (tf.float32, tf.float64)),
    Case("Reshape", lambda x: raw.Reshape(tensor=x, shape=ints([2, 6])), ((3, 4),)),
    Case("ExpandDims", lambda x: raw.ExpandDims(input=x, axis=1), ((3, 4),)),
    Case("Squeeze", lambda x: raw.Squeeze(input=x, axis=[1]), ((3, 1, 4),)),
    Case("Transpose", lambda x: raw.Transpose(x=x, perm=ints([2, 0, 1])), ((2, 3, 4),)),
    *(
        Case("BroadcastTo", lambda x, i=i: raw.BroadcastTo(input=x, shape=ints([2, 3, 4], i)), (s,))
        for s in ((3, 1), (4,), (), (1, 3, 4))
        for i in (tf.int32, tf.int64)
    ),
    *(
        Case("Tile", lambda x, i=i: raw.Tile(input=x, multiples=ints([2, 3], i)), ((3, 4),))
        for i in (tf.int32, tf.int64)
    ),
    *(
        Case("Pad", lambda x, i=i: raw.Pad(input=x, paddings=ints([[1, 0], [0, 2]], i)), ((3, 4),))
        for i in (tf.int32, tf.int64)
    ),
    Case(
        "PadV2",
        lambda x, c: raw.PadV2(input=x, paddings=ints([[1, 0], [0, 2]]), constant_values=c),
        ((3, 4), ()),
        (tf.float32,),
    ),
    *(
        Case(
            "Slice",
            lambda x, i=i: raw.Slice(input=x, begin=ints([1, 0], i), size=ints([2, -1], i)),
            ((3, 4),),
        )
        for i in (tf.int32, tf.int64)
    ),
    *(
        Case(
            "SparseToDense",
            lambda x, y, i=i, at=at: raw.SparseToDense(
                sparse_indices=ints(at, i),
                output_shape=ints([3, 4], i),
                sparse_values=x,
                default_value=y,
            ),
            ((2,), ()),
            dtypes=(tf.float32, tf.float64),
        )
        for i in (tf.int32, tf.int64)
        for at in ([[0, 1], [2, 3]], [[0, 0], [0, 1]])
    ),
    *(
        Case(
            "StridedSlice",
            lambda x, i=i, masks=masks: raw.StridedSlice(
                input=x,
                begin=ints([0, 1], i),
                end=ints([3, 4], i),
                strides=ints([2, 1], i),
                **masks,
            ),
            ((3, 4),),
        )
        for i in (tf.int32, tf.int64)
        for masks in (
            {},
            {"shrink_axis_mask": 1},
            {"end_mask": 1, "begin_mask": 2},
            {"new_axis_mask": 1},
        )
    ),
    *(
        Case("ConcatV2", lambda x, y, a=a, i=i: raw.ConcatV2(values=[x, y], axis=ints(a, i)), s)
        for i in (tf.int32, tf.int64)
        for a, s in ((0, ((3, 4), (2, 4))), (-1, ((3, 4), (3, 1))))
    ),
    *(
        Case("Pack", lambda x, y, a=a: raw.Pack(values=[x, y], axis=a), ((3, 4), (3, 4)))
        for a in (0, 1, -1)
    ),
    *(
        Case("Unpack", lambda x, n=n, a=a, k=k: raw.Unpack(value=x, num=n, axis=a)[k], ((3, 4),))
        for n, a in ((3, 0), (4, 1), (4, -1))
        for k in (0, 2)
    ),
    *(
        Case("Split", lambda x, k=k: raw.Split(axis=1, value=x, num_split=2)[k], ((3, 4),))
        for k in (0, 1)
    ),
    Case("Split", lambda x: raw.Split(axis=1, value=x, num_split=1)[0], ((3, 4),), taken=False),
    *(
        Case(
            "GatherV2",
            lambda x, i=i, a=a: raw.GatherV2(params=x, indices=ints(*i), axis=a),
            ((3, 4),),
            taken=a == 0,
        )
        for i in (([0, 2, 0],), ([[1], [2]], tf.int64), (1,))
        for a in (0, 1)
    ),
]


def power(call, *shapes, taken):
    return Case("Pow", call, shapes, FLOATS, taken, positive=True)


CASES += [
    power(lambda x: raw.Pow(x=x, y=raw.Cast(x=3.0, DstT=x.dtype)), (3, 4), taken=True),
    power(lambda x: raw.Pow(x=x, y=raw.Cast(x=[1.0, 2.0], DstT=x.dtype)), (3, 1), taken=True),
    power(lambda x, y: raw.Pow(x=x, y=y), (3, 4), (3, 4), taken=False),
]


def dense(value):
    return tf.convert_to_tensor(value) if isinstance(value, tf.IndexedSlices) else value


def attempt(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return Failure(type(error), str(error))


def first(case, inputs, wanted, seed=None):
    with tf.GradientTape() as tape:
        tape.watch(wanted)
        output = case.call(*inputs)
    return tape.gradient(output, wanted, output_gradients=seed)


def second(case, inputs, wanted, seed):
    with tf.GradientTape() as outer:
        outer.watch([*wanted, seed])
        gradients = first(case, inputs, wanted, seed)
        gradients = [dense(gradient) for gradient in gradients if gradient is not None]
    return outer.gradient(gradients, [*wanted, seed])


def derivatives(case, inputs, wanted, seed):
    return [
        attempt(first, case, inputs, wanted),
        attempt(first, case, inputs, wanted, seed),
        attempt(second, case, inputs, wanted, seed),
    ]
