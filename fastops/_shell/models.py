"""The commands ``inspect`` and ``run`` of ``python -m fastops``, for saved models."""

import sys
import time
from contextlib import contextmanager

import numpy as np
import tensorflow as tf
from rich.table import Table

from fastops._graphs import saved
from fastops._graphs.definition import count_ops
from fastops._graphs.model import Model

PERCENTILES = {"fastest": 0, "median": 50, "90 %": 90, "99 %": 99, "slowest": 100}


def inspect(console, model, tags):
    """Print the signatures and ops of a model; return the exit status."""
    with _told("inspect"):
        signatures = saved.signatures(model, tags=tags)
        models = [(Model(signature), signature) for signature in signatures.values()]
    if not models:
        console.print(f"{model} has no signatures")
    for loaded, signature in models:
        counts = count_ops(signature.concrete)
        rows = [
            *(("input " + name, _spec(spec)) for name, spec in loaded.inputs.items()),
            *(("output " + name, _spec(spec)) for name, spec in loaded.outputs.items()),
            ("runs as", _executor(loaded)),
            ("ops", ", ".join(f"{op} {count}" for op, count in sorted(counts.items()))),
        ]
        console.print(_table(loaded.name, rows))
    return 0


def run(console, model, signature, tags, inputs, outputs, repeat):
    """Run a model on files; return the exit status.

    Parameters
    ----------
    console : rich.console.Console
        The console to print to.
    model, signature : str
        The model and the signature, as for `fastops.graph.load`.
    tags : list of str or None
        The tags, as for `fastops.graph.load`.
    inputs, outputs : list of tuple of str
        Pairs of a name and a file.
    repeat : int
        The number of timed calls.
    """
    with _told("run"):
        called = saved.load(model, signature, tags=tags)
        for name, _ in outputs:
            if name not in called.outputs:
                raise ValueError(f"{model} has no output {name!r}: it has {[*called.outputs]}")
        given = {name: _read(path) for name, path in inputs}
        results = called(**given)
        times = []
        for _ in range(repeat):
            begin = time.perf_counter_ns()
            called(**given)
            times.append(time.perf_counter_ns() - begin)
        for name, path in outputs:
            _write(path, results[name].numpy())
    rows = [
        ("runs as", _executor(called)),
        ("calls", f"{repeat}, after one that is not timed"),
        *(
            (title, f"{np.percentile(times, percentile) / 1000:,.1f} us")
            for title, percentile in PERCENTILES.items()
        ),
    ]
    console.print(_table(f"{called.name} of {model}", rows))
    return 0


@contextmanager
def _told(command):
    """Exit with a message if a model, a file or a value is invalid."""
    try:
        yield
    except (OSError, TypeError, ValueError, tf.errors.OpError) as error:
        sys.exit(f"python -m fastops {command}: {error}")


def _read(path):
    try:
        return np.load(path, allow_pickle=False)
    except (EOFError, ValueError) as error:
        raise ValueError(f"{path} is not a .npy file, or is damaged: {error}") from None


def _write(path, value):
    """Write an array. Strings are written as bytes, since NumPy would pickle objects."""
    with open(path, "wb") as file:
        np.save(file, np.asarray(value, np.bytes_ if np.asarray(value).dtype == object else None))


def _executor(model):
    described = model.describe()
    if model.reason is None:
        return f"a plan of {described['nodes']} nodes"
    return f"TensorFlow's: {model.reason}"


def _spec(spec):
    return f"{spec.dtype.name} {spec.shape}"


def _table(title, rows):
    table = Table("what", "value", title=title, title_justify="left", show_header=False)
    for row in rows:
        table.add_row(*row)
    return table
