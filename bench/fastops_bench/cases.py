"""The cases of the ladder: one entry per op, in the order of the printed table.

A case has the op, its inputs in the order of its OpDef, its attributes, and the usual expression
for the same work in each library. The expressions use inputs and attributes by name; inputs are
arrays of the library.
"""

from dataclasses import dataclass, field, replace

import numpy as np


@dataclass(frozen=True)
class State:
    """An input that the op changes: a ``tf.Variable``, or an array of another library.

    TensorFlow's ops get its handle. In `Case.tf`, the variable itself is ``variable``.
    """

    value: np.ndarray


@dataclass(frozen=True)
class Case:
    """One op, and its expression in each library.

    Attributes
    ----------
    op : str
        The name of the op, as in ``tf.raw_ops``.
    inputs, attrs : dict
        The arguments. A NumPy type among the attributes stands for a dtype.
    np, tf, torch, jax : str
        Expressions; "" if the library has no such function.
    note : str
        What distinguishes the case from others of the same op.
    tag : {"short", "long"}
        Long cases have larger inputs, and are not in quick runs.
    channels_first : dict
        The order of axes in PyTorch, for inputs with channels.
    onednn : bool
        Whether oneDNN may replace the kernel. Then, both settings are measured.
    """

    op: str
    inputs: dict
    attrs: dict = field(default_factory=dict)
    np: str = ""
    tf: str = ""
    torch: str = ""
    jax: str = ""
    note: str = ""
    tag: str = "short"
    channels_first: dict = field(default_factory=dict)
    onednn: bool = False

    @property
    def label(self):
        return f"{self.op} {self.note}".rstrip()


def _floats(*shape):
    """Return small positive numbers, all different, the same ones in every run."""
    count = np.prod(shape, dtype=int)
    return np.arange(1, count + 1, dtype=np.float32).reshape(shape) / 8


def _ints(values):
    return np.array(values, dtype=np.int32)


SCALAR = np.asarray(_floats())
ROW = _floats(32)
SMALL = _floats(4, 8)
IMAGE = _floats(1, 4, 4, 8) / 32
MASK = SMALL > 2
ONE_ROW = SMALL[:1]
ONE = np.float32(1)
CHANNELS = _floats(8)

NCHW = (0, 3, 1, 2)
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}

CASES = [
    # Elementwise ops.
    Case(
        "AddV2",
        {"x": SCALAR, "y": SCALAR},
        note="scalar",
        np="np.add(x, y)",
        tf="tf.add(x, y)",
        torch="torch.add(x, y)",
        jax="jnp.add(x, y)",
    ),
    Case(
        "AddV2",
        {"x": ROW, "y": ROW},
        note="32",
        np="np.add(x, y)",
        tf="tf.add(x, y)",
        torch="torch.add(x, y)",
        jax="jnp.add(x, y)",
    ),
    Case(
        "Sub",
        {"x": SMALL, "y": SCALAR},
        note="broadcast",
        np="np.subtract(x, y)",
        tf="tf.subtract(x, y)",
        torch="torch.sub(x, y)",
        jax="jnp.subtract(x, y)",
    ),
    Case(
        "Mul",
        {"x": SMALL, "y": SMALL},
        np="np.multiply(x, y)",
        tf="tf.multiply(x, y)",
        torch="torch.mul(x, y)",
        jax="jnp.multiply(x, y)",
    ),
    Case(
        "RealDiv",
        {"x": SMALL, "y": SMALL},
        np="np.divide(x, y)",
        tf="tf.realdiv(x, y)",
        torch="torch.div(x, y)",
        jax="jnp.divide(x, y)",
    ),
    Case(
        "Maximum",
        {"x": SMALL, "y": SMALL},
        np="np.maximum(x, y)",
        tf="tf.maximum(x, y)",
        torch="torch.maximum(x, y)",
        jax="jnp.maximum(x, y)",
    ),
    Case(
        "Pow",
        {"x": SMALL, "y": SMALL},
        np="np.power(x, y)",
        tf="tf.pow(x, y)",
        torch="torch.pow(x, y)",
        jax="jnp.power(x, y)",
    ),
    Case(
        "Neg",
        {"x": SMALL},
        np="np.negative(x)",
        tf="tf.negative(x)",
        torch="torch.neg(x)",
        jax="jnp.negative(x)",
    ),
    Case(
        "Square",
        {"x": SMALL},
        np="np.square(x)",
        tf="tf.square(x)",
        torch="torch.square(x)",
        jax="jnp.square(x)",
    ),
    Case(
        "Sqrt",
        {"x": SMALL},
        np="np.sqrt(x)",
        tf="tf.sqrt(x)",
        torch="torch.sqrt(x)",
        jax="jnp.sqrt(x)",
    ),
    Case(
        "Exp",
        {"x": SMALL},
        np="np.exp(x)",
        tf="tf.exp(x)",
        torch="torch.exp(x)",
        jax="jnp.exp(x)",
    ),
    Case(
        "Tanh",
        {"x": SMALL},
        np="np.tanh(x)",
        tf="tf.tanh(x)",
        torch="torch.tanh(x)",
        jax="jnp.tanh(x)",
    ),
    Case(
        "Sigmoid",
        {"x": SMALL},
        tf="tf.sigmoid(x)",
        torch="torch.sigmoid(x)",
        jax="jax.nn.sigmoid(x)",
    ),
    Case(
        "Relu",
        {"features": SMALL},
        np="np.maximum(features, 0)",
        tf="tf.nn.relu(features)",
        torch="torch.relu(features)",
        jax="jax.nn.relu(features)",
    ),
    Case(
        "Less",
        {"x": SMALL, "y": SCALAR},
        np="np.less(x, y)",
        tf="tf.less(x, y)",
        torch="torch.less(x, y)",
        jax="jnp.less(x, y)",
    ),
    Case(
        "Equal",
        {"x": SMALL, "y": SMALL},
        np="np.equal(x, y)",
        tf="tf.equal(x, y)",
        torch="torch.eq(x, y)",
        jax="jnp.equal(x, y)",
    ),
    Case(
        "LogicalAnd",
        {"x": MASK, "y": MASK},
        np="np.logical_and(x, y)",
        tf="tf.logical_and(x, y)",
        torch="torch.logical_and(x, y)",
        jax="jnp.logical_and(x, y)",
    ),
    Case(
        "SelectV2",
        {"condition": MASK, "t": SMALL, "e": SMALL},
        np="np.where(condition, t, e)",
        tf="tf.where(condition, t, e)",
        torch="torch.where(condition, t, e)",
        jax="jnp.where(condition, t, e)",
    ),
    Case(
        "ClipByValue",
        {"t": SMALL, "clip_value_min": SCALAR, "clip_value_max": ONE},
        np="np.clip(t, clip_value_min, clip_value_max)",
        tf="tf.clip_by_value(t, clip_value_min, clip_value_max)",
        torch="torch.clamp(t, clip_value_min, clip_value_max)",
        jax="jnp.clip(t, clip_value_min, clip_value_max)",
    ),
    Case(
        "Cast",
        {"x": SMALL},
        {"DstT": np.int32},
        np="x.astype(np.int32)",
        tf="tf.cast(x, tf.int32)",
        torch="x.to(torch.int32)",
        jax="x.astype(jnp.int32)",
    ),
    # Reductions.
    Case(
        "Sum",
        {"input": SMALL, "axis": _ints(1)},
        np="np.sum(input, 1)",
        tf="tf.reduce_sum(input, 1)",
        torch="torch.sum(input, 1)",
        jax="jnp.sum(input, 1)",
    ),
    Case(
        "Mean",
        {"input": SMALL, "axis": _ints([0, 1])},
        np="np.mean(input)",
        tf="tf.reduce_mean(input)",
        torch="torch.mean(input)",
        jax="jnp.mean(input)",
    ),
    Case(
        "Max",
        {"input": SMALL, "axis": _ints(1)},
        np="np.max(input, 1)",
        tf="tf.reduce_max(input, 1)",
        torch="torch.amax(input, 1)",
        jax="jnp.max(input, 1)",
    ),
    Case(
        "All",
        {"input": MASK, "axis": _ints(1)},
        np="np.all(input, 1)",
        tf="tf.reduce_all(input, 1)",
        torch="torch.all(input, 1)",
        jax="jnp.all(input, 1)",
    ),
    Case(
        "ArgMax",
        {"input": SMALL, "dimension": _ints(1)},
        {"output_type": np.int64},
        np="np.argmax(input, 1)",
        tf="tf.argmax(input, 1)",
        torch="torch.argmax(input, 1)",
        jax="jnp.argmax(input, 1)",
    ),
    Case(
        "TopKV2",
        {"input": ROW, "k": _ints(3)},
        {"index_type": np.int32},
        tf="tf.math.top_k(input, 3)",
        torch="torch.topk(input, 3)",
        jax="jax.lax.top_k(input, 3)",
    ),
    Case(
        "Cumsum",
        {"x": SMALL, "axis": _ints(1)},
        np="np.cumsum(x, 1)",
        tf="tf.cumsum(x, 1)",
        torch="torch.cumsum(x, 1)",
        jax="jnp.cumsum(x, 1)",
    ),
    # Linear algebra and neural networks.
    Case(
        "MatMul",
        {"a": _floats(2, 2), "b": _floats(2, 2)},
        note="2x2",
        np="np.matmul(a, b)",
        tf="tf.matmul(a, b)",
        torch="torch.matmul(a, b)",
        jax="jnp.matmul(a, b)",
        onednn=True,
    ),
    Case(
        "MatMul",
        {"a": _floats(1, 32), "b": _floats(32, 32)},
        note="1x32x32",
        np="np.matmul(a, b)",
        tf="tf.matmul(a, b)",
        torch="torch.matmul(a, b)",
        jax="jnp.matmul(a, b)",
        onednn=True,
    ),
    Case(
        "BatchMatMulV2",
        {"x": _floats(4, 4, 4), "y": _floats(4, 4, 4)},
        np="np.matmul(x, y)",
        tf="tf.matmul(x, y)",
        torch="torch.bmm(x, y)",
        jax="jnp.matmul(x, y)",
        onednn=True,
    ),
    Case(
        "Conv2D",
        {"input": IMAGE, "filter": _floats(3, 3, 8, 8)},
        CONV,
        tf='tf.nn.conv2d(input, filter, 1, "SAME")',
        torch="functional.conv2d(input, filter, padding=1)",
        jax='lax.conv_general_dilated(input, filter, (1, 1), "SAME", '
        'dimension_numbers=("NHWC", "HWIO", "NHWC"))',
        channels_first={"input": NCHW, "filter": (3, 2, 0, 1)},
        onednn=True,
    ),
    Case(
        "DepthwiseConv2dNative",
        {"input": IMAGE, "filter": _floats(3, 3, 8, 1)},
        CONV,
        tf='tf.nn.depthwise_conv2d(input, filter, [1, 1, 1, 1], "SAME")',
        torch="functional.conv2d(input, filter, padding=1, groups=8)",
        channels_first={"input": NCHW, "filter": (2, 3, 0, 1)},
        onednn=True,
    ),
    Case(
        "MaxPool",
        {"input": IMAGE},
        POOL,
        tf='tf.nn.max_pool2d(input, 2, 2, "VALID")',
        torch="functional.max_pool2d(input, 2)",
        channels_first={"input": NCHW},
        onednn=True,
    ),
    Case(
        "AvgPool",
        {"value": IMAGE},
        POOL,
        tf='tf.nn.avg_pool2d(value, 2, 2, "VALID")',
        torch="functional.avg_pool2d(value, 2)",
        channels_first={"value": NCHW},
        onednn=True,
    ),
    Case(
        "FusedBatchNormV3",
        {
            "x": IMAGE,
            "scale": CHANNELS,
            "offset": CHANNELS,
            "mean": CHANNELS,
            "variance": CHANNELS,
        },
        {"is_training": False, "epsilon": 1e-3},
        tf="tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)",
        torch="functional.batch_norm(x, mean, variance, scale, offset, False, 0.0, 1e-3)",
        channels_first={"x": NCHW},
        onednn=True,
    ),
    Case(
        "BiasAdd",
        {"value": SMALL, "bias": SMALL[0]},
        np="np.add(value, bias)",
        tf="tf.nn.bias_add(value, bias)",
        torch="torch.add(value, bias)",
        jax="jnp.add(value, bias)",
    ),
    Case(
        "Softmax",
        {"logits": SMALL},
        tf="tf.nn.softmax(logits)",
        torch="torch.softmax(logits, 1)",
        jax="jax.nn.softmax(logits)",
        onednn=True,
    ),
    Case(
        "LogSoftmax",
        {"logits": SMALL},
        tf="tf.nn.log_softmax(logits)",
        torch="torch.log_softmax(logits, 1)",
        jax="jax.nn.log_softmax(logits)",
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        {"features": SMALL, "labels": np.array([0, 3, 1, 7])},
        tf="tf.nn.sparse_softmax_cross_entropy_with_logits(labels, features)",
        torch='functional.cross_entropy(features, labels, reduction="none")',
    ),
    # Shapes and indices.
    Case(
        "ConcatV2",
        {"values": [SMALL, SMALL], "axis": _ints(0)},
        np="np.concatenate(values, 0)",
        tf="tf.concat(values, 0)",
        torch="torch.cat(values, 0)",
        jax="jnp.concatenate(values, 0)",
    ),
    Case(
        "Pack",
        {"values": [ROW, ROW]},
        np="np.stack(values)",
        tf="tf.stack(values)",
        torch="torch.stack(values)",
        jax="jnp.stack(values)",
    ),
    Case(
        "Unpack",
        {"value": SMALL},
        {"num": 4},
        tf="tf.unstack(value)",
        torch="torch.unbind(value)",
        jax="jnp.unstack(value)",
    ),
    Case(
        "Split",
        {"axis": _ints(1), "value": SMALL},
        {"num_split": 2},
        np="np.split(value, 2, 1)",
        tf="tf.split(value, 2, 1)",
        torch="torch.tensor_split(value, 2, 1)",
        jax="jnp.split(value, 2, 1)",
    ),
    Case(
        "Slice",
        {"input": SMALL, "begin": _ints([1, 2]), "size": _ints([2, 4])},
        np="input[1:3, 2:6]",
        tf="tf.slice(input, begin, size)",
        torch="input[1:3, 2:6]",
        jax="lax.slice(input, (1, 2), (3, 6))",
    ),
    Case(
        "StridedSlice",
        {
            "input": SMALL,
            "begin": _ints([0, 0]),
            "end": _ints([4, 8]),
            "strides": _ints([2, 2]),
        },
        np="input[0:4:2, 0:8:2]",
        tf="input[0:4:2, 0:8:2]",
        torch="input[0:4:2, 0:8:2]",
        jax="input[0:4:2, 0:8:2]",
    ),
    Case(
        "GatherV2",
        {"params": SMALL, "indices": _ints([2, 0]), "axis": _ints(0)},
        np="np.take(params, indices, 0)",
        tf="tf.gather(params, indices, axis=0)",
        torch="torch.index_select(params, 0, indices)",
        jax="jnp.take(params, indices, 0)",
    ),
    Case(
        "Reshape",
        {"tensor": SMALL, "shape": _ints([8, 4])},
        np="np.reshape(tensor, (8, 4))",
        tf="tf.reshape(tensor, (8, 4))",
        torch="torch.reshape(tensor, (8, 4))",
        jax="jnp.reshape(tensor, (8, 4))",
    ),
    Case(
        "Transpose",
        {"x": SMALL, "perm": _ints([1, 0])},
        np="np.transpose(x)",
        tf="tf.transpose(x, perm)",
        torch="torch.transpose(x, 0, 1).contiguous()",
        jax="jnp.transpose(x)",
        onednn=True,
    ),
    Case(
        "ExpandDims",
        {"input": SMALL, "axis": _ints(0)},
        np="np.expand_dims(input, 0)",
        tf="tf.expand_dims(input, 0)",
        torch="torch.unsqueeze(input, 0)",
        jax="jnp.expand_dims(input, 0)",
    ),
    Case(
        "Squeeze",
        {"input": ONE_ROW},
        {"axis": [0]},
        np="np.squeeze(input, 0)",
        tf="tf.squeeze(input, [0])",
        torch="torch.squeeze(input, 0)",
        jax="jnp.squeeze(input, 0)",
    ),
    Case(
        "Tile",
        {"input": SMALL, "multiples": _ints([2, 2])},
        np="np.tile(input, (2, 2))",
        tf="tf.tile(input, multiples)",
        torch="torch.tile(input, (2, 2))",
        jax="jnp.tile(input, (2, 2))",
    ),
    Case(
        "Pad",
        {"input": SMALL, "paddings": _ints([[1, 1], [1, 1]])},
        np="np.pad(input, 1)",
        tf="tf.pad(input, paddings)",
        torch="functional.pad(input, (1, 1, 1, 1))",
        jax="jnp.pad(input, 1)",
    ),
    # Ops that make tensors.
    Case(
        "OneHot",
        {"indices": _ints([1, 3]), "depth": _ints(8), "on_value": ONE, "off_value": ONE - ONE},
        tf="tf.one_hot(indices, 8)",
        jax="jax.nn.one_hot(indices, 8)",
    ),
    Case(
        "Fill",
        {"dims": _ints([4, 8]), "value": ONE},
        np="np.full((4, 8), value)",
        tf="tf.fill(dims, value)",
        torch="torch.full((4, 8), 1.0)",
        jax="jnp.full((4, 8), value)",
    ),
    Case(
        "ZerosLike",
        {"x": SMALL},
        np="np.zeros_like(x)",
        tf="tf.zeros_like(x)",
        torch="torch.zeros_like(x)",
        jax="jnp.zeros_like(x)",
    ),
    Case(
        "Range",
        {"start": _ints(0), "limit": _ints(32), "delta": _ints(1)},
        np="np.arange(0, 32, 1)",
        tf="tf.range(start, limit, delta)",
        torch="torch.arange(0, 32, 1)",
        jax="jnp.arange(0, 32, 1)",
    ),
    Case("Shape", {"input": SMALL}, {"out_type": np.int32}, tf="tf.shape(input)"),
    Case(
        "StatelessRandomUniform",
        {"shape": _ints([4, 8]), "seed": _ints([1, 2])},
        {"dtype": np.float32},
        tf="tf.random.stateless_uniform(shape, seed)",
    ),
    # Ops with state.
    Case(
        "ReadVariableOp",
        {"resource": State(SMALL)},
        {"dtype": np.float32},
        tf="variable.read_value()",
    ),
    Case(
        "AssignVariableOp",
        {"resource": State(SMALL), "value": SMALL},
        np="np.copyto(resource, value)",
        tf="variable.assign(value)",
        torch="resource.copy_(value)",
    ),
    Case(
        "AssignAddVariableOp",
        {"resource": State(SMALL), "value": SMALL},
        np="np.add(resource, value, out=resource)",
        tf="variable.assign_add(value)",
        torch="resource.add_(value)",
    ),
    Case(
        "ResourceApplyGradientDescent",
        {"var": State(SMALL), "alpha": SCALAR, "delta": SMALL},
        torch="var.add_(delta, alpha=-0.125)",
    ),
    Case(
        "ResourceGather",
        {"resource": State(SMALL), "indices": _ints([2, 0])},
        {"dtype": np.float32},
        tf="variable.sparse_read(indices)",
    ),
    # Strings.
    Case(
        "StringJoin",
        {"inputs": [np.array(b"fast"), np.array(b"ops")]},
        np="np.strings.add(*inputs)",
        tf="tf.strings.join(inputs)",
    ),
]

LARGER = {
    "AddV2 32": ("65,536", {"x": _floats(65536), "y": _floats(65536)}),
    "Mul": ("256x256", {"x": _floats(256, 256), "y": _floats(256, 256)}),
    "Exp": ("256x256", {"x": _floats(256, 256) / 2**16}),
    "Tanh": ("256x256", {"x": _floats(256, 256) / 2**16}),
    "Sum": ("256x256", {"input": _floats(256, 256) / 2**16, "axis": _ints(1)}),
    "Mean": ("256x256", {"input": _floats(256, 256) / 2**16, "axis": _ints([0, 1])}),
    "MatMul 2x2": ("128x128x128", {"a": _floats(128, 128), "b": _floats(128, 128)}),
    "BatchMatMulV2": ("8x64x64", {"x": _floats(8, 64, 64), "y": _floats(8, 64, 64)}),
    "Conv2D": (
        "8x32x32x8",
        {"input": _floats(8, 32, 32, 8) / 2**16, "filter": _floats(3, 3, 8, 8)},
    ),
    "MaxPool": ("8x32x32x8", {"input": _floats(8, 32, 32, 8)}),
    "Softmax": ("256x256", {"logits": _floats(256, 256) / 2**16}),
    "ConcatV2": (
        "2 of 256x256",
        {"values": [_floats(256, 256), _floats(256, 256)], "axis": _ints(0)},
    ),
    "GatherV2": (
        "64 of 256x256",
        {"params": _floats(256, 256), "indices": _ints(np.arange(64) * 3), "axis": _ints(0)},
    ),
    "Transpose": ("256x256", {"x": _floats(256, 256), "perm": _ints([1, 0])}),
}
"""By the label of a case, the note and inputs of a larger one, whose tag is long."""

CASES += [
    replace(case, inputs=LARGER[case.label][1], note=LARGER[case.label][0], tag="long")
    for case in CASES
    if case.label in LARGER
]
