"""Binding of arguments to signatures, which decorators of libraries use."""

import collections
import functools
import inspect
import itertools
import sys

import numpy as np
import pytest
from calls import in_both, outcome
from support import Failure

import fastops
from fastops._install import answer

pytestmark = pytest.mark.usefixtures("fresh")

LAYERS = ["helpers"]


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()


def nothing():
    pass


def plain(a, b=2, *, c, d=4):
    pass


def starred(a, b=2, *args, c=3, **kwargs):
    pass


def stars(*args, **kwargs):
    pass


def only_keywords(*, a=1, b):
    pass


def only_starred(a, *args):
    pass


def only_double_starred(a=1, **kwargs):
    pass


def positional_only(a, b=2, /, c=3, **kwargs):
    pass


def annotated(a: int, b: "str" = "text", c: list = []) -> float:  # noqa: B006
    pass


class Odd(inspect.Signature):
    """A signature class other than Python's."""


class OddBound(inspect.BoundArguments):
    pass


class OddSignature(inspect.Signature):
    _bound_arguments_cls = OddBound


class OddParameter(inspect.Parameter):
    pass


def odd_parameters():
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([OddParameter("a", kind), inspect.Parameter("b", kind)])


FUNCTIONS = (nothing, plain, starred, stars, only_keywords, only_starred, only_double_starred)
FUNCTIONS += (
    positional_only,
    annotated,
    functools.partial(plain, 1),
    functools.partial(plain, c=3),
)
SIGNATURES = [inspect.signature(function) for function in FUNCTIONS]
SIGNATURES += [Odd.from_callable(starred), OddSignature.from_callable(plain), odd_parameters()]

VALUES = (1, [1, 2], np.float32(3))
KEYWORDS = ("a", "b", "c", "d", "args", "kwargs", "self", "signature")
CALLS = [
    (positional, dict(zip(names, "uvwxyz", strict=False)))
    for positional in [VALUES[:n] for n in range(4)]
    for n in range(4)
    for names in itertools.combinations(KEYWORDS, n)
]


def described(value):
    if isinstance(value, Failure):
        return value.kind, value.message
    return type(value), list(value.items()) if isinstance(value, dict) else value


def bound(signature, args, kwargs):
    """Bind arguments, and read all properties of the result, in this order."""
    result = outcome(signature.bind, args, kwargs)
    if isinstance(result, Failure):
        return described(result)
    seen = [type(result), result.signature is signature]
    for _ in range(2):  # the second time with defaults
        seen.append(described(result.arguments))
        seen += [described(result.args), described(result.kwargs)]
        seen.append(result.apply_defaults())
    return seen


@pytest.mark.parametrize("number", range(len(SIGNATURES)))
def test_signatures(number):
    signature = SIGNATURES[number]
    want, got = in_both(lambda: [bound(signature, *call) for call in CALLS], only=LAYERS)
    for call, one, other in zip(CALLS, want, got, strict=True):
        assert one == other, call


def test_arguments_that_are_changed():
    def run():
        seen = []
        for change in (
            lambda arguments: arguments.pop("a"),
            lambda arguments: arguments.pop("args"),
            lambda arguments: arguments.pop("kwargs"),
            lambda arguments: arguments.update(args=[7, 8]),
            lambda arguments: arguments.update(args=5),
            lambda arguments: arguments.update(kwargs=[("x", 1)]),
            lambda arguments: arguments.update(kwargs=collections.OrderedDict(x=1)),
            lambda arguments: arguments.update(kwargs={"c": 9, 5: 6}),
            lambda arguments: arguments.update(unknown=5),
            lambda arguments: arguments.update(b=inspect.Parameter.empty),
        ):
            result = inspect.signature(starred).bind(1, 2, 3, x=4)
            change(result.arguments)
            for kind in (dict, collections.OrderedDict):
                result.arguments = kind(result.arguments)
                for _ in range(2):
                    for name in ("args", "kwargs"):
                        seen.append(described(outcome(getattr, (result, name), {})))
                    seen.append(described(outcome(result.apply_defaults, (), {})))
                    seen.append(described(result.arguments))
        partial = inspect.signature(starred).bind_partial(c=5)
        seen += [partial.args, partial.kwargs, partial.apply_defaults(), partial.arguments]
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_results_are_not_shared():
    with fastops.accelerated(only=LAYERS):
        result = inspect.signature(starred).bind(1, x=4)
        given = result.arguments["kwargs"]
        assert result.kwargs == given == {"x": 4}
        assert result.kwargs is not given
        result.apply_defaults()
        assert result.arguments["kwargs"] is given
        assert result.arguments["args"] == ()


def test_calls_without_arguments_and_with_wrong_ones():
    def run():
        signature = inspect.signature(plain)
        calls = [((), {}), ((5,), {}), ((signature,), {"c": 1}), ((signature, 1), {"c": 1})]
        calls += [((signature, 1, 2, 3), {"c": 1}), ((signature, 1), {"c": 1, "a": 2})]
        seen = [described(outcome(inspect.Signature.bind, *call))[0] for call in calls]
        result = signature.bind(1, c=2)
        seen.append(described(outcome(result.apply_defaults, (1,), {})))
        seen.append(described(outcome(inspect.BoundArguments.apply_defaults, (result,), {})))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def entered(function):
    """Return the functions of `inspect` that a call enters."""
    names = []

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_filename == inspect.__file__:
            names.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


def test_plain_signatures_enter_no_python():
    signatures = [inspect.signature(plain), inspect.signature(starred)]

    def run():
        for signature in signatures:
            result = signature.bind(1, c=2)
            result.apply_defaults()
            result.args, result.kwargs  # noqa: B018

    with fastops.accelerated(only=LAYERS):
        assert set(entered(run)) == {"__init__"}  # that of `BoundArguments`
    assert {"bind", "_bind", "apply_defaults", "args", "kwargs"} <= set(entered(run))


def test_a_patched_method_is_called(monkeypatch):
    signature = inspect.signature(plain)
    with fastops.accelerated(only=LAYERS):
        monkeypatch.setattr(inspect.Signature, "_bind", lambda self, args, kwargs: "mock")
        assert signature.bind(1) == "mock"


def test_uninstall_restores_the_originals():
    places = [(inspect.Signature, "bind"), (inspect.BoundArguments, "args")]
    before = [vars(holder)[name] for holder, name in places]
    with fastops.accelerated(only=LAYERS):
        assert isinstance(vars(inspect.Signature)["bind"], answer.Answer)
        assert isinstance(inspect.BoundArguments.args.fget, answer.Answer)
        assert inspect.signature(inspect.Signature.bind) == inspect.signature(before[0])
        assert inspect.BoundArguments.args.__doc__ == before[1].__doc__
    assert [vars(holder)[name] for holder, name in places] == before
    assert all(
        vars(holder)[name] is original
        for (holder, name), original in zip(places, before, strict=True)
    )


def test_many_signatures():
    with fastops.accelerated(only=LAYERS):
        for number in range(600):
            names = [f"a{number}", f"b{number}"]
            made = inspect.Signature(
                [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
            )
            assert made.bind(1, 2).arguments == dict(zip(names, (1, 2), strict=True))
