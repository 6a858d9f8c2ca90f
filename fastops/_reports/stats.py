"""`fastops.stats`: counts calls by the path they took."""

from dataclasses import asdict, dataclass, field

from fastops._core.reasons import REGISTRY
from fastops._install.models import methods
from fastops._plans.caller import callers
from fastops._reports import counters
from fastops._specialize.learned import call_counts

_IDS = {reason.sentence: reason.id for reason in REGISTRY.values()}
"""The ids of reasons, by their sentences, which the counters have."""


@dataclass(frozen=True)
class OpStats:
    """The calls of one op.

    Attributes
    ----------
    direct, capi, tensorflow : int
        Calls by the path they took.
    reasons : dict of str to int
        Calls that were not direct, by the reason's name.
    """

    direct: int
    capi: int
    tensorflow: int
    reasons: dict[str, int]


@dataclass(frozen=True)
class FunctionStats:
    """The calls of one traced function.

    Attributes
    ----------
    plan, tensorflow : int
        Calls by executor.
    reasons : dict of str to int
        Calls that TensorFlow ran, by the reason's id (`fastops.REASONS` explains it).
    """

    plan: int
    tensorflow: int
    reasons: dict[str, int]


@dataclass(frozen=True)
class MethodStats:
    """Calls of a method of objects of Keras, of users' modules or of generators, under `install`.

    Attributes
    ----------
    replayed, keras : int
        Calls that were replayed, and calls that the method itself made.
    reasons : dict of str to int
        Calls that were not replayed, by the reason's id.
    """

    replayed: int
    keras: int
    reasons: dict[str, int]


@dataclass(frozen=True)
class KindStats:
    """Objects of one sort that `install` makes like TensorFlow's, such as variables.

    Attributes
    ----------
    copied, tensorflow : int
        Objects that fastops made, and objects that TensorFlow made.
    reasons : dict of str to int
        Objects that TensorFlow made, by the reason's id.
    """

    copied: int
    tensorflow: int
    reasons: dict[str, int]


@dataclass(frozen=True)
class Stats:
    """A snapshot of the counters.

    Attributes
    ----------
    direct, capi, tensorflow : int
        Calls by the path they took.
    reasons : dict of str to int
        Calls that were not direct, by the reason's id (`fastops.REASONS` explains it).
    ops : dict of str to OpStats
        The calls of each op, by its name in TensorFlow's registry.
    functions : dict of str to FunctionStats
        The calls of traced functions that still exist: those of `fastops.function`, models that
        `fastops.graph.load` has loaded, and functions that `install` runs as plans.
    methods : dict of str to MethodStats
        The calls of objects of Keras, modules and generators that `install` has seen, by class and
        method.
    kinds : dict of str to KindStats
        Variables and datasets of arrays that programs made under `install`, calls of functions
        that datasets map, calls of `tf.vectorized_map`, `tf.map_fn`, `tf.scan` and folds, and
        gradients, jacobians and forward products, by the callable that makes them.
    """

    direct: int
    capi: int
    tensorflow: int
    reasons: dict[str, int]
    ops: dict[str, OpStats]
    functions: dict[str, FunctionStats] = field(default_factory=dict)
    methods: dict[str, MethodStats] = field(default_factory=dict)
    kinds: dict[str, KindStats] = field(default_factory=dict)

    def as_dict(self):
        """Return the snapshot as nested dicts of strings and ints."""
        return asdict(self)


def stats():
    """Take a snapshot of the counters since import or `reset_stats`.

    Returns
    -------
    Stats
        Calls by path, by reason and by op. Counting is always on: it costs one addition a call.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> fastops.reset_stats()
    >>> for _ in range(3):
    ...     total = fastops.ops.cumsum(x=tf.constant([1.0, 2.0]), axis=tf.constant(0))
    >>> calls = fastops.stats()
    >>> calls.direct, calls.tensorflow, calls.reasons
    (2, 1, {'first_call': 1})
    """
    ops = {}
    for name, *paths, reasons in counters.counters():
        calls = OpStats(*paths, reasons)
        ops[name] = _total([ops[name], calls]) if name in ops else calls
    total = vars(_total(ops.values()))
    return Stats(**total, ops=ops, functions=_functions(), methods=_methods(), kinds=_kinds())


def _total(several):
    """Add up the calls of several ops."""
    return OpStats(
        direct=sum(calls.direct for calls in several),
        capi=sum(calls.capi for calls in several),
        tensorflow=sum(calls.tensorflow for calls in several),
        reasons=_sum(calls.reasons for calls in several),
    )


def _sum(counts):
    """Add up counts by reason."""
    total = {}
    for reasons in counts:
        for reason, count in reasons.items():
            total[reason] = total.get(reason, 0) + count
    return total


def _by_id(reasons):
    """Return counts by the ids of reasons, given counts by their sentences."""
    return {_IDS.get(sentence, sentence): count for sentence, count in dict(reasons).items()}


def _functions():
    by_title = {}
    for caller in callers():
        planned, reasons = caller.planned, _by_id(caller.reasons)
        if caller.title in by_title:
            before = by_title[caller.title]
            planned, reasons = planned + before.plan, _sum([before.reasons, reasons])
        if planned or reasons:
            by_title[caller.title] = FunctionStats(planned, sum(reasons.values()), reasons)
    return by_title


def _methods():
    by_title = {}
    for method in methods():
        if method.replayed or method.reasons:
            reasons = _by_id(method.reasons)
            title = method.original.__qualname__
            by_title[title] = MethodStats(method.replayed, sum(reasons.values()), reasons)
    return by_title


def _kinds():
    by_title = {}
    for counts in call_counts():
        if counts.used or counts.reasons:
            reasons = _by_id(counts.reasons)
            by_title[counts.title] = KindStats(counts.used, sum(reasons.values()), reasons)
    return by_title


def reset_stats():
    """Set all counters to zero.

    Examples
    --------
    >>> import fastops
    >>> fastops.reset_stats()
    >>> fastops.stats().direct
    0
    """
    counters.reset_counters()
    for method in methods():
        method.reset_counters()
    for caller in callers():
        caller.reset_counters()
    for counts in call_counts():
        counts.reset_counters()
