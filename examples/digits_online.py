"""Learn handwritten digits with fastops and without, and measure the times.

First, a Keras program, `keras_digits.py`, is run unchanged and by `python -m fastops`.

Then a small network is trained online, one image per step, on scikit-learn's bundled digits (1,797
real images of 8x8 pixels). It is trained in two ways: with the backward pass written out in ops, as
the author of a backend would do it, and with a gradient tape. Then it makes one prediction at a
time. The same code runs on `tf.raw_ops`, on `tf.raw_ops` with fastops installed, on `fastops.ops`
and, if it can be imported, on PyTorch. The libraries take turns, a block of images each.

The weights must agree to the last bit with fastops and without. If not, the exit status is 1.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter_ns

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.datasets import load_digits

HIDDEN = 32
RATE = 0.1
BLOCK = 240  # images; installing and uninstalling takes a tenth of a second
WARM_UP = 20


# The network, over any namespace of ops ----------------------------------------------------------


def forward(ops, weights, image):
    """Compute the hidden layer and the scores of the ten digits."""
    w1, b1, w2, b2 = weights
    hidden = ops.Relu(features=ops.BiasAdd(value=ops.MatMul(a=image, b=w1), bias=b1))
    return hidden, ops.BiasAdd(value=ops.MatMul(a=hidden, b=w2), bias=b2)


def predict(library, model, image):
    """Predict the digit in an image."""
    _, scores = forward(library.ops, model.weights, image)
    return library.ops.ArgMax(input=scores, dimension=model.axis)


def step(library, model, image, label):
    """Learn from one image: forward pass, backward pass written out, update."""
    ops, w2 = library.ops, model.weights[2]
    hidden, scores = forward(ops, model.weights, image)
    _, error = ops.SoftmaxCrossEntropyWithLogits(features=scores, labels=label)
    back = ops.ReluGrad(gradients=ops.MatMul(a=error, b=w2, transpose_b=True), features=hidden)
    gradients = (
        ops.MatMul(a=image, b=back, transpose_a=True),
        ops.BiasAddGrad(out_backprop=back),
        ops.MatMul(a=hidden, b=error, transpose_a=True),
        ops.BiasAddGrad(out_backprop=error),
    )
    update(ops, model, gradients)


def taped_step(library, model, image, label):
    """Learn from one image: forward pass on a tape, gradients by the tape, update."""
    ops = library.ops

    def loss():
        _, scores = forward(ops, model.weights, image)
        return ops.SoftmaxCrossEntropyWithLogits(features=scores, labels=label)[0]

    update(ops, model, library.gradients(loss, model.weights))


def update(ops, model, gradients):
    """Go one step down the gradients."""
    for handle, gradient in zip(model.handles, gradients, strict=True):
        ops.ResourceApplyGradientDescent(var=handle, alpha=model.rate, delta=gradient)


TASKS = {"step": step, "taped step": taped_step, "prediction": predict}
TRAINING = ("step", "taped step")


class Model:
    """The weights of a network, with the same initial values for every library."""

    def __init__(self, library, seed):
        random = np.random.default_rng(seed)
        shapes = [(64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
        arrays = [
            random.normal(0, shape[0] ** -0.5, shape) if len(shape) > 1 else np.zeros(shape)
            for shape in shapes
        ]
        self.weights = [library.variable(array.astype(np.float32)) for array in arrays]
        self.handles = [library.handle(weight) for weight in self.weights]
        self.rate = library.tensor(np.float32(RATE))
        self.axis = library.axis(1)


# The libraries -----------------------------------------------------------------------------------


class TensorFlow:
    """TensorFlow's tensors, variables, tape and ops."""

    name = "tf.raw_ops"

    def __init__(self):
        import tensorflow as tf

        self.ops = tf.raw_ops
        self.tensor = self.axis = tf.constant
        self.variable = tf.Variable
        self._tape = tf.GradientTape

    def scope(self, task):
        """Enter the scope that the calls of a task need."""
        return nullcontext()

    def handle(self, variable):
        """Return the object to which an update writes."""
        return variable.handle

    def gradients(self, loss, weights):
        with self._tape() as tape:
            value = loss()
        return tape.gradient(value, weights)

    def numpy(self, tensor):
        return tensor.numpy()

    def counts(self):
        """Return the numbers of direct calls and of all calls since the last time."""
        return 0, 0


class Installed(TensorFlow):
    """TensorFlow's ops with fastops installed, as by ``python -m fastops``."""

    name = "installed"

    def __init__(self, onednn):
        import fastops

        super().__init__()
        self._fastops = fastops
        self._onednn = onednn

    @contextmanager
    def scope(self, task):
        with self._fastops.options(onednn=self._onednn), self._fastops.accelerated():
            yield

    def counts(self):
        calls = self._fastops.stats()
        self._fastops.reset_stats()
        return calls.direct, calls.direct + calls.capi + calls.tensorflow


class FastOps(Installed):
    """The ops of fastops under the names of TensorFlow, with tapes of an installed fastops."""

    name = "fastops.ops"

    def __init__(self, onednn):
        super().__init__(onednn)
        self.ops = self._fastops.raw_ops


class PyTorch:
    """PyTorch, on one thread, under the names of TensorFlow's ops."""

    name = "PyTorch"

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        self.ops = self
        self.tensor = torch.as_tensor
        self.axis = int
        self._torch = torch

    def scope(self, task):
        return self._torch.set_grad_enabled(task == "taped step")

    def variable(self, array):
        return self._torch.tensor(array, requires_grad=True)

    def handle(self, variable):
        """Return the variable's memory, which autograd does not track."""
        return variable.detach()

    def gradients(self, loss, weights):
        return self._torch.autograd.grad(loss(), weights)

    def numpy(self, tensor):
        return tensor.detach().numpy()

    def counts(self):
        return 0, 0

    def MatMul(self, a, b, transpose_a=False, transpose_b=False):
        return self._torch.matmul(a.t() if transpose_a else a, b.t() if transpose_b else b)

    def BiasAdd(self, value, bias):
        return self._torch.add(value, bias)

    def BiasAddGrad(self, out_backprop):
        return self._torch.sum(out_backprop, 0)

    def Relu(self, features):
        return self._torch.relu(features)

    def ReluGrad(self, gradients, features):
        return self._torch.mul(gradients, features > 0)

    def SoftmaxCrossEntropyWithLogits(self, features, labels):
        """Return the loss for autograd, otherwise its gradient; a caller uses one of the two."""
        if self._torch.is_grad_enabled():
            return self._torch.nn.functional.cross_entropy(features, labels), None
        return None, self._torch.softmax(features, 1) - labels

    def ArgMax(self, input, dimension):
        return self._torch.argmax(input, dimension)

    def ResourceApplyGradientDescent(self, var, alpha, delta):
        var.sub_(alpha * delta)


# The measurement ---------------------------------------------------------------------------------


def read_digits(images):
    """Read (image, label) pairs for training, (image,) tuples for prediction, and their labels."""
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pixels))
    pixels, digits = (pixels[order] / 16).astype(np.float32)[:, np.newaxis], digits[order]
    labels = np.eye(10, dtype=np.float32)[digits][:, np.newaxis]
    split = len(digits) * 4 // 5
    train = list(zip(pixels, labels, strict=True))[:split][:images]
    return train, [(image,) for image in pixels[split:]], digits[split:]


class Run:
    """One library at one task, and the times of its calls in nanoseconds."""

    def __init__(self, library, task, model, rows, scratch):
        self.library = library
        self.task = task
        self.model = model
        self.rows = [[library.tensor(array) for array in row] for row in rows]
        self.times = []
        self.direct = self.calls = 0
        self._calls(scratch, self.rows[:WARM_UP])

    def block(self, start):
        self.library.counts()
        self.times += self._calls(self.model, self.rows[start : start + BLOCK])
        direct, calls = self.library.counts()
        self.direct += direct
        self.calls += calls

    def _calls(self, model, rows):
        call, library, times = TASKS[self.task], self.library, []
        with library.scope(self.task):
            for row in rows:
                start = perf_counter_ns()
                call(library, model, *row)
                times.append(perf_counter_ns() - start)
        return times

    def figures(self):
        p50, p99 = np.percentile(self.times, [50, 99]) / 1e3
        return {"p50": p50, "p99": p99, "direct": self.direct / self.calls if self.calls else None}


def accuracy(library, model, rows, digits):
    """Return the share of images that the model predicts correctly."""
    with library.scope("prediction"):
        named = [predict(library, model, library.tensor(image)) for (image,) in rows]
    return float(np.mean([library.numpy(name).item() for name in named] == digits))


def measure(libraries, args, progress):
    """Run all tasks in each library; return figures by task and library, and the trained models."""
    train, test, digits = read_digits(args.images)
    models = {
        (library, task): Model(library, args.seed) for library in libraries for task in TRAINING
    }
    figures = {}
    for task in TASKS:
        trained, rows = ("step", test) if task == "prediction" else (task, train)
        runs = [
            Run(library, task, models[library, trained], rows, Model(library, args.seed))
            for library in libraries
        ]
        starts = list(range(0, len(rows), BLOCK)) * args.epochs
        for start in progress.track(starts, description=task):
            for run in runs:
                run.block(start)
        figures[task] = {
            run.library.name: run.figures()
            | {"accuracy": accuracy(run.library, run.model, test, digits)}
            for run in runs
        }
    return figures, models


def same_bits(libraries, models):
    """Tell for each way of training whether the libraries' weights agree to the last bit."""

    def bits(library, task):
        return b"".join(library.numpy(weight).tobytes() for weight in models[library, task].weights)

    return {task: len({bits(library, task) for library in libraries}) == 1 for task in TRAINING}


def measure_peer(python, args):
    """Measure only PyTorch, in the Python of another environment."""
    command = [python, __file__, "--pytorch-only", "--json=-"]
    command += [f"--{name}={getattr(args, name)}" for name in ("epochs", "seed", "images")]
    return json.loads(subprocess.check_output(command))["figures"]


# The unchanged program ---------------------------------------------------------------

PROGRAM = Path(__file__).with_name("keras_digits.py")
EPOCHS = 2  # epochs of the program per epoch of the loop, since its steps are batches
WAYS = {"stock": [], "installed": ["-m", "fastops"]}


def measure_program(args, progress):
    """Run the Keras program unchanged and by fastops; return the outputs as dicts."""
    printed = {}
    for way in progress.track(WAYS, description=PROGRAM.name):
        command = [sys.executable, *WAYS[way], PROGRAM]
        command += [f"--epochs={EPOCHS * args.epochs}", f"--images={args.images}"]
        output = subprocess.check_output(command, text=True)
        printed[way] = dict(re.findall(r"^(\w+): (.*)$", output, re.MULTILINE))
    return printed


def same_results(printed):
    """Tell whether a program gives the same results in both ways, apart from the times."""
    computed = [{**told, "seconds": None} for told in printed.values()]
    return computed[0] == computed[1]


def program_table(printed):
    """Return a table of the times of the Keras program."""
    result = Table(title="A Keras program, left as it is: fit(run_eagerly=True)")
    result.add_column("command", no_wrap=True)
    for column in ("seconds", "speed-up", "accuracy"):
        result.add_column(column, justify="right")
    stock = float(printed["stock"]["seconds"])
    for way, told in printed.items():
        result.add_row(
            " ".join(["python", *WAYS[way], f"examples/{PROGRAM.name}"]),
            told["seconds"],
            f"{stock / float(told['seconds']):.1f}",
            f"{float(told['accuracy']):.1%}",
        )
    return result


# The report --------------------------------------------------------------------------------------


def table(figures):
    """Return a table of the figures, with a row for each task and library."""
    result = Table(
        title="Handwritten digits, one at a time, by a loop over ops",
        caption="installed: tf.raw_ops under fastops.install(), as by python -m fastops",
    )
    result.add_column("task")
    result.add_column("library", no_wrap=True)
    for column in ("p50 us", "p99 us", "speed-up", "direct", "accuracy"):
        result.add_column(column, justify="right")
    for task, libraries in figures.items():
        for name, row in libraries.items():
            result.add_row(
                task,
                name,
                f"{row['p50']:.1f}",
                f"{row['p99']:.1f}",
                f"{speedup(figures, task, name):.1f}",
                "" if row["direct"] is None else f"{row['direct']:.1%}",
                f"{row['accuracy']:.1%}",
            )
        result.add_section()
    return result


def speedup(figures, task, name="fastops.ops"):
    """Return how many times faster than ``tf.raw_ops`` a library's median call is."""
    return figures[task]["tf.raw_ops"]["p50"] / figures[task][name]["p50"]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3, help="how often each image is used")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the initial weights")
    parser.add_argument("--images", type=int, default=1437, help="how many images to learn from")
    parser.add_argument(
        "--onednn",
        choices=("auto", "off"),
        default="auto",
        help="off: run both TensorFlow and fastops without oneDNN's kernels",
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures, too; -: only print them")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has PyTorch")
    parser.add_argument("--pytorch-only", action="store_true", help="measure only PyTorch")
    return parser.parse_args(arguments)


def main(arguments=None):
    args = parse(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if args.onednn == "off":
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    console = Console(quiet=args.json == "-")

    onednn = args.onednn
    libraries = [] if args.pytorch_only else [TensorFlow(), Installed(onednn), FastOps(onednn)]
    has_torch = importlib.util.find_spec("torch") is not None
    contestants = [*libraries, PyTorch()] if has_torch else libraries
    printed = None
    with Progress(console=console) as progress:
        if libraries:
            printed = measure_program(args, progress)
        figures, models = measure(contestants, args, progress)
    if not has_torch and args.peers and Path(args.peers).exists():
        for task, row in measure_peer(args.peers, args).items():
            figures[task] |= row

    record = {"figures": figures}
    if libraries:
        record["speedup"] = {task: speedup(figures, task) for task in TASKS}
        record["program"] = {way: float(told["seconds"]) for way, told in printed.items()}
        record["bit_identical"] = {"program": same_results(printed)} | same_bits(libraries, models)
        console.print(program_table(printed))
        console.print(table(figures))
        for task, same in record["bit_identical"].items():
            name = PROGRAM.name if task == "program" else task
            console.print(f"{name}: weights {'bit-identical' if same else 'DIFFER'}")
    if args.json == "-":
        print(json.dumps(record))
    elif args.json:
        Path(args.json).write_text(json.dumps(record, indent=1))
    return 0 if all(record.get("bit_identical", {}).values()) else 1


if __name__ == "__main__":
    sys.exit(main())
