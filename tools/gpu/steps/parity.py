"""Call each op that has a kernel on the device, as in the parity suite, with inputs there.

A journal has a line for each op that begins, and a line for each op that is done. If a process
crashes or loses the device, the next process continues after that op.
"""

import faulthandler
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tools.gpu.proving import FAULTED
from tools.gpu.report import at_least, holds

from .request import Findings, SkippedError, put

QUICK = ("AddV2", "Mul", "Relu", "MatMul", "Softmax", "Sum", "Cast", "Transpose", "ConcatV2")

ALONE = 180
"""The time limit in seconds for the calls of one op in TensorFlow alone."""

ARMS = 3
"""The number of calls that are compared: one in TensorFlow, and two in fastops."""

PATIENCE = 150
"""The time limit in seconds for the comparison of one op."""

MOST_SHOWN = 12


def run(request):
    from parity import recipes  # type: ignore[import-not-found]

    recipes.load()
    journal = Journal(Path(request.out, "parity.jsonl"), request.resume)
    names = chosen(request)
    for name in journal.begun():
        # The op has ended the process. Find out whether it does so without fastops.
        journal.end(name, died=_stock_dies(request, name))
    kernels = kernels_of(request.kind)
    for name in names:
        if name in journal.ended:
            continue
        if request.left() < 0:
            break
        journal.begin(name)
        # If a call hangs, the process ends, and the next one goes on as after a crash.
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        result = compare(request, name, kernels[name])
        faulthandler.cancel_dump_traceback_later()
        if result is None:
            journal.leave(name)
            break
        journal.end(name, **result)
    return summary(names, journal)


def chosen(request):
    """Return the names of the ops to compare."""
    from parity import cases, recipes

    kernels = kernels_of(request.kind)
    callable_there = [
        name for name in cases.op_names() if name in recipes.RECIPES and name in kernels
    ]
    wanted = request.ops or (QUICK if request.quick else callable_there)
    if missing := set(request.ops or ()) - set(callable_there):
        raise SkippedError(f"no recipe, or no kernel there: {', '.join(sorted(missing))}")
    part, count = request.share
    return [name for name in callable_there if name in wanted][part - 1 :: count]


class Journal:
    """The results of each op, in a file that remains if the process crashes."""

    def __init__(self, path, resume):
        self._path = path
        self.ended = {}
        self._begun = []
        if not resume:
            path.unlink(missing_ok=True)
        text = path.read_text() if path.exists() else ""
        if not text.endswith("\n") and text:
            text = text[: text.rfind("\n") + 1]  # drop an incomplete line
            path.write_text(text)
        for line in text.splitlines():
            self._note(json.loads(line))

    def begun(self):
        """Return the ops that began twice and did not end. One time may be an interrupted run."""
        return [
            name
            for name, times in Counter(self._begun).items()
            if times > 1 and name not in self.ended
        ]

    def begin(self, name):
        self._write({"op": name, "begins": True})

    def leave(self, name):
        """Remove the record that an op began."""
        self._write({"op": name, "begins": False})

    def end(self, name, **result):
        self._write({"op": name, **result})

    def _write(self, line):
        with self._path.open("a") as file:
            print(json.dumps(line), file=file)
        self._note(line)

    def _note(self, line):
        if line.get("begins"):
            self._begun.append(line["op"])
        elif "begins" in line:
            self._begun.remove(line["op"])
        else:
            self.ended[line["op"]] = line


# The calls ----------------------------------------------------------------------------------------


def kernels_of(kind):
    """Return the kernel registrations of a kind of device, by op."""
    from tensorflow.python.framework import kernels

    found = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in (kind, "DEFAULT") and not kernel.label:
            found.setdefault(kernel.op, []).append(kernel)
    return found


def calls(request, name, kernels):
    """Yield the calls of an op, each several times, since a call may change its inputs."""
    import tensorflow as tf
    from parity import cases, checks

    for types in cases.combinations(name):
        kernel = next(
            (registration for registration in kernels if _takes(registration, types)), None
        )
        if kernel is None or cases.rejection(name, types):
            continue
        try:
            with tf.device(request.device):
                drawn = [
                    same
                    for mode in cases.modes(name, types)
                    for same in checks.same_cases(name, types, mode, False, checks.ROUNDS)
                ]
        except tf.errors.OpError as error:
            _leave_if_lost(request, name, error)
            print(f"{name}: no inputs on the device: {error}", flush=True)
            continue
        for same in drawn:
            # The same case may occur several times.
            for case in {id(case): case for case in same}.values():
                place(case, kernel, request.device)
            yield same


def _takes(kernel, types):
    """Tell whether a kernel supports a combination of dtypes."""
    return all(
        types[limit.name].as_datatype_enum in limit.allowed_values.list.type
        for limit in kernel.constraint
        if limit.name in types
    )


def place(case, kernel, device):
    """Put the inputs of a case into the memory that its kernel expects."""
    import tensorflow as tf

    from fastops import _registry

    def there(value, where):
        if not isinstance(value, tf.Tensor) or value.dtype in (
            *(tf.string, tf.resource, tf.variant),
        ):
            return value
        return put(value, where)

    record = _registry.op(case.op_name).record
    own = {param.name: param.op_def_name for param in record.params}
    inputs = {arg.name for arg in record.op_def.inputs}
    for name, value in case.arguments.items():
        if own.get(name, name) in inputs:
            where = "CPU:0" if own.get(name, name) in kernel.host_memory_arg else device
            case.arguments[name] = tf.nest.map_structure(
                lambda tensor, where=where: there(tensor, where), value
            )


def compare(request, name, kernels):
    """Compare the calls of an op with TensorFlow's; return the result for the journal.

    Returns `None` if there is not enough time.
    """
    import tensorflow as tf
    from parity import checks

    count, paths, problems = 0, Counter(), []
    with request.scope():
        for same in calls(request, name, kernels):
            if request.left() < 0:
                return None
            count += 1
            try:
                problem, path = checks.compare(*same[:ARMS])
            except tf.errors.OpError as error:  # of an earlier kernel, found by a copy to the host
                problem, path = str(error), "an error"
            paths[path or "TensorFlow raises"] += 1
            if problem:
                _leave_if_lost(request, name, problem)
            if problem and _differs_by_itself(same):
                paths["TensorFlow's own runs differ"] += 1
            elif problem:
                problems.append(f"{same[0]}: {problem}"[:400])
    if paths["TensorFlow raises"]:
        _leave_if_lost(request, name)
    return {"calls": count, "paths": dict(paths), "problems": problems[:MOST_SHOWN]}


def _differs_by_itself(same):
    """Tell whether results vary in TensorFlow, where the order of sums and writes may be random."""
    from parity import checks

    theirs = checks.reference(same[0].op_name)
    fresh = same[ARMS:] or same[:1] * checks.MANY_ROUNDS
    runs = [(checks.outcome(theirs, **case.arguments), checks.state(case)) for case in fresh]
    return any(checks.difference(run, runs[0]) for run in runs[1:])


def _leave_if_lost(request, name, *problems):
    """End the process if the device no longer computes."""
    if not _alive(request):
        print(f"{name}: the device is lost", *problems, sep="\n", flush=True)
        os._exit(FAULTED)


def _alive(request):
    """Tell whether the device still computes; after a fault it does not."""
    import tensorflow as tf

    try:
        with tf.device(request.device):
            return tf.raw_ops.Neg(x=tf.constant([1.0, 2.0])).numpy().tolist() == [-1.0, -2.0]
    except tf.errors.OpError:
        return False


def _stock_dies(request, name):
    """Make the calls of an op in TensorFlow alone, in a new process; tell who causes the crash."""
    asked = {"device": request.device, "place": request.place, "out": request.out}
    code = (
        f"import sys; sys.path.insert(0, {str(request.tree / 'tests')!r})\n"
        "from tools.gpu.steps import parity, request\n"
        f"parity.stock(request.Request('parity', **{asked!r}), {name!r})"
    )
    try:
        done = subprocess.run([sys.executable, "-c", code], timeout=ALONE, check=False)
    except subprocess.TimeoutExpired:
        return "TensorFlow"
    return "TensorFlow" if done.returncode else "fastops"


def stock(request, name):
    """Make the calls of an op in TensorFlow, as often as `compare` does."""
    from parity import checks, recipes

    recipes.load()
    with request.scope():
        for same in calls(request, name, kernels_of(request.kind)[name]):
            for case in same:
                checks.outcome(checks.reference(name), **case.arguments)
    if not _alive(request):
        sys.exit(1)


# The result ---------------------------------------------------------------------------------


def summary(names, journal):
    findings = Findings()
    ended = {name: journal.ended[name] for name in names if name in journal.ended}
    paths = Counter()
    for row in ended.values():
        paths.update(row.get("paths", {}))
    compared = [
        name for name, row in ended.items() if set(row.get("paths", {})) - {"TensorFlow raises"}
    ]
    differ = {name: row["problems"] for name, row in ended.items() if row.get("problems")}
    died = {name: row["died"] for name, row in ended.items() if row.get("died")}
    ours = [name for name, whose in died.items() if whose == "fastops"]
    findings.figures = {
        "ops": len(names),
        "compared": len(compared),
        "calls": sum(row.get("calls", 0) for row in ended.values()),
        "paths": dict(paths.most_common()),
        "differ": differ,
        "died": died,
        "by op": {name: row.get("paths", {}) for name, row in ended.items()},
    }
    findings.verdicts = [
        at_least("ops compared", len(compared), 1),
        holds("bit-identical to stock", not differ, ", ".join([*differ][:MOST_SHOWN])),
        holds("no crash of its own", not ours, ", ".join(ours[:MOST_SHOWN])),
    ]
    findings.table = [[str(count), path] for path, count in paths.most_common()]
    if left := len(names) - len(ended):
        findings.outcome = "cut off"
        findings.notes.append(f"{left} of {len(names)} ops are left: --resume goes on")
    if silent := [name for name in ended if name not in compared and name not in died]:
        findings.notes.append(f"no call succeeds, in either: {' '.join(silent)}")
    if died:
        findings.notes.append(f"ended the process: {died}")
    findings.notes += [
        f"{name}: {problems[0]}" for name, problems in [*differ.items()][:MOST_SHOWN]
    ]
    return findings
