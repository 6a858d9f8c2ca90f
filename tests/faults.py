"""Test how `install` handles missing or changed names in TensorFlow, Keras and tf_keras.

A fault deletes a name that `fastops._install` uses, or binds it to an object of another type. For
each fault, a process that has imported TensorFlow and Keras runs a short program without fastops
and with it. The results must be the same, and `uninstall` must leave nothing behind.

Examples
--------
``python tests/faults.py`` tests every name with every fault, which takes some minutes. With names
as arguments, only these are tested. With ``--early``, the fault is made before fastops is imported.
"""

import argparse
import gc
import hashlib
import importlib
import os
import pickle
import random
import re
import signal
import sys
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

FAULTS = ("deleted", "none", "number", "function", "class", "raising")
"""Replacements for the object of a name."""

SECONDS = 60
"""The time limit of the program with one fault."""


class Raising:
    """An object that raises whatever is done with it."""

    def __getattribute__(self, name):
        raise RuntimeError(f"asked for {name}")

    def __call__(self, *args, **kwargs):
        raise RuntimeError("called")


def function(*args, **kwargs):
    """Replace a class by a function."""
    raise RuntimeError("called")


class Class:
    """A class that replaces a function."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("called")


VALUES = {"none": None, "number": 7, "function": function, "class": Class}


def value_of(fault):
    """Return the replacement. A `Raising` is made anew, as other tests inspect all objects."""
    return Raising() if fault == "raising" else VALUES[fault]


# Names -------------------------------------------------------------------------------------------


def names():
    """Return every name of TensorFlow, Keras and tf_keras that `fastops._install` uses."""
    from fastops._install import iteration, models, optionals, upstream, variables  # noqa: F401
    from fastops._install.helpers import functions as helpers
    from fastops._install.keras import batches
    from fastops._install.keras import functions as keras
    from fastops._install.models import library
    from fastops._install.models import targets as objects
    from fastops._install.operators import OPERATORS
    from fastops._install.public import functions, methods
    from fastops._install.replay import functions as replay
    from fastops._install.replay import targets as replayed

    candidates = dict.fromkeys(upstream.table()["kinds"])
    candidates |= dict.fromkeys(name for name in strings() if exists(name))
    some = [
        function.name for function in (*functions.FUNCTIONS, *methods.METHODS, *keras.FUNCTIONS)
    ]
    for table in (replay.FUNCTIONS, replay.METHODS, replay.OBJECTS):
        some += [f"{space}.{name}" for space, of in table.items() for name in of.split()]
        some += list(table)
    some += [f"tf.Tensor.{name}" for one in OPERATORS for name in one.names.split()]
    some += [f"tensorflow.python.{one.name}" for one in (*helpers.HELPERS, *helpers.METHODS)]
    some += [f"tf_keras.src.{one.name}" for one in helpers.TF_KERAS]
    some += [f"keras.src.{one}" for one in (*keras.HELPERS, *keras.METHODS, *batches.METHODS)]
    for package, table in (("keras", objects.METHODS), ("tf_keras", objects.OF_TF_KERAS)):
        for kind, of in table.items():
            some += [
                f"{package}.src.{kind}",
                *(f"{package}.src.{kind}.{name}" for name in of.split()),
            ]
    some += [*library.UNASKED, *library.OF_TRAINING, *library.OF_TF_KERAS_LAYERS]
    some += [
        f"tf_keras.src.{name}"
        for name in (
            "backend.PER_GRAPH_OBJECT_NAME_UIDS",
            "backend._DUMMY_EAGER_GRAPH",
            "backend._GRAPH_LEARNING_PHASES",
            "backend.get_default_graph_uid_map",
            "engine.base_layer_utils._call_context",
            "mixed_precision.autocast_variable._autocast_dtype",
        )
    ]
    for names in replayed.SETTINGS.values():
        some += names
    variable = "tensorflow.python.ops.resource_variable_ops.BaseResourceVariable"
    some += [f"{variable}.{name}" for name in variables.METHODS]
    optional = "tensorflow.python.data.ops.optional_ops"
    some += [f"{optional}._OptionalImpl.{name}" for name in optionals.METHODS]
    some += [f"{optional}.Optional.from_value"]
    some += [
        "tensorflow.python.framework.tensor.Tensor.__iter__",
        "tensorflow.python.framework.tensor._TensorIterator.__next__",
        "tensorflow.python.eager.backprop._gradient_function",
        "tensorflow.python.eager.backprop.GradientTape.gradient",
        "tensorflow.python.eager.backprop.GradientTape.watch",
        "tensorflow.python.eager.polymorphic_function.polymorphic_function.Function.__call__",
        "keras.config.backend",
        "keras.src.layers.layer.Layer.__call__",
        "keras.src.tree.optree_impl",
    ]
    some += sorted(name for name in sys.modules if name.startswith("tensorflow.python.ops.gen_"))
    candidates |= dict.fromkeys(re.sub(r"^tf\.", "tensorflow.", name) for name in some)
    return [name for name in candidates if name.partition(".")[2] and exists(name)]


def strings():
    """Yield the names that occur as strings in the sources."""
    root = Path(importlib.import_module("fastops._install").__file__).parent
    for path in sorted(root.rglob("*.py")):
        yield from re.findall(r'"((?:tensorflow|keras|tf_keras)(?:\.\w+)+)"', path.read_text())


def exists(name):
    """Tell whether a name exists."""
    try:
        holder, attribute = place(name)
    except (AttributeError, KeyError):
        return False
    return attribute in vars(holder) and _package(holder) in ("tensorflow", "keras", "tf_keras")


def _package(holder):
    """Return the package of a module or class."""
    module = holder.__module__ if isinstance(holder, type) else holder.__name__
    return module.partition(".")[0]


def place(name):
    """Return the module or class whose own namespace contains a name, and the attribute."""
    path, _, attribute = name.rpartition(".")
    holder = None
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in sys.modules:
            holder = sys.modules[".".join(parts[:n])]
            break
    for part in parts[n:]:
        holder = getattr(holder, part)
    if isinstance(holder, type):
        holder = next((kind for kind in holder.__mro__ if attribute in vars(kind)), holder)
    return holder, attribute


def fitting(name):
    """Return the faults that change the type of a name's object."""
    holder, attribute = place(name)
    if attribute not in getattr(holder, "__dict__", ()):  # no assignment can change it
        return []
    value = vars(holder)[attribute]
    value = getattr(value, "__func__", value)
    callable_ = not isinstance(value, type) and callable(value)
    left = {"function": callable_, "class": isinstance(value, type), "none": value is None}
    left["number"] = type(value) is int
    return [fault for fault in FAULTS if not left.get(fault)]


@contextmanager
def injected(faults):
    """Make faults in the `with` block: pairs of a name and one of `FAULTS`."""
    undo, before = [], set(sys.modules)
    # Look up all names before any of them is changed.
    places = [(*place(name), name, fault) for name, fault in faults]
    try:
        for holder, attribute, name, fault in places:
            if attribute not in vars(holder):  # already deleted under another name
                continue
            value = vars(holder)[attribute]
            undo.append((holder, attribute, value))
            try:
                if fault == "deleted":
                    delattr(holder, attribute)
                else:
                    setattr(holder, attribute, value_of(fault))
            # Attributes of classes in C cannot be changed. TensorFlow's wrappers of modules delete
            # only names that have been looked up.
            except (AttributeError, KeyError, TypeError):
                undo.pop()
                continue
            if name in before:
                undo.append((sys.modules, name, sys.modules[name]))
                sys.modules[name] = None  # makes imports of the module fail
        yield bool(undo)
    finally:
        for holder, attribute, value in reversed(undo):
            if holder is sys.modules:
                sys.modules[attribute] = value
            else:
                setattr(holder, attribute, value)
        for name in {name for name, _ in faults} - before:
            sys.modules.pop(name, None)  # an import may have added it again


# The program -------------------------------------------------------------------------------------


class Program:
    """A short program, in sections, that uses everything for which `install` replaces something.

    All objects that it needs are made here, before there are faults.

    Parameters
    ----------
    whole : bool
        Whether the program runs all sections, or only those of single ops.
    """

    def __init__(self, whole=True):
        import keras
        import numpy as np
        import tensorflow as tf

        self.tf, self.keras, self.np, self.whole = tf, keras, np, whole
        self.x = tf.constant(np.linspace(-2.0, 2.0, 12, dtype=np.float32).reshape(4, 3))
        self.y = tf.constant([0, 1, 1, 0])
        self.array = np.linspace(0.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
        self.variable, self.other = tf.Variable(tf.ones([3, 2])), tf.Variable(tf.ones([3, 2]))
        self.third = tf.Variable(tf.ones([3, 2]))
        self.again = 3
        if whole:
            self.make()
        self.kept = [variable.numpy() for variable in self.variables()]

    def make(self):
        """Make the objects that take long to make."""
        import tf_keras

        tf, keras = self.tf, self.keras
        self.traced = tf.function(lambda x: tf.reduce_sum(tf.nn.relu(x) * 2.0, axis=1))
        self.traced(self.x)
        keras.utils.set_random_seed(1)
        self.model, self.called, self.served = (
            keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]) for _ in range(3)
        )
        self.served.compile("sgd", "mse")
        self.served.predict_on_batch(self.array)
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.metric = keras.metrics.Mean()
        self.optimizer = keras.optimizers.SGD(0.5)
        self.optimizer.build(self.model.trainable_variables)
        self.older = tf_keras.optimizers.SGD(0.5)
        self.older.build([self.third])
        self.layer = tf_keras.layers.Dense(2)
        self.layer(self.x)
        self.ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])

    def variables(self):
        """Return the variables that the program changes."""
        if not self.whole:
            return [self.other]
        of_keras = [*self.model.variables, *self.metric.variables, *self.optimizer.variables]
        return [
            self.other,
            self.third,
            *(variable._value for variable in of_keras),
            *self.older.variables,
        ]

    def sections(self):
        """Return functions, each of which returns a structure of values."""
        values = [
            self.operators,
            self.functions,
            self.gradients,
            self.assignments,
            self.making,
            self.structures,
            self.ops_of_keras,
        ]
        return (
            values
            if not self.whole
            else [
                *values,
                self.call_of_traced,
                self.replayed,
                self.call_of_keras,
                self.training_of_keras,
                self.batches_of_keras,
                self.training_of_tf_keras,
            ]
        )

    def operators(self):
        x = self.x
        return [x + x, x * 2.0, -x, x @ self.tf.transpose(x), x[1:, 0], x > 0.0, *x]

    def functions(self):
        tf, x = self.tf, self.x
        return [
            *(
                tf.reduce_mean(x, axis=0),
                tf.concat([x, x], 1),
                tf.nn.softmax(x),
                tf.cast(x, "int32"),
            ),
            *(tf.zeros([2, 2]), tf.range(3), tf.gather(x, [0, 2]), tf.where(x > 0.0, x, -x)),
            *(tf.reshape(x, [-1]), tf.shape(x), tf.one_hot(self.y, 3), tf.clip_by_value(x, -1, 1)),
            *(tf.raw_ops.Tanh(x=x), tf.exp(x), tf.stack([x, x]), tf.squeeze(x[:1])),
        ]

    def gradients(self):
        tf = self.tf
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(tf.matmul(self.x, self.variable)) ** 2.0)
        return tape.gradient(y, [self.variable])

    def assignments(self):
        self.other.assign_add(self.other * 0.5)
        return [self.other.read_value(), self.other.numpy(), self.other + 1.0]

    def making(self):
        return [self.tf.Variable(self.x, name="made").read_value() for _ in range(self.again + 1)]

    def structures(self):
        nest, tf = self.tf.nest, self.tf
        structure = {"a": [1, (2, 3)], "b": 4}
        return [
            *nest.flatten(structure),
            *nest.flatten(nest.map_structure(lambda leaf: leaf + 1, structure)),
            *nest.flatten(nest.pack_sequence_as(structure, [1, 2, 3, 4])),
            tf.TensorShape([1, None]).rank,
            str(tf.as_dtype("float32")),
            tf.is_tensor(self.x),
        ]

    def call_of_traced(self):
        return [self.traced(self.x) for _ in range(self.again)]

    def replayed(self):
        tf, x = self.tf, self.x
        return [
            [
                *(
                    tf.einsum("ij,kj->ik", x, x),
                    tf.linalg.diag(x[0]),
                    tf.image.flip_left_right(tf.reshape(x, [1, 4, 3, 1])),
                ),
                *(tf.experimental.numpy.sum(x), self.ragged.to_tensor()),
            ]
            for _ in range(self.again)
        ]

    def ops_of_keras(self):
        ops, x = self.keras.ops, self.x
        return [
            ops.add(x, x),
            ops.matmul(x, ops.transpose(x)),
            ops.mean(x, axis=1),
            ops.cast(x, int),
        ]

    def call_of_keras(self):
        return [
            [self.called(self.x), self.called(self.array), self.called(self.x, training=True)]
            for _ in range(self.again)
        ]

    def training_of_keras(self):
        values = []
        for _ in range(self.again):
            with self.tf.GradientTape() as tape:
                loss = self.loss(self.y, self.model(self.x, training=True))
            variables = self.model.trainable_variables
            self.optimizer.apply(tape.gradient(loss, variables), variables)
            self.metric.update_state(loss)
            values += [loss, self.metric.result(), *(variable.numpy() for variable in variables)]
        return values

    def batches_of_keras(self):
        served = self.served
        return [served.predict_on_batch(self.array), served.predict(self.array, verbose=0)]

    def training_of_tf_keras(self):
        for _ in range(self.again):
            self.older.apply_gradients([(self.tf.ones([3, 2]), self.third)])
            made = self.layer(self.x)
        return [self.third.numpy(), made]

    def run(self):
        """Return the outcome of each section, by name: a digest of values, or the exception."""
        by_section = {}
        for section in self.sections():
            try:
                result = section()
            except Exception as problem:
                by_section[section.__name__] = re.sub("0x[0-9a-f]+", "0x", f"{problem!r}"[:300])
            else:
                by_section[section.__name__] = digest(result, self.np)
        return by_section

    def reset(self):
        """Restore the state before the program."""
        for variable, value in zip(self.variables(), self.kept, strict=True):
            variable.assign(value)


def digest(value, np):
    """Return a digest of a structure's values, dtypes and shapes."""
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, list | tuple):
        return [digest(item, np) for item in value]
    array = np.asarray(value)
    # An array of objects has addresses as its bytes; for example, a method replaces a property.
    if array.dtype == object:
        return f"{array.shape} {[type(item).__name__ for item in array.flat]}"
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:8]}"


# Testing a fault
# -----------------------------------------------------------------------------------


def leftovers(placed):
    """Return the names that are still replaced: patch points, and attributes of any module."""
    from fastops._install.replacement import Replacement

    left = [
        f"{holder.__name__}.{attribute}"
        for holder, attribute, original in placed
        if vars(holder).get(attribute) is not original
    ]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("tensorflow", "keras", "tf_keras") and module is not None:
            left += [
                f"{name}.{attribute}"
                for attribute, value in list(vars(module).items())
                if issubclass(type(value), Replacement)
            ]
    return left


def ask(program, faults, say):
    """Run the program with some faults. Return a description of what is wrong, or `None`."""
    import fastops
    from fastops._install import placement, upstream

    with injected(faults) as any_:
        if not any_:
            return None
        say("stock")
        want = program.run()
    program.reset()
    with injected(faults):
        say("fast")
        try:
            fastops.install()
            placed = list(placement._placed)
            got = program.run()
        finally:
            fastops.uninstall()
        first = {}  # if a name is replaced twice, keep the first
        for holder, attribute, original in zip(
            placed[::5], placed[1::5], placed[2::5], strict=True
        ):
            first.setdefault((id(holder), attribute), (holder, attribute, original))
        left = leftovers(first.values())
        told = list(upstream.left_out().values())
    program.reset()
    if left:
        return f"left: {left[:5]}"
    # If TensorFlow's own call raises, the call with fastops may still work without the missing
    # name.
    wrong = {
        name: (one, got[name])
        for name, one in want.items()
        if got[name] != one and not isinstance(one, str)
    }
    if wrong:
        return "; ".join(f"{name}: {one} is {two}" for name, (one, two) in wrong.items())
    if not placed:
        return f"nothing is patched in: {told[:3]}"
    return None


def ask_early(_, faults, say):
    """Import fastops with some faults in a new process; return what is wrong, as `ask` does."""
    return in_fork(lambda: _ask_early(faults, say))


def _ask_early(faults, say):
    program = Program(whole=False)
    with injected(faults) as any_:
        if not any_:
            return None
        say("stock")
        program.run()
    program.reset()  # with the faults, TensorFlow's own assignments may fail
    with injected(faults):
        say("import")
        try:
            importlib.import_module("fastops")
        except Exception as problem:
            places = [frame.filename for frame in traceback.extract_tb(problem.__traceback__)]
            places = [place for place in places if "fastops/_" in place]
            if places and "fastops/_install" not in places[-1]:
                return None  # code below `install` uses only TensorFlow, whose version is pinned
            return f"import fastops: {problem!r}, in {places[-1:]}"
    return ask(program, faults, say)


# Processes ---------------------------------------------------------------------------------------


def in_fork(function):
    """Return what a function returns in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            warnings.simplefilter("ignore")
            signal.alarm(SECONDS)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(function()))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        sent = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(sent) if sent else f"the process has ended: {status}"


class Worker:
    """A forked process that tests one handful of faults after another and reports its progress."""

    def __init__(self, handfuls, make, ask):
        self.handfuls, self._make, self._ask = handfuls, make, ask

    def outcomes(self):
        """Yield for each handful a description of what is wrong, or `None`.

        If TensorFlow itself crashes with a fault, there is nothing to compare.
        """
        at = 0
        while at < len(self.handfuls):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                self._serve(at, writing)
            os.close(writing)
            phase = "begin"
            with os.fdopen(reading, "rb") as pipe:
                while True:
                    try:
                        kind, value = pickle.load(pipe)
                    except EOFError:
                        break
                    if kind == "phase":
                        phase = value
                    else:
                        yield value
                        at, phase = at + 1, "begin"
            _, status = os.waitpid(child, 0)
            if at < len(self.handfuls):  # the process has ended
                if phase != "stock":
                    yield f"the process has ended: {os.waitstatus_to_exitcode(status)}, in {phase}"
                else:
                    yield None
                at += 1

    def _serve(self, at, writing):
        try:
            with os.fdopen(writing, "wb", buffering=0) as pipe:
                warnings.simplefilter("ignore")
                made = self._make()
                for handful in self.handfuls[at:]:
                    signal.alarm(SECONDS)
                    value = self._ask(
                        made, handful, lambda phase: pipe.write(pickle.dumps(("phase", phase)))
                    )
                    signal.alarm(0)
                    pipe.write(pickle.dumps(("done", value)))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)


def one_by_one(chosen, every=False):
    """Return handfuls of one fault each: for every name one fault in turn, or all that fit."""
    singles = []
    for i, name in enumerate(chosen):
        some = fitting(name)
        first = i % max(1, len(some))
        singles += [[(name, fault)] for fault in (some if every else some[first:][:1])]
    return singles


def handfuls(chosen, size, seed):
    """Return handfuls that together contain all names, each name with some fault."""
    chance = random.Random(seed)
    faults = [(name, chance.choice(some)) for name in chosen if (some := fitting(name))]
    chance.shuffle(faults)
    return [faults[at : at + size] for at in range(0, len(faults), size)]


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="tests/faults.py", description="Run faults.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--every", action="store_true", help="try all faults of each name, not one")
    parser.add_argument("--size", type=int, default=1, help="faults per handful")
    parser.add_argument("--seed", type=int, default=0, help="the seed that chooses handfuls")
    parser.add_argument("--step", type=int, default=1, help="test every so many-th name")
    parser.add_argument("--early", action="store_true", help="make faults before the import")
    options = parser.parse_args(argv)
    for name in ("tensorflow", "keras", "tf_keras"):
        importlib.import_module(name)
    chosen = options.names or in_fork(names)[options.seed % options.step :: options.step]
    if options.size > 1:
        asked = handfuls(chosen, options.size, options.seed)
    else:
        asked = one_by_one(chosen, options.every or bool(options.names))
    gc.freeze()
    failed = 0
    if not options.early:
        importlib.import_module("fastops")
    worker = Worker(asked, list, ask_early) if options.early else Worker(asked, Program, ask)
    for handful, wrong in zip(asked, worker.outcomes(), strict=True):
        if wrong is not None:
            failed += 1
            print(handful, wrong, sep="\n    ", flush=True)
    print(f"{len(asked)} handfuls, {failed} wrong")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
