"""Measure a callable against a baseline."""

import math
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from statistics import median, quantiles

import tensorflow as tf

import fastops
from fastops._dispatch import Op
from pytest_fastops.race import Arm, Race, median_interval

COUNTED = 64
"""The number of calls for counting the paths they take."""
IN_TURN = 50
"""The number of calls of one arm that are timed one by one before the calls of the other arm."""

PATHS = ("capi", "tensorflow")
SOLE = "it runs inside fastops.install(): name a baseline, or let op_benchmark install fastops"


@dataclass(frozen=True)
class Comparison:
    """The times of a callable and of a baseline.

    Attributes
    ----------
    name, baseline : str
        The name of the test, and the name of the baseline.
    samples : dict of str to list of float
        Nanoseconds per call, one for each round: of the ``"candidate"``, of the ``"baseline"``, and
        of the candidate ``"again"``, as a third arm. Empty if nothing was measured.
    paths, reasons : dict of str to float
        Counts per call of the candidate: ops by path (``"direct"``, ``"capi"``, ``"tensorflow"``),
        functions that ran as plans, replayed calls of Keras's objects, and the reasons of all
        others.
    tail : dict of str to dict
        By arm, nanoseconds of calls that were timed one by one: ``"p50"``, ``"p99"``, ``"p99.9"``
        and ``"worst"``. Garbage collection is enabled if the program has it enabled.
    """

    name: str
    baseline: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    paths: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, float] = field(default_factory=dict)
    tail: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def median(self):
        """Nanoseconds of a call of the candidate; `None` if nothing was measured."""
        return median(self.samples["candidate"]) if self.samples else None

    @property
    def spread(self):
        """Half the distance between the quartiles of these times, as a share of the median."""
        times = self.samples.get("candidate", [])
        if len(times) < 2:
            return None
        low, _, high = quantiles(times, n=4)
        return (high - low) / 2 / self.median

    @property
    def ratio(self):
        """How many times faster than the baseline the candidate is."""
        return self._ratio("baseline")[0]

    @property
    def interval(self):
        """The 95 % confidence interval of `ratio`; ``(None, None)`` if there are few rounds."""
        return self._ratio("baseline")[1:]

    @property
    def null(self):
        """The candidate's ratio to itself. Other ratios mean nothing if they are as close to 1."""
        return self._ratio("again")[0]

    @property
    def null_interval(self):
        """The confidence interval of `null`."""
        return self._ratio("again")[1:]

    def _ratio(self, arm):
        if not self.samples:
            return None, None, None
        pairs = zip(self.samples[arm], self.samples["candidate"], strict=True)
        return median_interval([other / one for other, one in pairs])

    def as_dict(self):
        """Return everything as JSON types."""
        names = ("name", "baseline", "samples", "paths", "reasons", "tail")
        shown = ("median", "spread", "ratio", "interval", "null", "null_interval")
        return {name: getattr(self, name) for name in (*names, *shown)}


def candidate_and_baseline(call, args, kwargs, baseline):
    """Return two arms, and the name of the second."""
    statement, names = _statement(call, args, kwargs)
    if callable(baseline):
        other, title = (*_statement(baseline, args, kwargs), nullcontext), _title(baseline)
    elif baseline in PATHS:
        scope = partial(fastops.options, path=baseline)
        other, title = (statement, names, scope), f"path={baseline}"
    elif baseline != "stock":
        expected = ", ".join(["stock", *PATHS])
        raise ValueError(f"baseline must be a callable or one of {expected}, not {baseline!r}")
    elif isinstance(call, Op):
        stock = getattr(tf.raw_ops, call.op_name)
        other = *_statement(stock, args, kwargs), nullcontext
        title = f"tf.raw_ops.{call.op_name}"
    else:
        if fastops.is_installed():
            raise RuntimeError(SOLE)
        other, title = (statement, names, nullcontext), "stock"
        # After a new install, recorded calls are replayed again only after some calls.
        return Arm("candidate", statement, names, fastops.accelerated, warm=10), _arm(other), title
    return Arm("candidate", statement, names), _arm(other), title


def _arm(function):
    statement, names, scope = function
    return Arm("baseline", statement, names, scope)


def _title(call):
    return getattr(call, "__qualname__", None) or repr(call)


def _statement(call, args, kwargs):
    """Return a call as source code that unpacks no tuples, and the names in it."""
    names = {"call": call}
    names |= {f"given_{i}": value for i, value in enumerate(args)}
    names |= {f"given_{name}": value for name, value in kwargs.items()}
    given = [f"given_{i}" for i in range(len(args))]
    given += [f"{name}=given_{name}" for name in kwargs]
    return f"call({', '.join(given)})", names


def measure(name, title, candidate, baseline, *, rounds, block, tail):
    """Run two arms in turn; return the `Comparison`, and the number of calls in a block.

    Parameters
    ----------
    name, title : str
        The name of the test and the name of the baseline.
    candidate, baseline : Arm
    rounds, tail : int
        How many blocks of each arm to time, and how many single calls.
    block : float
        The seconds of a block.
    """
    again = Arm("again", candidate.statement, candidate.names, candidate.scope, candidate.warm)
    race = Race([candidate, baseline, again], block)
    paths, reasons = race.call(partial(_paths, candidate))
    for _ in range(rounds):
        race.round()
    late = race.call(partial(_tail, [candidate, baseline], tail)) if tail else {}
    comparison = Comparison(name, title, race.samples(), paths, reasons, late)
    race.close()
    return comparison, candidate.calls


def _paths(arm):
    """Return the counts of ops by path in a call, and the reasons of those that were not direct."""
    with arm.scope():
        arm.settle()
        before = _counts(fastops.stats())
        arm.repeat(COUNTED)
        after = _counts(fastops.stats())
    events = []
    for was, now in zip(before, after, strict=True):
        grown = {name: (count - was.get(name, 0)) / COUNTED for name, count in now.items()}
        events.append({name: count for name, count in grown.items() if count > 0})
    return events


def _counts(stats):
    """Return the counts of a snapshot, by path and by reason."""
    paths = {path: getattr(stats, path) for path in ("direct", "capi", "tensorflow")}
    paths["plan"] = sum(function.plan for function in stats.functions.values())
    paths["replayed"] = sum(method.replayed for method in stats.methods.values())
    reasons = dict(stats.reasons)
    for other in (*stats.functions.values(), *stats.methods.values()):
        for why, count in other.reasons.items():
            reasons[why] = reasons.get(why, 0) + count
    return paths, reasons


def _tail(arms, calls):
    taken = {arm.name: [] for arm in arms}
    while len(taken[arms[0].name]) < calls:
        for arm in arms:
            with arm.scope():
                arm.settle()
                taken[arm.name] += arm.singly(IN_TURN)
    return {name: _late(sorted(times)) for name, times in taken.items()}


def _late(times):
    def at(share):
        return times[min(len(times) - 1, math.ceil(share * len(times)) - 1)]

    return {"p50": at(0.5), "p99": at(0.99), "p99.9": at(0.999), "worst": times[-1]}


def versions():
    """Return the versions of Python and of the libraries."""
    return {
        "python": sys.version.split()[0],
        "tensorflow": tf.__version__,
        "fastops": fastops.__version__,
    }


def fallbacks(before, after):
    """Return the ops that left the direct path between two snapshots, with reasons and counts.

    TensorFlow always makes the first call of an op with arguments of new dtypes. It is not
    included.
    """
    found = {}
    for name, calls in after.ops.items():
        was = before.ops[name].reasons if name in before.ops else {}
        for reason, count in calls.reasons.items():
            if reason != "first_call" and count > was.get(reason, 0):
                found.setdefault(name, {})[reason] = count - was.get(reason, 0)
    return found
