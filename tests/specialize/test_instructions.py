"""The bytecode of functions, read as the same steps in all supported versions of Python."""

import pytest

from fastops._specialize.recording import instructions
from fastops._specialize.recording.instructions import lists_made_in, parameters_of, steps_of

FREE = 1.0


def divides(x):
    return x / 255.0


def reads(x):
    return FREE.real.imag(x) * x.shape


def binds(x, scale=2.0, *rest, shift=1.0, **more):
    first, second = x, scale
    first += shift
    return first, second, rest, more


def makes_lists(x):
    made, other = [], x
    many = []
    many.append(other)
    many = list(many)
    return made, many


def compares(x):
    return x is None, x is not True, x == 3, x in (1, 2), x < 2


def outer(x):
    def inner(y):
        return x + y

    return inner


def assigns_outside(x):
    count = 0

    def inner():
        nonlocal count
        count += 1

    return inner


def loops(x):
    return [-part for part in x], sum(part for part in x), {1: x, **x}, {2, x}, x[1:2], f"{x!r}"


def checks(x):
    assert x, "text"
    while x and not FREE:
        x = -x
    return x @ x if x else +x


ACCEPTED = [divides, reads, binds, makes_lists, compares, outer, outer(1), assigns_outside]
ACCEPTED += [loops, checks]


@pytest.mark.parametrize("function", ACCEPTED)
def test_accepted_code(function):
    steps = steps_of(function.__code__)
    assert not [step for step in steps if step.kind == instructions.REFUSED]
    lines = {step.line for step in steps}
    first = function.__code__.co_firstlineno
    assert all(first <= line < first + 10 for line in lines)


def of(function, *kinds):
    return [(step.kind, step.value) for step in steps_of(function.__code__) if step.kind in kinds]


def test_names():
    kinds = instructions.GLOBAL, instructions.ATTRIBUTE, instructions.LOAD
    assert of(reads, *kinds) == [
        *(("global", "FREE"), ("attribute", "real"), ("attribute", "imag"), ("load", "x")),
        *(("load", "x"), ("attribute", "shape")),
    ]
    assert of(outer(1), *kinds) == [("load", "x"), ("load", "y")]
    assert {name for _, name in of(binds, instructions.STORE)} == {"first", "second"}


def test_operators():
    assert len(of(binds, instructions.ASSIGNING)) == 1
    assert len(of(compares, instructions.IDENTITY)) <= 2  # Python 3.11 compares with None by a jump
    assert len(of(compares, instructions.COMPARISON)) == 3


def test_parameters():
    assert parameters_of(binds.__code__) == ("x", "scale", "shift", "rest", "more")
    assert instructions.starred_parameters_of(binds.__code__) == {"rest", "more"}


def test_lists():
    assert "many" not in lists_made_in(makes_lists.__code__)
    assert "x" not in lists_made_in(binds.__code__)

    def function(x, other=()):
        made = []
        either = [] if x else other
        made.append(either)
        return made

    assert lists_made_in(function.__code__) == {"made"}


def refused(function):
    steps = steps_of(function.__code__)
    return [step.value for step in steps if step.kind == instructions.REFUSED]


def writes(x):
    global FREE
    FREE = x


def sets_attributes(x):
    x.a = 1


def deletes_items(x):
    del x[0]


def handles(x):
    try:
        return x()
    except ValueError:
        return x


def opens(x):
    with x:
        return x


def imports(x):
    import os

    return os


def generates(x):
    yield x


async def waits(x):
    await x


def defines(x):
    class Kind:
        pass

    return Kind


def matches(x):
    match x:
        case {"a": one}:
            return one


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (writes, ("assigns_global", "FREE")),
        (sets_attributes, ("assigns_attribute", "a")),
        (deletes_items, ("deletes_item", None)),
        (handles, ("handles_exceptions", None)),
        (imports, ("imports", "os")),
        (generates, ("generator", None)),
        (waits, ("asynchronous", None)),
        (defines, ("defines_class", None)),
        (matches, ("instruction", "MATCH_MAPPING")),
        (assigns_outside(1), ("assigns_outer", "count")),
    ],
)
def test_refused_code(function, what):
    assert what in refused(function)


def binds_a_context(x):
    with x as y:
        return y


def test_with_statements():
    assert refused(binds_a_context) == [("with_statement", None)]
    assert not refused(opens)
    assert of(opens, instructions.WITH) == [("with", None)]


def test_unknown_instructions_are_refused(monkeypatch):
    known = instructions._OTHER - {"RETURN_VALUE", "UNARY_NEGATIVE"}
    monkeypatch.setattr(instructions, "_OTHER", known)

    def function(x):
        return -x

    assert ("instruction", "UNARY_NEGATIVE") in refused(function)
