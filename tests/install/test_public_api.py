"""The list of public functions in `fastops_bench`: it is complete, and its calls are as they were.

No call has another result under `install`, and each call takes the path that is meant for it.
"""

import inspect
import sys
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from calls import find
from fastops_bench.public import inputs, inventory, recipes, results, without
from support import one_in

import fastops
from fastops._core.tables import facts
from fastops._install.public import functions as lowered
from fastops._install.public import methods as lowered_methods
from fastops._install.replacement import Replacement
from fastops._install.replay import functions as replayed

pytestmark = pytest.mark.usefixtures("fresh")

PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
WITHOUT_OPS = {"nest"}
PATTERNS = [name for reason in without.REASONS for name in without.names(reason)]


def matches(name):
    return [pattern for pattern in PATTERNS if fnmatchcase(name, pattern)]


def public_names():
    """Return the names of each function and method, as lists, since some have several names."""
    return inventory.functions() + [[name] for name in inventory.methods()]


@pytest.mark.quick
def test_every_public_function_has_a_recipe_or_a_reason():
    have = {recipe.name for recipe in recipes.all_recipes()}
    missing = [
        names[0]
        for names in public_names()
        if not any(name in have or matches(name) for name in names)
    ]
    assert not missing


@pytest.mark.quick
@pytest.mark.skipif(facts.VERSION != tf.version.VERSION, reason="of another TensorFlow")
def test_every_recipe_and_reason_names_an_existing_function():
    known = {name for names in public_names() + inventory.classes() for name in names}
    unknown = [recipe.name for recipe in recipes.all_recipes() if recipe.name not in known]
    unknown += [
        pattern for pattern in PATTERNS if not any(fnmatchcase(name, pattern) for name in known)
    ]
    assert not unknown


@pytest.mark.quick
def test_no_function_has_both_a_recipe_and_a_reason():
    assert not [recipe.name for recipe in recipes.all_recipes() if matches(recipe.name)]


@pytest.mark.quick
def test_no_function_has_two_recipes():
    seen = {}
    for names in public_names():
        seen |= dict.fromkeys(names, names[0])
    mains = [seen.get(recipe.name, recipe.name) for recipe in recipes.all_recipes()]
    assert sorted(mains) == sorted(set(mains))


@pytest.mark.parametrize("given", ["tensors", "variables", "arrays"])
@pytest.mark.parametrize("family", one_in(2, recipes.names()))
def test_calls_give_the_same_as_without_install(family, given):
    chosen = recipes.of(family)
    stock, installed = worlds(family, given), worlds(family, given)
    # Under `install`, TensorFlow makes the first call of a signature.
    times = (3, 2, 2)
    wants = list(map(partial(outcomes, chosen), stock, times))
    failed = [call for (call, _), outcome in wants[0].items() if outcome[0] == "raised"]
    assert given != "tensors" or not failed, "these calls fall back"
    fastops.reset_stats()
    with fastops.accelerated():
        gots = list(map(partial(outcomes, chosen), installed, times))
    methods_of_arrays = given == "arrays" and family == "tensors"
    assert family in WITHOUT_OPS or methods_of_arrays or fastops.stats().direct
    varying = {recipe.call for recipe in chosen if recipe.varies}
    problems = [
        f"{call}, inputs {number}, time {time}: {got[call, time]}, not {want[call, time]}"[:1000]
        for number, (got, want) in enumerate(zip(gots, wants, strict=True))
        for call, time in want
        if call not in varying and got[call, time] != want[call, time]
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("given", ["tensors", "variables"])
@pytest.mark.parametrize("family", one_in(2, recipes.names()))
def test_gradients_are_the_same_as_without_install(family, given):
    chosen = recipes.of(family)
    stock, installed = worlds(family, given), worlds(family, given)
    want = gradients(chosen, stock[0])
    with fastops.accelerated():
        # The second calls have other values, which caches of the first calls must not contain.
        got = gradients(chosen, installed[0])
        again = gradients(chosen, installed[1])
    varying = {recipe.call for recipe in chosen if recipe.varies}
    other = gradients(chosen, stock[1])
    problems = [
        f"{call}: {one}, not {two}"[:1000]
        for call in want
        for one, two in ((got[call], want[call]), (again[call], other[call]))
        if call not in varying and one != two
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@pytest.mark.parametrize("family", recipes.names())
def test_calls_see_changed_shapes_of_variables(family):
    chosen = [recipe for recipe in recipes.of(family) if not recipe.varies]
    want = changing_shapes(family, chosen)
    with fastops.accelerated():
        got = changing_shapes(family, chosen)
    problems = [
        f"{one}: {got[one]}, not {want[one]}"[:1000] for one in want if got[one] != want[one]
    ]
    assert not problems, "\n".join(problems)


def changing_shapes(family, chosen):
    """Make calls on variables before and after the assignment of tensors of other sizes."""
    given = [recipes.namespace(family, inputs.world(number)) for number in (0, 2)]
    names = dict(given[0])
    held = {
        name: tf.Variable(value, shape=tf.TensorShape(None))
        for name, value in names.items()
        if isinstance(value, tf.Tensor) and value.dtype not in (tf.resource, tf.variant, tf.string)
    }
    names |= held
    found = {}
    for time, number in enumerate((0, 0, 0, 0, 1, 1, 0)):
        for name, variable in held.items():
            variable.assign(given[number][name])
        with results.seeded():
            for recipe in chosen:
                found[recipe.call, time] = results.outcome(recipe.call, names)
    return found


def gradients(chosen, names):
    with results.seeded():
        return {recipe.call: results.gradient(recipe.call, names) for recipe in chosen}


SEEDED = """
tf.random.normal([4], seed=3)
tf.random.uniform([4], seed=3)
tf.random.uniform([4], maxval=9, dtype=tf.int32, seed=3)
tf.random.truncated_normal([4], seed=3)
tf.random.gamma([4], 0.5, seed=3)
tf.random.poisson([4], 2.0, seed=3)
tf.random.shuffle(x, seed=3)
tf.random.categorical(m, 2, seed=3)
tf.random.uniform_candidate_sampler([[1], [2]], 1, 3, True, 8, seed=3)
tf.nn.dropout(x, 0.5, seed=3)
tf.image.random_brightness(image, 0.1, seed=3)
tf.image.random_crop(image, [4, 4, 3], seed=3)
tf.image.random_flip_left_right(image, seed=3)
"""


def test_seeded_ops_keep_their_sequences():
    """Calls in the list have a new seed, and so a new kernel, each time. These keep their seed."""
    calls, names = SEEDED.strip().splitlines(), recipes.namespace("random", inputs.world())

    def sequences():
        with results.seeded():
            return [[results.outcome(call, names) for call in calls] for _ in range(6)]

    want = sequences()
    assert not [outcome for outcome in want[0] if outcome[0] == "raised"]
    assert want[0] != want[1] != want[2]
    with fastops.accelerated():
        got = sequences()
    for number, each in enumerate(zip(*got, strict=True)):
        assert list(each) == [outcomes[number] for outcomes in want], calls[number]


def worlds(family, given="tensors"):
    """Return sets of new inputs for the calls of a family, with all other names that the calls use.

    `given`: whether the inputs are tensors, variables or NumPy arrays.
    """
    made = [recipes.namespace(family, inputs.world(number)) for number in range(inputs.SETS)]
    change = {"variables": tf.Variable, "arrays": _array}.get(given)
    if change is not None:
        for names in made:
            names |= {
                name: change(value) for name, value in names.items() if isinstance(value, tf.Tensor)
            }
    return made


def _array(tensor):
    """Return the values of a tensor as an array; the tensor, if it has no such values."""
    return tensor if tensor.dtype in (tf.resource, tf.variant) else np.asarray(tensor)


def outcomes(chosen, names, times):
    """Return the outcomes of each call, made several times."""
    with results.seeded():
        return {
            (recipe.call, time): results.outcome(recipe.call, names)
            for recipe in chosen
            for time in range(times)
        }


def test_the_page_has_every_recipe():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    titles = [line.split("`")[1].replace("\\|", "|") for line in rows]
    assert sorted(titles) == sorted(recipe.title for recipe in recipes.all_recipes())


@pytest.mark.parametrize("family", recipes.names())
def test_a_third_call_makes_no_new_entries(family):
    """The first two calls of a function make all entries, including those for replays."""
    chosen = [
        recipe for recipe in recipes.of(family) if not recipe.varies and recipe.title not in LATER
    ]
    names = recipes.namespace(family, inputs.world(0))
    fastops.clear_cache()

    def prepared():
        more = {}
        for recipe in chosen:
            before = fastops.cache_info()["entries"]
            with results.seeded():
                results.outcome(recipe.call, names)
            after = fastops.cache_info()["entries"]
            if new := {name for name in after if after[name] != before.get(name, 0)}:
                more[recipe.call] = new
        return more

    with fastops.accelerated():
        prepared(), prepared()
        assert not prepared()


# Paths --------------------------------------------------------------------------------------------

OPERATORS = """
tf.linalg.LinearOperator:
    __matmul__: operator @ n
    add_to_tensor: operator.add_to_tensor(m)
    assert_non_singular: operator.assert_non_singular()
    assert_positive_definite: operator.assert_positive_definite()
    assert_self_adjoint: operator.assert_self_adjoint()
    batch_shape_tensor: operator.batch_shape_tensor()
    cond: operator.cond()
    determinant: operator.determinant()
    diag_part: operator.diag_part()
    domain_dimension_tensor: operator.domain_dimension_tensor()
    eigvals: operator.eigvals()
    log_abs_determinant: operator.log_abs_determinant()
    matmul: operator.matmul(n)
    matvec: operator.matvec(row)
    range_dimension_tensor: operator.range_dimension_tensor()
    shape_tensor: operator.shape_tensor()
    solve: operator.solve(n)
    solvevec: operator.solvevec(row)
    tensor_rank_tensor: operator.tensor_rank_tensor()
    to_dense: operator.to_dense()
    trace: operator.trace()
tf.linalg.LinearOperatorBlockDiag:
    matmul: blocks.matmul(n)
    matvec: blocks.matvec(row)
    solve: blocks.solve(n)
    solvevec: blocks.solvevec(row)
tf.linalg.LinearOperatorBlockLowerTriangular:
    matmul: triangle.matmul(n)
    matvec: triangle.matvec(row)
    solve: triangle.solve(n)
    solvevec: triangle.solvevec(row)
tf.linalg.LinearOperatorCirculant:
    block_shape_tensor: circulant.block_shape_tensor()
    convolution_kernel: circulant.convolution_kernel()
"""
"""Calls of replayed methods of linear operators. In `fastops_bench` each call makes an operator."""

UNCALLED = {
    "tf.linalg.LinearOperatorCirculant.assert_hermitian_spectrum": "with NumPy 2 it raises",
}
"""Replayed methods that `OPERATORS` does not call, and why."""

A_NUMBER = "Python reads a random number, which cannot be drawn again if the recording does not fit"
A_FUNCTION = "signatures have no functions"
AN_ARRAY = "signatures have no arrays"
LOGS = "it logs"
SEVERAL_OPS = "for bools it is several ops"
ON_TENSORFLOWS_PATH = {
    "tf.image.non_max_suppression_padded(batched, scores2, 2, pad_to_max_output_size=True)": (
        "it calls a traced function"
    ),
    "tf.image.random_hue(image, 0.1)": A_NUMBER,
    "tf.linalg.eigh_tridiagonal(x, beta)": "it runs more ops than a recording may have",
    "tf.linalg.LinearOperator.assert_non_singular: operator.assert_non_singular()": LOGS,
    "tf.linalg.LinearOperator.assert_positive_definite: operator.assert_positive_definite()": LOGS,
    "tf.linalg.LinearOperator.assert_self_adjoint: operator.assert_self_adjoint()": LOGS,
    "tf.linalg.LinearOperator.determinant: operator.determinant()": LOGS,
    "tf.linalg.LinearOperator.log_abs_determinant: operator.log_abs_determinant()": LOGS,
    "tf.nn.ctc_loss([[1, 2]], first, [1], [2], blank_index=0)": (
        "it runs `Empty`, whose output is undefined"
    ),
    "tf.nn.experimental.general_dropout(x, 0.5, lambda shape, dtype: tf.zeros(shape, dtype) + 0.7)"
    "": A_FUNCTION,
    'tf.nn.with_space_to_batch(images, [2, 2], "SAME", lambda each, block, padding: '
    "tf.nn.relu(each), [2, 2], [1, 2])": A_FUNCTION,
    "tnp.array(array)": AN_ARRAY,
    "tnp.asanyarray(array)": AN_ARRAY,
    "tnp.asarray(array)": AN_ARRAY,
    "tnp.ascontiguousarray(array)": AN_ARRAY,
    "tf.Tensor.__rxor__: True ^ p": SEVERAL_OPS,
    "tf.Tensor.__xor__: p ^ q": SEVERAL_OPS,
    "tf.Variable.__rxor__: True ^ flags": SEVERAL_OPS,
    "tf.Variable.__xor__: flags ^ True": SEVERAL_OPS,
}
"""By title, the calls that TensorFlow's function makes although it has a stand-in, and why."""


LATER = {
    # when TensorFlow has taken both branches, by a random number
    *("tf.image.random_flip_left_right(image)", "tf.image.random_flip_up_down(image)"),
    # when two calls have given the same trace
    "tf.GradientTape.batch_jacobian: batch_jacobian(tf.square, m)",
    "tf.GradientTape.jacobian: jacobian(tf.square, x)",
    # when two calls have been recorded
    "tf.random.Generator.make_seeds: g.make_seeds(2)",
    "tf.random.Generator.normal: g.normal([4])",
    "tf.random.Generator.split: [each.state for each in g.split(2)]",  # calls `make_seeds`
    "tf.random.Generator.truncated_normal: g.truncated_normal([4])",
    "tf.random.Generator.uniform: g.uniform([4])",
    "tf.random.Generator.uniform_full_int: g.uniform_full_int([4])",
}
"""The calls that take their path only after several calls."""


def calls_of(family):
    """Return the recipes of a family, with those of `OPERATORS`, and what the calls see."""
    names = recipes.namespace(family, inputs.world())
    if family != "linalg":
        return recipes.of(family), names
    full = names["operator"]
    names["blocks"] = tf.linalg.LinearOperatorBlockDiag([full])
    names["triangle"] = tf.linalg.LinearOperatorBlockLowerTriangular([[full]])
    names["circulant"] = tf.linalg.LinearOperatorCirculant(tf.complex([4.0, 1.0, 2.0, 1.0], 0.0))
    return [*recipes.of(family), *recipes.parse(OPERATORS, family)], names


def stand_in(name):
    """Return what stands in for a public name at present; `None` if that is TensorFlow's own."""
    holder, _, attribute = name.rpartition(".")
    owner = inventory.CLASSES.get(holder)
    found = find(name) if owner is None else getattr(owner, attribute)
    return found if isinstance(found, Replacement) else None


def code_of(function):
    """Return the code of a function of Python below all of its decorators; `None` for others."""
    return getattr(inspect.unwrap(function), "__code__", None)


def entered(call, names):
    """Return the code of all functions of Python that a call enters.

    A function of TensorFlow may dispatch a call by the types of its arguments, for example to the
    function for ragged tensors. It counts as entered, although its own code does not run.
    """
    codes = set()

    def profile(frame, event, arg):
        if event == "call":
            codes.add(frame.f_code)
            if frame.f_code.co_name == "op_dispatch_handler":
                codes.add(code_of(frame.f_locals["dispatch_target"]))

    sys.setprofile(profile)
    try:
        eval(call, names)
    finally:
        sys.setprofile(None)
    return codes


@pytest.mark.parametrize("family", recipes.names())
def test_each_call_takes_its_path(family):
    """The third call of a function with a stand-in does not enter TensorFlow's function."""
    chosen, names = calls_of(family)
    with fastops.accelerated():
        functions = {recipe: stand_in(recipe.name) for recipe in chosen}
        codes = {
            recipe: code_of(function)
            for recipe, function in functions.items()
            if function is not None and code_of(function) is not None
        }
        for recipe in [*codes, *codes]:
            eval(recipe.call, names)
        for recipe in codes:
            if recipe.title in LATER:
                tf.random.set_seed(1)
                for _ in range(30):
                    eval(recipe.call, names)
        left = {recipe.title for recipe in codes if codes[recipe] in entered(recipe.call, names)}
    assert left == ON_TENSORFLOWS_PATH.keys() & {recipe.title for recipe in chosen}

    _, names = calls_of(family)
    others = [recipe.title for recipe in codes if codes[recipe] not in entered(recipe.call, names)]
    assert not others, "these calls do not call the function that they are named after"


def test_each_function_with_a_path_has_a_call():
    """A name that is replayed or lowered has a call above, or a reason why there is none."""
    titles = [
        f"{holder}.{name}"
        for table in (replayed.FUNCTIONS, replayed.METHODS)
        for holder, names in table.items()
        for name in names.split()
    ]
    titles += [function.name for function in (*lowered.FUNCTIONS, *lowered_methods.METHODS)]
    called = [*recipes.all_recipes(), *recipes.parse(OPERATORS, "linalg")]
    have_reasons = {name for names in public_names() if any(map(matches, names)) for name in names}
    with fastops.accelerated():
        functions = {title: stand_in(title) for title in titles}
        have_calls = {stand_in(recipe.name) for recipe in called}
    assert not [title for title, function in functions.items() if function is None]
    missing = {title for title, function in functions.items() if function not in have_calls}
    assert {name for name in missing - have_reasons if not matches(name)} == UNCALLED.keys()


def test_each_call_with_a_reason_for_tensorflows_path_exists():
    every = [*recipes.all_recipes(), *recipes.parse(OPERATORS, "linalg")]
    assert ON_TENSORFLOWS_PATH.keys() <= {recipe.title for recipe in every}
