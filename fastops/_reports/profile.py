"""`fastops.profile` and `fastops.explain`: which path calls took, why, and where the time went."""

import html
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fastops._core.measuring import Recorder
from fastops._core.printing import Printed
from fastops._core.reasons import PATHS
from fastops._install.placement import is_installed
from fastops._plans.planned import observed


@dataclass(frozen=True)
class Change:
    """A part of a call's key that differs from the nearest key whose kernel was prepared.

    Attributes
    ----------
    part : str
        ``"dtypes"``, ``"device"``, ``"oneDNN"`` or the name of an attribute.
    before, now : str
        Its value in that key, and in the call.
    """

    part: str
    before: str
    now: str

    def __str__(self):
        return f"{self.part}: {self.before} -> {self.now}"


@dataclass(frozen=True)
class Detour:
    """Calls of one op that did not take the direct path, for one and the same reason.

    Attributes
    ----------
    path : str
        ``"capi"`` or ``"tensorflow"``.
    reason : str
        The reason's name (`fastops.REASONS` explains it).
    detail : str or None
        What the reason leaves open: which input, what TensorFlow said.
    changes : tuple of Change
        For ``"first_call"``, in what the call differs from those that were prepared; empty for
        the first call of the op.
    calls : int
        How many there were.
    """

    path: str
    reason: str
    detail: str | None
    changes: tuple[Change, ...]
    calls: int

    @property
    def explanation(self):
        """The changes and the detail as one text; empty where there are none."""
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
        Why those that were not direct were not, the most frequent reason first.
    dispatch_ns, kernel_ns, tensorflow_ns : int
        Nanoseconds in fastops, in the op's kernels, and in TensorFlow: in its own function, or its
        runtime, for calls that were not direct. Calls of other ops inside are left out.
    """

    direct: int
    capi: int
    tensorflow: int
    detours: tuple[Detour, ...]
    dispatch_ns: int
    kernel_ns: int
    tensorflow_ns: int

    @property
    def calls(self):
        """How many calls there were, as the program sees it."""
        return self.direct + self.capi + self.tensorflow

    @property
    def total_ns(self):
        """Nanoseconds in the calls."""
        return self.dispatch_ns + self.kernel_ns + self.tensorflow_ns

    def to_dict(self):
        """Return the same as a dict of ints, strings, lists and dicts."""
        return {
            "calls": self.calls,
            "direct": self.direct,
            "capi": self.capi,
            "tensorflow": self.tensorflow,
            "dispatch_ns": self.dispatch_ns,
            "kernel_ns": self.kernel_ns,
            "tensorflow_ns": self.tensorflow_ns,
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
        Why it is that.
    calls, ns : int
        How many calls there were, and their nanoseconds.
    """

    name: str
    executor: str
    reason: str | None
    calls: int
    ns: int


class Profile(Printed):
    """What `profile` found. It prints as a table, in notebooks too, and may be read at any time.

    Attributes
    ----------
    ops : dict of str to OpProfile
        The ops that were called, by name, those that took most time first.
    total_ns : int
        Nanoseconds from the beginning of the block to its end, or to now.
    above_ns : int
        Those of them that were not spent in the calls: in the program, in TensorFlow's Python
        functions above its ops, and in whatever does not pass through fastops. What measuring
        takes is left out.
    dispatch_ns, kernel_ns, tensorflow_ns : int
        The calls' own, as in `OpProfile`.
    functions : list of FunctionProfile
        What `fastops.function`, `fastops.graph` and ``install(functions=True)`` ran.
    """

    def __init__(self, recorder, functions):
        self._recorder = recorder
        self._functions = functions

    @property
    def ops(self):
        found = {
            name: OpProfile(*calls, _detours(reasons), *times)
            for name, (calls, *times, reasons) in self._recorder.calls().items()
        }
        return dict(sorted(found.items(), key=lambda item: -item[1].total_ns))

    @property
    def functions(self):
        found = [
            FunctionProfile(planned.title, executor, planned.reason, calls, ns)
            for planned, sums in list(self._functions.items())
            for executor, (calls, ns) in sums.items()
        ]
        return sorted(found, key=lambda one: -one.ns)

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
        """Return all of it as plain data: dicts, lists, strings and ints."""
        return {
            "total_ns": self.total_ns,
            "above_ns": self.above_ns,
            "dispatch_ns": self.dispatch_ns,
            "kernel_ns": self.kernel_ns,
            "tensorflow_ns": self.tensorflow_ns,
            "ops": {name: op.to_dict() for name, op in self.ops.items()},
            "functions": [dict(vars(function)) for function in self.functions],
        }

    def __rich__(self):
        return Group(*(_rich(*table) for table in self._tables()), Text(self._summary()))

    def _repr_html_(self):
        tables = "".join(_html(*table) for table in self._tables())
        return f"{tables}<p>{html.escape(self._summary())}</p>"

    def _tables(self):
        """Yield each table as its columns and its rows."""
        ops = self.ops
        total = OpProfile(
            *(sum(getattr(op, path) for op in ops.values()) for path in PATHS),
            (),
            *(sum(getattr(op, part) for op in ops.values()) for part in _PARTS),
        )
        yield _COLUMNS, [_row(name, op) for name, op in ops.items()] + [_row("all", total)]
        detours = [(name, detour) for name, op in ops.items() for detour in op.detours]
        if detours:
            yield (
                _DETOUR_COLUMNS,
                [(name, f"{d.calls:,}", d.path, d.reason, d.explanation) for name, d in detours],
            )

        if functions := self.functions:
            yield (
                _FUNCTION_COLUMNS,
                [
                    (one.executor, f"{one.calls:,}", _time(one.ns), one.name, one.reason or "")
                    for one in functions
                ],
            )

    def _summary(self):
        total, inside = self._recorder.times()
        text = f"{_time(total)} in all, {_time(total - inside)} of it above the dispatch."
        if not is_installed():
            text += " Without fastops.install() only calls of fastops.ops are seen."
        return text


class Explanation(Profile):
    """What `explain` found: a `Profile`, and the result.

    Attributes
    ----------
    result : object
        What the function returned.
    """

    def __init__(self, recorder, functions, result):
        super().__init__(recorder, functions)
        self.result = result


_COLUMNS = ("op", "calls", *PATHS, "in dispatch", "in kernel", "in TensorFlow")
_DETOUR_COLUMNS = ("op", "not direct", "path", "reason", "detail")
_FUNCTION_COLUMNS = ("executor", "calls", "time", "function", "why")
_TEXTS = ("op", *_DETOUR_COLUMNS[2:], "function", "executor", "why")
_PARTS = ("dispatch_ns", "kernel_ns", "tensorflow_ns")


def _row(name, op):
    return (
        name,
        f"{op.calls:,}",
        *(f"{getattr(op, path):,}" for path in PATHS),
        *(_time(getattr(op, part)) for part in _PARTS),
    )


def _rich(columns, rows):
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in columns:
        wraps = column in ("function", columns[-1])
        side = "left" if column in _TEXTS else "right"
        table.add_column(column, justify=side, no_wrap=not wraps, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _html(columns, rows):
    def line(cells, tag):
        aligned = (
            f'<{tag} style="text-align: {"left" if column in _TEXTS else "right"}">'
            f"{html.escape(cell)}</{tag}>"
            for column, cell in zip(columns, cells, strict=True)
        )
        return f"<tr>{''.join(aligned)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(columns, 'th')}</thead><tbody>{body}</tbody></table>"


def _time(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.1f} {unit}"
    return f"{ns} ns"


def _detours(reasons):
    found = [
        Detour(path, reason, detail, tuple(Change(*change) for change in changes or ()), calls)
        for (path, reason, detail, changes), calls in reasons.items()
    ]
    return tuple(sorted(found, key=lambda detour: -detour.calls))


def start():
    """Begin a `Profile` of this thread, and of all threads that start later, without an end."""
    recorder = Recorder()
    recorder.open(new_threads=True)
    return Profile(recorder, observed(everywhere=True).__enter__())


@contextmanager
def profile():
    """Measure the calls of a block: which path they took, why, and where the time went.

    Yields
    ------
    Profile
        What was found, up to the moment when it is read.

    Notes
    -----
    It concerns the thread that opens it, and looks at what the program does as it is: under
    `install` that is every op the program runs, else the calls of `fastops.ops`. One call counts
    once, however many of TensorFlow's functions it comes through. Blocks nest; the outer one has
    the calls of the inner one, too. Where no profile is open nothing is measured.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> x = tf.constant([1.0, 2.0])
    >>> with fastops.accelerated(), fastops.profile() as report:
    ...     for _ in range(10):
    ...         y = tf.math.softsign(x)
    >>> softsign = report.ops["Softsign"]
    >>> softsign.calls, softsign.direct, str(softsign.detours[0])
    (10, 9, '1 first_call')
    """
    recorder = Recorder()
    recorder.open()
    try:
        with observed() as functions:
            yield Profile(recorder, functions)
    finally:
        recorder.close()


def explain(function, /, *args, **kwargs):
    """Run a function and tell which path its calls of ops took, why, and where the time went.

    Parameters
    ----------
    function : callable
        What to run, once. What it raises is not caught.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    Explanation
        The `Profile` of the run, with the function's result.

    See Also
    --------
    profile : the same for a block, where the details are told.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> x = tf.constant([1.0, 2.0])
    >>> _ = fastops.explain(fastops.ops.softplus, features=x)
    >>> report = fastops.explain(fastops.ops.softplus, features=tf.cast(x, tf.float64))
    >>> str(report.ops["Softplus"].detours[0])
    '1 first_call (dtypes: float32 -> float64)'
    >>> report.result.dtype
    tf.float64
    """
    with profile() as report:
        result = function(*args, **kwargs)
    return Explanation(report._recorder, report._functions, result)
