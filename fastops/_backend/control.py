"""Conditionals, by conditions and by the learning phase, and functions over elements."""

import sys

import tensorflow as tf

from fastops._backend import below, facts
from fastops._backend.catalogue import thicker, unique
from fastops._backend.state import learning_phase


def _called(x):
    return x() if callable(x) else x


def _as_callable(x):
    return x if callable(x) else lambda: x


@thicker(
    "a choice of the whole, or of each part",
    tensorflow="tf.cond",
    keras="keras.ops.cond",
    differs="`tf.where` and `keras.ops.where` choose parts",
)
def switch(condition, then_expression, else_expression):
    """Choose one of two tensors by a condition, as a whole or element by element.

    Parameters
    ----------
    condition : tensor
        Bool, or numbers, which are true unless zero. A scalar chooses the whole.
    then_expression, else_expression : tensor or callable
        The tensors for a true and for a false condition, of the same shape. A callable returns the
        tensor. If the condition is a scalar, only the chosen callable is called.

    Returns
    -------
    tensor

    Raises
    ------
    ValueError
        If the condition has more axes than the tensors.

    Examples
    --------
    >>> from fastops import backend
    >>> condition = backend.constant([True, False], dtype="bool")
    >>> x, y = backend.constant([1.0, 1.0]), backend.constant([2.0, 2.0])
    >>> backend.switch(condition, x, y).numpy().tolist()
    [1.0, 2.0]
    """
    if facts.base_dtype(condition) is not tf.bool:
        condition = below.cast(condition, tf.bool)
    axes = facts.ndim(condition)
    if not axes:
        then, otherwise = _as_callable(then_expression), _as_callable(else_expression)
        return below.cond(condition, then, otherwise)
    then, otherwise = _called(then_expression), _called(else_expression)
    rank = facts.ndim(then)
    if axes > rank:
        raise ValueError(
            "Rank of `condition` should be less than or equal to rank of `then_expression` and "
            f"`else_expression`. ndim(condition)={axes}, ndim(then_expression)={rank}"
        )
    if axes > 1:
        condition = _spread(condition, then, rank - axes)
    return below.where(condition, then, otherwise)


def _spread(condition, like, missing):
    """Broadcast a condition to the shape of a tensor, which has more axes at the end."""
    if facts.are_plain(condition, like):
        sizes = facts.int_shape(condition) + (1,) * missing
        wanted = facts.int_shape(like)
        if sizes == wanted:
            return condition
        multiples = [to if to > of else 1 for of, to in zip(sizes, wanted, strict=True)]
        return below.tile(below.reshape(condition, sizes), multiples)
    sizes = tf.concat([tf.shape(condition), [1] * missing], axis=0)
    wanted = tf.shape(like)
    multiples = tf.where(wanted - sizes > 0, wanted, tf.ones_like(wanted))
    return tf.tile(tf.reshape(condition, sizes), multiples)


def _training():
    """Return the `training` argument of the tf_keras layer that is being called, or None."""
    utils = sys.modules.get("tf_keras.src.engine.base_layer_utils")
    return None if utils is None else utils.call_context().training


@unique(
    "a choice by the learning phase",
    keras="keras.layers.Layer.__call__",
    differs="a layer gets `training` as an argument",
)
def in_train_phase(x, alt, training=None):
    """Choose a value by whether layers are in training.

    Parameters
    ----------
    x, alt : tensor or callable
        The value for training, and the value otherwise. A callable returns the value; only the
        chosen one is called.
    training : bool, int or tensor, optional
        By default the argument of the tf_keras layer that is being called, or else
        `learning_phase`.

    Returns
    -------
    tensor
        Another object, if `x` and `alt` are not tensors.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.in_train_phase("train", "test", training=True)
    'train'
    """
    if training is None:
        training = _training()
    if training is None:
        training = learning_phase()
    if not tf.is_tensor(training):
        if training == 1 or training is True:
            return _called(x)
        if training == 0 or training is False:
            return _called(alt)
    return switch(training, x, alt)


@unique(
    "a choice by the learning phase",
    keras="keras.layers.Layer.__call__",
    differs="a layer gets `training` as an argument",
)
def in_test_phase(x, alt, training=None):
    """Choose a value by whether layers are in training: `x` if they are not.

    Parameters
    ----------
    x, alt : tensor or callable
        The value outside training, and the value for training.
    training : bool, int or tensor, optional
        As in `in_train_phase`.

    Returns
    -------
    tensor
        Another object, if `x` and `alt` are not tensors.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.in_test_phase("test", "train")
    'test'
    """
    return in_train_phase(alt, x, training=training)


# Functions over elements -------------------------------------------------------------------------


def _elements(elems):
    """Return the elements of a tensor; None for any other value."""
    if facts.is_plain(elems) and facts.ndim(elems) and facts.int_shape(elems)[0]:
        return below.unstack(elems)
    return None


@unique("eager calls without a loop of TensorFlow's", tensorflow="tf.map_fn", keras="keras.ops.map")
def map_fn(fn, elems, name=None, dtype=None):
    """Apply a function to each element along the first axis.

    Parameters
    ----------
    fn : callable
        Takes an element, and returns a tensor, or a structure of tensors.
    elems : tensor, or structure of tensors
    name : str, optional
        The name of a scope in a graph.
    dtype : tf.DType, or structure of these, optional
        The dtype or structure of the results of `fn`, if it differs from that of an element.

    Returns
    -------
    tensor, or structure of tensors

    Raises
    ------
    TypeError, ValueError
        If `fn` returns another dtype or structure than `dtype`.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.map_fn(backend.square, backend.constant([1.0, 2.0])).numpy().tolist()
    [1.0, 4.0]
    """
    elements = _elements(elems) if dtype is None or isinstance(dtype, tf.DType) else None
    if elements is None:
        return tf.compat.v1.map_fn(fn, elems, name=name, dtype=dtype)
    kind = facts.base_dtype(elems) if dtype is None else dtype
    results = [fn(element) for element in elements]
    if all(facts.is_plain(result) and facts.base_dtype(result) is kind for result in results):
        return below.stack(results)
    results = iter(results)
    return tf.compat.v1.map_fn(lambda _: next(results), elems, name=name, dtype=dtype)


def _folded(fn, elements, initializer):
    if initializer is None:
        initializer = elements.pop(0)
    for element in elements:
        initializer = fn(initializer, element)
    return below.convert_to_tensor(initializer)


@unique("eager calls without a loop of TensorFlow's", tensorflow="tf.foldl", keras="keras.ops.scan")
def foldl(fn, elems, initializer=None, name=None):
    """Combine elements along the first axis, from the first to the last.

    Parameters
    ----------
    fn : callable
        Takes the result so far and an element, and returns the next result.
    elems : tensor, or structure of tensors
    initializer : tensor, optional
        The result before the first element. By default the first element is the first result.
    name : str, optional
        The name of a scope in a graph.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError
        If `fn` is not callable.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.foldl(lambda a, x: a - x, backend.constant([1.0, 2.0, 3.0])).numpy().tolist()
    -4.0
    """
    if _foldable(fn, initializer) and (elements := _elements(elems)) is not None:
        return _folded(fn, elements, initializer)
    return tf.compat.v1.foldl(fn, elems, initializer=initializer, name=name)


@unique("eager calls without a loop of TensorFlow's", tensorflow="tf.foldr", keras="keras.ops.scan")
def foldr(fn, elems, initializer=None, name=None):
    """Combine elements along the first axis, from the last to the first.

    Parameters
    ----------
    fn : callable
        Takes the result so far and an element, and returns the next result.
    elems : tensor, or structure of tensors
    initializer : tensor, optional
        The result before the last element. By default the last element is the first result.
    name : str, optional
        The name of a scope in a graph.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError
        If `fn` is not callable.

    Examples
    --------
    >>> from fastops import backend
    >>> backend.foldr(lambda a, x: a - x, backend.constant([1.0, 2.0, 3.0])).numpy().tolist()
    0.0
    """
    if _foldable(fn, initializer) and (elements := _elements(elems)) is not None:
        return _folded(fn, elements[::-1], initializer)
    return tf.compat.v1.foldr(fn, elems, initializer=initializer, name=name)


def _foldable(fn, initializer):
    return callable(fn) and (initializer is None or facts.is_plain(initializer))
