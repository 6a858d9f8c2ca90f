"""Write the measured figures in README.md and docs, all from one saved run.

``make figures`` measures, and calls this program with the run. In the files, the figures are in
blocks between ``<!-- figures: NAME -->`` and ``<!-- /figures -->``; a function of this module with
that name makes the text. docs/speed.md and the pictures are written as whole files.
"""

import argparse
import re
import sys
from pathlib import Path
from statistics import geometric_mean, median

from fastops_bench import plots, report
from fastops_bench.public import speed
from fastops_bench.runs import PLAIN, Run

ROOT = Path(__file__).parents[1]

MARKED = re.compile(r"(<!-- figures: (\S+) -->)(\s*)(.*?)(\s*)(<!-- /figures -->)", re.DOTALL)

BLOCKS: dict[str, dict] = {}
"""By file and name, the function that makes the text of a block. It returns "" if the run has no
such measurement."""


def block(path):
    """Register a function for a block in a file. The block has its name, with - for _."""

    def keep(make):
        BLOCKS.setdefault(path, {})[make.__name__.replace("_", "-")] = make
        return make

    return keep


class Figures:
    """Looks up the measurements of a run.

    Parameters
    ----------
    run : fastops_bench.runs.Run
    """

    def __init__(self, run):
        self.run = run
        self._groups = {}

    def rows(self, group, process="main"):
        """Return the rows of a group by label."""
        if (group, process) not in self._groups:
            found = {row.label: row for row in self.run.rows(group, process)}
            self._groups[group, process] = found
        return self._groups[group, process]

    def table(self, columns, lines, *, unit):
        """Return a table of times, in the order of the lines, without empty lines and columns.

        Parameters
        ----------
        columns : dict of str to str
            Titles of columns, and their arms, or ``"A / B"`` for the ratio of two arms.
        lines : iterable of (str, str, Row or None)
            For each line, the text of the first column, its markup, and the row.
        unit : float The unit in nanoseconds.
        """
        cells = [
            [shown, *(_cell(row, arm, unit) for arm in list(columns.values())[1:])]
            for shown, row in lines
            if row is not None
        ]
        if not cells:
            return ""
        full = [place for place, column in enumerate(zip(*cells, strict=True)) if any(column)]
        titles = [list(columns)[place] for place in full]
        cells = [[line[place] for place in full] for line in cells]
        return report.Table("", "", titles, cells).markdown().rstrip()

    def lines(self, group, labels, process="main"):
        """Return lines for labels of a group; a dict has the texts of labels."""
        rows = self.rows(group, process)
        shown = labels if isinstance(labels, dict) else {label: label for label in labels}
        return [(text, rows.get(label)) for label, text in shown.items()]


def _cell(row, arm, unit):
    slow, _, fast = arm.partition(" / ")
    if not row.has(slow, *([fast] if fast else [])):
        return ""
    return report.amount(row.ratio(slow, fast) if fast else row.time(slow) / unit)


# README.md and docs/performance.md ---------------------------------------------------------------

US, NS = 1e3, 1

OPS = (
    *("AddV2 scalar", "MatMul 1x32x32", "Sum", "ConcatV2", "GatherV2", "Reshape"),
    "ReadVariableOp",
)


@block("README.md")
def ops(run):
    columns = {
        "one call, ns": "",
        "fastops": "fastops",
        "`tf.raw_ops`": "raw_ops",
        "`tf.*`": "tf",
        "PyTorch": "torch",
        "NumPy": "numpy",
        "times faster than `tf.raw_ops`": "raw_ops / fastops",
    }
    return run.table(columns, run.lines("ladder", OPS), unit=NS)


@block("README.md")
def ladder(run):
    ratios = _ladder_ratios(run)
    if not ratios:
        return ""
    return (
        f"over the {len(ratios)} rows of the ladder fastops is {geometric_mean(ratios):.1f} times "
        f"faster than `tf.raw_ops` in the geometric mean\nand at least {min(ratios):.1f} times on "
        "each"
    )


def _ladder_ratios(run):
    return [row.ratio("raw_ops", "fastops") for row in _short_ops(run) if row.pair]


def _short_ops(run):
    return [row for row in run.rows("ladder").values() if row.about["tag"] == "short"]


CALLS = (
    *("a + b", "2.0 * x", "x[0]", "tf.matmul(m, n)", "tf.reshape(m, [4])", "tf.reduce_sum(m)"),
    *("tf.zeros([4])", "tf.cast(x, tf.int32)", "tf.where(flags, x, x)", "tf.one_hot(labels, 3)"),
)
PROGRAMS = {
    "three-layer perceptron on one row": "three-layer perceptron on one row, with variables",
    "gradient of one multiplication": "gradient of one multiplication",
    "training step of the perceptron": (
        "training step of the perceptron: forward, gradient, `assign_sub`"
    ),
}
INSTALLED = {
    "TensorFlow, us": "stock",
    "installed, us": "installed",
    "times faster": "stock / installed",
}


@block("docs/performance.md")
def unchanged(run):
    calls = run.lines("calls", {call: f"`{call}`" for call in CALLS})
    ratios = [row.ratio("stock", "installed") for row in run.rows("calls").values()]
    text = run.table({"": "", **INSTALLED}, calls, unit=US)
    if not text:
        return ""
    middle = f"| median over {len(ratios)} calls |  |  | {report.amount(median(ratios))} |"
    programs = run.table({"": "", **INSTALLED}, run.lines("programs", PROGRAMS), unit=US)
    return "\n".join([text, middle, *programs.splitlines()[2:]])


KERAS = {
    "perceptron, Sequential": "three-layer perceptron on one row, `Sequential`",
    "perceptron, Functional": "the same, functional",
    "perceptron, subclassed": "the same, subclassed",
    "perceptron, with a Lambda and an activation": "the same, with a Lambda and an activation",
    "convolutions": "convolution, batch normalization, pooling",
    "LSTM": "LSTM over 8 steps",
    "GRU": "GRU over 8 steps",
    "attention": "multi-head attention, layer normalization",
    "embedding": "embedding, pooling",
    "normalization and dropout, training": "normalization and dropout, training, 32 rows",
    "training step, Adam": "training step, Adam",
    "training step, SGD with momentum": "training step, SGD with momentum",
    "training step, RMSprop": "training step, RMSprop",
    "training step, AdamW": "training step, AdamW",
    "fit, eager": "`fit(run_eagerly=True)`",
    "fit": "`fit`",
    "evaluate": "`evaluate`",
    "predict": "`predict`",
}


@block("docs/performance.md")
def keras(run):
    columns = {
        "": "",
        "TensorFlow, us": "stock",
        "installed, us": "replayed",
        "PyTorch, us": "torch",
        "times faster": "stock / replayed",
    }
    labels = {f"Keras, {name}": shown for name, shown in KERAS.items()}
    return run.table(columns, run.lines("keras", labels), unit=US)


WHOLE = {
    "actor-critic": "actor-critic on CartPole, 80 episodes: a step",
    "actor-critic, long": "actor-critic on CartPole, 200 episodes: a step",
    "DDPG": "DDPG on Pendulum, 20 episodes: a step",
    "online request": "2,000 requests to a model, array in, array out: a request",
}
STEADY = "whole programs, steady"


@block("README.md")
def whole_programs(run):
    columns = {
        "": "",
        "TensorFlow, us": "stock",
        "`python -m fastops`, us": "installed",
        "PyTorch, us": "torch",
        "times faster than TensorFlow": "stock / installed",
        "than PyTorch": "torch / installed",
    }
    lines = []
    for text, row in run.lines("whole programs", WHOLE):
        steady = run.rows(STEADY).get(row.label) if row else None
        lines += [(text, row), ("the same, when steady", steady)]
    return run.table(columns, lines, unit=US)


@block("README.md")
def ahead(run):
    """Return a sentence that names the lines of the table in which PyTorch is faster."""
    steady = run.rows(STEADY)
    rows = []
    for text, row in run.lines("whole programs", WHOLE):
        name = text.rpartition(":")[0]
        rows += [(name, row), (f"{name}, when steady", steady.get(row.label) if row else None)]
    rows = [(text, row) for text, row in rows if row and row.has("torch")]
    if not rows:
        return ""
    version = rows[0][1].about["versions"]["torch"].partition("+")[0]
    behind = [
        f"{text} ({row.ratio('installed', 'torch'):.1f} times as fast)"
        for text, row in rows
        if row.time("torch") < row.time("installed")
    ]
    if not behind:
        return f"fastops is ahead of PyTorch {version} in each line."
    return f"PyTorch {version} is ahead in: " + ";\n".join(behind) + "."


STRANGERS = {
    "PPO": "PPO on CartPole",
    "DQN": "DQN on CartPole, `predict` in each update",
    "TD3": "TD3 on a pendulum, traced updates",
    "VAE": "variational autoencoder",
    "WGAN-GP": "WGAN with gradient penalty: six updates",
    "physics-informed network": "physics-informed network",
    "character RNN": "character RNN, traced training, eager text",
    "word vectors": "word vectors, sampled softmax",
    "custom training": "custom training loop, metrics in each epoch",
    "custom training, traced": "the same, with a traced step",
    "actor-critic, traced": "actor-critic in one traced function",
}


@block("docs/performance.md")
def strangers(run):
    wholes, steadies = run.rows("strangers"), run.rows("strangers, steady")
    lines = []
    for label, text in STRANGERS.items():
        if label not in wholes or label not in steadies:
            continue
        whole, steady = wholes[label], steadies[label]
        cells = [_cell(steady, arm, US) for arm in ("stock", "installed", "torch")]
        ratios = [_cell(row, "stock / installed", US) for row in (steady, whole)]
        lines.append([text, *cells, *ratios, _cell(whole, "torch / installed", US)])
    columns = [
        *("a step, when steady", "TensorFlow, us", "`python -m fastops`, us", "PyTorch, us"),
        *("times faster", "times faster, whole run", "than PyTorch, whole run"),
    ]
    return report.Table("", "", columns, lines).markdown().rstrip() if lines else ""


@block("docs/performance.md")
def functions(run):
    parts = []
    for label, row in run.rows("functions").items():
        parts.append((label, row, "tf.function", "plan"))
        if other := run.rows("functions", PLAIN).get(label):
            parts.append(("the same without oneDNN, on both sides", other, "tf.function", "plan"))
    for label, row in run.rows("traced").items():
        parts.append((f"{label}, `install()`", row, "stock", "installed"))
    for label, row in run.rows("sessions").items():
        parts.append((f"{label}, `Session.run`", row, "tensorflow", "fastops"))
    for label, row in run.rows("serving").items():
        parts.append((f"{label}, `graph.load`", row, "signature", "fastops"))
    lines = []
    for label, row, slow, fast in parts:
        numbers = (row.time(slow) / US, row.time(fast) / US, row.ratio(slow, fast))
        lines.append([label, *map(report.amount, numbers)])
    columns = ["", "TensorFlow, us", "fastops, us", "times faster"]
    return report.Table("", "", columns, lines).markdown().rstrip() if lines else ""


# Other files -------------------------------------------------------------------------------------


@block("bench/README.md")
def measured(run):
    """Return all tables of the run, and the description of the machine."""
    about = [f"- {title}: {text}" for title, text in report.describe(run.run) if title != "method"]
    tables = [table for table in report.tables(run.run) if table.suite != "public"]
    kept = report.promised(run.run)
    parts = ["\n".join(about), *([f"### To hold\n\n{kept.markdown()}"] if kept.lines else [])]
    parts += [f"### {table.title}\n\n{table.markdown()}" for table in tables]
    return "\n\n".join(part.rstrip() for part in parts) if tables else ""


@block("docs/index.md")
def one_addition(run):
    row, ratios = run.rows("ladder").get("AddV2 scalar"), _ladder_ratios(run)
    if row is None:
        return ""
    fast, raw, full = (f"{row.time(arm):,.0f}" for arm in ("fastops", "raw_ops", "tf"))
    return (
        f"One scalar addition takes\n{fast} ns in fastops, {raw} with `tf.raw_ops` and {full} with "
        f"`tf.add`. Over the {len(ratios)} rows of the ladder fastops is\n"
        f"{geometric_mean(ratios):.1f} times faster than `tf.raw_ops` in the geometric mean."
    )


@block("docs/index.md")
def no_gain(run):
    rows = run.rows("functions")
    products = rows.get("eight products of 512x512 matrices")
    convolution = rows.get("convolutional block with a shortcut, batch 32")
    if None in (products, convolution):
        return ""
    one, two = (row.ratio("tf.function", "plan") for row in (products, convolution))
    return (
        f"Eight products of 512x512 matrices in a traced function are {one:.1f}\n  times faster, a "
        f"convolutional block on a batch of 32 is {two:.1f} times faster."
    )


@block("docs/keras.md")
def keras_in_short(run):
    found = run.rows("keras")
    names = ("perceptron, Sequential", "training step, Adam", "fit", "predict")
    rows = [found.get(f"Keras, {name}") for name in names]
    if None in rows:
        return ""
    times = [[report.amount(row.time(arm) / US) for arm in ("replayed", "stock")] for row in rows]
    ratios = [f"{row.ratio('stock', 'replayed'):.0f}" for row in rows]
    return (
        f"a three-layer perceptron on one row takes {times[0][0]} us instead of {times[0][1]}, a "
        f"training step with Adam {times[1][0]}\ninstead of {times[1][1]}, `fit` is {ratios[2]} "
        f"times faster and `predict` {ratios[3]} times"
    )


@block("docs/graphs.md")
def two_ops(run):
    row = run.rows("functions").get("two ops")
    if row is None:
        return ""
    plan, function = (report.amount(row.time(arm) / US) for arm in ("plan", "tf.function"))
    return f"two ops take {plan} us, and {function} in `tf.function`."


@block("docs/keras_backend.md")
def keras_backend(run):
    ratios = [row.ratio("Keras", "fastops") for row in run.rows("keras backend").values()]
    if not ratios:
        return ""
    return (
        f"{len(ratios)} calls are {geometric_mean(ratios):.0f} times as fast in the geometric mean "
        f"({min(ratios):.0f} to {max(ratios):.0f} times)"
    )


@block("docs/backend.md")
def recurrent(run):
    row = run.rows("backend, rnn").get("LSTM over 50 steps")
    if row is None:
        return ""
    arms = ("tf_keras", "not replayed", "fastops")
    theirs, plain, replayed = (report.amount(row.time(arm) / 1e6) for arm in arms)
    return (
        f"takes {theirs} ms in tf_keras, {plain} in this `rnn`, and {replayed} if the step is "
        "replayed"
    )


# Whole files -------------------------------------------------------------------------------------


def speed_page(run):
    public = run.run.records(group="public")
    return speed.render([speed.Row.of(record) for record in public]) if public else ""


def ladder_picture(run):
    short = _short_ops(run)
    return plots.alone(plots.layers(short)) if short else ""


def calls_picture(run):
    colors = {"programs": "#e37400", "calls": "#1a73e8"}
    bars = sorted(
        (row.ratio("stock", "installed"), label, color)
        for group, color in colors.items()
        for label, row in run.rows(group).items()
    )
    return plots.alone(plots.gains(bars)) if bars else ""


STEPS = [name for name in KERAS if name.startswith("training step")]
LOOPS = ["fit, eager", "fit", "evaluate", "predict"]
MODELS = [name for name in KERAS if name not in (*STEPS, *LOOPS)]
TOLD = {
    "actor-critic on CartPole": {
        "80 episodes": ("whole programs", "actor-critic"),
        "200, when steady": (STEADY, "actor-critic, long"),
    },
    "DDPG on Pendulum": {
        "20 episodes": ("whole programs", "DDPG"),
        "when steady": (STEADY, "DDPG"),
    },
    "requests to a model": {
        "2,000 requests": ("whole programs", "online request"),
        "when steady": (STEADY, "online request"),
    },
}
"""By program, the groups and labels of the times in the picture."""


def glance_picture(run):
    parts = _glance(run)
    return plots.alone(plots.glance(*parts)) if parts else ""


def _glance(run):
    """Return the values in the picture "at a glance"; None if the run lacks any of them."""

    def mean(*rows):
        ratios = [row.ratio(*reversed(row.pair)) for row in rows if row and row.pair]
        return geometric_mean(ratios) if ratios else None

    def keras_rows(names):
        return [run.rows("keras").get(f"Keras, {name}") for name in names]

    public = [row for row in run.rows("public").values() if row.about["ops"]]
    unchanged = {
        f"{len(public):,} public functions": mean(*public),
        "gradients": mean(*run.rows("gradients").values()),
        "Keras models": mean(*keras_rows(MODELS)),
        "training steps": mean(*keras_rows(STEPS)),
        "fit, evaluate, predict": mean(*keras_rows(LOOPS)),
    }
    functions = {
        "fastops.ops": mean(*_short_ops(run)),
        "fastops.function": mean(*run.rows("functions").values()),
        "fastops.graph": mean(*run.rows("sessions").values(), *run.rows("serving").values()),
        "fastops.backend": mean(*run.rows("backend").values()),
    }
    values = {
        program: {text: run.rows(group).get(label) for text, (group, label) in told.items()}
        for program, told in TOLD.items()
    }
    every = [row for told in values.values() for row in told.values()]
    if None in (*unchanged.values(), *functions.values(), *every):
        return None
    programs = {
        program: {
            text: {arm: row.time(arm) for arm in ("installed", "torch", "stock") if row.has(arm)}
            for text, row in told.items()
        }
        for program, told in values.items()
    }
    return unchanged, functions, programs


WHOLE_FILES = {
    "docs/speed.md": speed_page,
    "docs/ladder.svg": ladder_picture,
    "docs/install.svg": calls_picture,
    "docs/glance.svg": glance_picture,
}
"""By path, the function that makes a file. It returns "" if the run has no such measurement; then
the file is not changed."""


# -------------------------------------------------------------------------------------------------


def render(text, blocks, of, only=()):
    """Return a text with new content of its blocks, and the names of unchanged blocks."""
    kept = []

    def write(match):
        begin, name, before, _, after, end = match.groups()
        if name not in blocks:
            raise ValueError(f"nothing makes the figures {name}; there are {', '.join(blocks)}")
        if only and name not in only:
            return match[0]
        new = blocks[name](of)
        if not new:
            kept.append(name)
            return match[0]
        return f"{begin}{before}{new}{after}{end}"

    text = MARKED.sub(write, text)
    missing = blocks.keys() - {match[2] for match in MARKED.finditer(text)}
    if missing:
        raise ValueError(f"there is no place for the figures {', '.join(sorted(missing))}")
    return text, kept


def write(run, root=ROOT, only=()):
    """Write all figures, or some; return the names of those that the run lacks.

    Parameters
    ----------
    run : fastops_bench.runs.Run
    root : pathlib.Path
        A checkout.
    only : collection of str
        Names of blocks, and paths of whole files.
    """
    of, kept = Figures(run), []
    for path, blocks in BLOCKS.items():
        if only and not blocks.keys() & set(only):
            continue
        file = root / path
        try:
            text, stays = render(file.read_text(), blocks, of, only)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        file.write_text(text)
        kept += [f"{path}: {name}" for name in stays]
    for path, make in WHOLE_FILES.items():
        if (not only or path in only) and (text := make(of)):
            (root / path).write_text(text)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run saved by `python -m fastops bench --json`")
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout; default: this one")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="write only this block or whole file; may be repeated",
    )
    parser.add_argument("--rough", action="store_true", help="accept a quick run")
    args = parser.parse_args()
    run = Run.load(args.run)
    if run.method["effort"] != "full" and not args.rough:
        parser.error(
            f"{args.run} is a quick run: its figures are too rough for pages (--rough accepts it)"
        )
    kept = write(run, args.root, args.only)
    for one in kept:
        print(f"stays as it is, not measured: {one}", file=sys.stderr)
    lost = report.lost(run) if report.has_all_rows(run) else []
    for sentence in lost:
        print(sentence, file=sys.stderr)
    sys.exit(bool(kept or lost))


if __name__ == "__main__":
    main()
