"""What the backend's functions are made of: TensorFlow's public functions, without their Python.

Each is called as TensorFlow's function of this name is, and is one op, or a few, where the
arguments are plain; all else is that function's own: graphs, composite and symbolic tensors,
errors. So a composition of them is written once, for eager calls and for graphs. They work whether
`fastops.install` is in force or not. What TensorFlow generates from the registry is an `Alias`.
"""

import inspect

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops import _registry
from fastops._backend.alias import Alias
from fastops._install import construction, restated, variables
from fastops._install.dtypes import FLOATS, parse
from fastops._install.handlers import handlers
from fastops._install.public.targets import standing_alone
from fastops._install.replacement import standing_alone as _standing_alone
from fastops._install.replay.replayed import Replayed
from fastops._install.target import generated

_LOWERED = standing_alone()


def _original(function):
    """Return what `fastops.install` has replaced, if it has."""
    return getattr(function, "original", function)


def primitive(op_name, function, params="", **options):
    """Return an op under the parameters of a function of TensorFlow's.

    Parameters
    ----------
    op_name : str
        Its name in TensorFlow's registry.
    function : callable
        The function.
    params : str
        The op's parameters that are the function's, as in ``"x y=a"``; not given, all of its own.
    options
        As `Alias` takes them.
    """
    original = _original(function)
    sources = params.split() or inspect.signature(original).parameters
    pairs = (item.partition("=") for item in sources)
    return Alias(
        original,
        _registry.op(op_name),
        {to: source or to for to, _, source in pairs},
        handlers=handlers(original),
        **options,
    )


dispatched = tf.__internal__.dispatch.add_dispatch_support
"""Lets dispatchers have the whole of a call that fails, where its parts would not do."""


def replayed(function):
    """Return a function whose ops are recorded, for each signature of its arguments, and replayed.

    Parameters
    ----------
    function : callable
        It decides by its arguments alone which ops it runs.
    """
    return Replayed(function, generated, handlers(function), always=True)


def _method(name):
    """Return a method of variables, for those of TensorFlow's own class."""
    holder = next(kind for kind in ResourceVariable.__mro__ if name in vars(kind))
    original = _original(vars(holder)[name])
    if restated.objection("variables", f"tf.Variable.{name}", original) is not None:
        return original
    return _standing_alone(variables.METHODS[name](original))


def _construction():
    """Return the method by which variables are made."""
    original = _original(vars(type(tf.Variable))["__call__"])
    if restated.objection("variables", "tf.Variable", original) is not None:
        return original
    return _standing_alone(construction.construct(original))


def is_variable(x):
    """Tell whether the methods of variables here are those of some object."""
    return type(x) is ResourceVariable


make_variable = _construction()
assign = _method("assign")
assign_add = _method("assign_add")
assign_sub = _method("assign_sub")
value_of = _method("numpy")

exp = primitive("Exp", tf.exp)
log = primitive("Log", tf.math.log)
negative = primitive("Neg", tf.negative)
rsqrt = primitive("Rsqrt", tf.math.rsqrt)
sqrt = primitive("Sqrt", tf.sqrt)
square = primitive("Square", tf.square)
log1p = primitive("Log1p", tf.math.log1p)
sigmoid = _LOWERED["tf.sigmoid"]
relu = primitive("Relu", tf.nn.relu)
relu6 = _LOWERED["tf.nn.relu6"]
elu = primitive("Elu", tf.nn.elu)
identity = _LOWERED["tf.identity"]

# The operators, which give a number the dtype of the tensor beside it.
add = primitive("AddV2", lambda x, y: x + y)
subtract = primitive("Sub", lambda x, y: x - y)
multiply = primitive("Mul", lambda x, y: x * y)
divide = primitive("RealDiv", lambda x, y: x / y, tensors=("x",), dtypes=parse(FLOATS))
maximum = primitive("Maximum", tf.maximum)
minimum = primitive("Minimum", tf.minimum)
equal = primitive("Equal", tf.equal)
not_equal = primitive("NotEqual", tf.not_equal)
greater = primitive("Greater", tf.greater)
greater_equal = primitive("GreaterEqual", tf.greater_equal)
less = primitive("Less", tf.less)
less_equal = primitive("LessEqual", tf.less_equal)
squared_difference = primitive("SquaredDifference", tf.math.squared_difference)
power = _LOWERED["tf.pow"]
clip_by_value = _LOWERED["tf.clip_by_value"]
where = _LOWERED["tf.where"]

reduce_sum = _LOWERED["tf.reduce_sum"]
reduce_mean = _LOWERED["tf.reduce_mean"]
reduce_max = _LOWERED["tf.reduce_max"]
reduce_min = _LOWERED["tf.reduce_min"]
reduce_prod = _LOWERED["tf.reduce_prod"]
reduce_any = _LOWERED["tf.reduce_any"]
reduce_all = _LOWERED["tf.reduce_all"]
cumsum = _LOWERED["tf.cumsum"]
cumprod = _LOWERED["tf.math.cumprod"]
matmul = _LOWERED["tf.matmul"]

cast = _LOWERED["tf.cast"]
constant = _LOWERED["tf.constant"]
convert_to_tensor = _LOWERED["tf.convert_to_tensor"]
fill = _LOWERED["tf.fill"]
zeros = _LOWERED["tf.zeros"]
ones = _LOWERED["tf.ones"]
zeros_like = _LOWERED["tf.zeros_like"]
ones_like = _LOWERED["tf.ones_like"]
one_hot = _LOWERED["tf.one_hot"]
range_ = _LOWERED["tf.range"]

concat = _LOWERED["tf.concat"]
expand_dims = _LOWERED["tf.expand_dims"]
gather = _LOWERED["tf.gather"]
gather_nd = _LOWERED["tf.gather_nd"]
boolean_mask = _LOWERED["tf.boolean_mask"]
pad = _LOWERED["tf.pad"]
reshape = _LOWERED["tf.reshape"]
shape = _LOWERED["tf.shape"]
split = _LOWERED["tf.split"]
squeeze = _LOWERED["tf.squeeze"]
stack = _LOWERED["tf.stack"]
transpose = _LOWERED["tf.transpose"]
unstack = _LOWERED["tf.unstack"]
reverse = primitive("ReverseV2", tf.reverse)
tile = primitive("Tile", tf.tile)

bias_add = _LOWERED["tf.nn.bias_add"]
leaky_relu = _LOWERED["tf.nn.leaky_relu"]
softmax = _LOWERED["tf.nn.softmax"]
sparse_cross_entropy = _LOWERED["tf.nn.sparse_softmax_cross_entropy_with_logits"]
cond = _LOWERED["tf.cond"]
stop_gradient = _LOWERED["tf.stop_gradient"]
