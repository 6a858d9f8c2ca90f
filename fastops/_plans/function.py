"""`fastops.function`: traced functions whose calls cost little more than their kernels."""

import functools
import weakref

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from fastops._plans.plans import Plans

EXECUTORS = (None, "plan", "tensorflow")
_CALL = polymorphic_function.Function.__call__  # TensorFlow's method, even under `install`


def function(
    f=None,
    *,
    input_signature=None,
    executor=None,
    optimize=True,
    autograph=True,
    reduce_retracing=False,
):
    """Make a function whose traced graph runs as a plan of prepared kernels.

    Parameters
    ----------
    f : callable or tf.function, optional
        The function to trace, or a `tf.function`. Without it, `function` returns a decorator.
    input_signature : sequence of tf.TensorSpec, optional
        As for `tf.function`.
    executor : {None, "plan", "tensorflow"}
        The executor of the graph. By default the plan runs it, unless calls that take long are
        faster in TensorFlow. With "plan", a graph that plans cannot run is an error.
    optimize : bool
        Whether TensorFlow optimizes the graph before the first run. Optimizing takes time and may
        change the last bits of results.
    autograph, reduce_retracing : bool
        As for `tf.function`.

    Returns
    -------
    Function
        A function with the parameters of `f`. It traces, retraces and raises like a `tf.function`,
        and has the attributes and methods of one.

    Raises
    ------
    ValueError
        If there is no such executor, or if `f` is a `tf.function` and options of `tf.function` are
        passed.

    Notes
    -----
    Plans run calls whose arguments are tensors, variables, arrays, iterators of datasets, numbers,
    strings, dtypes and None, also in lists, tuples, namedtuples and dicts, while no tape records.
    Other objects are taken by identity, as by `tf.function`, if their class defines no `__eq__`.
    TensorFlow runs all other calls. `Function.describe` says which executor runs each signature.

    See Also
    --------
    fastops.install : for programs that call ops one by one.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> @fastops.function(autograph=False)
    ... def scaled(x, factor):
    ...     return tf.tanh(x) * factor
    >>> scaled(tf.constant([0.0, 0.0]), 2.0)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """
    if executor not in EXECUTORS:
        raise ValueError(f"there is no executor {executor!r}: it is one of {EXECUTORS}")
    options = {
        "input_signature": input_signature,
        "autograph": autograph,
        "reduce_retracing": reduce_retracing,
    }
    if f is None:
        return functools.partial(function, executor=executor, optimize=optimize, **options)
    if isinstance(f, tf.types.experimental.PolymorphicFunction):
        if input_signature is not None or not autograph or reduce_retracing:
            raise ValueError("f is already a tf.function: pass its options to tf.function instead")
        traced = f
    else:
        traced = tf.function(f, **options)
    return Function(traced, executor=executor, optimize=optimize)


class Function(Plans):
    """A traced function that runs as plans; made by `fastops.function`.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        The `tf.function`.
    executor : {None, "plan", "tensorflow"}
        The executor of the graph: see `fastops.function`.
    optimize : bool
        Whether TensorFlow optimizes the graph.
    """

    def __init__(self, traced, *, executor=None, optimize=True):
        plain = isinstance(traced, polymorphic_function.Function)
        target = functools.partial(_CALL, traced) if plain else traced
        super().__init__(traced, target, executor, optimize)
        self._traced = traced
        self._options = {"executor": executor, "optimize": optimize}
        self._bound = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, traced.python_function)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        if instance not in self._bound:
            traced = self._traced.__get__(instance, owner)
            self._bound[instance] = Function(traced, **self._options)
        return self._bound[instance]

    def __getattr__(self, name):
        if name == "_traced":  # before `__init__` has set it: unpickling
            raise AttributeError(name)
        return getattr(self._traced, name)

    def __repr__(self):
        return f"<fastops.Function of {self._traced!r}>"
