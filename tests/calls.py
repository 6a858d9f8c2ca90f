"""Compare calls of Python functions with the same calls without `fastops.install`."""

import sys
from pathlib import Path

import keras
import tensorflow as tf
from support import Failure, difference, floats

import fastops
from fastops._install.public import lowering
from fastops._install.target import resolve

FAST, ANY = True, False
"""Whether a call must not enter Python code of TensorFlow or Keras."""

SOURCES = tuple(str(Path(module.__file__).parent) for module in (tf, keras))


def make(dtype, *shape, seed=0):
    """Return a tensor of any dtype."""
    dtype = tf.as_dtype(dtype)
    if dtype == tf.string:
        return tf.constant(floats(*shape, dtype=object, seed=seed))
    return tf.constant(floats(*shape, dtype=dtype.as_numpy_dtype, seed=seed))


def call(*args, fast=ANY, **kwargs):
    return fast, args, kwargs


def fast(*args, **kwargs):
    return call(*args, fast=FAST, **kwargs)


def find(name):
    """Return the object that a public name refers to at present."""
    holder, attribute = resolve(name)
    return getattr(holder, attribute)


def outcome(function, args, kwargs):
    """Return the result of a call, or the `Failure` if it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return Failure(type(error), str(error))


def in_both(run, **options):
    """Return the results of a function without arguments, without `install` and with it."""
    want = run()
    with fastops.accelerated(**options):
        return want, run()


def gradients(function, args, kwargs):
    """Return the gradients of a call's results by its floating tensors and the variable."""
    sources = [getattr(x, "_value", x) for x in (*args, *kwargs.values())]
    sources = [x for x in sources if is_differentiable(x)]
    if not sources:
        return None
    with tf.GradientTape() as tape:
        tape.watch([x for x in sources if isinstance(x, tf.Tensor)])
        result = function(*args, **kwargs)
    return tape.gradient(result, sources, unconnected_gradients="none")


def is_differentiable(value):
    return isinstance(value, (tf.Tensor, tf.Variable)) and value.dtype.is_floating


def slopes(function, args, kwargs, want):
    if isinstance(want, Failure):
        return None
    return outcome(gradients, (function, args, kwargs), {})


def frames(function, args, kwargs):
    """Return the Python functions of TensorFlow and Keras that a call enters."""
    entered = []

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            entered.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return entered


def assert_unchanged(name, calls, layers):
    """Assert that calls of a function have the same outcome with and without `fastops.install`.

    Parameters
    ----------
    name : str
        The public name of the function.
    calls : list of tuple
        The calls, as `call` and `fast` return them.
    layers : list of str
        The layers of `install` that are enough to keep the fast calls out of TensorFlow's Python.
        Gradients are compared with all layers.
    """
    problems, original = [], find(name)
    wants = [outcome(original, args, kwargs) for _, args, kwargs in calls]
    want_slopes = [
        slopes(original, *rest, want) for (_, *rest), want in zip(calls, wants, strict=True)
    ]
    with fastops.accelerated(only=layers):
        function = find(name)
        assert isinstance(function, lowering.Lowering)
        for (accelerated, args, kwargs), want in zip(calls, wants, strict=True):
            shown = f"{args} {kwargs}"[:300]
            for _ in range(2):
                got = outcome(function, args, kwargs)
                if got is not want and (differing := difference(got, want)):
                    problems.append(f"{shown}: {differing}")
                    break
            else:
                if accelerated and isinstance(want, Failure):
                    problems.append(f"{shown} raises, so it is no example of a fast call: {want}")
                elif accelerated and (entered := frames(function, args, kwargs)):
                    problems.append(f"{shown} enters {entered[:4]}")
    with fastops.accelerated():
        function = find(name)
        for (_, args, kwargs), want, want_slope in zip(calls, wants, want_slopes, strict=True):
            if differing := difference(slopes(function, args, kwargs, want), want_slope):
                problems.append(f"gradients of {args} {kwargs}: {differing}"[:300])
    assert not problems, (
        "\n".join(problems[:25]) + f"\n{len(problems)} problems, {len(calls)} calls"
    )
