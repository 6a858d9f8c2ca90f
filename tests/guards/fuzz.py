"""Changes one thing at a time, and compares a call with TensorFlow's own."""

import random
import warnings
from dataclasses import dataclass

import keras
import tensorflow as tf
from install.models.keras_programs import outcome, plain
from keras.src.backend.common import global_state
from keras.src.utils import naming

import fastops
from fastops._install.replacement import set_live
from guards.changes import changes

CALLS = 8
"""Until calls are replayed, and by kernels alone."""


@dataclass
class Subject:
    """An object whose calls are recorded.

    Attributes
    ----------
    instance : object
        It.
    call : callable
        Calls it: returns the result.
    method : str
        The method that is replayed.
    modules : sequence of module
        Modules of users that its code reads.
    """

    instance: object
    call: object
    method: str = "__call__"
    modules: tuple = ()

    def variables(self):
        """Return what a call may change."""
        return list({id(one): one for one in _variables(self.instance)}.values())


def _variables(instance):
    found = getattr(instance, "variables", [])
    return found() if callable(found) else found


def fuzz(subject, title, seed=0, most=None):
    """Change what an object holds; compare each call that follows with TensorFlow's own.

    Parameters
    ----------
    subject : Subject
        The object. `fastops.install` is in force.
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
        What was changed where results differ.
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
            if given[True] != given[False]:  # TensorFlow's own second call may differ, too
                given[False] = _changed(subject, change, values, False, 2)
        except NotTakenError:
            continue
        except NotUndoneError as error:
            differences.append(f"{change.path} could not be taken back: {error}")
            break
        if given[True] != given[False]:
            got, want = (" and then ".join(map(_short, given[live])) for live in (True, False))
            differences.append(f"{change.path}: {got} instead of {want}")
    values = _values(variables)
    if _called(subject, values, live=True) != _called(subject, values, live=False):
        differences.append("the object is not as it was")
    return replayed, len(found[:most]), differences


class NotTakenError(Exception):
    """An object does not take a change."""


class NotUndoneError(Exception):
    """A change cannot be taken back."""


def _changed(subject, change, values, live, count):
    """Return what comes of some calls in a row, with a change that is there for these alone."""
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
    return [(one, one.numpy()) for one in variables]


def _replayed(subject):
    """Return how many calls of an object were replayed; none where its class has its own method."""
    method = getattr(type(subject.instance), subject.method)
    return method.describe(subject.instance)["replayed"] if hasattr(method, "describe") else 0


def _short(value):
    return str(value)[:160]


def _called(subject, values, live):
    """Return what comes of a call, and what it makes of variables, which are put back."""
    set_live(live)
    try:
        naming.reset_uids()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = outcome(subject.call)
        now = [_value(one) for one, _ in values]
    finally:
        set_live(False)
        # A layer's call that fails may leave a scope open, of which the next call would know.
        global_state.set_global_attribute("current_call_ctx", None)
        for variable, value in values:
            try:
                variable.assign(value)
            except Exception:  # a change has made it another
                _ = variable
        set_live(True)
    return result, now


def _value(variable):
    try:
        return plain(variable)
    except Exception as error:
        return repr(error)


def begin():
    """Have each object drawn from the same numbers."""
    keras.utils.set_random_seed(3)
    tf.random.set_seed(3)
