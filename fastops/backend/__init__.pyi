# Written by tools/backend.py from the functions in fastops/_backend.
# Do not edit: `make gen` generates this file.
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import tensorflow as tf

from fastops._backend.catalogue import Catalogue as Catalogue
from fastops._backend.catalogue import Description as Description
from fastops._core.typing import DTypeLike, ShapeLike, TensorLike
from fastops.backend import experimental as experimental

__all__ = [
    "Catalogue",
    "Description",
    "abs",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "backend",
    "batch_dot",
    "batch_flatten",
    "batch_get_value",
    "batch_normalization",
    "batch_set_value",
    "bias_add",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "cast",
    "cast_to_floatx",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "clear_session",
    "clip",
    "concatenate",
    "constant",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "cos",
    "count_params",
    "ctc_batch_cost",
    "ctc_decode",
    "ctc_label_dense_to_sparse",
    "cumprod",
    "cumsum",
    "depthwise_conv2d",
    "describe",
    "dot",
    "dropout",
    "dtype",
    "elu",
    "epsilon",
    "equal",
    "eval",
    "exp",
    "expand_dims",
    "experimental",
    "eye",
    "flatten",
    "floatx",
    "foldl",
    "foldr",
    "function",
    "gather",
    "get_uid",
    "get_value",
    "gradients",
    "greater",
    "greater_equal",
    "hard_sigmoid",
    "image_data_format",
    "in_test_phase",
    "in_top_k",
    "in_train_phase",
    "int_shape",
    "is_keras_tensor",
    "is_sparse",
    "l2_normalize",
    "learning_phase",
    "learning_phase_scope",
    "less",
    "less_equal",
    "local_conv1d",
    "local_conv2d",
    "log",
    "manual_variable_initialization",
    "map_fn",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "moving_average_update",
    "name_scope",
    "ndim",
    "normalize_batch_in_training",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "permute_dimensions",
    "placeholder",
    "pool2d",
    "pool3d",
    "pow",
    "print_tensor",
    "prod",
    "random_bernoulli",
    "random_binomial",
    "random_normal",
    "random_normal_variable",
    "random_uniform",
    "random_uniform_variable",
    "relu",
    "repeat",
    "repeat_elements",
    "replayable",
    "reset_uids",
    "reshape",
    "resize_images",
    "resize_volumes",
    "reverse",
    "rnn",
    "round",
    "scope",
    "separable_conv2d",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
    "set_learning_phase",
    "set_value",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "softplus",
    "softsign",
    "sparse_categorical_crossentropy",
    "spatial_2d_padding",
    "spatial_3d_padding",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stop_gradient",
    "sum",
    "switch",
    "tanh",
    "temporal_padding",
    "tile",
    "to_dense",
    "transpose",
    "truncated_normal",
    "update",
    "update_add",
    "update_sub",
    "var",
    "variable",
    "zeros",
    "zeros_like",
]

def abs(
    x: TensorLike,
) -> tf.Tensor: ...
def all(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def any(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike = "int32",
) -> tf.Tensor: ...
def argmax(
    x: TensorLike,
    axis: int = -1,
) -> tf.Tensor: ...
def argmin(
    x: TensorLike,
    axis: int = -1,
) -> tf.Tensor: ...
def backend() -> str: ...
def batch_dot(
    x: TensorLike,
    y: TensorLike,
    axes: int | Sequence[int] | None = None,
) -> tf.Tensor: ...
def batch_flatten(
    x: TensorLike,
) -> tf.Tensor: ...
def batch_get_value(
    tensors: Sequence[TensorLike],
) -> list[Any]: ...
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    var: TensorLike,
    beta: TensorLike | None,
    gamma: TensorLike | None,
    axis: int | Sequence[int] | None = -1,
    epsilon: float = 0.001,
) -> tf.Tensor: ...
def batch_set_value(
    tuples: Any,
) -> None: ...
def bias_add(
    x: TensorLike,
    bias: TensorLike,
    data_format: str | None = None,
) -> tf.Tensor: ...
def binary_crossentropy(
    target: TensorLike,
    output: TensorLike,
    from_logits: bool = False,
) -> tf.Tensor: ...
def binary_focal_crossentropy(
    target: TensorLike,
    output: TensorLike,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
) -> tf.Tensor: ...
def cast(
    x: TensorLike,
    dtype: DTypeLike,
) -> tf.Tensor: ...
def cast_to_floatx(
    x: TensorLike,
) -> Any: ...
def categorical_crossentropy(
    target: TensorLike,
    output: TensorLike,
    from_logits: bool = False,
    axis: int = -1,
) -> tf.Tensor: ...
def categorical_focal_crossentropy(
    target: TensorLike,
    output: TensorLike,
    alpha: float | Sequence[float] = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    axis: int | Sequence[int] | None = -1,
) -> tf.Tensor: ...
def clear_session() -> None: ...
def clip(
    x: TensorLike,
    min_value: TensorLike | None,
    max_value: TensorLike | None,
) -> tf.Tensor: ...
def concatenate(
    tensors: Sequence[TensorLike],
    axis: int = -1,
) -> Any: ...
def constant(
    value: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | tf.Tensor | int = None,
    name: str | None = None,
) -> tf.Tensor: ...
def conv1d(
    x: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = 1,
) -> tf.Tensor: ...
def conv2d(
    x: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = (1, 1),
) -> tf.Tensor: ...
def conv2d_transpose(
    x: TensorLike,
    kernel: TensorLike,
    output_shape: Sequence[int | None] | tf.Tensor,
    strides: int | Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = (1, 1),
) -> tf.Tensor: ...
def conv3d(
    x: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = (1, 1, 1),
) -> tf.Tensor: ...
def cos(
    x: TensorLike,
) -> tf.Tensor: ...
def count_params(
    x: TensorLike,
) -> np.integer[Any] | np.floating[Any]: ...
def ctc_batch_cost(
    y_true: TensorLike,
    y_pred: TensorLike,
    input_length: TensorLike,
    label_length: TensorLike,
) -> tf.Tensor: ...
def ctc_decode(
    y_pred: TensorLike,
    input_length: TensorLike,
    greedy: bool = True,
    beam_width: int = 100,
    top_paths: int = 1,
) -> tuple[list[tf.Tensor], tf.Tensor]: ...
def ctc_label_dense_to_sparse(
    labels: TensorLike,
    label_lengths: TensorLike,
) -> Any: ...
def cumprod(
    x: TensorLike,
    axis: int = 0,
) -> tf.Tensor: ...
def cumsum(
    x: TensorLike,
    axis: int = 0,
) -> tf.Tensor: ...
def depthwise_conv2d(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    strides: int | Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = (1, 1),
) -> tf.Tensor: ...
def describe(
    name: str | None = None,
) -> Any: ...
def dot(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def dropout(
    x: TensorLike,
    level: float,
    noise_shape: ShapeLike = None,
    seed: int | None = None,
) -> tf.Tensor: ...
def dtype(
    x: TensorLike,
) -> str: ...
def elu(
    x: TensorLike,
    alpha: float = 1.0,
) -> tf.Tensor: ...
def epsilon() -> float: ...
def equal(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def eval(
    x: TensorLike,
) -> Any: ...
def exp(
    x: TensorLike,
) -> tf.Tensor: ...
def expand_dims(
    x: TensorLike,
    axis: int = -1,
) -> tf.Tensor: ...
def eye(
    size: int,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> tf.Variable: ...
def flatten(
    x: TensorLike,
) -> tf.Tensor: ...
def floatx() -> str: ...
def foldl(
    fn: Callable[..., Any],
    elems: Any,
    initializer: TensorLike | None = None,
    name: str | None = None,
) -> Any: ...
def foldr(
    fn: Callable[..., Any],
    elems: Any,
    initializer: TensorLike | None = None,
    name: str | None = None,
) -> Any: ...
def function(
    inputs: TensorLike,
    outputs: Any,
    updates: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Callable[..., Any]: ...
def gather(
    reference: TensorLike,
    indices: TensorLike,
) -> tf.Tensor: ...
def get_uid(
    prefix: str = "",
) -> int: ...
def get_value(
    x: TensorLike,
) -> Any: ...
def gradients(
    loss: Any,
    variables: Any,
) -> Any: ...
def greater(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def greater_equal(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def hard_sigmoid(
    x: TensorLike,
) -> tf.Tensor: ...
def image_data_format() -> str: ...
def in_test_phase(
    x: TensorLike,
    alt: Any,
    training: Any = None,
) -> Any: ...
def in_top_k(
    predictions: TensorLike,
    targets: TensorLike,
    k: int,
) -> tf.Tensor: ...
def in_train_phase(
    x: TensorLike,
    alt: Any,
    training: Any = None,
) -> Any: ...
def int_shape(
    x: TensorLike,
) -> tuple[int | None, ...] | None: ...
def is_keras_tensor(
    x: TensorLike,
) -> bool: ...
def is_sparse(
    tensor: TensorLike,
) -> bool: ...
def l2_normalize(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
) -> tf.Tensor: ...
def learning_phase() -> Any: ...
def learning_phase_scope(
    value: int,
) -> AbstractContextManager[None]: ...
def less(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def less_equal(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def local_conv1d(
    inputs: TensorLike,
    kernel: TensorLike,
    kernel_size: Sequence[int],
    strides: int | Sequence[int],
    data_format: str | None = None,
) -> tf.Tensor: ...
def local_conv2d(
    inputs: TensorLike,
    kernel: TensorLike,
    kernel_size: Sequence[int],
    strides: int | Sequence[int],
    output_shape: Sequence[int | None] | tf.Tensor,
    data_format: str | None = None,
) -> tf.Tensor: ...
def log(
    x: TensorLike,
) -> tf.Tensor: ...
def manual_variable_initialization(
    value: bool,
) -> None: ...
def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    name: str | None = None,
    dtype: DTypeLike | None = None,
) -> Any: ...
def max(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def maximum(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def mean(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def min(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def minimum(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def moving_average_update(
    x: TensorLike,
    value: Any,
    momentum: Any,
) -> Any: ...
def name_scope(
    name: str,
) -> AbstractContextManager[Any]: ...
def ndim(
    x: TensorLike,
) -> int | None: ...
def normalize_batch_in_training(
    x: TensorLike,
    gamma: TensorLike | None,
    beta: TensorLike | None,
    reduction_axes: Sequence[int],
    epsilon: float = 0.001,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]: ...
def not_equal(
    x: TensorLike,
    y: TensorLike,
) -> tf.Tensor: ...
def one_hot(
    indices: TensorLike,
    num_classes: int,
) -> tf.Tensor: ...
def ones(
    shape: ShapeLike | tf.Tensor | int,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any: ...
def ones_like(
    x: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> tf.Tensor: ...
def permute_dimensions(
    x: TensorLike,
    pattern: Sequence[int],
) -> tf.Tensor: ...
def placeholder(
    shape: Sequence[int | None] | None = None,
    ndim: int | None = None,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any: ...
def pool2d(
    x: TensorLike,
    pool_size: Sequence[int],
    strides: int | Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> tf.Tensor: ...
def pool3d(
    x: TensorLike,
    pool_size: Sequence[int],
    strides: int | Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> tf.Tensor: ...
def pow(
    x: TensorLike,
    a: TensorLike,
) -> tf.Tensor: ...
def print_tensor(
    x: TensorLike,
    message: str = "",
    summarize: int = 3,
) -> Any: ...
def prod(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def random_bernoulli(
    shape: ShapeLike | tf.Tensor | int,
    p: float = 0.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> tf.Tensor: ...
def random_binomial(
    shape: ShapeLike | tf.Tensor | int,
    p: float = 0.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> tf.Tensor: ...
def random_normal(
    shape: ShapeLike | tf.Tensor | int,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> tf.Tensor: ...
def random_normal_variable(
    shape: ShapeLike | tf.Tensor | int,
    mean: float,
    scale: float,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> tf.Variable: ...
def random_uniform(
    shape: ShapeLike | tf.Tensor | int,
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> tf.Tensor: ...
def random_uniform_variable(
    shape: ShapeLike | tf.Tensor | int,
    low: float,
    high: float,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> tf.Variable: ...
def relu(
    x: TensorLike,
    alpha: float = 0.0,
    max_value: float | None = None,
    threshold: float = 0.0,
) -> tf.Tensor: ...
def repeat(
    x: TensorLike,
    n: int,
) -> tf.Tensor: ...
def repeat_elements(
    x: TensorLike,
    rep: int,
    axis: int,
) -> tf.Tensor: ...
def replayable(
    function: Any,
) -> Callable[..., Any]: ...
def reset_uids() -> None: ...
def reshape(
    x: TensorLike,
    shape: ShapeLike | tf.Tensor | int,
) -> tf.Tensor: ...
def resize_images(
    x: TensorLike,
    height_factor: int,
    width_factor: int,
    data_format: str,
    interpolation: str = "nearest",
) -> tf.Tensor: ...
def resize_volumes(
    x: TensorLike,
    depth_factor: int,
    height_factor: int,
    width_factor: int,
    data_format: str,
) -> tf.Tensor: ...
def reverse(
    x: TensorLike,
    axes: int | Sequence[int],
) -> tf.Tensor: ...
def rnn(
    step_function: Callable[..., Any],
    inputs: Any,
    initial_states: Sequence[Any],
    go_backwards: bool = False,
    mask: TensorLike | None = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: TensorLike | None = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, Any]: ...
def round(
    x: TensorLike,
) -> tf.Tensor: ...
def scope(
    *,
    floatx: str | None = None,
    epsilon: float | None = None,
    image_data_format: str | None = None,
    learning_phase: int | None = None,
) -> AbstractContextManager[None]: ...
def separable_conv2d(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: int | Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = (1, 1),
) -> tf.Tensor: ...
def set_epsilon(
    value: float,
) -> None: ...
def set_floatx(
    value: str,
) -> None: ...
def set_image_data_format(
    data_format: str,
) -> None: ...
def set_learning_phase(
    value: int,
) -> None: ...
def set_value(
    x: TensorLike,
    value: Any,
) -> None: ...
def shape(
    x: TensorLike,
) -> tf.Tensor: ...
def sigmoid(
    x: TensorLike,
) -> tf.Tensor: ...
def sign(
    x: TensorLike,
) -> tf.Tensor: ...
def sin(
    x: TensorLike,
) -> tf.Tensor: ...
def softmax(
    x: TensorLike,
    axis: int | Sequence[int] | None = -1,
) -> tf.Tensor: ...
def softplus(
    x: TensorLike,
) -> tf.Tensor: ...
def softsign(
    x: TensorLike,
) -> tf.Tensor: ...
def sparse_categorical_crossentropy(
    target: TensorLike,
    output: TensorLike,
    from_logits: bool = False,
    axis: int = -1,
    ignore_class: int | None = None,
) -> tf.Tensor: ...
def spatial_2d_padding(
    x: TensorLike,
    padding: Sequence[Sequence[int]] = ((1, 1), (1, 1)),
    data_format: str | None = None,
) -> tf.Tensor: ...
def spatial_3d_padding(
    x: TensorLike,
    padding: Sequence[Sequence[int]] = ((1, 1), (1, 1), (1, 1)),
    data_format: str | None = None,
) -> tf.Tensor: ...
def sqrt(
    x: TensorLike,
) -> tf.Tensor: ...
def square(
    x: TensorLike,
) -> tf.Tensor: ...
def squeeze(
    x: TensorLike,
    axis: int,
) -> tf.Tensor: ...
def stack(
    x: Sequence[TensorLike],
    axis: int = 0,
) -> tf.Tensor: ...
def std(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def stop_gradient(
    variables: Any,
) -> Any: ...
def sum(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def switch(
    condition: Any,
    then_expression: Any,
    else_expression: Any,
) -> Any: ...
def tanh(
    x: TensorLike,
) -> tf.Tensor: ...
def temporal_padding(
    x: TensorLike,
    padding: Sequence[int] = (1, 1),
) -> tf.Tensor: ...
def tile(
    x: TensorLike,
    n: int | Sequence[int] | tf.Tensor,
) -> tf.Tensor: ...
def to_dense(
    tensor: TensorLike,
) -> Any: ...
def transpose(
    x: TensorLike,
) -> tf.Tensor: ...
def truncated_normal(
    shape: ShapeLike | tf.Tensor | int,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> tf.Tensor: ...
def update(
    x: TensorLike,
    new_x: TensorLike,
) -> Any: ...
def update_add(
    x: TensorLike,
    increment: TensorLike,
) -> Any: ...
def update_sub(
    x: TensorLike,
    decrement: TensorLike,
) -> Any: ...
def var(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> tf.Tensor: ...
def variable(
    value: Any,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    constraint: Callable[[Any], Any] | None = None,
) -> Any: ...
def zeros(
    shape: ShapeLike | tf.Tensor | int,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any: ...
def zeros_like(
    x: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> tf.Tensor: ...
