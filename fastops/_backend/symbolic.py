"""Placeholders, functions of them, and gradients.

In eager calls, a placeholder is a symbol, and tensors that are computed from it are symbols, too.
`function` computes the values of symbols from the values of other symbols. In a graph that a
session runs, a placeholder is a node.
"""

import inspect

import tensorflow as tf
from tensorflow.python.util.nest import flatten_up_to

from fastops._backend import below
from fastops._backend.catalogue import thicker, unique
from fastops._backend.sessions import SessionFunction, in_graph
from fastops._backend.state import floatx
from fastops._backend.symbols import Symbol, evaluate


def _spec(shape, dtype, sparse, ragged, name):
    if sparse:
        return tf.SparseTensorSpec(shape, dtype)
    if ragged:
        rank = max((i for i in range(1, len(shape)) if shape[i] is None), default=0)
        return tf.RaggedTensorSpec(shape, dtype, ragged_rank=rank)
    return tf.TensorSpec(shape, dtype, name)


def _node(spec, name):
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.compat.v1.sparse_placeholder(spec.dtype, shape=spec.shape, name=name)
    return tf.nest.map_structure(
        lambda leaf: tf.compat.v1.placeholder(leaf.dtype, leaf.shape, name=name),
        spec,
        expand_composites=True,
    )


@unique(
    "an input of a `function`",
    keras="keras.Input",
    differs="Keras's is an input for layers of Keras 3",
)
def placeholder(shape=None, ndim=None, dtype=None, sparse=False, name=None, ragged=False):
    """Make a symbolic tensor: a tensor without a value, from which others can be computed.

    Parameters
    ----------
    shape : tuple of int or None, optional
        With None for sizes that differ from call to call.
    ndim : int, optional
        The number of axes, if `shape` is not given.
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    sparse : bool, default False
        Whether it stands for a sparse tensor.
    name : str, optional
    ragged : bool, default False
        Whether it stands for a ragged tensor.

    Returns
    -------
    tensor
        A symbol, which TensorFlow's functions take; a node, if a graph is being built.

    Raises
    ------
    ValueError
        If both `sparse` and `ragged` are true.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.placeholder(shape=(2, None))
    >>> backend.int_shape(x), backend.is_keras_tensor(x)
    ((2, None), True)
    """
    if sparse and ragged:
        raise ValueError("Cannot set both sparse and ragged to True when creating a placeholder.")
    if dtype is None:
        dtype = floatx()
    if not shape and ndim:
        shape = (None,) * ndim
    spec = _spec(shape, dtype, sparse, ragged, name)
    return Symbol(spec) if tf.executing_eagerly() else _node(spec, name)


@unique(
    "placeholders, and symbolic tensors of Keras and tf_keras",
    keras="keras.backend.is_keras_tensor",
)
def is_keras_tensor(x):
    """Tell whether a tensor is symbolic, and was made by `placeholder`, by Keras or by tf_keras.

    Parameters
    ----------
    x : tensor, variable, sparse or ragged tensor

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If `x` is not a tensor.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.is_keras_tensor(backend.zeros(2))
    False
    """
    if isinstance(x, Symbol) or _is_of_keras(x):
        return True
    if not isinstance(x, (tf.Tensor, tf.Variable, tf.SparseTensor, tf.RaggedTensor)):
        raise ValueError(
            f"Unexpectedly found an instance of type `{type(x)}`. Expected a symbolic tensor "
            "instance."
        )
    return in_graph() and hasattr(x, "_keras_history")


def _is_of_keras(x):
    return type(x).__name__.endswith("KerasTensor")


def _as_arrays(structure):
    def as_value(x):
        if not isinstance(x, tf.Tensor):
            return x
        value = x.numpy()
        return value.item() if value.ndim == 0 else value

    return tf.nest.map_structure(as_value, structure)


@unique(
    "a function of placeholders",
    tensorflow="tf.function",
    keras="keras.Model",
    differs="`tf.function` traces Python; `keras.Model` takes Keras's inputs",
)
def function(inputs, outputs, updates=None, name=None, **kwargs):
    """Make a function from placeholders to tensors that were computed from them.

    Parameters
    ----------
    inputs : tensor or list of tensor
        The arguments of the function: placeholders, or tensors that were computed from
        placeholders.
    outputs : tensor, or structure of tensors
        The results of the function: tensors that were computed from `inputs`.
    updates : list, optional
        In graphs of `tf.compat.v1`: assignments, or pairs of a variable and its new value.
    name : str, optional
    **kwargs
        In graphs of `tf.compat.v1`: arguments of `tf.compat.v1.Session.run`.

    Returns
    -------
    callable
        Takes arrays or tensors in the structure of `inputs`, and returns arrays in that of
        `outputs`, Python numbers for scalars.

    Raises
    ------
    ValueError
        For updates and keyword arguments in eager calls, and if no argument is symbolic.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.placeholder(shape=(2,))
    >>> doubled = backend.function([x], [backend.square(x)])
    >>> doubled([[1.0, 3.0]])
    [array([1., 9.], dtype=float32)]
    """
    if in_graph():
        known = inspect.signature(tf.compat.v1.Session.run).parameters
        for option in kwargs:
            if option not in known:
                raise ValueError(
                    f'Invalid argument "{option}" passed to K.function with TensorFlow backend'
                )
        return SessionFunction(inputs, outputs, updates, name, **kwargs)
    if kwargs:
        raise ValueError(
            "Session keyword arguments are not supported during eager execution. You passed: "
            f"{kwargs}"
        )
    if updates:
        raise ValueError(
            "`updates` argument is not supported during eager execution: assign to variables "
            f"in a `tf.function`. You passed: {updates}"
        )
    flat = tf.nest.flatten([inputs, outputs])
    if any(_is_of_keras(tensor) for tensor in flat):
        return _of_model(inputs, outputs)
    if not any(isinstance(tensor, Symbol) for tensor in flat):
        raise ValueError(
            "the inputs and outputs contain no placeholder, and no tensor computed from one"
        )
    return _function(inputs, outputs)


def _of_model(inputs, outputs):
    """Return a function between symbolic tensors of a Keras or tf_keras model."""
    import importlib

    tensor = next(value for value in tf.nest.flatten([inputs, outputs]) if _is_of_keras(value))
    keras = importlib.import_module(type(tensor).__module__.partition(".")[0])
    model = keras.Model(inputs=inputs, outputs=outputs)
    alone = isinstance(outputs, list) and len(outputs) == 1

    def call(values):
        results = model(values)
        return _as_arrays([results] if alone and not isinstance(results, list) else results)

    return call


def _function(inputs, outputs):
    sources = tf.nest.flatten(inputs)

    @tf.function(autograph=False)
    def compute(values):
        known = {id(source): value for source, value in zip(sources, values, strict=True)}
        return evaluate(outputs, known)

    def call(values):
        values = flatten_up_to(inputs, values, check_types=False)
        values = [
            value if tf.is_tensor(value) else below.convert_to_tensor(value, source.dtype)
            for value, source in zip(values, sources, strict=True)
        ]
        return _as_arrays(compute([_read(value) for value in values]))

    return call


def _read(x):
    return tf.convert_to_tensor(x) if isinstance(x, tf.Variable) else x


@thicker(
    "nothing: TensorFlow's function for graphs",
    tensorflow="tf.gradients",
    differs="in eager calls, use `tf.GradientTape`",
)
def gradients(loss, variables):
    """Return the gradients of a loss in a graph.

    Parameters
    ----------
    loss : tensor
    variables : list of variable or tensor

    Returns
    -------
    list of tensor or None
        None where the loss does not depend on a variable.

    Raises
    ------
    RuntimeError
        In eager calls: use `tf.GradientTape`.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import backend
    >>> @tf.function(autograph=False)
    ... def slope(x):
    ...     return backend.gradients(backend.square(x), [x])[0]
    >>> slope(tf.constant(3.0)).numpy().tolist()
    6.0
    """
    return tf.compat.v1.gradients(loss, variables, colocate_gradients_with_ops=True)


@thicker("lists", tensorflow="tf.stop_gradient", keras="keras.ops.stop_gradient")
def stop_gradient(variables):
    """Return the value of a tensor as a constant, through which no gradient flows.

    Parameters
    ----------
    variables : tensor, variable or list of these

    Returns
    -------
    tensor or iterator of tensor

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import backend
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * backend.stop_gradient(x)
    >>> tape.gradient(y, x).numpy().tolist()
    3.0
    """
    if isinstance(variables, (list, tuple)):
        return map(below.stop_gradient, variables)
    return below.stop_gradient(variables)
