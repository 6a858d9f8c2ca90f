"""Make one change at a time, and compare a call with TensorFlow's own."""

import random
import warnings
from dataclasses import dataclass

import keras
import tensorflow as tf
from install.models.keras_programs import outcome, plain
from keras.src.backend.common import global_state
from keras.src.utils import naming

import fastops
from fastops._install.models.method import methods
from fastops._install.replacement import set_live
from guards.changes import changes

CALLS = 8
"""The number of calls after which calls are replayed by kernels alone."""


@dataclass
class Subject:
    """An object whose calls are recorded.

    Attributes
    ----------
    instance : object
        The object.
    call : callable
        Calls the object and returns the result.
    method : str
        The name of the method that is replayed.
    modules : sequence of module
        Modules of users that its code reads from.
    """

    instance: object
    call: object
    method: str = "__call__"
    modules: tuple = ()

    def variables(self):
        """Return the variables that a call may change."""
        return list({id(variable): variable for variable in _variables(self.instance)}.values())


def _variables(instance):
    variables = getattr(instance, "variables", [])
    return variables() if callable(variables) else variables


def fuzz(subject, title, seed=0, most=None):
    """Change what an object holds; compare each following call with TensorFlow's own.

    Parameters
    ----------
    subject : Subject
        The object. `fastops.install` must be active.
    title : str
        What to call it.
    seed : int
        Decides the order of the changes.
    most : int, optional
        How many changes to try.

    Returns
    -------
    replayed : int
        How many calls were replayed before any change.
    tried : int
        The number of changes.
    differences : list of str
        The changes after which results differ.
    """
    assert fastops.is_installed()
    chance = random.Random(f"{title} {seed}")
    for _ in range(CALLS):
        _called(subject, _values(subject.variables()), live=True)
    variables = subject.variables()
    replayed = _replayed(subject)
    found = changes(subject.instance, title, subject.modules)
    chance.shuffle(found)
    differences = []
    for change in found[:most]:
        values = _values(variables)
        orders = (False, True) if chance.random() < 0.5 else (True, False)
        try:
            given = {live: _changed(subject, change, values, live, 1 + live) for live in orders}
            given[False] *= 2
            if given[True] != given[False]:  # even TensorFlow's own second call may differ
                given[False] = _changed(subject, change, values, False, 2)
        except NotTakenError:
            continue
        except NotUndoneError as error:
            differences.append(f"{change.path} could not be undone: {error}")
            break
        if given[True] != given[False]:
            got, want = (" and then ".join(map(_short, given[live])) for live in (True, False))
            differences.append(f"{change.path}: {got} instead of {want}")
    values = _values(variables)
    if _called(subject, values, live=True) != _called(subject, values, live=False):
        differences.append("the object is not restored")
    return replayed, len(found[:most]), differences


class NotTakenError(Exception):
    """An object rejects a change."""


class NotUndoneError(Exception):
    """A change cannot be undone."""


def _changed(subject, change, values, live, count):
    """Return the outcomes of consecutive calls, with a change that is undone after them."""
    try:
        undo = change.apply()
    except Exception as error:
        raise NotTakenError from error
    try:
        return [_called(subject, values, live) for _ in range(count)]
    finally:
        try:
            undo()
        except Exception as error:
            raise NotUndoneError(str(error)) from error


def _values(variables):
    return [(variable, variable.numpy()) for variable in variables]


def _replayed(subject):
    """Return how many calls of an object were replayed; 0 if its class overrides the method."""
    method = getattr(type(subject.instance), subject.method)
    if isinstance(subject.instance, tf.Module) and not hasattr(method, "describe"):
        # The class of a module shows its own method.
        (method,) = [one for one in methods() if one.original.__qualname__ == "Module.__call__"]
    return method.describe(subject.instance)["replayed"] if hasattr(method, "describe") else 0


def _short(value):
    return str(value)[:160]


def _called(subject, values, live):
    """Return the outcome of a call and the variables' new values; restore the variables."""
    set_live(live)
    try:
        naming.reset_uids()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = outcome(subject.call)
        now = [_value(variable) for variable, _ in values]
    finally:
        set_live(False)
        # A failed call of a layer may leave a scope open, which would affect the next call.
        global_state.set_global_attribute("current_call_ctx", None)
        for variable, value in values:
            try:
                variable.assign(value)
            except Exception:  # a change has replaced it
                _ = variable
        set_live(True)
    return result, now


def _value(variable):
    try:
        return plain(variable)
    except Exception as error:
        return repr(error)


def begin():
    """Reset seeds and names, so that each object is made of the same numbers."""
    keras.utils.set_random_seed(3)
    tf.random.set_seed(3)
