"""Turns the notes of a profile into nested spans, from which pictures are drawn."""

import os
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache

from fastops._plans import observers as plans
from fastops._specialize import observers

KINDS = {
    "program": "Python: program and others",
    "library": "Python: TensorFlow, Keras",
    "dispatch": "fastops: dispatch",
    "kernel": "kernel",
    "tensorflow": "TensorFlow's runtime",
}
"""The kinds of spans and their titles, from the top of the stack to the bottom."""

_PACKAGES = {
    "tensorflow": "library",
    "keras": "library",
    "tf_keras": "library",
    "fastops": "dispatch",
}
"""The kind of each package's functions. All other functions belong to the program."""


_TOLD = frozenset({plans.__file__, observers.__file__})


@dataclass
class Span:
    """A piece of work with its time, and the calls inside it.

    Attributes
    ----------
    name : str
        The name of the function or op.
    kind : str
        One of `KINDS`.
    start, stop : int
        The begin and the end, in nanoseconds of the monotonic clock.
    about : dict
        More facts about the span, as plain values.
    inner : list of Span
        The spans inside it, in the order of time, without overlaps.
    """

    name: str
    kind: str
    start: int
    stop: int
    about: dict = field(default_factory=dict)
    inner: list = field(default_factory=list)


@dataclass
class Track:
    """The work of one thread.

    Attributes
    ----------
    number : int
        The thread's number.
    name : str
        The name of the thread.
    root : Span
        The span of the whole thread.
    """

    number: int
    name: str
    root: Span


@dataclass
class Seen:
    """The raw notes of a profile.

    Attributes
    ----------
    opener : int
        The number of the thread that opened the profile.
    start, stop : int
        The time when the profile was opened, and the time when it was closed or read.
    calls : list of tuple
        Calls of ops, as `ProfileRecorder.timeline` returns them.
    threads : dict of int to str
        The names of threads by number.
    runs : list of tuple
        Calls of traced functions: the thread, the title, the executor, the begin and the end.
    walks : list of tuple
        Walks back over tapes: the thread, the executor, the begin and the end.
    noted : Noted or None
        The calls of Python's functions in the thread `opener`.
    """

    opener: int
    start: int
    stop: int
    calls: list
    threads: dict
    runs: list
    walks: list
    noted: "Noted | None"


class Noted:
    """The calls that `Frames` noted in a thread, with a clock that is corrected for the overhead.

    Noting a call takes time, which `costs` measures on other calls. This time is subtracted: half
    of it lies before a moment, half of it after. The time of Python code is divided by the
    slowdown. The time of the functions that report calls to profiles is subtracted completely.

    Parameters
    ----------
    moments, called
        As the methods of `Frames` return them.
    calls : list of tuple of int
        The begins and ends of calls of ops. They are not Python code, and `Frames` does not note
        them.
    costs : Costs
        The costs of noting.

    Attributes
    ----------
    called : list
        The called functions by number.
    spans : list of tuple
        The number of the called function, the begin and the end.
    """

    def __init__(self, moments, called, calls, costs):
        self.called = called
        self.spans = list(_matched(moments))
        moments = [
            *moments,
            *((start, _BEGINS, 0) for start, _ in calls),
            *((stop, _ENDS, 0) for _, stop in calls),
        ]
        moments.sort(key=lambda moment: moment[0])
        self._costs = costs
        self._whens = [when for when, _, _ in moments]
        self._halves = [_cost_of(what, called, costs) / 2 for _, what, _ in moments]
        self._paces = list(self._paces_of(moments))
        self._corrected = self._correct(moments)

    def _paces_of(self, moments):
        """Yield for each moment the factor for the time after it."""
        told = {number for number, entry in enumerate(self.called) if _is_told(entry)}
        in_c = {number for number, entry in enumerate(self.called) if isinstance(entry, tuple)}
        in_python = 1 / self._costs.slowdown
        around = [in_python]
        for _, what, _ in moments:
            if what >= 0:
                pace = 0 if what in told or not around[-1] else 1 if what in in_c else in_python
                around.append(pace)
            elif what == _BEGINS:
                around.append(1 if around[-1] else 0)
            elif len(around) > 1:
                around.pop()
            yield around[-1]

    def _correct(self, moments):
        corrected = []
        for i, (when, _, _) in enumerate(moments):
            if i:
                before, _, lost = moments[i - 1]
                took = when - before - lost - self._halves[i - 1] - self._halves[i]
                took = max(0, round(took * self._paces[i - 1]))
                corrected.append(corrected[-1] + took)
            else:
                corrected.append(when)
        return corrected

    def corrected(self, when):
        """Return a time of the clock without the overhead until then."""
        i = bisect_right(self._whens, when) - 1
        if i < 0:
            return when
        known = self._corrected[i]
        passed = when - self._whens[i]
        if passed:
            passed = max(0, round((passed - self._halves[i]) * self._paces[i]))
        if i + 1 < len(self._corrected):
            passed = min(passed, self._corrected[i + 1] - known)
        return known + passed


_BEGINS, _ENDS = -3, -4
"""Codes for the begin and end of a call of an op, beside the codes of `Frames`."""


def _cost_of(what, called, costs):
    if what in (_BEGINS, _ENDS):
        return 0
    if what >= 0:
        return (costs.of_c if isinstance(called[what], tuple) else costs.of_python) / 2
    return (costs.of_python if what == -1 else costs.of_c) / 2


def _is_told(called):
    """Whether a function is one of those that report calls to profiles."""
    return not isinstance(called, tuple) and called.co_filename in _TOLD


def _matched(moments):
    """Yield each call with its begin and end. Calls without a begin or an end are left out."""
    under_way = []
    for when, what, _ in moments:
        if what >= 0:
            under_way.append((what, when))
        elif under_way:
            called, began = under_way.pop()
            yield called, began, when


def tracks(profile, *, corrected):
    """Return the spans of each thread.

    Parameters
    ----------
    profile : Profile
        The profile.
    corrected : bool
        Whether the overhead of noting Python's calls is subtracted.

    Returns
    -------
    list of Track
        The thread that opened the profile is the first.
    """
    seen = profile._seen()
    clock = seen.noted.corrected if corrected and seen.noted else None
    by_thread = {seen.opener: []}
    if seen.noted:
        by_thread[seen.opener] += _of_functions(seen.noted)
    for thread, name, executor, start, stop in seen.runs:
        kind = "kernel" if executor == "plan" else "tensorflow"
        title = f"{name} ({'plan' if executor == 'plan' else 'graph'})"
        by_thread.setdefault(thread, []).append(
            Span(title, kind, start, stop, {"executor": executor})
        )
    for thread, executor, start, stop in seen.walks:
        by_thread.setdefault(thread, []).append(
            Span(f"walk over a tape ({executor})", "dispatch", start, stop, {"executor": executor})
        )
    for event in seen.calls:
        by_thread.setdefault(event[1], []).extend(_of_call(*event))
    result = []
    for thread, spans in by_thread.items():
        name = seen.threads.get(thread, f"thread {thread}")
        if thread == seen.opener:
            root = Span(name, "program", seen.start, seen.stop)
        else:
            start, stop = min(span.start for span in spans), max(span.stop for span in spans)
            root = Span(name, "program", start, stop)
        nest(root, spans)
        if clock and thread == seen.opener:
            for span in (root, *spans):
                span.start, span.stop = clock(span.start), clock(span.stop)
        result.append(Track(thread, name, root))
    return result


def _of_call(name, thread, path, reason, start, stop, kernel_start, kernel_ns, left, back):
    """Yield the spans of a call of an op."""
    about = {"path": path}
    if path != "direct":
        about["reason"] = reason
        name = f"{name} ({reason})"
    yield Span(name, "dispatch", start, stop, about)
    if kernel_ns:
        yield Span("kernel", "kernel", kernel_start, min(kernel_start + kernel_ns, stop))
    if back:
        yield Span("TensorFlow", "tensorflow", left, back)


def _of_functions(noted):
    """Yield the spans of functions. Of functions in C, only those of TensorFlow have spans."""
    described = [_described(entry) for entry in noted.called]
    for what, start, stop in noted.spans:
        description = described[what]
        if description is not None:
            name, kind, about = description
            yield Span(name, kind, start, stop, about)


def _described(called):
    """Return the name, the kind and the location of a function; None if it is left out."""
    if _is_told(called):
        return None
    if isinstance(called, tuple):
        module, name = called
        if module.partition(".")[0] == "tensorflow" or "_pywrap_" in module:
            return name, "tensorflow", {"module": module}
        return None
    name = getattr(called, "co_qualname", called.co_name)
    where = {"file": called.co_filename, "line": called.co_firstlineno}
    return name, _kind_of(called.co_filename), where


@cache
def _kind_of(filename):
    for package, kind in _PACKAGES.items():
        path = getattr(sys.modules.get(package), "__file__", None)
        if path and filename.startswith(os.path.join(os.path.dirname(path), "")):
            return kind
    return "program"


def nest(root, spans):
    """Nest spans into each other, and all into the root. A span is cut at the end of its outer one.

    Parameters
    ----------
    root : Span
        The outermost span.
    spans : list of Span
        The spans in any order. Of two spans with the same times the first one is the outer one.
    """
    around = [root]
    for span in sorted(spans, key=lambda span: (span.start, -span.stop)):
        while len(around) > 1 and around[-1].stop <= span.start:
            around.pop()
        outer = around[-1]
        span.start = max(span.start, outer.start)
        span.stop = max(span.start, min(span.stop, outer.stop))
        outer.inner.append(span)
        around.append(span)
