"""Placeholders, functions of them, and gradients.

A placeholder is a node of a graph that belongs to this thread. What is computed from it becomes
nodes of the graph, too, and `function` cuts out of it what leads from some tensors to others.
"""

import threading

import tensorflow as tf
from tensorflow.python.eager import lift_to_graph as _lifting
from tensorflow.python.eager.polymorphic_function import concrete_function as _concrete
from tensorflow.python.framework import func_graph as _func_graph

from fastops._backend import below
from fastops._backend.catalogue import thicker, unique
from fastops._backend.state import floatx, on_clear


class _OfThread(threading.local):
    def __init__(self):
        self.graph = None


_mine = _OfThread()


@on_clear
def _drop():
    _mine.graph = None


def _graph():
    """Return the graph that placeholders are in: the one being built, or the thread's own."""
    if not tf.executing_eagerly():
        return tf.compat.v1.get_default_graph()
    if _mine.graph is None:
        _mine.graph = _func_graph.FuncGraph("fastops_backend")
    return _mine.graph


def _placeholder_of(spec, name):
    made = tf.nest.map_structure(
        lambda one: tf.compat.v1.placeholder(one.dtype, one.shape, name=name),
        spec,
        expand_composites=True,
    )
    made._is_backend_placeholder = True
    return made


@unique(
    "a node that functions are made of",
    keras="keras.Input",
    differs="what Keras 3's layers take",
)
def placeholder(shape=None, ndim=None, dtype=None, sparse=False, name=None, ragged=False):
    """Make a tensor without a value, of which others are computed symbolically.

    Parameters
    ----------
    shape : tuple of int or None, optional
        With None for sizes that differ from call to call.
    ndim : int, optional
        How many axes, if there is no shape.
    dtype : str or tf.DType, optional
        `floatx`, if not given.
    sparse, ragged : bool, default False
        Whether it stands for a sparse or ragged tensor.
    name : str, optional

    Returns
    -------
    tensor
        Symbolic, in a graph of this thread's, or in the one that is being built.

    Raises
    ------
    ValueError
        For both sparse and ragged.

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
    with _graph().as_default():
        if sparse:
            return _placeholder_of(tf.SparseTensorSpec(shape, dtype), name)
        if ragged:
            rank = max((i for i in range(1, len(shape)) if shape[i] is None), default=0)
            return _placeholder_of(tf.RaggedTensorSpec(shape, dtype, ragged_rank=rank), name)
        return _placeholder_of(tf.TensorSpec(shape, dtype), name)


@unique(
    "placeholders, and what Keras and tf_keras take for such",
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
        For what is no tensor.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.is_keras_tensor(backend.zeros(2))
    False
    """
    if type(x).__name__ == "KerasTensor":
        return True
    if not isinstance(x, (tf.Tensor, tf.Variable, tf.SparseTensor, tf.RaggedTensor)):
        raise ValueError(
            f"Unexpectedly found an instance of type `{type(x)}`. Expected a symbolic tensor "
            "instance."
        )
    return hasattr(x, "_is_backend_placeholder")


def _as_arrays(structure):
    def one(x):
        if not isinstance(x, tf.Tensor):
            return x
        value = x.numpy()
        return value.item() if value.ndim == 0 else value

    return tf.nest.map_structure(one, structure)


@unique(
    "a function of placeholders",
    tensorflow="tf.function",
    keras="keras.Model",
    differs="one traces Python, the other takes Keras's inputs",
)
def function(inputs, outputs, updates=None, name=None, **kwargs):
    """Make a function of what was computed from placeholders.

    Parameters
    ----------
    inputs : tensor or list of tensor
        Placeholders, or what was computed from them: what the function is given.
    outputs : tensor, or structure of tensors
        What was computed from these: what it returns.
    updates : list, optional
        Must be empty.
    name : str, optional
        Not used.
    **kwargs
        Must be empty.

    Returns
    -------
    callable
        Takes arrays or tensors in the structure of `inputs`, and returns arrays in that of
        `outputs`, Python numbers for scalars.

    Raises
    ------
    ValueError
        For updates and keyword arguments, which sessions had.
    RuntimeError
        In graphs of `tf.compat.v1`, whose sessions run such functions.

    Examples
    --------
    >>> from fastops import backend
    >>> x = backend.placeholder(shape=(2,))
    >>> doubled = backend.function([x], [backend.square(x)])
    >>> doubled([[1.0, 3.0]])
    [array([1., 9.], dtype=float32)]
    """
    if not tf.compat.v1.executing_eagerly_outside_functions():
        raise RuntimeError(
            "there is no session of the backend's: use `tf.compat.v1.Session.make_callable`, or "
            "`fastops.graph.Session`, in graphs of `tf.compat.v1`"
        )
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
    of_tf_keras = _of_tf_keras(inputs, outputs)
    return _function(inputs, outputs) if of_tf_keras is None else of_tf_keras


def _of_tf_keras(inputs, outputs):
    """Return a function of the symbolic tensors of tf_keras's models; None for all others."""
    for one in tf.nest.flatten([inputs, outputs]):
        if type(one).__name__ == "KerasTensor" and type(one).__module__.startswith("tf_keras."):
            import tf_keras

            model = tf_keras.Model(inputs=inputs, outputs=outputs)
            alone = isinstance(outputs, list) and len(outputs) == 1
            return lambda values: _as_arrays([model(values)] if alone else model(values))
    return None


def _is_symbolic(x):
    return isinstance(x, tf.Tensor) and not isinstance(x, tf.__internal__.EagerTensor)


def _function(inputs, outputs):
    sources = tf.nest.flatten(inputs, expand_composites=True)
    wanted = tf.nest.flatten(outputs, expand_composites=True)
    graph = next((one.graph for one in [*wanted, *sources] if _is_symbolic(one)), None)
    if graph is None:
        raise ValueError(
            "a function is made of placeholders and what is computed from them: found neither"
        )
    made = _func_graph.FuncGraph("fastops_backend_function")
    symbolic = [one for one in wanted if _is_symbolic(one)]
    lifted = _lifting.lift_to_graph(
        symbolic,
        made,
        sources=list(sources),
        add_sources=True,
        handle_captures=True,
        base_graph=graph,
    )
    for one in sources:
        made.inputs.append(lifted[one])
    with made.as_default():
        made.structured_outputs = [
            lifted[one] if _is_symbolic(one) else tf.convert_to_tensor(one) for one in wanted
        ]
    made.outputs.extend(made.structured_outputs)
    run = _concrete.ConcreteFunction.from_func_graph(made, None, {})

    def call(values):
        tf.nest.assert_same_structure(inputs, values, check_types=False)
        flat = [
            below.convert_to_tensor(value, one.dtype)
            for value, one in zip(
                tf.nest.flatten(values, expand_composites=True), sources, strict=True
            )
        ]
        results = run._call_flat(flat, run.captured_inputs)
        return _as_arrays(tf.nest.pack_sequence_as(outputs, results, expand_composites=True))

    return call


@thicker(
    "nothing: TensorFlow's own, of graphs",
    tensorflow="tf.gradients",
    differs="`tf.GradientTape` in eager calls",
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
    >>> @tf.function
    ... def slope(x):
    ...     return backend.gradients(backend.square(x), [x])[0]
    >>> slope(tf.constant(3.0)).numpy().tolist()
    6.0
    """
    return tf.compat.v1.gradients(loss, variables, colocate_gradients_with_ops=True)


@thicker("lists", tensorflow="tf.stop_gradient", keras="keras.ops.stop_gradient")
def stop_gradient(variables):
    """Return what a tensor holds, as a constant to gradients.

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
