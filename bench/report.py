"""The report: the table of the ladder, and each promised figure beside the measured one.

Times are medians over rounds, in nanoseconds, and ratios are ratios of medians. The peers ran in
a process of their own: their times are scaled so that NumPy's addition, which both processes
measure, takes as long in both.
"""

import json
from dataclasses import dataclass
from statistics import geometric_mean, mean, median, quantiles

from rich.console import Console
from rich.table import Table

YARDSTICK = "AddV2 scalar"
PEERS = ("torch", "jax", "jax.jit", "onnxruntime")
COLUMNS = ("floor", "numpy", "kernel", "fastops", "fast path", "raw_ops", "tf", *PEERS[:3])
PLAIN = "fastops, plain kernel"
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
    "tf_keras, three dense layers on one row": 4,
    "tf_keras, training step with Adam": 12,
    "Sonnet, three linear layers on one row": 12,
    "Sonnet, training step with Adam": 12,
}

KERAS = {
    "perceptron, Sequential": (100, 0.5),
    "perceptron, Functional": (100, 0.5),
    "perceptron, subclassed": (12, 1),
    "training step": (40, 0.7),
    "fit, eager": (8, None),
    "fit": (2.5, None),
    "evaluate": (3, None),
    "predict": (3, None),
}
"""How many times faster than Keras as it is, and how much of PyTorch's time it may take."""
KERAS_ELSE = (25, 1)
"""Likewise, of other models."""

EXAMPLES = {"actor-critic": (15, 1), "DDPG": (5, None), "online request": (25, None)}
"""Likewise, of whole programs."""


@dataclass(frozen=True)
class Row:
    """One race: its arms' samples, in nanoseconds per call."""

    label: str
    samples: dict

    def time(self, arm):
        return median(self.samples[arm])

    def spread(self, arm):
        """Half the distance between the quartiles, as a share of the median."""
        if len(self.samples[arm]) == 1:  # in a quick run
            return 0.0
        low, _, high = quantiles(self.samples[arm], n=4)
        return (high - low) / 2 / self.time(arm)

    def scaled(self, scale):
        """Return the peers' samples alone, as another process would have measured them."""
        return {
            arm: [scale * sample for sample in self.samples[arm]]
            for arm in PEERS
            if arm in self.samples
        }

    def has(self, *arms):
        return self.samples.keys() >= set(arms)

    def ratio(self, slow, fast):
        """How many times longer ``slow`` takes than ``fast``."""
        return self.time(slow) / self.time(fast)


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


def load(results, name):
    """Read one run's file: its benchmarks' records by group, nothing if there was no such run."""
    path = results / f"{name}.json"
    groups = {}
    if path.exists():
        for benchmark in json.loads(path.read_text())["benchmarks"]:
            groups.setdefault(benchmark["group"], []).append(benchmark["extra_info"])
    return groups


def rows(groups, group):
    return [Row(info["label"], info["samples"]) for info in groups.get(group, [])]


def merge(here, peers, yardstick=YARDSTICK):
    """Put the peers' arms into the rows of the same label, scaled by the yardstick."""
    if not here or not peers:
        return here or peers
    peers = {row.label: row for row in peers}
    scale = next(row for row in here if row.label == yardstick).time("numpy")
    scale /= peers[yardstick].time("numpy")
    return [
        Row(row.label, row.samples | peers[row.label].scaled(scale)) if row.label in peers else row
        for row in here
    ]


def keras_rows(main, peers):
    """Put PyTorch's into the rows of Keras's models: NumPy stands in each."""
    others = {row.label: row for row in rows(peers, "keras")}
    return [
        Row(row.label, row.samples | other.scaled(row.time("numpy") / other.time("numpy")))
        if (other := others.get(row.label))
        else row
        for row in rows(main, "keras")
    ]


def promises(main, ladder, perceptron, serving, keras, plain, demo):
    """Compare what was promised with what was measured."""
    yield from _ladder_promises(ladder)
    for row in perceptron:
        measured = row.ratio("installed", "torch") if row.has("installed", "torch") else None
        yield Promise(f"unchanged, {row.label}: times torch", measured, at_most=2)
    for row in rows(main, "tape"):
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
    for row in rows(main, "threads, small"):
        yield Promise(
            f"{row.label}: times faster than raw_ops", row.ratio("raw_ops", "auto"), at_least=8
        )
    for row in rows(main, "threads, large"):
        yield Promise(
            f"{row.label}: times faster than with TensorFlow's threads",
            row.ratio("pool", "auto"),
            at_least=0.9,
        )
    for row in rows(main, "fallback"):
        yield Promise(
            f"left to TensorFlow, {row.label}: times its own function",
            row.ratio("fastops", "raw_ops"),
            at_most=1.05,
        )
    for info in main.get("memory", []):
        yield Promise(f"{info['label']}: MB of growth", info["growth"] / 1e6, at_most=1)
    for info in main.get("import", []):
        yield Promise("import fastops: ms", median(info["seconds"]) * 1e3, at_most=60)
        yield Promise("import fastops: MB", median(info["growth"]) / 1e6, at_most=20)
    yield from _install_promises(main)
    yield from _public_promises(main)
    yield from _array_promises(main)
    yield from _backend_promises(main)
    yield from _keras_promises(keras)
    yield from _program_promises(main)
    yield from _function_promises(rows(main, "functions"), "")
    yield from _function_promises(rows(plain, "functions"), ", without oneDNN")
    yield from _chain_promises({int(row.label): row for row in rows(main, "chain")})
    for row in rows(main, "traced"):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, TRACED[row.label])
    for row in serving:
        yield Promise(f"{row.label}: times faster", row.ratio("signature", "fastops"), at_least=30)
        for arm in ("onnxruntime", "torch"):
            measured = row.ratio("fastops", arm) if row.has(arm) else None
            yield Promise(f"{row.label}: times {arm}", measured, at_most=1)
    for text, key, bound in (
        ("training step written out", "step", 8),
        ("prediction", "prediction", 8),
        ("training step on a tape", "taped step", 1),
    ):
        measured = demo["speedup"][key] if demo else None
        yield Promise(f"demo, {text}: times faster than raw_ops", measured, at_least=bound)


def _install_promises(main):
    calls = {row.label: row.ratio("stock", "installed") for row in rows(main, "calls")}
    for label, bound in CALLS.items() if calls else ():
        yield Promise(f"unchanged, {label}: times faster", calls[label], at_least=bound)
    if calls:
        text = f"unchanged, {len(calls)} calls: times faster"
        yield Promise(f"{text}, median", median(calls.values()), at_least=10)
        yield _least(f"{text}, least", calls, 1)
    for row in rows(main, "programs"):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, PROGRAMS[row.label])
    distributions = [row.ratio("stock", "installed") for row in rows(main, "distributions")]
    if distributions:
        text = f"unchanged, {len(distributions)} calls of distributions: times faster, mean"
        yield Promise(text, mean(distributions), at_least=DISTRIBUTIONS)
    for row in rows(main, "libraries"):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, LIBRARIES[row.label])
    for row in rows(main, "no gain"):
        measured = row.ratio("stock", "installed")
        yield Promise(f"unchanged, {row.label}: times faster", measured, at_least=0.98)
    for info in main.get("install", []):
        yield Promise("fastops.install(): ms", median(info["seconds"]) * 1e3, at_most=100)


def _backend_promises(main):
    ratios = {row.label: row.ratio("tf_keras", "fastops") for row in rows(main, "backend")}
    if ratios:
        text = f"fastops.backend, {len(ratios)} functions: times faster than tf_keras"
        yield Promise(f"{text}, geometric mean", geometric_mean(ratios.values()), at_least=10)
        yield _least(f"{text}, least", ratios, 1)
    above = {
        row.label: row.time("alias") - row.time("op") for row in rows(main, "backend, aliases")
    }
    if above:
        yield _most("fastops.backend, aliases: ns above their ops, most", above, 60)
    for row in rows(main, "backend, rnn"):
        for arm, bound in (("fastops", 10), ("declared", 10), ("not replayed", 3)):
            text = f"fastops.backend.rnn, {row.label}, {arm}: times faster than tf_keras"
            yield Promise(text, row.ratio("tf_keras", arm), at_least=bound)


def _keras_promises(keras):
    for row in keras:
        name = row.label.removeprefix("Keras, ")
        kind = "training step" if name.startswith("training step") else name
        faster, share = KERAS.get(kind, KERAS_ELSE)
        text = f"unchanged, {row.label}"
        yield Promise(f"{text}: times faster", row.ratio("stock", "replayed"), at_least=faster)
        if share is not None:
            measured = row.ratio("replayed", "torch") if row.has("torch") else None
            yield Promise(f"{text}: times torch", measured, at_most=share)


def _program_promises(main):
    for row in rows(main, "whole programs"):
        faster, share = EXAMPLES[row.label]
        text = f"unchanged, the whole of {row.label}"
        yield Promise(f"{text}: times faster", row.ratio("stock", "installed"), at_least=faster)
        if share is not None:
            measured = row.ratio("installed", "torch") if row.has("torch") else None
            yield Promise(f"{text}: times torch", measured, at_most=share)
    first = {row.label: row.ratio("installed", "tf.function") for row in rows(main, "first calls")}
    if first:
        yield _most("first calls of Keras's models: times tf.function's, most", first, 1.5)


def _public_promises(main):
    """Compare what holds for the whole list of public calls; those that run no op are helpers."""
    ratios, ops = {}, {}
    for info in main.get("public", []):
        ops |= info["ops"]
        for title, samples in info["calls"].items():
            ratios[title] = Row(title, samples).ratio("stock", "installed")
    if ratios:
        run = [ratio for title, ratio in ratios.items() if ops[title]]
        text = f"unchanged, {len(run)} public calls that run ops: times faster"
        yield Promise(f"{text}, median", median(run), at_least=14)
        slow = sum(ratio < 5 for ratio in run) / len(run)
        yield Promise(f"{text}, share under 5", slow, at_most=0.05)
        yield _least(f"unchanged, {len(ratios)} public calls: times faster, least", ratios, 0.97)


def _array_promises(main):
    above = {
        row.label: (row.time("installed") - row.time("copy")) / 1e3
        for row in rows(main, "arrays in")
    }
    if above:
        yield _most("arrays in: us above a copy, most", above, 1.2)
    out = {row.label: row.time("installed") / 1e3 for row in rows(main, "arrays out")}
    if out:
        yield _most("arrays out: us, most", out, 0.6)


def _function_promises(measured, where):
    for row in measured:
        text = f"fastops.function, {row.label}{where}"
        ratio = row.ratio("tf.function", "plan")
        yield Promise(f"{text}: times faster", ratio, at_least=FUNCTIONS[row.label])
        if row.has("numpy"):
            yield Promise(f"{text}: us", row.time("plan") / 1e3, at_most=3.5)
            yield Promise(f"{text}: times numpy", row.ratio("plan", "numpy"), at_most=0.8)


def _chain_promises(chains):
    if chains:
        short, medium, long = (row.time("plan") for _, row in sorted(chains.items()))
        least, middle, most = sorted(chains)
        above = (long - short) / (most - least) - chains[most].time("kernel")
        yield Promise("a node of a plan: ns above the bare kernel", above, at_most=120)
        times = (long - short) / (medium - short) * (middle - least) / (most - least)
        text = f"a node of {most} against one of {middle}: times as long"
        yield Promise(text, times, at_most=1.1)


def _function_table(main, plain, serving):
    """Return what traced functions take, in microseconds."""
    lines = []
    for parts, where in ((main, ""), (plain, ", without oneDNN")):
        for row in rows(parts, "functions"):
            lines.append([row.label + where, *_pair(row, "tf.function", "plan")])
    for row in rows(main, "traced"):
        lines.append([f"{row.label}, install()", *_pair(row, "stock", "installed")])
    for row in rows(main, "sessions"):
        lines.append([f"{row.label}, Session.run", *_pair(row, "tensorflow", "fastops")])
    for row in serving:
        lines.append([f"{row.label}, fastops.graph.load", *_pair(row, "signature", "fastops")])
    columns = ["traced function", "TensorFlow", "fastops", "times faster"]
    return "Microseconds per call of what is traced", columns, lines


def _pair(row, slow, fast):
    yield from (f"{row.time(arm) / 1e3:,.2f}" for arm in (slow, fast))
    yield f"{row.ratio(slow, fast):.2f}"


def _threads_table(main):
    """Return what kernels take by whose threads their tasks run in, in microseconds."""
    arms = ("raw_ops", "pool", "caller", "auto")
    lines = [
        [row.label, *(f"{row.time(arm) / 1e3:,.2f}" for arm in arms)]
        for group in ("small", "large", "sweep")
        for row in rows(main, f"threads, {group}")
    ]
    columns = ["call", "tf.raw_ops", "TensorFlow's threads", "the calling one", "by choice"]
    return "Microseconds per call by whose threads a kernel's tasks run in", columns, lines


def _install_table(main):
    """Return what unchanged programs gain, in microseconds."""
    lines = []
    groups = ("whole programs", "programs", "libraries", "distributions", "calls")
    for group in (*groups, "arrays in", "arrays out"):
        for row in rows(main, group):
            lines.append([row.label, *_pair(row, "stock", "installed")])
    columns = ["unchanged program", "stock", "fastops.install()", "times faster"]
    return "Microseconds per call", columns, lines


def _keras_table(keras):
    """Return what programs of Keras take, in microseconds."""
    arms = ("stock", "installed", "replayed", "torch")
    lines = [
        [
            row.label,
            *(f"{row.time(arm) / 1e3:,.1f}" if row.has(arm) else "" for arm in arms),
            f"{row.ratio('stock', 'replayed'):.1f}",
        ]
        for row in keras
    ]
    columns = ["program", "stock", "no replays", "install()", "PyTorch", "stock / install()"]
    return "Microseconds per call of Keras, unchanged", columns, lines


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
        return row.has(PLAIN) and row.time(PLAIN) < row.time("fastops")

    peers = {
        row.label: row.ratio("torch", PLAIN if onednn_is_the_cost(row) else "fastops")
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


def show(results):
    """Print the report on a directory of results, and leave it there as ``report.md``."""
    main, demo = load(results, "main"), results / "demo.json"
    demo = json.loads(demo.read_text()) if demo.exists() else None
    plain = load(results, "plain")
    peers = load(results, "peers")
    ladder = merge(rows(main, "ladder"), rows(peers, "ladder"))
    perceptron, serving = (
        merge(here, rows(peers, group), yardstick=here[0].label) if here else []
        for group, here in ((group, rows(main, group)) for group in ("perceptron", "serving"))
    )
    tables = [_ladder_table(ladder, {row.label: row for row in rows(plain, "ladder")})]
    if main:
        keras = keras_rows(main, peers)
        kept = promises(main, ladder, perceptron, serving, keras, plain, demo)
        tables.insert(0, _promise_table(kept))
        tables += [_install_table(main), _function_table(main, plain, serving)]
        tables += [_keras_table(keras), _threads_table(main)]

    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    for title, columns, lines in reversed(tables):
        table = Table(title=title)
        for number, column in enumerate(columns):
            table.add_column(column, justify="right" if number else "left", no_wrap=not number)
        for line in lines:
            table.add_row(*line, style="red" if "MISS" in line else "")
        console.print(table)
    (results / "report.md").write_text("\n".join([machine(results), *map(_markdown, tables)]))


def machine(results):
    """Name the processor and the versions that were measured, a line for each process."""
    lines = []
    for name in ("main", "peers"):
        path = results / f"{name}.json"
        if path.exists():
            info = json.loads(path.read_text())["machine_info"]
            versions = ", ".join(
                f"{key} {info['packages'][key]}" for key in sorted(info["packages"])
            )
            cpu = f"{info['cpu']['brand_raw']}, {info['cpu']['count']} cores"
            lines.append(f"- {name}: {cpu}; Python {info['python_version']}, {versions}")
    return "\n".join(lines) + "\n"


def _markdown(table):
    title, columns, lines = table
    rule = ["---", *["---:"] * (len(columns) - 1)]
    text = "".join(f"| {' | '.join(line)} |\n" for line in [columns, rule, *lines])
    return f"### {title}\n\n{text}"


def _ladder_table(ladder, plain):
    columns = ["op", *COLUMNS, "spread", "raw_ops / fastops", "torch / fastops"]
    lines = []
    for row in ladder:
        lines.append([row.label, *_cells(row)])
        if without := plain.get(row.label):
            lines.append(["… oneDNN off on both sides", *_cells(without)])
    return "Nanoseconds per call", columns, lines


def _cells(row):
    yield from (f"{row.time(arm):,.0f}" if row.has(arm) else "" for arm in COLUMNS)
    yield f"{row.spread('fastops'):.1%}" if row.has("fastops") else ""
    for arm in ("raw_ops", "torch"):
        yield f"{row.ratio(arm, 'fastops'):.1f}" if row.has("fastops", arm) else ""


def _promise_table(kept):
    lines = [
        [
            promise.text,
            promise.bound,
            "" if promise.measured is None else f"{promise.measured:,.2f}",
            promise.verdict,
            promise.detail,
        ]
        for promise in kept
    ]
    return "To hold", ["figure", "bound", "measured", "", "which miss it"], lines
