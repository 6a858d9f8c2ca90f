"""Write docs/install.md, the tables of what `fastops.install` replaces.

It needs an environment with fastops and TensorFlow; ``make gen`` runs it.
"""

from pathlib import Path

from fastops._autodiff.rules import RULES
from fastops._install import dtypes, targets
from fastops._install.helpers import functions as helper_functions
from fastops._install.keras import batches
from fastops._install.keras import functions as keras_functions
from fastops._install.models import targets as models
from fastops._install.operators import OPERATORS, WITH_BOOL, WITH_FLOAT, WITH_INT
from fastops._install.public import functions, methods
from fastops._install.replay.functions import FUNCTIONS as REPLAYED
from fastops._install.replay.functions import METHODS as REPLAYED_METHODS

FILE = Path(__file__).parents[1] / "docs" / "install.md"

LISTED = {
    ("gradients", "methods of tapes"),
    ("variables", "methods of variables"),
    ("variables", "the making of variables"),
    ("operators", "iteration over tensors"),
    ("datasets", "iterators of datasets"),
    ("datasets", "iterators of arrays"),
    ("datasets", "iteration over datasets"),
    ("helpers", "optional values"),
}
"""The layers and titles of the groups whose targets are listed by name only."""

TEXT = """\
# What `fastops.install` replaces

`make gen` writes this page from `targets.py`, `operators.py`, `public/functions.py`,
`public/methods.py`, `replay/functions.py`, `helpers/functions.py`, `keras/functions.py` and
`keras/batches.py` in `fastops/_install`, and from the rules in `fastops/_autodiff`. A test checks
that the page is current.

Each entry of the tables is a condition under which a stand-in handles a call. If a call does not
meet the condition, the original function gets it, with the arguments unchanged.

These conditions apply to all entries:

- The call is a plain call in eager mode.
- NumPy's behavior is off.
- Users have registered no handler for the function.
- TensorFlow's own generated functions are in place.
- The code of the original is the code that was reimplemented. [versions.md](versions.md) lists the
  versions for which this holds.

## Layers

`install(only=..., exclude=...)` takes these names, the names in the tables below, and the names of
generated functions such as `gen_math_ops.tanh`. In a name, `*` stands for any characters.

| layer | what it replaces |
| --- | --- |
{layers}
## Public functions and methods

In the column of conditions, "tensor" is an eager tensor or a variable, and "eager" is an eager
tensor only. In place of either, a small NumPy array or scalar may be given if the op takes its
dtype unchanged. An argument without a condition may be anything that the op takes directly:
tensors, variables, arrays, numbers, strings, lists of these, and shapes. If the choice among
several ops depends on the values of arguments, or if no op may be needed, a lowering decides.

| function | parameters | conditions | ops | lowering |
| --- | --- | --- | --- | --- |
{functions}
## Replayed functions

These are functions whose arguments alone decide which ops they run. Methods are included whose
objects decide it: ragged and sparse tensors, linear operators and lookup tables of TensorFlow's own
classes. The attributes of such an object are read in each call.

The signature of a call is:

- the dtypes and shapes of eager tensors, also of those in sparse and ragged tensors;
- the dtypes and shapes of variables, which each call reads again;
- the values of numbers, strings, dtypes, shapes and None;
- the structure of lists, tuples and dicts of these.

A call of a signature is recorded when earlier calls have cost enough for a recording to
[pay](keras.md#when-recordings-begin). Later calls run the same ops. They compare the tensor values
that TensorFlow's Python read during the recording, and the sizes that it may have read. If one
differs, or if an op fails, TensorFlow's function is called.

Calls of the public functions above that no lowering handles are replayed, too. No call is replayed
within a graph, a strategy other than the default one, or, if there are several devices, a device
scope.

| namespace | functions |
| --- | --- |
{replayed}
## Operators

These are the operators of `tf.Tensor`, and those of `tf.Variable` except `==` and `!=`. The other
operand may be:

- a tensor, a variable, or a NumPy array or scalar, of the same dtype;
- a NumPy array or scalar of float64, if the tensor is of float32;
- a Python float, if the tensor is of {floats};
- a Python int, if the tensor is of {ints};
- a Python bool, if the tensor is of {bools}.

| operators | ops, and the dtypes they are run for |
| --- | --- |
{operators}
## Gradients

The gradients of these ops are computed without TensorFlow's Python, as long as TensorFlow's own
gradient function is the registered one: {rules}.

## Methods of tapes, variables and tensors

{methods}.

## Helpers

These are functions and methods that public functions call, by their names in `tensorflow.python`.
The methods of `inspect` are Python's; decorators bind arguments with them. The methods of tf_keras
are replaced if tf_keras was imported before `install` is called.

| function | parameters | handled arguments |
| --- | --- | --- |
{answers}
## Models

These are methods of objects of Keras's own classes. Calls are replayed as long as all code that
runs in them is part of Keras, TensorFlow, NumPy or the standard library.

The signature of a call is as for replayed functions, with two additions: the masks of tensors, and
the identity of Keras variables among the arguments. When earlier calls of a signature have cost
enough for a recording to [pay](keras.md#when-recordings-begin), two calls in a row are recorded.
The second one is replayed on copies of the variables. If both recordings and the replay are equal,
later calls run the same ops.

If the two calls differ in the first sizes of their tensors, the batch sizes, and if their code has
read no size that depends on these, later calls of all batch sizes run the same ops. `recordings`
then shows `None` for the first sizes.

Keras makes the call itself in these cases:

- Anything that the object holds, directly or indirectly, differs from the recording.
- A global that the code reads differs, or a setting that Keras keeps for the thread.
- The class is a user's.
- The call is in a graph, a stateless or symbolic scope, or a strategy; or in a device scope, if
  there are several devices.
- Keras's Python decides by a tensor value after it has assigned to a variable, as optimizers do
  that average weights.

The `describe` of a method reports what is known of an object:
`type(model).__call__.describe(model)`. `recordings` lists its recordings, with their ops, constants
and guards.

The layers, models, losses and optimizers of tf_keras, except the legacy optimizers, are replayed in
the same way, if tf_keras was imported before `install` is called. tf_keras makes a call itself if
the call adds losses. It makes a step of an optimizer itself if a gradient is missing or is not a
tensor, if a variable is not a plain `tf.Variable`, and within tapes.

| class | methods |
| --- | --- |
{models}
## Keras

These are functions of Keras on TensorFlow, by their names in `keras.src`. In the column of
conditions, "keras" is an eager tensor, a `tf.Variable`, or a Keras variable outside of scopes that
give it another value. "Operand" is one of these, or a Python int or float. Two tensors must have
the same dtype, and Keras's dtype rules must keep it.

| function | parameters | conditions | ops | lowering |
| --- | --- | --- | --- | --- |
{keras_functions}
These functions of Keras run Python before Keras reaches an op:

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
    """Return names of dtypes; complete groups are replaced by the name of the group."""
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
    groups = [group for group in targets.GROUPS if (group.layer, group.title) in LISTED]
    names = {target.name for target in targets.targets_of(groups)}
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
                helper_functions.WRAPPER,
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
        helpers="".join(row(f"`{name}`", what) for name, what in keras_functions.HELPERS.items())
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
