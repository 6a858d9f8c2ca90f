"""`fastops.function`: traced functions at the cost of their kernels."""

import functools
import operator
import time
import weakref

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import function_type_utils
from tensorflow.python.eager.polymorphic_function.atomic_function import InterpolateRuntimeError
from tensorflow.python.framework import errors_impl

from fastops import _plan
from fastops._schedule import UnplannedError

EXECUTORS = (None, "plan", "tensorflow")
MOST_SIGNATURES = 256
"""Signatures of one function that are kept; beyond, the one that was made first goes."""

SHORT = 100_000
"""Nanoseconds. Who takes longer is timed against TensorFlow, whose executor runs nodes side by
side."""

SAMPLES = 3


def function(
    f=None,
    *,
    input_signature=None,
    executor=None,
    autograph=True,
    reduce_retracing=False,
):
    """Make a function whose traced graph runs as a plan of prepared kernels.

    Parameters
    ----------
    f : callable or tf.function, optional
        What to trace, or what `tf.function` has made. Without it, a decorator is returned.
    input_signature : sequence of tf.TensorSpec, optional
        As for `tf.function`.
    executor : {None, "plan", "tensorflow"}
        Who runs the graph. None chooses: the plan, unless calls that take long are faster in
        TensorFlow. With "plan", a graph that cannot be planned is an error.
    autograph, reduce_retracing : bool
        As for `tf.function`.

    Returns
    -------
    Function
        To be called like `f`. It traces, retraces and raises as `tf.function` does, whose
        attributes and methods it has.

    Raises
    ------
    ValueError
        If there is no such executor, or options are given for what is traced already.

    Notes
    -----
    Plans run calls whose arguments are tensors, numbers, strings and None, on the host, while no
    tape records. All other calls are TensorFlow's. `Function.describe` says which is which.

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
        return functools.partial(function, executor=executor, **options)
    if isinstance(f, tf.types.experimental.PolymorphicFunction):
        if input_signature is not None or not autograph or reduce_retracing:
            raise ValueError("the function is traced already: its options are its own")
        traced = f
    else:
        traced = tf.function(f, **options)
    return Function(traced, executor=executor)


class Function:
    """A traced function that runs as plans; made by `fastops.function`.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        What `tf.function` made.
    executor : {None, "plan", "tensorflow"}
        Who runs it.
    """

    def __init__(self, traced, *, executor=None):
        self._traced = traced
        self._executor = executor
        self._calls = {}
        self._bound = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, traced.python_function)

    def __call__(self, *args, **kwargs):
        if not kwargs and self._executor != "tensorflow" and _plan.is_plain():
            signature = _plan.signature_of(args)
            if signature is not None:
                call = self._calls.get(signature)
                if call is None:
                    return self._first(signature, args)
                return call(args)
        return self._traced(*args, **kwargs)

    def _first(self, signature, args):
        """Call TensorFlow's function, which traces if it must; then make the plan."""
        result = _plan.PASS if self._executor == "plan" else self._traced(*args)
        call = _Call(self._traced, args, self._executor)
        while len(self._calls) >= MOST_SIGNATURES:
            self._calls.pop(next(iter(self._calls)), None)
        self._calls[signature] = call
        return call(args) if result is _plan.PASS else result

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        if instance not in self._bound:
            self._bound[instance] = Function(
                self._traced.__get__(instance, owner), executor=self._executor
            )
        return self._bound[instance]

    def __getattr__(self, name):
        if name == "_traced":  # while this is made, or unpickled
            raise AttributeError(name)
        return getattr(self._traced, name)

    def __repr__(self):
        return f"<fastops.Function of {self._traced!r}>"

    def describe(self):
        """Say for each signature who runs it, and why.

        Returns
        -------
        list of dict
            With ``"arguments"`` (as TensorFlow shows them), ``"executor"``, ``"reason"`` why that
            is TensorFlow, and ``"nodes"`` of the plan.
        """
        return [call.describe() for call in list(self._calls.values())]


class _Call:
    """The calls of one signature."""

    def __init__(self, traced, args, executor):
        self.traced = traced
        self.executor = executor
        self.times = {"plan": [], "tensorflow": []}
        self.settled = executor is not None
        self.prepare(args)

    def prepare(self, args):
        """Make the plan, or note why there is none."""
        self.options = context.context().function_call_options
        self.concrete = self.traced.get_concrete_function(*args)
        try:
            self.entry, self.reason = _entry(self.traced, self.concrete, args), None
        except UnplannedError as why:
            if self.executor == "plan":
                raise RuntimeError(f"{self.traced.__name__} cannot be planned: {why}") from None
            self.entry, self.reason = None, str(why)

    def __call__(self, args):
        entry = self.entry
        if entry is None:
            return self.traced(*args)
        return self.run(entry, args) if self.settled else self.timed(entry, args)

    def run(self, entry, args):
        """Run the plan, if TensorFlow is as it was when the plan was made."""
        if context.context().function_call_options is self.options:
            try:
                result = entry.run(args)
            except _plan.KernelError as failed:
                return self.failed(entry, failed, args)
            if result is not _plan.PASS:
                return result
            if entry.plan.is_current():
                return self.traced(*args)
        result = self.traced(*args)
        self.prepare(args)
        return result

    def timed(self, entry, args):
        """Run the plan; if it takes long, and TensorFlow in turn, until one is known to be faster.

        No call is made twice.
        """
        mine, theirs = self.times["plan"], self.times["tensorflow"]
        runs_plan = len(mine) <= len(theirs)
        begin = time.perf_counter_ns()
        result = self.run(entry, args) if runs_plan else self.traced(*args)
        (mine if runs_plan else theirs).append(time.perf_counter_ns() - begin)
        if runs_plan and entry.plan.last_ns < SHORT:
            self.settled = True
        elif len(theirs) >= SAMPLES:
            if min(theirs) < min(mine):
                self.entry, self.reason = None, "TensorFlow's executor is faster"
            self.settled = True
        return result

    def failed(self, entry, failed, args):
        """Raise what TensorFlow raises where a kernel fails."""
        code, message, node = failed.args
        if not entry.plan.schedule.has_effects:
            return self.traced(*args)  # nothing has happened yet: let TensorFlow fail
        inference = self.concrete._inference_function
        name = inference.name.decode()
        with InterpolateRuntimeError(inference):
            raise errors_impl.exception_type_from_error_code(code)(
                None,
                None,
                f"{{{{function_node {name}}}}} {message}\n\t [[{{{{node {node}}}}}]] [Op:{name}]",
            )

    def describe(self):
        entry = self.entry
        plan = None if entry is None else entry.plan
        return {
            "arguments": str(self.concrete.function_type),
            "executor": "tensorflow" if plan is None else "plan",
            "reason": self.reason,
            "nodes": None if plan is None else len(plan.schedule.steps),
        }


def _entry(traced, concrete, args):
    """Return the plan of a concrete function, and how a call's arguments get there."""
    if traced._jit_compile:
        raise UnplannedError("it is compiled by XLA")
    if concrete.graph.deferred_external_captures or concrete.graph.deferred_internal_captures:
        raise UnplannedError("it captures what is not known before it is called")
    kind = concrete.function_type
    for output in kind.flat_outputs:
        if output.dtype in (tf.resource, tf.variant):
            raise UnplannedError(f"it returns a {output.dtype.name}")
    given = function_type_utils.canonicalize_function_inputs(
        args, {}, traced._function_type, traced._default_values, traced._is_pure
    )
    flat = kind.unpack_inputs(kind.bind(*given.args, **given.kwargs))
    takes = []
    for one in flat:
        places = [place for place, argument in enumerate(args) if argument is one]
        if not places:
            raise UnplannedError("an argument is converted")
        takes.append(places[0])
    captured = tuple(concrete.captured_inputs)
    attrs = {
        name: value if isinstance(value, bytes) else value.encode()
        for name, value in context.context().function_call_options.as_attrs().items()
    }
    name = concrete._inference_function.name.decode()
    plan = _plan.Plan(name, attrs, [*flat, *captured])
    return _plan.Entry(plan, tuple(takes), captured, _packer(concrete))


def _packer(concrete):
    """Return what makes a function's results of a list of tensors."""
    structure = concrete.structured_outputs
    count = len(concrete.function_type.flat_outputs)
    if isinstance(structure, tf.Tensor) and count == 1:
        return operator.itemgetter(0)
    if type(structure) in (tuple, list) and len(structure) == count > 0:
        if not all(isinstance(one, tf.Tensor) for one in structure):
            return concrete.function_type.pack_output
        return tuple if type(structure) is tuple else list
    if structure is None and count == 0:
        return lambda results: None
    return lambda results: concrete.function_type.pack_output(results or None)
