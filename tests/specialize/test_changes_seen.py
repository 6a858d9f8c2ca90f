"""CPython's counters: each change of a dict or a class makes a guard look again.

These tests run in each supported CPython. They show what `_cpp/changes.h`, `_cpp/classes.h` and
`_core/classes.pyx` assume of it, also for code that CPython has specialized.
"""

import sys
import types

import pytest

from fastops._core import bytecode, supported
from fastops._core.classes import set_attribute
from fastops._install.lookups import Lookups
from fastops._install.patch_points import patch, restore
from fastops._specialize.guards.names import Guard
from fastops._specialize.recording.closures import stores_in_cells
from fastops._specialize.recording.proof import Proof

pytestmark = pytest.mark.quick

OFTEN = 100
"""More runs than CPython needs to specialize code."""


class Plain:
    """A class whose instances may have their attributes in the instance."""

    def __init__(self):
        self.seen = 1
        self.other = 2

    def method(self):
        return self.seen


def guard_of(holder):
    """Return a guard of the name ``seen`` that holds."""
    value = vars(holder)["seen"] if isinstance(holder, type) else holder["seen"]
    guard = Guard(lambda: ([(holder, {"seen": value}, True)], True))
    assert guard
    assert guard
    return guard


def looked(guard):
    """Tell whether the guard compares objects when it is asked the next time."""
    before = guard.looks
    bool(guard)
    return guard.looks > before


def setting(names, value):
    names["other"] = value


def popping(names, value):
    names.pop("other")


def replacing(names, value):
    names.clear()
    names["seen"] = value


def deleting(names, value):
    del names["other"]


CHANGES = {
    "item": setting,
    "del": deleting,
    "pop": popping,
    "popitem": lambda names, value: names.popitem(),
    "clear": lambda names, value: names.clear(),
    "clear and set": replacing,
    "setdefault": lambda names, value: names.setdefault("new", value),
    "update": lambda names, value: names.update(other=value),
    "update by another dict": lambda names, value: names.update({"other": value}),
    "or": lambda names, value: names.__ior__({"other": value}),
    "init": lambda names, value: names.__init__(other=value),
    "new": lambda names, value: names.__setitem__(f"name {id(value)}", value),
    "exec": lambda names, value: exec("other = 3", names),
    "global": lambda names, value: exec("def f():\n global other\n other = 4\nf()", names),
    "del global": lambda names, value: exec("def f():\n global other\n del other\nf()", names),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_dict(name):
    for _ in range(OFTEN):
        names = {"seen": object(), "other": 2}
        guard = guard_of(names)
        bool(guard)  # the watcher has seen the end of the dict before
        assert not looked(guard)
        CHANGES[name](names, object())
        assert looked(guard)


def test_a_new_value_is_noticed():
    names = {"seen": object()}
    guard = guard_of(names)
    names["seen"], old = object(), names["seen"]
    assert not guard
    names["seen"] = old
    assert guard


def test_an_attribute_of_a_module():
    module = types.ModuleType("some")
    module.seen = module.other = object()
    guard = guard_of(vars(module))
    for _ in range(OFTEN):
        module.other = object()
        assert looked(guard)
        assert not looked(guard)


@pytest.mark.parametrize("prepare", [lambda one: None, lambda one: setattr(one, "new", 1)])
def test_an_attribute_of_an_instance(prepare):
    def assign(instance, value):
        instance.seen = value

    for _ in range(OFTEN):  # CPython specializes `assign` for instances without a dict
        assign(Plain(), 1)
    for value in range(OFTEN):  # and then for instances with one
        instance = Plain()
        prepare(instance)
        guard = guard_of(vars(instance))
        assign(instance, object())
        assert not guard, value
        instance.seen = 1
        assert guard
        del instance.other
        assert looked(guard)


CLASS_CHANGES = {
    "attribute": lambda kind, base: setattr(kind, "other", object()),
    "method": lambda kind, base: setattr(kind, "method", lambda self: 1),
    "del": lambda kind, base: delattr(kind, "other"),
    "attribute of a base": lambda kind, base: setattr(base, "further", object()),
    "bases": lambda kind, base: setattr(kind, "__bases__", (type("Other", (Plain,), {}),)),
    "annotations": lambda kind, base: setattr(kind, "__annotations__", {"x": int}),
    "module": lambda kind, base: setattr(kind, "__module__", "another"),
}


@pytest.mark.parametrize("name", CLASS_CHANGES)
def test_a_class(name):
    for _ in range(OFTEN):
        base = type("Base", (Plain,), {"further": 1})
        kind = type("Kind", (base,), {"seen": object(), "other": 2})
        guard = guard_of(kind)
        assert not looked(guard)
        CLASS_CHANGES[name](kind, base)
        assert looked(guard)


def test_a_class_without_versions():
    # From 3.13 on, CPython gives no more versions to a class that has changed a thousand times.
    kind = type("Kind", (Plain,), {"seen": object()})
    guard = guard_of(kind)
    for value in range(1200):
        kind.other = value
        assert looked(guard)
    old, kind.seen = kind.seen, object()
    assert not guard
    kind.seen = old
    assert guard


@pytest.mark.parametrize("name", ["other", "__len__"])
def test_a_class_whose_attributes_fastops_sets_keeps_its_versions(name):
    base = type("Base", (Plain,), {name: None})
    kind = type("Kind", (base,), {"seen": object()})
    guard = guard_of(kind)
    for value in range(1200):
        set_attribute(base, name, value)
        assert vars(base)[name] == value
        assert looked(guard)
        assert not looked(guard)
    old, kind.seen = kind.seen, object()
    assert not guard
    kind.seen = old
    assert guard


def test_a_class_that_is_patched_and_restored_keeps_its_versions():
    kind = type("Kind", (Plain,), {"seen": object(), "other": 2})
    guard = guard_of(kind)
    for value in range(1200):
        placed = []
        patch(placed, (kind, "other"), 2, value, None)
        assert looked(guard)
        restore(placed, 0)
        assert kind.other == 2
        assert looked(guard)
    assert not looked(guard)


def test_changes_by_others_count_beside_those_of_fastops():
    kind = type("Kind", (Plain,), {"seen": object()})
    guard = guard_of(kind)
    for value in range(1200):
        kind.other = value
        assert looked(guard)
        set_attribute(kind, "other", None)
        assert looked(guard)
    assert looked(guard) == (sys.version_info >= (3, 13))


def test_each_supported_version_was_read():
    versions = [tuple(map(int, name.split("."))) for name in supported.PYTHONS]
    assert list(bytecode.READ) == versions


def test_a_version_that_was_not_read(monkeypatch):
    assert Guard(Lookups().finish)
    monkeypatch.setattr(bytecode, "REVIEWED", False)

    def function(x):
        return x

    assert stores_in_cells(function.__code__, ())
    assert not Guard(Lookups().finish)
    frames = []

    def called(x):
        frames.append(sys._getframe())

    called(1)
    assert "version of Python" in Proof().objection(frames[0])
