"""`fastops.function`: traced functions at the cost of their kernels."""

import functools
import itertools
import operator
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import function_type_utils, polymorphic_function

from fastops._plans.caller import Caller, Case
from fastops._plans.planned import Planned, options_of

EXECUTORS = (None, "plan", "tensorflow")
MOST_SIGNATURES = 256
"""Signatures of one function that are kept; beyond, the one that was made first goes."""

_CALL = polymorphic_function.Function.__call__  # TensorFlow's own, whatever `install` puts there


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
        What to trace, or what `tf.function` has made. Without it, a decorator is returned.
    input_signature : sequence of tf.TensorSpec, optional
        As for `tf.function`.
    executor : {None, "plan", "tensorflow"}
        Who runs the graph. None chooses: the plan, unless calls that take long are faster in
        TensorFlow. With "plan", a graph that cannot be planned is an error.
    optimize : bool
        Whether TensorFlow optimizes the graph before it runs, which takes a while and may change
        the last bits of results.
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
    Plans run calls whose arguments are tensors, variables, arrays, iterators of datasets, numbers,
    strings, dtypes and None, also in lists, tuples and dicts, on the host, while no tape records.
    All other calls are TensorFlow's. `Function.describe` says which is which.

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
            raise ValueError("the function is traced already: its options are its own")
        traced = f
    else:
        traced = tf.function(f, **options)
    return Function(traced, executor=executor, optimize=optimize)


def _unoptimized(call):
    """Return the same function, which TensorFlow calls without its optimizer of graphs."""

    def called(*args, **kwargs):
        here = context.context()
        before = here.function_call_options
        here.function_call_options = options_of(before, optimize=False)
        try:
            return call(*args, **kwargs)
        finally:
            here.function_call_options = before

    return called


class Plans(Caller):
    """What runs the calls of a traced function, by their signatures.

    Parameters
    ----------
    target : callable or None
        What makes a call in TensorFlow's way, where that does not come with the call.
    executor : {None, "plan", "tensorflow"}
        Who runs it.
    optimize : bool
        Whether TensorFlow optimizes its graph.
    """

    def __init__(self, target, executor=None, optimize=True):
        target = target if optimize else _unoptimized(target)
        super().__init__(target, executor != "tensorflow", MOST_SIGNATURES)
        self._executor = executor
        self._optimize = optimize
        self._planned = {}

    @property
    def title(self):
        """The function's name."""
        python_function = getattr(self._traced, "python_function", None)
        return getattr(python_function, "__qualname__", None) or repr(self._traced)

    def announce(self):
        """Tell whether TensorFlow makes the first call of a signature, which is next."""
        self._tell_of_calls()
        return self._executor != "plan"

    def prepare(self, args, kwargs, called, result):
        """See to the first call with arguments of a signature.

        Parameters
        ----------
        args, kwargs : tuple, dict
            Its arguments.
        called : bool
            Whether TensorFlow has made it, and traced if it had to.
        result : object
            What came of it.

        Returns
        -------
        case : Case
            What runs such calls from then on.
        called, result
            As given; of a method that makes the call itself, True and what came of it.
        """
        try:
            case = self._case(args, kwargs)
        except Exception as problem:
            if not called:
                raise
            # TensorFlow has made the call, so it was right: it is to make the next ones as well.
            obstacle = f"{type(problem).__name__}: {problem}"
            case = Case(Planned(None, obstacle=obstacle), [], None)
        return case, called, result

    def _tell_of_calls(self):
        """Count the calls that TensorFlow has not seen: it warns of functions traced too often."""
        unseen, self.unseen = self.unseen, 0
        manager = polymorphic_function._frequent_tracing_detector_manager
        key = getattr(self._traced, "_key_for_call_stats", None)
        if unseen and key is not None:
            manager.called_without_tracing(key)
            with manager._lock:
                detector = manager._get_detector(key)
                detector._calls_per_tracings[-1] += unseen - 1
                detector._call_count += unseen - 1

    def _case(self, args, kwargs):
        """Return what runs calls of a signature from then on, given one of them."""
        traced = self._traced
        leaves = _Leaves()
        args, kwargs = leaves.replaced(args), leaves.replaced(kwargs)
        concrete = traced.get_concrete_function(*args, **kwargs)
        kind = concrete.function_type
        given = function_type_utils.canonicalize_function_inputs(
            args, kwargs, traced._function_type, traced._default_values, traced._is_pure
        )
        flat = kind.unpack_inputs(kind.bind(*given.args, **given.kwargs))
        takes = leaves.places(flat)
        if leaves.hide(takes, traced._default_values or {}):
            obstacle = "an argument is converted"
            return Case(Planned(concrete, self._executor, obstacle=obstacle), [], None)
        key = concrete, *((one.dtype, str(one.shape)) for one in leaves.variables)
        if key not in self._planned:
            self._planned[key] = Planned(concrete, self._executor, flat, optimize=self._optimize)
        return Case(self._planned[key], takes, _packer(concrete))

    def describe(self):
        """Say for each signature who runs it, and why.

        Returns
        -------
        list of dict
            With ``"arguments"`` (as TensorFlow shows them), ``"executor"``, ``"reason"`` why that
            is TensorFlow, and ``"nodes"`` of the plan.
        """
        return [case.runner.describe() for case in self.known_cases()]

    def reset(self):
        """Let go of all plans; what was traced stays with TensorFlow."""
        self._planned.clear()
        self.forget()

    def plans(self):
        """Return what the plans are made of.

        Returns
        -------
        list of PlanDescription
            One for each plan: its nodes in their order, with their slots, the buffers that they may
            take over, and their times in the calls that were made in a `fastops.profile`.
        """
        planned = dict.fromkeys(case.runner for case in self.known_cases())
        return [one.description() for one in planned if one.plan is not None]


class Function(Plans):
    """A traced function that runs as plans; made by `fastops.function`.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        What `tf.function` made.
    executor : {None, "plan", "tensorflow"}
        Who runs it.
    optimize : bool
        Whether TensorFlow optimizes its graph.
    """

    def __init__(self, traced, *, executor=None, optimize=True):
        plain = isinstance(traced, polymorphic_function.Function)
        target = functools.partial(_CALL, traced) if plain else traced
        super().__init__(target, executor, optimize)
        self._traced = traced
        self._bound = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, traced.python_function)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        if instance not in self._bound:
            self._bound[instance] = Function(
                self._traced.__get__(instance, owner),
                executor=self._executor,
                optimize=self._optimize,
            )
        return self._bound[instance]

    def __getattr__(self, name):
        if name == "_traced":  # while this is made, or unpickled
            raise AttributeError(name)
        return getattr(self._traced, name)

    def __repr__(self):
        return f"<fastops.Function of {self._traced!r}>"


class PlansBeside(Plans):
    """The plans of a function of TensorFlow's, beside which they live: `fastops.install`'s.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        The function, which holds this.
    """

    def __init__(self, traced):
        super().__init__(None, "tensorflow" if traced._jit_compile else None)
        self._reference = weakref.ref(traced)

    @property
    def _traced(self):
        return self._reference()

    def __reduce__(self):
        return type(None), ()  # a copy of the function begins anew


class _Leaves:
    """The tensors among the arguments of a call, in the order of `Caller`'s signatures.

    TensorFlow's binding of arguments shows what becomes of each: it is given others in their
    places, which are nowhere else.

    Attributes
    ----------
    tensors : list of EagerTensor
        What stands for the leaves: new tensors, or the handles of variables and iterators.
    variables : list of tf.Variable
        The variables among the arguments.
    """

    def __init__(self):
        self.tensors = []
        self.variables = []

    def replaced(self, value):
        """Return an argument with its tensors and arrays replaced."""
        if type(value) in (list, tuple):
            return type(value)(map(self.replaced, value))
        if type(value) is dict:
            return {name: self.replaced(item) for name, item in value.items()}
        if isinstance(value, tf.Variable):
            self.variables.append(value)
            self.tensors.append(value.handle)
        elif type(value) is OwnedIterator:
            self.tensors.append(value._iterator_resource)
        elif isinstance(value, (tf.Tensor, np.ndarray, np.generic)):
            value = value._copy() if isinstance(value, tf.Tensor) else tf.constant(value)
            self.tensors.append(value)
        return value

    def places(self, flat):
        """Return for each tensor that a function takes the place of its leaf, or itself."""
        places = {id(leaf): place for place, leaf in reversed(list(enumerate(self.tensors)))}
        return [places.get(id(one), one) for one in flat]

    def hide(self, takes, defaults):
        """Tell whether what a function takes comes from leaves that are not among it."""
        found = {one for one in takes if isinstance(one, int)}
        if all(isinstance(one, int) for one in takes):
            return False
        # The rest must come from numbers and texts, which are the same in all of these calls.
        mutable = any(isinstance(one, np.ndarray) for one in tf.nest.flatten([*defaults.values()]))
        return mutable or bool(self.variables) or not found.issuperset(range(len(self.tensors)))


def _packer(concrete):
    """Return what makes a function's results of a list of tensors; None if there is but one."""
    structure = concrete.structured_outputs
    if isinstance(structure, tf.Tensor):
        return None
    flat = type(structure) in (tuple, list) and all(isinstance(o, tf.Tensor) for o in structure)
    if flat and structure:
        return type(structure)
    try:
        return nested(structure, itertools.count(), tf.Tensor, (tuple, list))
    except TypeError:
        return concrete.function_type.pack_output


def nested(structure, places, leaf, sequences):
    """Return what picks a structure's tensors out of a flat list of them.

    Parameters
    ----------
    structure : nest
        Of tensors, or of what stands for them.
    places : iterator of int
        The places in the list.
    leaf : type
        What stands for a tensor.
    sequences : tuple of type
        Which sequences are structures, beside dicts.

    Raises
    ------
    TypeError
        If there is anything else in it.
    """
    kind = type(structure)
    if isinstance(structure, leaf):
        return operator.itemgetter(next(places))
    if structure is None:
        return lambda results: None
    if kind in sequences:
        parts = [nested(item, places, leaf, sequences) for item in structure]
        return lambda results: kind([part(results) for part in parts])
    if kind is dict:
        parts = {}
        for name in sorted(structure):
            parts[name] = nested(structure[name], places, leaf, sequences)
        ordered = [(name, parts[name]) for name in structure]
        return lambda results: {name: part(results) for name, part in ordered}
    raise TypeError(kind)
