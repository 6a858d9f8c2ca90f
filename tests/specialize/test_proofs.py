"""Which code a proof reads: branches by known values leave code out, and names are followed."""

import enum
import types

import pytest
import tensorflow as tf

from fastops._core.reasons import advice
from fastops._specialize.recording import instructions
from fastops._specialize.recording.instructions import BRANCH, REFUSED, SUPER, entries_of, steps_of
from fastops._specialize.recording.proof import Proof, objection_to_class


class Mode(enum.Enum):
    ONE = 1
    TWO = 2


class Base:
    def step(self, x):
        return x


class Known(Base):
    """An object with attributes of known values."""

    def __init__(self):
        self.built, self.count, self.mode, self.absent = True, 3, Mode.ONE, None
        self.inner = types.SimpleNamespace(scale=2.0)
        self.title, self.many, self.other = "first", [1.0, 2.0], Base()

    def step(self, x):
        return super().step(x)

    def two_arguments(self, x):
        return super(Known, self).step(x)  # noqa: UP008

    def makes_variables(self, x):
        if not self.built:
            self.built = True
        return x

    def compares(self, x):
        if self.count == 4 or self.title in ("second", "third"):
            print(x)
        return x

    def compares_members(self, x):
        if self.mode is Mode.TWO or self.mode == Mode.TWO:
            print(x)
        return x

    def compares_with_none(self, x):
        if self.absent is not None:
            self.absent = x
        return x if self.other is not None else print(x)

    def asks(self, x):
        if not isinstance(self.other, Base) or len(self.many) > 2:
            print(x)
        if hasattr(self, "missing") or getattr(self, "missing", None):
            print(x)
        return x

    def counts_down(self, x):
        while self.count > 5:
            self.count = 1
        return x

    def names(self, x):
        inner, count = self.inner, self.count
        return x * inner.scale if count == 3 else print(x)

    def fills(self, x):
        made = {}
        made["a"] = x
        many = []
        many[0:] = [x]
        return made

    def fills_own(self, x):
        made = {"a": 1.0}
        made["b"] = x
        return made

    def prints(self, x):
        if self.built:
            print(x)
        return x

    def prints_in_another_case(self, x):
        if x.shape[0] == 7:
            print(x)
        return x

    def assigns(self, x):
        if self.count:
            self.count = 2
        return x

    def passes_on(self, x):
        inner = self.inner
        return inner, x

    def names_anew(self, x):
        inner = self.inner
        inner = x
        return inner

    def names_late(self, x):
        for _ in range(2):
            if x.shape[0] == 7:
                return inner  # noqa: F821
            inner = self.inner
        return x * inner.scale

    def fills_another(self, x):
        many = self.many
        many[0] = x
        return many

    def chooses(self, x):
        return self.inner or x

    def handles(self, x):
        if not self.built:
            return x
        try:
            return x
        except ValueError:
            return -x


def objection(name):
    """Return why a method is not shown to be pure, when it is called with a tensor."""
    known = Known()
    method = getattr(Known, name)
    frame = types.SimpleNamespace(
        f_code=method.__code__,
        f_globals=method.__globals__,
        f_builtins=vars(__import__("builtins")),
        f_locals={"self": known, "x": tf.ones(2)},
    )
    for free, cell in zip(method.__code__.co_freevars, method.__closure__ or (), strict=True):
        frame.f_locals[free] = cell.cell_contents
    return Proof().objection(frame)


@pytest.mark.parametrize(
    "name",
    [
        *("step", "two_arguments", "makes_variables", "compares", "compares_members", "asks"),
        *("compares_with_none", "counts_down", "names", "fills_own"),
    ],
)
def test_pure_code(name):
    assert objection(name) is None


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("prints", ("uses_builtin", "print")),
        ("prints_in_another_case", ("uses_builtin", "print")),
        ("assigns", ("assigns_attribute", "count")),
        ("passes_on", ("object_as_value", "inner")),
        ("names_anew", ("object_as_value", "self.inner")),
        ("names_late", ("object_as_value", "inner")),
        ("chooses", ("object_as_value", "self.inner")),
        ("fills", ("assigns_item", None)),
        ("fills_another", ("assigns_item", None)),
        ("handles", ("handles_exceptions", None)),
    ],
)
def test_code_that_is_refused(name, what):
    """The reason has the line, and a remedy."""
    code = getattr(Known, name).__code__
    why = objection(name)
    lines = range(code.co_firstlineno, code.co_firstlineno + 8)
    assert why is not None
    assert why in [f"{__file__}:{line}: {name}: {advice(*what)}" for line in lines]


def test_a_glance_stops_at_a_branch():
    """What runs after it depends on values that are not known yet."""

    class Late:
        def call(self, x):
            if self.loud:
                print(x)
            return x

    class Loud:
        def call(self, x):
            print(x)
            return x

    assert objection_to_class(Late) is None
    assert f"call: {advice('uses_builtin', 'print')}" in objection_to_class(Loud)
    assert "no method `call`" in objection_to_class(Base)


def test_steps_lead_to_others():
    steps = steps_of(Known.makes_variables.__code__)
    (branch,) = [number for number, step in enumerate(steps) if step.kind == BRANCH]
    (refused,) = [number for number, step in enumerate(steps) if step.kind == REFUSED]
    assert branch < refused < steps[branch].target
    assert entries_of(steps) == {0}
    assert instructions.jumps(steps[branch].value, True) is (steps[branch].value is True)
    assert not steps[-1].falls


def test_handlers_are_entries():
    assert len(entries_of(steps_of(Known.handles.__code__))) > 1 or any(
        step.kind == REFUSED and step.target is not None
        for step in steps_of(Known.handles.__code__)
    )


@pytest.mark.parametrize("name", ["step", "two_arguments"])
def test_super_is_one_step(name):
    (step,) = [step for step in steps_of(getattr(Known, name).__code__) if step.kind == SUPER]
    assert (step.value.instance, step.value.name) == ("self", "step")
    assert step.value.kind[1] == ("__class__" if name == "step" else "Known")
