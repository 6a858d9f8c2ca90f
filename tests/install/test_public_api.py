"""The list of public functions in bench/public: that it is complete, and that no call changes."""

from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import pytest

import fastops
from bench.public import inputs, inventory, recipes, results, without

pytestmark = pytest.mark.usefixtures("fresh")

PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
WITHOUT_OPS = {"nest"}
PATTERNS = [name for reason in without.REASONS for name in without.names(reason)]


def matches(name):
    return [pattern for pattern in PATTERNS if fnmatchcase(name, pattern)]


def public_names():
    """Return the names of each function and method: a list for those that several names have."""
    return inventory.functions() + [[name] for name in inventory.methods()]


def test_every_public_function_has_a_recipe_or_a_reason():
    have = {recipe.name for recipe in recipes.all_recipes()}
    missing = [
        names[0]
        for names in public_names()
        if not any(name in have or matches(name) for name in names)
    ]
    assert not missing


def test_every_recipe_and_reason_is_of_what_exists():
    known = {name for names in public_names() + inventory.classes() for name in names}
    unknown = [recipe.name for recipe in recipes.all_recipes() if recipe.name not in known]
    unknown += [
        pattern for pattern in PATTERNS if not any(fnmatchcase(name, pattern) for name in known)
    ]
    assert not unknown


def test_what_has_a_recipe_has_no_reason_to_have_none():
    assert not [recipe.name for recipe in recipes.all_recipes() if matches(recipe.name)]


def test_no_function_has_two_recipes():
    seen = {}
    for names in public_names():
        seen |= dict.fromkeys(names, names[0])
    mains = [seen.get(recipe.name, recipe.name) for recipe in recipes.all_recipes()]
    assert sorted(mains) == sorted(set(mains))


@pytest.mark.parametrize("family", recipes.names())
def test_calls_give_what_they_give_without(family):
    chosen = recipes.of(family)
    stock, installed = worlds(family), worlds(family)
    # Where fastops is installed, the first call of a signature is TensorFlow's own.
    times = (3, 2, 2)
    wants = list(map(partial(outcomes, chosen), stock, times))
    failed = [call for (call, _), outcome in wants[0].items() if outcome[0] == "raised"]
    assert not failed, "these are no plain calls"
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


def worlds(family):
    """Return each set of inputs with what the calls of a family see beside, newly made."""
    return [recipes.namespace(family, inputs.world(number)) for number in range(inputs.SETS)]


def outcomes(chosen, names, times):
    """Return what each call gives each time."""
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
