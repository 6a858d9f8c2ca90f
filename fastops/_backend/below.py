"""The parts of the backend's functions: TensorFlow's public functions, without their Python code.

Each is called like TensorFlow's function of the same name. With plain arguments it runs one op or a
few ops. Everything else falls back to TensorFlow's function: graphs, composite and symbolic
tensors, errors. So the backend's functions are written once, for eager calls and for graphs. They
work with and without `fastops.install`. Functions that TensorFlow generates from the registry are
an `Alias`.
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
    """Return the function that a stand-in of `install` replaces; any other function itself."""
    return getattr(function, "original", function)


def primitive(op_name, function, params="", **options):
    """Return an op with the parameters of a function of TensorFlow.

    Parameters
    ----------
    op_name : str
        The name of the op in TensorFlow's registry.
    function : callable
        The function.
    params : str
        The op's parameters, each with the function's parameter if its name differs, as in
        ``"x y=a"``. By default all parameters of the function, under the same names.
    options
        More arguments of `Alias`.
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
"""A decorator: TensorFlow's dispatchers get the whole call if it fails, not only its parts."""


def replayed(function):
    """Return a function whose ops are recorded and replayed, by the signature of its arguments.

    Parameters
    ----------
    function : callable
        The function. Only its arguments may decide which ops it runs.
    """
    return Replayed(function, generated, handlers(function), always=True)


def _method(name):
    """Return a method of variables, which is for TensorFlow's own class."""
    holder = next(kind for kind in ResourceVariable.__mro__ if name in vars(kind))
    original = _original(vars(holder)[name])
    if restated.objection("variables", f"tf.Variable.{name}", original) is not None:
        return original
    return _standing_alone(variables.METHODS[name](original))


def _construction():
    """Return the method that makes variables."""
    original = _original(vars(type(tf.Variable))["__call__"])
    if restated.objection("variables", "tf.Variable", original) is not None:
        return original
    return _standing_alone(construction.construct(original))


def is_variable(x):
    """Tell whether an object is a variable for the methods of variables in this module."""
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

# Operators: they convert a number to the dtype of the other operand.
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
