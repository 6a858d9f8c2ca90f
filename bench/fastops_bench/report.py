"""What a run says: tables, and each promised figure beside the measured one.

Times are medians over rounds, and ratios are ratios of medians. Peers have measured in processes of
their own: `runs` has scaled their times so that NumPy takes as long in both.

A promise is found by the group and the label of a row. `PROMISED` lists all of these names, and
`lost` names the promises for which a run has no row, for example because the row was renamed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import geometric_mean, mean, median

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fastops_bench.runs import MAIN, PLAIN
from fastops_bench.suites import SUITES

YARDSTICK = "AddV2 scalar"
WITHOUT = "fastops, plain kernel"
CALLS = {
    "a + b": 15,
    "2.0 * x": 15,
    "x[0]": 20,
    "tf.matmul(m, n)": 12,
    "tf.reshape(m, [4])": 20,
    "tf.reduce_sum(m)": 12,
    "tf.zeros([4])": 12,
    "tf.cast(x, tf.int32)": 10,
    "tf.where(flags, x, x)": 10,
    "tf.one_hot(labels, 3)": 15,
}
"""How many times faster a call must be in an unchanged program."""
PROGRAMS = {
    "three-layer perceptron on one row": 12,
    "gradient of one multiplication": 6,
    "training step of the perceptron": 6,
    "Keras LSTM cell on one row": 2.5,
    "Keras Sequential of three Dense layers on one row": 2.5,
    "its eager training step with Adam": 3,
}
DATASETS = {
    "a batch of a dataset in memory": 5,
    "a shuffled batch of a dataset in memory": 3,
    "a batch with a function that is mapped over it": 20,
    "a batch with a function that is mapped over its rows": 5,
    "an epoch of 32 batches with a small traced step": 6,
}
FUNCTIONS = {
    "two ops": 60,
    "three-layer perceptron on one row": 50,
    "training step of the perceptron": 12,
    "Keras LSTM cell on one row": 15,
    "a loop of 100 rounds, five ops in each": 3,
    "convolutional block with a shortcut, batch 32": 0.98,
    "eight products of 512x512 matrices": 0.98,
}
"""How many times faster than `tf.function` a function must be."""
TRACED = {
    "Keras fit, an epoch of 56 batches": 1.5,
    "Keras predict_on_batch on one row": 2.5,
    "Keras train_on_batch, 32 rows": 1,
}
DISTRIBUTIONS = 4
"""How many times faster `log_prob` and `sample` must be, on average."""
LIBRARIES = {
    "GPflow, loss of a regression with its gradient": 4,
    "tf.Module, three dense layers on one row": 50,
    "tf.Module, trainable variables of three layers": 50,
    "tf.Module, training step": 15,
    "tf_keras, three dense layers on one row": 40,
    "tf_keras, a functional model on one row": 40,
    "tf_keras, training step with Adam": 25,
    "Sonnet, three linear layers on one row": 12,
    "Sonnet, training step with Adam": 12,
}

KERAS = {
    "perceptron, Sequential": (100, 0.5),
    "perceptron, Functional": (100, 0.5),
    "perceptron, subclassed": (12, 1),
    "perceptron, with a Lambda and an activation": (60, 0.7),
    "training step": (40, 0.7),
    "fit, eager": (8, None),
    "fit": (2.5, None),
    "evaluate": (3, None),
    "predict": (3, None),
    "metric of nine updates, made anew": (20, None),
    "loss of one step, made anew": (25, None),
}
"""How many times faster than Keras as it is, and how much of PyTorch's time it may take."""
KERAS_ELSE = (25, 1)
"""The same figures for other models."""

CHAIN = ("10", "100", "1000")
"""The lengths of chains from which the time of one node is computed."""

EXAMPLES = {
    "actor-critic": (15, 1),
    "actor-critic, long": (15, 1),
    "DDPG": (5, None),
    "online request": (25, None),
}
"""The same figures for whole programs, over the whole run and when they are steady."""


@dataclass(frozen=True)
class Rows:
    """The rows of a group that have promises.

    Attributes
    ----------
    suite : str
        The suite that measures the group.
    labels : collection of str
        The labels that the group must have. If there are none, any row will do.
    all_have_one : bool
        Whether the group must not have any other label, since each of its rows has a promise.
    """

    suite: str
    labels: Collection[str] = ()
    all_have_one: bool = False


PROMISED = {
    "ladder": Rows("ladder", [YARDSTICK]),
    "tape": Rows("tape"),
    "calls": Rows("install", CALLS),
    "programs": Rows("install", PROGRAMS, all_have_one=True),
    "datasets": Rows("install", DATASETS, all_have_one=True),
    "no gain": Rows("install"),
    "install": Rows("install"),
    "public": Rows("public"),
    "arrays in": Rows("arrays"),
    "arrays out": Rows("arrays"),
    "perceptron": Rows("perceptron"),
    "functions": Rows("function", FUNCTIONS, all_have_one=True),
    "chain": Rows("function", CHAIN, all_have_one=True),
    "traced": Rows("function", TRACED, all_have_one=True),
    "serving": Rows("serving"),
    "keras": Rows("keras", KERAS),
    "first calls": Rows("keras"),
    "backend": Rows("backend"),
    "backend, aliases": Rows("backend"),
    "backend, rnn": Rows("backend"),
    "distributions": Rows("libraries"),
    "libraries": Rows("libraries", LIBRARIES, all_have_one=True),
    "whole programs": Rows("programs", EXAMPLES, all_have_one=True),
    "whole programs, steady": Rows("programs", EXAMPLES, all_have_one=True),
    "demo": Rows("programs"),
    "threads, small": Rows("threads"),
    "threads, large": Rows("threads"),
    "fallback": Rows("fallback"),
    "memory": Rows("memory"),
    "import": Rows("import"),
}
"""By group, the rows that have promises."""


@dataclass(frozen=True)
class Promise:
    """A figure to hold, ``at_least`` or ``at_most``, and what was measured: None if nothing was."""

    text: str
    measured: float | None
    at_least: float | None = None
    at_most: float | None = None
    detail: str = ""

    @property
    def bound(self):
        return f"≤ {self.at_most:g}" if self.at_least is None else f"≥ {self.at_least:g}"

    @property
    def verdict(self):
        if self.measured is None:
            return "not measured"
        if self.at_least is None:
            return "PASS" if self.measured <= self.at_most else "MISS"
        return "PASS" if self.measured >= self.at_least else "MISS"


def promises(run):
    """Compare what was promised with what was measured; what was not measured is left out."""
    yield from _ladder_promises([row for row in run.rows("ladder") if row.about["tag"] == "short"])
    for row in run.rows("perceptron"):
        measured = row.ratio("installed", "torch") if row.has("installed", "torch") else None
        yield Promise(f"unchanged, {row.label}: times torch", measured, at_most=2)
    for row in run.rows("tape"):
        yield Promise(
            f"{row.label} on a tape: ns above the call without",
            row.time("fastops, taped") - row.time("fastops"),
            at_most=1500,
        )
        yield Promise(
            f"{row.label} on a tape: times faster than raw_ops",
            row.ratio("raw_ops, taped", "fastops, taped"),
            at_least=4,
        )
    for row in run.rows("threads, small"):
        yield Promise(
            f"{row.label}: times faster than raw_ops", row.ratio("raw_ops", "auto"), at_least=8
        )
    for row in run.rows("threads, large"):
        yield Promise(
            f"{row.label}: times faster than with TensorFlow's threads",
            row.ratio("pool", "auto"),
            at_least=0.9,
        )
    for row in run.rows("fallback"):
        yield Promise(
            f"left to TensorFlow, {row.label}: times its own function",
            row.ratio("fastops", "raw_ops"),
            at_most=1.05,
        )
    for record in run.records(group="memory"):
        yield Promise(f"{record['label']}: MB of growth", record["growth"] / 1e6, at_most=1)
    for record in run.records(group="import"):
        yield Promise("import fastops: ms", median(record["seconds"]) * 1e3, at_most=60)
        yield Promise("import fastops: MB", median(record["growth"]) / 1e6, at_most=20)
    yield from _install_promises(run)
    yield from _public_promises(run)
    yield from _array_promises(run)
    yield from _backend_promises(run)
    yield from _keras_promises(run)
    yield from _program_promises(run)
    yield from _function_promises(run.rows("functions"), "")
    yield from _function_promises(run.rows("functions", PLAIN), ", without oneDNN")
    chains = {int(row.label): row for row in run.rows("chain") if row.label in CHAIN}
    yield from _chain_promises(chains)
    for row, bound in _with_bounds(run.rows("traced"), TRACED):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, bound)
    for row in run.rows("serving"):
        yield Promise(f"{row.label}: times faster", row.ratio("signature", "fastops"), at_least=30)
        for arm in ("onnxruntime", "torch"):
            measured = row.ratio("fastops", arm) if row.has(arm) else None
            yield Promise(f"{row.label}: times {arm}", measured, at_most=1)
    for record in run.records(group="demo"):
        for text, key, bound in (
            ("training step written out", "step", 8),
            ("prediction", "prediction", 8),
            ("training step on a tape", "taped step", 1),
        ):
            faster = record["speedup"][key]
            yield Promise(f"demo, {text}: times faster than raw_ops", faster, at_least=bound)


def lost(run):
    """Return a sentence for each promise that has no row, and for each row that lacks its promise.

    A promise is not lost if its suite was not run, or if its row was skipped or has failed.
    """
    found = []
    records, process = run.records(), run.processes.get(MAIN, {})
    suites = {record["suite"] for record in records}
    not_run = [one["name"] for kind in ("skipped", "failed") for one in process.get(kind, ())]
    for group, promised in PROMISED.items():
        suite = promised.suite
        if suite not in suites:
            continue
        labels = {_promised_label(record) for record in records if record["group"] == group}
        is_left_out = any(name.startswith(f"{suite}: ") for name in not_run)
        if not promised.labels and not labels and not is_left_out:
            found.append(
                f"the suite {suite} has no group {group!r}, for which a figure is promised"
            )
        found += [
            f"the group {group!r} has no row {label!r}, for which a figure is promised"
            for label in promised.labels
            if label not in labels and f"{suite}: {label}" not in not_run
        ]
        found += [
            f"the row {label!r} of the group {group!r} has no promise"
            for label in sorted(labels.difference(promised.labels))
            if promised.all_have_one
        ]
    return found


def has_all_rows(run):
    """Return whether each suite of a run was measured as a whole: then no promise may be lost."""
    method = run.method
    return method["effort"] != "quick" and method["tag"] == "all" and not method["filter"]


def _promised_label(record):
    """Return the name under which the tables of this module have the row of a record."""
    label = record["label"]
    return _kind_of_model(label) if record["group"] == "keras" else label


def _kind_of_model(label):
    name = label.removeprefix("Keras, ")
    return "training step" if name.startswith("training step") else name


def _with_bounds(rows, bounds):
    """Return the rows that have a bound, each with its bound. `lost` names the other rows."""
    return [(row, bounds[row.label]) for row in rows if row.label in bounds]


def _install_promises(run):
    calls = {row.label: row.ratio("stock", "installed") for row in run.rows("calls")}
    for label, ratio in calls.items():
        if label in CALLS:  # the others count in the median and the least only
            yield Promise(f"unchanged, {label}: times faster", ratio, at_least=CALLS[label])
    if len(calls) > len(CALLS):
        text = f"unchanged, {len(calls)} calls: times faster"
        yield Promise(f"{text}, median", median(calls.values()), at_least=10)
        yield _least(f"{text}, least", calls, 1)
    for row, bound in _with_bounds(run.rows("programs"), PROGRAMS):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, bound)
    for row, bound in _with_bounds(run.rows("datasets"), DATASETS):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, bound)
    distributions = [row.ratio("stock", "installed") for row in run.rows("distributions")]
    if distributions:
        text = f"unchanged, {len(distributions)} calls of distributions: times faster, mean"
        yield Promise(text, mean(distributions), at_least=DISTRIBUTIONS)
    for row, bound in _with_bounds(run.rows("libraries"), LIBRARIES):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, bound)
    for row in run.rows("no gain"):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, at_least=0.98)
    for record in run.records(group="install"):
        yield Promise("fastops.install(): ms", median(record["seconds"]) * 1e3, at_most=100)


def _backend_promises(run):
    ratios = {row.label: row.ratio("tf_keras", "fastops") for row in run.rows("backend")}
    if ratios:
        text = f"fastops.backend, {len(ratios)} functions: times faster than tf_keras"
        yield Promise(f"{text}, geometric mean", geometric_mean(ratios.values()), at_least=10)
        yield _least(f"{text}, least", ratios, 1)
    above = {row.label: row.time("alias") - row.time("op") for row in run.rows("backend, aliases")}
    if above:
        yield _most("fastops.backend, aliases: ns above their ops, most", above, 60)
    for row in run.rows("backend, rnn"):
        for arm, bound in (("fastops", 10), ("declared", 10), ("not replayed", 3)):
            text = f"fastops.backend.rnn, {row.label}, {arm}: times faster than tf_keras"
            yield Promise(text, row.ratio("tf_keras", arm), at_least=bound)


def _keras_promises(run):
    for row in run.rows("keras"):
        faster, share = KERAS.get(_kind_of_model(row.label), KERAS_ELSE)
        text = f"unchanged, {row.label}"
        yield Promise(f"{text}: times faster", row.ratio("stock", "replayed"), at_least=faster)
        if share is not None:
            measured = row.ratio("replayed", "torch") if row.has("torch") else None
            yield Promise(f"{text}: times torch", measured, at_most=share)


def _program_promises(run):
    for group, text in (("", "the whole of {}"), (", steady", "{}, steady")):
        for row, (faster, share) in _with_bounds(run.rows(f"whole programs{group}"), EXAMPLES):
            text_of = f"unchanged, {text.format(row.label)}"
            ratio = row.ratio("stock", "installed")
            yield Promise(f"{text_of}: times faster", ratio, at_least=faster)
            if share is not None:
                measured = row.ratio("installed", "torch") if row.has("torch") else None
                yield Promise(f"{text_of}: times torch", measured, at_most=share)
    first = {row.label: row.ratio("installed", "tf.function") for row in run.rows("first calls")}
    if first:
        yield _most("first calls of Keras's models: times tf.function's, most", first, 1.5)


def _public_promises(run):
    """Compare what holds for the whole list of public calls; those that run no op are helpers."""
    rows = run.rows("public")
    ratios = {row.label: row.ratio("stock", "installed") for row in rows}
    if ratios:
        with_ops = [ratios[row.label] for row in rows if row.about["ops"]]
        text = f"unchanged, {len(with_ops)} public calls that run ops: times faster"
        yield Promise(f"{text}, median", median(with_ops), at_least=14)
        slow = sum(ratio < 5 for ratio in with_ops) / len(with_ops)
        yield Promise(f"{text}, share under 5", slow, at_most=0.05)
        yield _least(f"unchanged, {len(ratios)} public calls: times faster, least", ratios, 0.97)


def _array_promises(run):
    above = {
        row.label: (row.time("installed") - row.time("copy")) / 1e3 for row in run.rows("arrays in")
    }
    if above:
        yield _most("arrays in: us above a copy, most", above, 1.2)
    out = {row.label: row.time("installed") / 1e3 for row in run.rows("arrays out")}
    if out:
        yield _most("arrays out: us, most", out, 0.6)


def _function_promises(measured, where):
    for row, bound in _with_bounds(measured, FUNCTIONS):
        text = f"fastops.function, {row.label}{where}"
        ratio = row.ratio("tf.function", "plan")
        yield Promise(f"{text}: times faster", ratio, at_least=bound)
        if row.has("numpy"):
            yield Promise(f"{text}: us", row.time("plan") / 1e3, at_most=3.5)
            yield Promise(f"{text}: times numpy", row.ratio("plan", "numpy"), at_most=0.8)


def _chain_promises(chains):
    if len(chains) == len(CHAIN):
        short, medium, long = (row.time("plan") for _, row in sorted(chains.items()))
        least, middle, most = sorted(chains)
        above = (long - short) / (most - least) - chains[most].time("kernel")
        yield Promise("a node of a plan: ns above the bare kernel", above, at_most=120)
        times = (long - short) / (medium - short) * (middle - least) / (most - least)
        text = f"a node of {most} against one of {middle}: times as long"
        yield Promise(text, times, at_most=1.1)


def _ladder_promises(ladder):
    scalar = next((row for row in ladder if row.label == YARDSTICK), None)
    if scalar and scalar.has("fastops"):
        for arm, bound in (("raw_ops", 12), ("torch", 1.8)):
            measured = scalar.ratio(arm, "fastops") if scalar.has(arm) else None
            yield Promise(f"{YARDSTICK}: times faster than {arm}", measured, at_least=bound)
        yield Promise(f"{YARDSTICK}: times np.add", scalar.ratio("fastops", "numpy"), at_most=2)
        above = scalar.time("fastops") - scalar.time("kernel")
        yield Promise(f"{YARDSTICK}: ns above the bare kernel", above, at_most=150)

    speedups = {
        row.label: row.ratio("raw_ops", "fastops")
        for row in ladder
        if row.has("fastops", "raw_ops")
    }
    if speedups:
        average = geometric_mean(speedups.values())
        yield Promise("ladder: times faster than raw_ops, geometric mean", average, at_least=9)
        yield _least("ladder: times faster than raw_ops, least", speedups, 4)

    def onednn_is_the_cost(row):
        """Say whether the plain kernel is faster: then that is what PyTorch's is compared with."""
        return row.has(WITHOUT) and row.time(WITHOUT) < row.time("fastops")

    peers = {
        row.label: row.ratio("torch", WITHOUT if onednn_is_the_cost(row) else "fastops")
        for row in ladder
        if row.has("fastops", "torch")
    }
    if peers:
        yield _least("ladder: times faster than torch, least", peers, 1)


def _least(text, ratios, bound):
    below = sorted((ratio, label) for label, ratio in ratios.items() if ratio < bound)
    detail = ", ".join(f"{label} {ratio:.2f}" for ratio, label in below)
    return Promise(text, min(ratios.values()), at_least=bound, detail=detail)


def _most(text, values, bound):
    above = sorted(
        ((value, label) for label, value in values.items() if value > bound), reverse=True
    )
    detail = ", ".join(f"{label} {value:.2f}" for value, label in above)
    return Promise(text, max(values.values()), at_most=bound, detail=detail)


# Tables ------------------------------------------------------------------------------------------

MANY = 40
"""So many rows are printed; of more, a line for each group."""

WIDE = 160
"""Columns of all tables, at least: lines that a terminal wraps can be read."""

UNITS = {"ladder": ("ns", 1), "tape": ("ns", 1), "latency": ("ns", 1)}
"""In which units groups are shown: all others in microseconds."""

ORDER = (
    *("floor", "numpy", "kernel", "fastops", "plan", "installed", "replayed", "auto"),
    *("fast path", "raw_ops", "stock", "tf", "tf.function"),
)
"""Which arms come first."""


@dataclass(frozen=True)
class Table:
    """A table, of cells that are text.

    Attributes
    ----------
    suite, title : str
    columns : list of str
    lines : list of list of str
    """

    suite: str
    title: str
    columns: list[str]
    lines: list[list[str]]

    def markdown(self):
        """Return it as Markdown has it, without its title."""
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [self.columns, rule, *self.lines]
        return "".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n"
            for line in lines
        )

    def rich(self):
        """Return it as a terminal shows it."""
        table = RichTable(
            title=self.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
        )
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left", overflow="fold")
        for line in self.lines:
            style = "red" if "MISS" in line else ""
            table.add_row(*(Text(cell) for cell in line), style=style)
        return table


def brief(run):
    """Return for each group the columns that a narrow terminal has room for."""
    found = []
    for group in run.groups():
        pairs = {}
        for row in run.rows(group):
            pairs.setdefault(row.pair, []).append(row)
        for pair, rows in pairs.items():
            found.append(_pair_table(group, pair, rows) if pair else _plain_table(group, rows))
    return [table for table in found if table.lines]


def _pair_table(group, pair, rows):
    unit, divisor = _unit(group)
    columns = ["call", *(f"{arm}, {unit}" for arm in pair), "times faster", "95 %", "noise"]
    lines = [[row.label, *_cells(row, pair, divisor)] for row in rows]
    return Table(rows[0].about["suite"], f"{group}: {pair[0]} beside {pair[1]}", columns, lines)


def _plain_table(group, rows):
    unit, divisor = _unit(group)
    lines = [
        [f"{row.label}, {arm}", amount(row.time(arm) / divisor), f"{row.spread(arm):.1%}"]
        for row in rows
        for arm in row.samples
    ]
    return Table(rows[0].about["suite"], group, ["call", unit, "spread"], lines)


def _unit(group):
    return UNITS.get(group.partition(",")[0], ("us", 1e3))


def tables(run):
    """Return a table for each group, in the order of the suites."""
    found = []
    for group in run.groups():
        rows = run.rows(group)
        if rows:
            suite = rows[0].about["suite"]
            without = {row.label: row for row in run.rows(group, PLAIN)}
            found.append(_group_table(suite, group, rows, without))
    order = list(SUITES)
    return sorted(found, key=lambda table: order.index(table.suite))


def _group_table(suite, group, rows, without):
    unit, divisor = _unit(group)
    arms = list(dict.fromkeys(arm for row in rows for arm in row.samples if arm != "copy"))
    arms.sort(key=lambda arm: ORDER.index(arm) if arm in ORDER else len(ORDER))
    columns = [f"{group}, {unit}", *arms]
    paired = any(row.pair for row in rows)
    columns += ["times faster", "95 %", "noise"] if paired else []
    lines = []
    for row in rows:
        lines.append([row.label, *_cells(row, arms, divisor, paired)])
        if row.label in without:
            beside = _cells(without[row.label], arms, divisor, paired)
            lines.append(["… without oneDNN", *beside])
    return Table(suite, group, columns, lines)


def _cells(row, arms, divisor, paired=True):
    for arm in arms:
        yield amount(row.time(arm) / divisor) if row.has(arm) else ""
    if paired and row.pair is None:
        yield from ("", "", "")
    elif paired:
        ratio, low, high = row.interval(*reversed(row.pair))
        yield f"{ratio:.2f}"
        yield "" if low is None else f"{low:.2f} to {high:.2f}"
        yield f"{abs(row.null(row.pair[0])[0] - 1):.1%}"


def amount(value):
    """Return a number with three digits or so."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def summary(run):
    """Return a table with a line for each group: how many times faster its calls are."""
    lines = []
    for group in run.groups():
        rows = [row for row in run.rows(group) if row.pair]
        if rows:
            ratios = {row.label: row.ratio(*reversed(row.pair)) for row in rows}
            worst = min(ratios, key=ratios.get)
            numbers = (geometric_mean(ratios.values()), min(ratios.values()), max(ratios.values()))
            candidate, baseline = rows[0].pair
            shown = [f"{number:.2f}" for number in numbers]
            lines.append([group, str(len(rows)), f"{candidate} / {baseline}", *shown, worst])
    columns = ["group", "calls", "compared", "mean", "least", "most", "which is least"]
    return Table(
        "",
        "Times faster: the geometric mean over the calls of a group, the least and the most",
        columns,
        lines,
    )


def promised(run):
    """Return the table of the figures that are to hold."""
    lines = [
        [
            promise.text,
            promise.bound,
            "" if promise.measured is None else f"{promise.measured:,.2f}",
            promise.verdict,
            promise.detail,
        ]
        for promise in promises(run)
    ]
    return Table("", "To hold", ["figure", "bound", "measured", "", "which miss it"], lines)


def describe(run):
    """Return in lines on what, with what and how was measured."""
    machine, method = run.machine, run.method
    memory = f"{machine['memory'] / 2**30:.0f} GiB"
    about = [machine["processor"], f"{machine['cores']} cores", memory, machine["system"]]
    yield "machine", ", ".join([*about, f"load {machine['load']:.1f} at the beginning"])
    for name, process in run.processes.items():
        versions = ", ".join(f"{key} {value}" for key, value in process["versions"].items())
        yield f"process {name}", versions
    how = {"full": "a full run", "quick": "a quick run", "once": "tried once: no figure means much"}
    about = [f"{method['began']} UTC", f"{method['seconds']:.0f} s", how[method["effort"]]]
    about += [f"tag {method['tag']}"]
    about += [f"only {', '.join(method['filter'])}"] if method["filter"] else []
    yield "run", ", ".join(about)
    yield "method", METHOD


METHOD = (
    "arms in turn, in one process: a round times a block of calls of each, beginning with another "
    "one each time, the garbage collector off. Times are medians over rounds, times faster medians "
    "of the ratios within rounds, with the confidence interval of that median (95 %); noise is how "
    "much fastops' arm differs from itself, round beside round. NumPy and PyTorch have one thread. "
    "Peers have processes of their own: their times are scaled so that NumPy takes as long in both."
)


def show(run, console, detailed=False):
    """Print a run: what it was measured on, and its tables, or a summary of many rows."""
    for title, text in describe(run):
        if title != "method":
            console.print(f"[bold]{title}:[/] {text}", highlight=False)
    if detailed:
        wide = Console(file=console.file, width=max(console.width, WIDE))
        for table in tables(run):
            wide.print(table.rich())
    else:
        found = brief(run)
        if sum(len(table.lines) for table in found) > MANY:
            found = [summary(run)]
        for table in found:
            console.print(table.rich())
    if run.method["effort"] == "full" and (kept := promised(run)).lines:
        console.print(kept.rich())
    for name, process in run.processes.items():
        reasons = {}
        for one in process["skipped"]:
            reasons.setdefault(one["why"], []).append(one["name"])
        for why, names in reasons.items():
            console.print(f"{name}: {len(names)} skipped: {why}", style="dim", markup=False)
