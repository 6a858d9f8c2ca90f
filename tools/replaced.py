"""Writes docs/install.md: the table of what `fastops.install` replaces, from its data.

Run in an environment with fastops and TensorFlow: ``make gen`` does.
"""

from pathlib import Path

from fastops._install import dtypes, targets
from fastops._install.gradients.rules import RULES
from fastops._install.helpers import functions as helper_functions
from fastops._install.keras import batches, helper
from fastops._install.keras import functions as keras_functions
from fastops._install.models import targets as models
from fastops._install.operators import OPERATORS, WITH_BOOL, WITH_FLOAT, WITH_INT
from fastops._install.public import functions, methods
from fastops._install.replay.functions import FUNCTIONS as REPLAYED
from fastops._install.replay.functions import METHODS as REPLAYED_METHODS

FILE = Path(__file__).parents[1] / "docs" / "install.md"

TEXT = """\
# What `fastops.install` replaces

Written by `make gen` from `targets.py`, `operators.py`, `public/functions.py`, `public/methods.py`,
`replay/functions.py`, `gradients/*.pyx`, `helpers/functions.py`, `keras/functions.py`,
`keras/helper.pyx` and `keras/batches.py` in `fastops/_install`, and held true by a test. Each entry
is a condition under which the fast path is taken; whatever does not meet it reaches TensorFlow's
own function with its arguments untouched.
Conditions of all: a plain call in eager mode, NumPy's behavior off, no handler that users have
registered for the function, and TensorFlow's own generated functions in their places. A function
whose code is not the one that is restated is left alone: [versions.md](versions.md) says in which
versions.

## Layers

`install(only=..., exclude=...)` takes these names, those of the tables below, and those of
generated functions such as `gen_math_ops.tanh`; `*` stands for any letters.

| layer | what |
| --- | --- |
{layers}
## Public functions and methods

"Tensor" is an eager tensor or a variable, "eager" a tensor alone; in the place of either, a small
array or scalar of NumPy's whose dtype the op takes as it is. Arguments without a condition are
whatever the op itself takes directly: tensors, variables, arrays, numbers, texts, lists of these,
shapes. Where a choice of several ops depends on the values of arguments, or none is run at all, a
lowering makes it.

| function | parameters | conditions | ops | lowering |
| --- | --- | --- | --- | --- |
{functions}
## Replayed functions

Functions whose arguments alone decide which ops they run, and methods whose objects do: ragged and
sparse tensors, linear operators and lookup tables of TensorFlow's own classes, whose attributes are
read in each call. A call with arguments of a signature (dtypes and shapes of eager
tensors, by themselves or in sparse and ragged ones, and of variables, which each call reads anew;
values of numbers, strings, dtypes, shapes and None; lists, tuples and dicts of these) is recorded
when those before it have cost enough for that to [pay](keras.md#when-recordings-begin),
later ones run the same ops. Values that TensorFlow's Python looked at meanwhile, and sizes that it
may have looked at, are compared; where one differs, or an op fails, TensorFlow's function is
called. Calls of the functions above that are not lowered are replayed, too. No call is replayed
within a device scope, a strategy or a graph, and none of a function that has a gradient of its own
within a tape.

| namespace | functions |
| --- | --- |
{replayed}
## Operators

Of `tf.Tensor`, and but for `==` and `!=` of `tf.Variable`. The other operand is a tensor, a
variable, or an array or scalar of NumPy's, of the same dtype or of float64 beside float32; a Python
float beside {floats}, a Python int beside {ints}, or a Python bool beside {bools}.

| operators | ops, and the dtypes they are run for |
| --- | --- |
{operators}
## Gradients

Ops whose gradients are computed without TensorFlow's Python, as long as TensorFlow's own gradient
function is the registered one: {rules}.

## Methods of tapes, variables and tensors

{methods}.

## Helpers

Functions and methods below the public ones, by their names in `tensorflow.python`. Those of
`inspect` are Python's, by which decorators bind arguments; those of tf_keras are replaced if it was
imported before `install` is called.

| function | parameters | answered are |
| --- | --- | --- |
{answers}
## Models

Methods of objects of Keras's own
classes, as long as all code that runs in a call is of Keras, TensorFlow, NumPy or the standard
library. Of arguments of a signature (as for replayed functions, with the masks of tensors; one of
Keras's variables is which it is) two calls in a row are recorded, when those before them have cost
enough for that to [pay](keras.md#when-recordings-begin), and the second is replayed on copies of
the variables; if both and the replay are equal, later calls run the same ops. A call is
Keras's own where anything differs that the object holds, directly or indirectly, or a global that
the code asks, or a setting that Keras keeps for the thread; where the class is a user's; within
graphs, device scopes, stateless and symbolic scopes and strategies; and where Keras's Python
decides by a value after it has assigned one, as optimizers do that average weights. `describe` of a
method says what is known of an object: `type(model).__call__.describe(model)`.

The same holds of tf_keras, if it was imported before `install` is called, for
its optimizers but the legacy ones. Where a gradient is no tensor or missing, where a variable is no
plain `tf.Variable`, and within tapes, a step is tf_keras's.

| class | methods |
| --- | --- |
{models}
## Keras

Of Keras on TensorFlow, by their names in `keras.src`. Here "keras" is an eager tensor, a
variable, or a variable of Keras's outside scopes that give it another value; "operand" is that, or
a Python int or float. Two tensors must be of one dtype, which Keras's rules leave as it is.

| function | parameters | conditions | ops | lowering |
| --- | --- | --- | --- | --- |
{keras_functions}
Beside these, what Keras asks in Python before it reaches an op:

| function | what its stand-in does |
| --- | --- |
{helpers}"""


GROUPS = {
    dtypes.NUMERIC: "numbers",
    dtypes.REAL: "real numbers",
    dtypes.INTS: "ints",
    dtypes.FLOATS: "floats",
    dtypes.COMPLEX: "complex",
    dtypes.SIGNED: "signed ints",
}


def kinds(dtypes):
    """Return names of dtypes, whole groups of them by the group's name."""
    for group, name in GROUPS.items():
        dtypes = dtypes.replace(group, f"{name},")
    return dtypes.strip(",")


def cell(text):
    return str(text).replace("|", "\\\\|")


def row(*cells):
    return f"| {' | '.join(map(cell, cells))} |\n"


def rows(functions):
    return "".join(
        row(
            f"`{function.name.removeprefix('keras.src.')}`",
            f"`{function.signature}`",
            ", ".join(need.replace("=", ": ") for need in function.needs.split()),
            ", ".join(
                f"`{site.op}`" + (f" ({kinds(site.dtypes)})" if site.dtypes else "")
                for site in function.sites
            ),
            f"`{function.lowering}`" if function.lowering else "",
        )
        for function in functions
    )


def render():
    """Return the text of docs/install.md."""
    operators = "".join(
        row(
            ", ".join(f"`{name}`" for name in operator.names.split()),
            "; ".join(f"`{op}`: {kinds(dtypes)}" for dtypes, op in operator.ops.items()),
        )
        for operator in OPERATORS
    )
    names = {target.name for target in targets.method_targets()}
    return TEXT.format(
        layers="".join(row(f"`{name}`", text) for name, text in targets.LAYERS.items()),
        functions=rows((*functions.FUNCTIONS, *methods.METHODS)),
        replayed="".join(
            row(f"`{namespace}`", ", ".join(f"`{name}`" for name in names.split()))
            for namespace, names in (REPLAYED | REPLAYED_METHODS).items()
        ),
        answers="".join(
            row(f"`{helper.name}`", f"`{helper.signature}`", helper.takes)
            for helper in (
                *helper_functions.HELPERS,
                *helper_functions.METHODS,
                *helper_functions.STANDARD,
                *(
                    helper._replace(name=f"tf_keras.src.{helper.name}")
                    for helper in helper_functions.TF_KERAS
                ),
            )
        ),
        models="".join(
            row(f"`{title}`", ", ".join(f"`{name}`" for name in names.split()))
            for title, names in models.METHODS.items()
        )
        + row("each metric", ", ".join(f"`{name}`" for name in models.OF_METRICS))
        + "".join(
            row(f"`tf_keras.src.{title}`", f"`{name}`")
            for title, name in models.OF_TF_KERAS.items()
        ),
        keras_functions=rows(keras_functions.FUNCTIONS),
        helpers="".join(
            row(f"`{name}`", what) for name, what in (helper.HELPERS | helper.METHODS).items()
        )
        + "".join(
            row(f"`{name}`", "makes no pipeline until asked: small batches of arrays of numbers")
            for name in batches.METHODS
        ),
        floats=WITH_FLOAT.replace(" ", ", "),
        ints=WITH_INT.replace(" ", ", "),
        bools=WITH_BOOL,
        operators=operators,
        rules=", ".join(f"`{name}`" for name in sorted(RULES)),
        methods=", ".join(f"`{name}`" for name in sorted(names) if name.startswith("tf.")),
    )


if __name__ == "__main__":
    FILE.write_text(render())
