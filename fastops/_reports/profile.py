"""Profiles: which path calls took, why, and where the time went."""

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group
from rich.text import Text

from fastops._core.printing import Printed
from fastops._core.reasons import PATHS, REASONS, hint_of
from fastops._install.placement import is_installed
from fastops._reports import page, trace
from fastops._reports.costs import costs_of_noting
from fastops._reports.spans import Noted, Seen
from fastops._reports.tables import as_rich, in_units
from fastops._specialize.policy import MAX_SHOWN_ITEMS, MAX_SHOWN_OPS, MAX_SHOWN_TEXT


@dataclass(frozen=True)
class Change:
    """A part of a call's key that differs from the nearest key whose kernel was prepared.

    Attributes
    ----------
    part : str
        ``"dtypes"``, ``"device"``, ``"oneDNN"`` or the name of an attribute.
    before, now : str
        The value in this key, and the value in the call.
    """

    part: str
    before: str
    now: str

    def __str__(self):
        return f"{self.part}: {self.before} -> {self.now}"


@dataclass(frozen=True)
class Detour:
    """Calls of one op that did not take the direct path, for the same reason.

    Attributes
    ----------
    path : str
        ``"capi"`` or ``"tensorflow"``.
    reason : str
        The reason's name (`fastops.REASONS` explains it).
    detail : str or None
        The details of the reason, such as the input or TensorFlow's message.
    changes : tuple of Change
        For ``"first_call"``, how the call differs from the prepared ones; empty for the first call
        of the op.
    calls : int
        The number of calls.
    """

    path: str
    reason: str
    detail: str | None
    changes: tuple[Change, ...]
    calls: int

    @property
    def explanation(self):
        """The changes and the detail as one text; empty if there are none."""
        return "; ".join([*map(str, self.changes), *filter(None, [self.detail])])

    def __str__(self):
        explanation = f" ({self.explanation})" if self.explanation else ""
        return f"{self.calls:,} {self.reason}{explanation}"


@dataclass(frozen=True)
class OpProfile:
    """The calls of one op in a profile.

    Attributes
    ----------
    direct, capi, tensorflow : int
        Calls by the path they took.
    detours : tuple of Detour
        The calls that were not direct, by reason, the most frequent reason first.
    dispatch_ns, kernel_ns, tensorflow_ns : int
        Nanoseconds in fastops, in the op's kernels, and in TensorFlow. Calls that were not direct
        spend the latter in TensorFlow's own function, or in its runtime. Calls of other ops inside
        are not included.
    in_caller : int
        The number of direct calls whose kernel ran its tasks in the calling thread instead of
        TensorFlow's threads: see ``threads`` of `fastops.options`.
    """

    direct: int
    capi: int
    tensorflow: int
    detours: tuple[Detour, ...]
    dispatch_ns: int
    kernel_ns: int
    tensorflow_ns: int
    in_caller: int = 0

    @property
    def calls(self):
        """The number of calls that the program made."""
        return self.direct + self.capi + self.tensorflow

    @property
    def total_ns(self):
        """Nanoseconds in the calls."""
        return self.dispatch_ns + self.kernel_ns + self.tensorflow_ns

    def to_dict(self):
        """Return the profile of the op as a dict of ints, strings, lists and dicts."""
        return {
            "calls": self.calls,
            "direct": self.direct,
            "capi": self.capi,
            "tensorflow": self.tensorflow,
            "dispatch_ns": self.dispatch_ns,
            "kernel_ns": self.kernel_ns,
            "tensorflow_ns": self.tensorflow_ns,
            "in_caller": self.in_caller,
            "detours": [
                {**vars(detour), "changes": [dict(vars(change)) for change in detour.changes]}
                for detour in self.detours
            ],
        }


@dataclass(frozen=True)
class FunctionProfile:
    """The calls of one signature of a traced function in a profile.

    Attributes
    ----------
    name : str
        The function, with its arguments as TensorFlow shows them.
    executor : str
        ``"plan"`` or ``"tensorflow"``.
    reason : str or None
        Why TensorFlow ran the function; None if a plan did.
    calls, ns : int
        The number of calls, and their nanoseconds.
    """

    name: str
    executor: str
    reason: str | None
    calls: int
    ns: int


@dataclass(frozen=True, repr=False, eq=False)
class RecordingProfile:
    """A recording of a call in a profile. It prints as one line; the attributes have everything.

    Attributes
    ----------
    ops : tuple of str
        The names of the ops, in the order in which a replay runs them.
    constants : tuple of tuple
        The constants among the inputs of the ops: the name of the op, the parameter and the tensor.
    guards : dict of str to tuple of str
        What each replay compares, by the kind of guard: ``"names"`` in libraries, ``"functions"``
        of the ops, ``"globals"`` and their ``"contents"``, ``"places"`` of the object,
        ``"settings"``, ``"values"`` and ``"sizes"`` of tensors, and ``"surroundings"``.
    """

    ops: tuple[str, ...]
    constants: tuple[tuple, ...]
    guards: dict[str, tuple[str, ...]]

    def to_dict(self):
        """Return the recording as plain data: dicts, lists and strings."""
        return {
            "ops": list(self.ops),
            "constants": list(map(_constant, self.constants)),
            "guards": {kind: list(texts) for kind, texts in self.guards.items()},
        }

    def __str__(self):
        parts = [f"ops: {_some(self.ops, MAX_SHOWN_OPS)}"]
        if self.constants:
            parts.append(f"constants: {_some(map(_constant, self.constants))}")
        guards = [
            f"{kind} {len(texts):,}" + (f" ({_some(texts)})" if kind in _SHOWN_GUARDS else "")
            for kind, texts in self.guards.items()
            if texts
        ]
        return "; ".join([*parts, f"guards: {', '.join(guards) or 'none'}"])

    __repr__ = __str__


@dataclass(frozen=True)
class MethodProfile:
    """Calls of a method of an object of Keras, or of a user's module, under `install`.

    Attributes
    ----------
    name : str
        The class and the name of the object.
    method : str
        The method.
    reason : str or None
        Why the calls were not replayed; None if they were.
    calls : int
        The number of calls. Calls inside a replayed call are not counted.
    arguments : str or None
        What fastops compares of the arguments, such as ``(float32[2,3], training=True)``. None if
        Keras made the calls before fastops had read the arguments.
    detail : str or None
        The latest particulars of the reason, such as the path to what has changed in the object.
    state : str or None
        What is known about calls with such arguments: ``"waiting"`` (a recording would not pay
        yet), ``"recorded"`` (one call; a second one has to confirm it), ``"active"`` (calls are
        replayed), or ``"refused"``. None if nothing is known about them any more.
    missed : str or None
        What had changed at the last call that missed the recordings; None if no call has.
    refused : str or None
        Why a recording of such calls last failed; None if none has failed.
    recordings : tuple of RecordingProfile
        The recordings of such calls. There are several if tensor values decide which ops run.
    """

    name: str
    method: str
    reason: str | None
    calls: int
    arguments: str | None = None
    detail: str | None = None
    state: str | None = None
    missed: str | None = None
    refused: str | None = None
    recordings: tuple[RecordingProfile, ...] = field(default=(), repr=False, compare=False)

    def to_dict(self):
        """Return the calls as a dict of ints, strings, lists and dicts."""
        recordings = [recording.to_dict() for recording in self.recordings]
        return {**vars(self), "recordings": recordings}


@dataclass(frozen=True)
class PublicFunctionProfile:
    """Calls of a public function of TensorFlow in a profile, under `install`.

    A function that runs a single op is not listed: `Profile.ops` has the op.

    Attributes
    ----------
    name : str
        The public name, such as ``tf.norm``.
    reason, calls, arguments, detail, state, missed, refused, recordings
        See `MethodProfile`.
    """

    name: str
    reason: str | None
    calls: int
    arguments: str | None = None
    detail: str | None = None
    state: str | None = None
    missed: str | None = None
    refused: str | None = None
    recordings: tuple[RecordingProfile, ...] = field(default=(), repr=False, compare=False)

    to_dict = MethodProfile.to_dict


@dataclass(frozen=True)
class WalkProfile:
    """Walks back over the records of tapes in a profile, under `install`: those of one kind.

    Attributes
    ----------
    executor : str
        ``"replay"`` (as an earlier walk over records of the same kinds), ``"fastops"`` (op by op),
        or ``"tensorflow"``.
    reason : str or None
        Why the walks were not replayed; None if they were.
    walks, ns : int
        The number of walks, and their nanoseconds with the ops in them.
    records : int
        The number of records on the way from the targets to the sources, in all these walks. It is
        0 for walks whose records have no description, such as TensorFlow's.

    Notes
    -----
    While a profile is open, a replayed call runs op by op, and each op has a record. So the first
    walks over the records of such calls are not replayed, even if those before the profile were.
    """

    executor: str
    reason: str | None
    walks: int
    ns: int
    records: int


class Profile(Printed):
    """The result of `profile`. It prints as a table, also in notebooks, and can be read any time.

    Attributes
    ----------
    ops : dict of str to OpProfile
        The ops that were called, by name. The ops that took most time come first.
    total_ns : int
        Nanoseconds from the beginning of the block to its end, or to now if it is open.
    above_ns : int
        The part of these that was not spent in the calls: in the program, in TensorFlow's Python
        functions above its ops, and in code that does not pass through fastops. The overhead of
        measuring is not included.
    dispatch_ns, kernel_ns, tensorflow_ns : int
        The sums over all calls: see `OpProfile`.
    functions : list of FunctionProfile
        The traced functions that `fastops.function`, `fastops.graph` and `install` ran.
    methods : list of MethodProfile
        The calls of objects of Keras, modules and generators under `install`: replayed or not, and
        why, with the recordings.
    public_functions : list of PublicFunctionProfile
        The calls of public functions that `install` replays: replayed or not, and why, with the
        recordings.
    walks : list of WalkProfile
        The walks back over tapes, such as in ``tape.gradient``: how they were made, and why.
    """

    def __init__(self, recorder, functions, replayable, frames=None):
        self._recorder = recorder
        self._functions = functions
        self._replayable = replayable
        self._frames = frames

    @property
    def ops(self):
        profiles = {
            name: OpProfile(*calls, _detours(reasons), *times)
            for name, (calls, *times, reasons) in self._recorder.calls().items()
        }
        return dict(sorted(profiles.items(), key=lambda item: -item[1].total_ns))

    @property
    def functions(self):
        profiles = [
            FunctionProfile(planned.title, executor, planned.reason, calls, ns)
            for planned, sums in list(self._functions.items())
            for executor, (calls, ns) in sums.items()
        ]
        return sorted(profiles, key=lambda profile: -profile.ns)

    @property
    def methods(self):
        return [
            MethodProfile(name, method, reason, seen.calls, arguments, seen.detail, *_known(seen))
            for (method, name, arguments, reason), seen in self._calls()
            if method is not None
        ]

    @property
    def public_functions(self):
        return [
            PublicFunctionProfile(name, reason, seen.calls, arguments, seen.detail, *_known(seen))
            for (method, name, arguments, reason), seen in self._calls()
            if method is None
        ]

    @property
    def walks(self):
        sums = {}
        for _, start, stop, executor, reason, records in self._recorder.noted_walks():
            kind = sums.setdefault((executor, reason), [0, 0, 0])
            kind[:] = kind[0] + 1, kind[1] + stop - start, kind[2] + records
        profiles = [WalkProfile(*kind, *numbers) for kind, numbers in sums.items()]
        return sorted(profiles, key=lambda profile: -profile.ns)

    @property
    def total_ns(self):
        return self._recorder.times()[0]

    @property
    def above_ns(self):
        total, inside = self._recorder.times()
        return total - inside

    @property
    def dispatch_ns(self):
        return sum(op.dispatch_ns for op in self.ops.values())

    @property
    def kernel_ns(self):
        return sum(op.kernel_ns for op in self.ops.values())

    @property
    def tensorflow_ns(self):
        return sum(op.tensorflow_ns for op in self.ops.values())

    def to_dict(self):
        """Return the profile as plain data: dicts, lists, strings and ints."""
        return {
            "total_ns": self.total_ns,
            "above_ns": self.above_ns,
            "dispatch_ns": self.dispatch_ns,
            "kernel_ns": self.kernel_ns,
            "tensorflow_ns": self.tensorflow_ns,
            "ops": {name: op.to_dict() for name, op in self.ops.items()},
            "functions": [dict(vars(function)) for function in self.functions],
            "methods": [method.to_dict() for method in self.methods],
            "public_functions": [function.to_dict() for function in self.public_functions],
            "walks": [dict(vars(walk)) for walk in self.walks],
        }

    def to_html(self, path=None):
        """Return the profile as a page of HTML, with a flame picture, the tables and notes.

        Parameters
        ----------
        path : str or os.PathLike or None
            A file to write the page to, in UTF-8.

        Returns
        -------
        str
            The page. It needs no other file, and follows the light or dark mode of the browser.

        Notes
        -----
        The width of a bar in the picture is its time, and a bar lies below the bar of its caller.
        Bars are Python functions (with ``profile(frames=True)``), ops with fastops's dispatch,
        kernels, and TensorFlow. Calls with the same name and the same caller are one bar.

        Examples
        --------
        >>> import tensorflow as tf, fastops
        >>> report = fastops.explain(fastops.ops.relu, features=tf.constant([-1.0, 2.0]))
        >>> page = report.to_html()
        >>> page[:15], "Relu" in page
        ('<!DOCTYPE html>', True)
        """
        text = page.as_page(self, f"fastops: {type(self).__name__.lower()}")
        return _written(text, path)

    def to_chrome_trace(self, path=None):
        """Return the profile as a trace that Perfetto and chrome://tracing open.

        Parameters
        ----------
        path : str or os.PathLike or None
            A file to write the trace to.

        Returns
        -------
        str
            JSON in the Trace Event Format. Each thread has a track with the calls of ops, their
            kernels, TensorFlow, traced functions, and Python functions if they were noted.

        Notes
        -----
        Times are those of the monotonic clock, without corrections. So the events of several
        profiles of a process can be merged into one list.

        Examples
        --------
        >>> import json, tensorflow as tf, fastops
        >>> report = fastops.explain(fastops.ops.relu, features=tf.constant([-1.0, 2.0]))
        >>> events = json.loads(report.to_chrome_trace())["traceEvents"]
        >>> [event["name"] for event in events if event["ph"] == "X"][:2]
        ['MainThread', 'Relu']
        """
        return _written(trace.as_json(self), path)

    def __rich__(self):
        return Group(*(as_rich(*table) for table in self._tables()), Text(self._summary()))

    def _repr_html_(self):
        return page.as_fragment(self)

    def _calls(self):
        """Return the calls that may be replayed: see `fastops._specialize.observers.Observed`."""
        return list(self._replayable.items())

    def _stop(self):
        """End a profile that no block ends."""
        if self._frames:
            self._frames.close()
        self._recorder.close()

    def _seen(self):
        """Return the raw data for pictures."""
        calls, threads = self._recorder.timeline()
        opener, start, stop = self._recorder.interval()
        noted = None
        if self._frames and (moments := self._frames.moments()):
            within = [(event[4], event[5]) for event in calls if event[1] == opener]
            noted = Noted(moments, self._frames.called(), within, costs_of_noting())
        runs = [
            (thread, planned.title, executor, began, ended)
            for thread, planned, executor, began, ended in list(self._functions.times)
        ]
        walks = [
            (thread, executor, began, ended)
            for thread, began, ended, executor, *_ in self._recorder.noted_walks()
        ]
        return Seen(opener, start, stop, calls, threads, runs, walks, noted)

    def _limits(self):
        """Return the limits of pictures as plain data: missing calls and the costs of noting."""
        calls = sum(op.calls for op in self.ops.values())
        limits = {"calls_left_out": calls - len(self._recorder.timeline()[0])}
        if self._frames and self._frames.is_refused:
            limits["no_frames"] = "Another profile function was set: Python's calls are not noted."
        elif self._frames:
            costs = costs_of_noting()
            limits["cost_of_python_call_ns"] = round(costs.of_python, 1)
            limits["cost_of_c_call_ns"] = round(costs.of_c, 1)
            limits["slowdown_of_python"] = round(costs.slowdown, 2)
            limits["frames_cut"] = self._frames.is_cut()
        return limits

    def _tables(self):
        """Yield each table as its columns and its rows."""
        ops = self.ops
        total = OpProfile(
            *(sum(getattr(op, path) for op in ops.values()) for path in PATHS),
            (),
            *(sum(getattr(op, part) for op in ops.values()) for part in (*_PARTS, "in_caller")),
        )
        rows = [_row(name, op) for name, op in ops.items()] + [_row("all", total)]
        if total.in_caller:
            yield _COLUMNS, rows
        else:
            yield _COLUMNS[:-1], [row[:-1] for row in rows]
        detours = [(name, detour) for name, op in ops.items() for detour in op.detours]
        if detours:
            yield (
                _DETOUR_COLUMNS,
                [(name, f"{d.calls:,}", d.path, d.reason, d.explanation) for name, d in detours],
            )
            seen = {detour.reason for _, detour in detours}
            yield (
                _REASON_COLUMNS,
                [
                    (reason.id, reason.sentence, hint_of(reason.sentence))
                    for reason in REASONS
                    if reason.id in seen
                ],
            )

        if functions := self.functions:
            yield (
                _FUNCTION_COLUMNS,
                [
                    (
                        function.executor,
                        f"{function.calls:,}",
                        in_units(function.ns),
                        function.name,
                        _with_hint(function.reason or ""),
                    )
                    for function in functions
                ],
            )

        if methods := self.methods:
            yield (
                _METHOD_COLUMNS,
                [
                    (method.name, method.method, f"{method.calls:,}", _how(method))
                    for method in methods
                ],
            )

        if functions := self.public_functions:
            yield (
                _PUBLIC_COLUMNS,
                [(function.name, f"{function.calls:,}", _how(function)) for function in functions],
            )

        if walks := self.walks:
            yield (
                _WALK_COLUMNS,
                [
                    (
                        walk.executor,
                        f"{walk.walks:,}",
                        in_units(walk.ns),
                        f"{walk.records:,}",
                        _with_hint(walk.reason or ""),
                    )
                    for walk in walks
                ],
            )

    def _summary(self):
        total, inside = self._recorder.times()
        text = f"{in_units(total)} in all, {in_units(total - inside)} of it above the dispatch."
        if not is_installed():
            text += " Without fastops.install() only calls of fastops.ops are seen."
        return text


class Explanation(Profile):
    """The result of `explain`: a `Profile`, and the result of the function.

    Attributes
    ----------
    result : object
        The return value of the function.
    """

    def __init__(self, recorder, functions, replayable, result):
        super().__init__(recorder, functions, replayable)
        self.result = result


def _written(text, path):
    """Return a text, and write it to a file if there is a path."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


_COLUMNS = ("op", "calls", *PATHS, "in dispatch", "in kernel", "in TensorFlow", "in caller")
_DETOUR_COLUMNS = ("op", "not direct", "path", "reason", "detail")
_REASON_COLUMNS = ("reason", "meaning", "what to do")
_FUNCTION_COLUMNS = ("executor", "calls", "time", "function", "why")
_METHOD_COLUMNS = ("object", "method", "calls", "how")
_PUBLIC_COLUMNS = ("public function", "calls", "how")
_WALK_COLUMNS = ("executor", "walks", "time", "records", "why")
_PARTS = ("dispatch_ns", "kernel_ns", "tensorflow_ns")
_SHOWN_GUARDS = ("settings", "values", "surroundings")
"""The kinds of guards whose texts are printed. For other kinds, their number is printed."""


def _how(profile, most=160):
    """Return how the calls of a `MethodProfile` ran, and in more lines what is known about them."""
    how, arguments = profile.reason or "replayed", profile.arguments
    if profile.detail is not None:
        how = f"{how}: {profile.detail}"
    lines = [_with_hint(how)]
    if arguments is not None:
        lines.append(arguments if len(arguments) <= most else arguments[: most - 4] + "...)")
    lines += map(str, profile.recordings)
    for title, why in (("last miss", profile.missed), ("last refusal", profile.refused)):
        if why is not None and why not in how:
            lines.append(f"{title}: {_with_hint(why)}")
    return "\n".join(lines)


def _with_hint(why):
    """Return a reason, and in a second line its hint, if it has one that the text does not have."""
    hint = hint_of(why)
    return f"{why}\nhint: {hint}" if hint and hint not in why else why


def _known(observed):
    """Return the state, the last miss and refusal, and the recordings of observed calls."""
    described = observed.describe and observed.describe()
    if described is None:
        return None, None, None, ()
    recordings = [
        RecordingProfile(
            tuple(variant["ops"]),
            tuple(variant["constants"]),
            {kind: tuple(texts) for kind, texts in variant["guards"].items()},
        )
        for variant in described["variants"]
    ]
    refused = ": ".join(filter(None, [described["reason"], described["detail"]])) or None
    return described["state"], described["missed"], refused, tuple(recordings)


def _constant(constant):
    """Return the text of a constant of a `RecordingProfile`."""
    op, parameter, tensor = constant
    shape = tensor._shape_tuple()  # `shape` would leave a TensorShape in the tensor
    text = f"{op}.{parameter} = {tensor.dtype.name}{list(shape)}"
    is_shown = not shape and tensor.dtype.name not in ("resource", "variant")
    return f"{text} {tensor.numpy()}" if is_shown else text


def _some(texts, most=MAX_SHOWN_ITEMS):
    """Return the first texts, shortened, as one text."""
    texts = list(texts)
    shown = [
        text if len(text) <= MAX_SHOWN_TEXT else text[:MAX_SHOWN_TEXT] + "..."
        for text in texts[:most]
    ]
    more = [f"{len(texts) - most:,} more"] * (len(texts) > most)
    return ", ".join(shown + more) or "none"


def _row(name, op):
    return (
        name,
        f"{op.calls:,}",
        *(f"{getattr(op, path):,}" for path in PATHS),
        *(in_units(getattr(op, part)) for part in _PARTS),
        f"{op.in_caller:,}",
    )


def _detours(reasons):
    detours = [
        Detour(path, reason, detail, tuple(Change(*change) for change in changes or ()), calls)
        for (path, reason, detail, changes), calls in reasons.items()
    ]
    return tuple(sorted(detours, key=lambda detour: -detour.calls))
