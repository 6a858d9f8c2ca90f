"""The list of public functions in `fastops_bench` is complete, and its calls give the same."""

from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import pytest
import tensorflow as tf
from fastops_bench.public import inputs, inventory, recipes, results, without

import fastops
from fastops._core.tables import facts

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


@pytest.mark.parametrize("variables", [False, True], ids=["", "variables"])
@pytest.mark.parametrize("family", recipes.names())
def test_calls_give_the_same_as_without_install(family, variables):
    chosen = recipes.of(family)
    stock, installed = worlds(family, variables), worlds(family, variables)
    # Under `install`, TensorFlow makes the first call of a signature.
    times = (3, 2, 2)
    wants = list(map(partial(outcomes, chosen), stock, times))
    failed = [call for (call, _), outcome in wants[0].items() if outcome[0] == "raised"]
    assert variables or not failed, "these calls fall back"
    fastops.reset_stats()
    with fastops.accelerated():
        gots = list(map(partial(outcomes, chosen), installed, times))
    assert family in WITHOUT_OPS or fastops.stats().direct
    varying = {recipe.call for recipe in chosen if recipe.varies}
    problems = [
        f"{call}, inputs {number}, time {time}: {got[call, time]}, not {want[call, time]}"[:1000]
        for number, (got, want) in enumerate(zip(gots, wants, strict=True))
        for call, time in want
        if call not in varying and got[call, time] != want[call, time]
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("variables", [False, True], ids=["", "variables"])
@pytest.mark.parametrize("family", recipes.names())
def test_gradients_are_the_same_as_without_install(family, variables):
    chosen = recipes.of(family)
    stock, installed = worlds(family, variables), worlds(family, variables)
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


def worlds(family, variables=False):
    """Return sets of new inputs for the calls of a family, with all other names that the calls use.

    With `variables`, inputs are variables instead of tensors.
    """
    made = [recipes.namespace(family, inputs.world(number)) for number in range(inputs.SETS)]
    if variables:
        for names in made:
            names |= {
                name: tf.Variable(value)
                for name, value in names.items()
                if isinstance(value, tf.Tensor)
            }
    return made


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
    chosen = [recipe for recipe in recipes.of(family) if not recipe.varies]
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
