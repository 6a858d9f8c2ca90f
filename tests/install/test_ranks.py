"""Which stand-in counts if several groups replace the same function or the same attribute."""

from collections import defaultdict

import keras
import pytest
import tensorflow as tf

import fastops
from fastops._core.reasons import text_of
from fastops._install import target, targets, upstream
from fastops._install.keras.calls import LayerCall
from fastops._install.models.method import RecordedMethod

pytestmark = [pytest.mark.usefixtures("fresh"), pytest.mark.quick]

ORDER = [
    ("dispatch", "TFE_Py_FastPathExecute"),
    ("functions", "generated functions"),
    ("replayed", "functions"),
    ("public", "functions"),
    ("helpers", "functions"),
    ("keras", "functions"),
    ("operators", "operators of tensors and variables"),
    ("operators", "methods of tensors"),
    ("replayed", "methods"),
    ("gradients", "gradients of ops"),
    ("gradients", "methods of tapes"),
    ("variables", "methods of variables"),
    ("variables", "the making of variables"),
    ("operators", "iteration over tensors"),
    ("helpers", "methods"),
    ("helpers", "optional values"),
    ("datasets", "iterators of datasets"),
    ("datasets", "iterators of arrays"),
    ("datasets", "iteration over datasets"),
    ("keras", "methods"),
    ("helpers", "methods of tf_keras"),
    ("models", "calls of Keras's objects"),
    ("models", "calls of tf_keras's objects"),
    ("traced", "tf.function"),
    ("traced", "functions of the runtime"),
    ("traced", "optional values"),
    ("gradients", "jacobians of tapes"),
    ("gradients", "forward accumulators"),
    ("modules", "calls of modules"),
    ("modules", "draws of generators"),
]
"""The layer and title of each group, the lowest rank first."""


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    upstream.begin()
    yield
    fastops.uninstall()
    upstream.begin()


def test_the_order_of_the_groups():
    assert [(group.layer, group.title) for group in targets.GROUPS] == ORDER
    ranks = [group.rank for group in targets.GROUPS]
    assert ranks == sorted(set(ranks))


def test_two_groups_of_one_rank_are_an_error():
    one, other = targets.GROUPS[:2]
    with pytest.raises(ValueError, match="'A' and 'B' have the same rank"):
        targets.in_order(one._replace(title="A", rank=3), other._replace(title="B", rank=3))
    high, low = one._replace(rank=9), other._replace(rank=3)
    assert targets.in_order(high, low) == (low, high)


def test_groups_that_claim_functions_have_ranks_without_others_between():
    """So each function is replaced once."""
    claiming = [at for at, group in enumerate(targets.GROUPS) if group.everywhere]
    assert claiming == list(range(claiming[0], claiming[-1] + 1))


def test_no_function_is_claimed_twice():
    claims = [targets._claims([group]) for group in targets.GROUPS if group.everywhere]
    assert min(map(len, claims)) > 10
    assert len(set().union(*claims)) == sum(map(len, claims))
    assert upstream.left_out() == {}


def test_the_stand_in_of_the_highest_rank_is_used(monkeypatch):
    def claiming(layer):
        name = f"tanh of {layer}"
        return lambda module: {id(tf.math.tanh): (layer, name, lambda original: original)}

    some = [
        group._replace(find=claiming(group.layer))
        for group in targets.GROUPS
        if group.everywhere and group.layer != "keras"
    ]
    for order in (some, some[::-1]):
        monkeypatch.setattr(targets, "GROUPS", targets.in_order(*order))
        found = {(one.layer, one.name) for one in targets.candidates()}
        assert found == {("helpers", "tanh of helpers")}


def test_the_attributes_with_two_stand_ins():
    several = defaultdict(list)
    for one in targets.candidates():
        several[id(one.holder), one.attribute].append((one.layer, one.name))
    assert [found for found in several.values() if len(found) > 1] == [
        [("keras", "keras.Layer.__call__"), ("models", "keras.src.layers.layer.Layer.__call__")]
    ]
    assert upstream.left_out() == {}


def test_the_stand_in_of_the_higher_rank_lies_on_top():
    original = vars(keras.Layer)["__call__"]
    fastops.install()
    top = vars(keras.Layer)["__call__"]
    assert isinstance(top, RecordedMethod)
    assert isinstance(top.original, LayerCall)
    assert top.original.original is original


def test_a_second_claim_of_a_group_is_left_out():
    claims = {}
    target.claim(claims, tf.math.tanh, "public", "first", len)
    target.claim(claims, tf.math.tanh, "public", "second", repr)
    target.claim(claims, tf.math.sin, "public", "third", len)
    assert [name for _, name, _ in claims.values()] == ["first", "third"]
    why = text_of("function_claimed", "first")
    assert upstream.left_out() == {("public", "second"): why}


def test_a_second_target_of_a_group_for_an_attribute_is_left_out():
    names = ("first", "tanh"), ("second", "tanh"), ("third", "sin")
    found = [target.Target("operators", name, tf.math, attribute, len) for name, attribute in names]
    (group,) = (one for one in targets.GROUPS if one.title == "methods of tensors")
    kept = targets.targets_of([group._replace(find=lambda module: found)])
    assert [one.name for one in kept] == ["first", "third"]
    why = text_of("attribute_claimed", "first")
    assert upstream.left_out() == {("operators", "second"): why}
