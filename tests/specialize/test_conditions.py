"""What all guards have in common: they tell whether they hold, and the path to what differs."""

import sys
import types

import pytest
from tensorflow.python.util.lazy_loader import LazyLoader

from fastops._specialize.guards.condition import Condition
from fastops._specialize.guards.names import Guard
from fastops._specialize.guards.places import Places
from fastops._specialize.guards.watch import Globals, Watch

pytestmark = pytest.mark.quick


@pytest.fixture
def module():
    """Return a module with two functions; `outer` calls `inner`."""
    made = types.ModuleType("example")
    exec("def inner():\n    return 1\n\ndef outer():\n    return inner()", vars(made))
    return made


def guard_of(module):
    return Guard(lambda: ([(vars(module), {"inner": module.inner}, True)], True))


def names(module):
    return guard_of(module), lambda: setattr(module, "inner", len), "example.inner"


def globals_of(module):
    code = module.outer.__code__
    found = Globals({(code, id(vars(module))): vars(module)}, guard_of(module))
    return found, lambda: setattr(module, "inner", len), "example.inner"


def contents(module):
    module.held = {"rate": [1, 2]}
    places = Places([module.held], {}, ["held"])
    return Watch(places), lambda: module.held["rate"].append(3), "held['rate']"


@pytest.mark.parametrize("make", [names, globals_of, contents])
def test_a_guard_tells_whether_it_holds_and_what_differs(make, module):
    guard, change, path = make(module)
    assert isinstance(guard, Condition)
    assert guard.holds()
    assert guard.differs() is None
    change()
    assert not guard.holds()
    assert path in guard.differs()


def test_the_base_class_has_no_answer():
    with pytest.raises(NotImplementedError):
        Condition().holds()
    with pytest.raises(NotImplementedError):
        Condition().differs()


def test_a_lazy_module_may_put_the_loaded_module_in_its_own_place(module, monkeypatch):
    monkeypatch.setitem(sys.modules, "example_helpers", types.ModuleType("example_helpers"))
    lazy = LazyLoader("inner", vars(module), "example_helpers")
    module.inner = lazy
    guard = guard_of(module)
    assert guard.holds()
    dir(lazy)
    assert module.inner is sys.modules["example_helpers"]
    assert guard.holds()
    module.inner = types.ModuleType("example_helpers")
    assert guard.differs() == "example.inner"
    module.inner = sys.modules["example_helpers"]
    assert guard.holds()
