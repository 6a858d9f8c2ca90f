"""Write the stub and the table of the functions of `fastops.backend`.

It needs an environment with fastops and TensorFlow; ``make gen`` runs it. ``--check`` writes
nothing, prints differences, and fails if there are any.
"""

import argparse
import difflib
import inspect
import json
import sys
from pathlib import Path

from fastops import backend
from fastops._backend.catalogue import CATEGORIES

ROOT = Path(__file__).parents[1]
STUB = ROOT / "fastops" / "backend" / "__init__.pyi"
PAGE = ROOT / "docs" / "backend.md"

BEGIN = "<!-- Written by `make gen` from the descriptions in fastops/_backend. -->\n"
END = "<!-- The end of the generated part. -->\n"

TYPES = {
    # tensors
    "x y tensor target output predictions targets indices reference inputs increment decrement"
    " new_x labels y_true y_pred condition_ mean_ bias": "TensorLike",
    "kernel depthwise_kernel pointwise_kernel": "TensorLike",
    "beta gamma_ mask initializer input_length_": "TensorLike | None",
    "label_lengths input_length label_length": "TensorLike",
    "tensors": "Sequence[TensorLike]",
    # numbers
    "n rep k num_classes size height_factor width_factor depth_factor summarize beam_width"
    " top_paths": "int",
    "alpha threshold level minval maxval mean stddev low high scale p epsilon": "float",
    "start stop_ step": "float",
    # choices
    "keepdims from_logits go_backwards unroll time_major zero_output_for_mask return_all_outputs"
    " greedy apply_class_balancing sparse ragged": "bool",
    "padding pool_mode interpolation message prefix": "str",
    "data_format name floatx image_data_format": "str | None",
    "dtype": "DTypeLike | None",
    "shape": "ShapeLike | tf.Tensor | int",
    "axes": "int | Sequence[int]",
    "axis": "int | Sequence[int] | None",
    "strides dilation_rate": "int | Sequence[int]",
    "kernel_size pool_size reduction_axes pattern": "Sequence[int]",
    "output_shape": "Sequence[int | None] | tf.Tensor",
    "seed ignore_class ndim": "int | None",
    "max_value_": "float | None",
    "training": "Any",
    "fn step_function": "Callable[..., Any]",
    "constraint": "Callable[[Any], Any] | None",
}
"""The types of parameters, by name. Other parameters have any type."""

BY_NAME = {name: kind for names, kind in TYPES.items() for name in names.split()}

OF = {
    "arange": {"stop": "float | None", "dtype": "DTypeLike"},
    "batch_dot": {"axes": "int | Sequence[int] | None"},
    "batch_normalization": {
        "mean": "TensorLike",
        "var": "TensorLike",
        "beta": "TensorLike | None",
        "gamma": "TensorLike | None",
    },
    "binary_focal_crossentropy": {"gamma": "float"},
    "cast": {"dtype": "DTypeLike"},
    "categorical_focal_crossentropy": {"alpha": "float | Sequence[float]", "gamma": "float"},
    "clip": {"min_value": "TensorLike | None", "max_value": "TensorLike | None"},
    "describe": {"name": "str | None"},
    "dropout": {"level": "float", "noise_shape": "ShapeLike"},
    "epsilon": {},
    "name_scope": {"name": "str"},
    "normalize_batch_in_training": {"gamma": "TensorLike | None", "beta": "TensorLike | None"},
    "one_hot": {"indices": "TensorLike"},
    "placeholder": {"shape": "Sequence[int | None] | None"},
    "pow": {"a": "TensorLike"},
    "relu": {"max_value": "float | None"},
    "resize_images": {"data_format": "str"},
    "resize_volumes": {"data_format": "str"},
    "rnn": {
        "inputs": "Any",
        "initial_states": "Sequence[Any]",
        "constants": "Sequence[Any] | None",
        "input_length": "TensorLike | None",
    },
    "scope": {"epsilon": "float | None", "learning_phase": "int | None"},
    "set_floatx": {"value": "str"},
    "set_epsilon": {"value": "float"},
    "set_image_data_format": {"data_format": "str"},
    "set_learning_phase": {"value": "int"},
    "learning_phase_scope": {"value": "int"},
    "manual_variable_initialization": {"value": "bool"},
    "spatial_2d_padding": {"padding": "Sequence[Sequence[int]]"},
    "spatial_3d_padding": {"padding": "Sequence[Sequence[int]]"},
    "squeeze": {"axis": "int"},
    "stack": {"x": "Sequence[TensorLike]", "axis": "int"},
    "temporal_padding": {"padding": "Sequence[int]"},
    "tile": {"n": "int | Sequence[int] | tf.Tensor"},
    **{
        name: {"axis": "int"}
        for name in (
            *("argmax", "argmin", "binary_crossentropy", "categorical_crossentropy", "concatenate"),
            *("cumprod", "cumsum", "expand_dims", "repeat_elements"),
            "sparse_categorical_crossentropy",
        )
    },
}
"""The types of parameters that differ from `TYPES` in some functions."""

RETURNS = {
    "backend dtype floatx image_data_format": "str",
    "epsilon": "float",
    "get_uid": "int",
    "ndim": "int | None",
    "int_shape": "tuple[int | None, ...] | None",
    "count_params": "np.integer[Any] | np.floating[Any]",
    "is_keras_tensor is_sparse": "bool",
    "batch_get_value": "list[Any]",
    "clear_session manual_variable_initialization reset_uids set_epsilon set_floatx"
    " set_image_data_format set_learning_phase set_value batch_set_value": "None",
    "learning_phase_scope scope": "AbstractContextManager[None]",
    "name_scope": "AbstractContextManager[Any]",
    "eye random_normal_variable random_uniform_variable": "tf.Variable",
    "ctc_decode": "tuple[list[tf.Tensor], tf.Tensor]",
    "normalize_batch_in_training": "tuple[tf.Tensor, tf.Tensor, tf.Tensor]",
    "rnn": "tuple[Any, Any, Any]",
    "function replayable": "Callable[..., Any]",
    "describe": "Any",
    "cast_to_floatx eval foldl foldr get_value gradients in_test_phase in_train_phase map_fn"
    " learning_phase moving_average_update ones placeholder print_tensor stop_gradient switch"
    " to_dense update update_add update_sub variable zeros": "Any",
    "ctc_label_dense_to_sparse concatenate": "Any",
}
"""The result types of functions; default: a tensor."""

RETURNED = {name: kind for names, kind in RETURNS.items() for name in names.split()}

HEAD = """\
# Written by tools/backend.py from the functions in fastops/_backend.
# Do not edit: `make gen` generates this file.
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import tensorflow as tf

from fastops._backend.catalogue import Catalogue as Catalogue
from fastops._backend.catalogue import Description as Description
from fastops._core.typing import DTypeLike, ShapeLike, TensorLike
from fastops.backend import experimental as experimental
"""


def stub():
    """Return the stub of the module."""
    parts = [HEAD, "__all__ = [", *(f'    "{name}",' for name in backend.__all__), "]"]
    for name in backend.__all__:
        function = getattr(backend, name)
        if not isinstance(function, type) and callable(function):
            parts.append(_declaration(name, function))
    return "\n".join(parts).replace("]\ndef ", "]\n\ndef ", 1) + "\n"


def _declaration(name, function):
    parameters, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parameters.append("*")
            starred = True
        kind = OF.get(name, {}).get(parameter.name) or BY_NAME.get(parameter.name, "Any")
        text = f"{'**' * (parameter.kind is parameter.VAR_KEYWORD)}{parameter.name}: {kind}"
        default = (
            json.dumps(parameter.default)
            if isinstance(parameter.default, str)
            else repr(parameter.default)
        )
        parameters.append(text if parameter.default is parameter.empty else f"{text} = {default}")
    inside = "".join(f"    {parameter},\n" for parameter in parameters)
    inside = f"\n{inside}" if inside else ""
    return f"def {name}({inside}) -> {RETURNED.get(name, 'tf.Tensor')}: ..."


def table():
    """Return the table of all functions, a part for each category."""
    parts = [BEGIN]
    for category, meaning in CATEGORIES.items():
        rows = [
            description
            for description in backend.describe().values()
            if description.category == category
        ]
        below = (
            "op"
            if category == "alias"
            else "what it adds"
            if category == "thicker"
            else "what it does"
        )
        parts.append(f"\n### {category.title()}\n\n{meaning[:1].upper()}{meaning[1:]}.\n\n")
        parts.append(f"| function | {below} | TensorFlow | Keras 3 | differences |\n")
        parts.append("| --- | --- | --- | --- | --- |\n")
        for description in rows:
            text = f"`{description.op}`" if description.op else description.adds
            elsewhere = [
                f"`{name}`" if name else "" for name in (description.tensorflow, description.keras)
            ]
            cells = [f"`{description.name}`", text, *elsewhere, description.differs]
            parts.append(f"| {' | '.join(cells)} |".replace("  ", " ") + "\n")
    return "".join([*parts, "\n", END])


def page():
    """Return the page with the table as it should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return before + table() + rest.partition(END)[2]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only show the differences")
    check = parser.parse_args(arguments).check
    differs = False
    for path, text in ((STUB, stub()), (PAGE, page())):
        old = path.read_text() if path.exists() else ""
        if old == text:
            continue
        differs = True
        if check:
            name = str(path.relative_to(ROOT))
            lines = (page.splitlines(keepends=True) for page in (old, text))
            sys.stdout.writelines(difflib.unified_diff(*lines, name, "expected"))
        else:
            path.write_text(text)
    if check and differs:
        print("A function of the backend has changed, or its description: run `make gen`.")
    return int(check and differs)


if __name__ == "__main__":
    sys.exit(main())
