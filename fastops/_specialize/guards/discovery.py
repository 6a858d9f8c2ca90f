"""Finds the guards that recorded code needs, beside those of the arguments and of the object."""

import types

from tensorflow.python.framework.ops import _EagerTensorBase

from fastops._specialize.guards.names import upstream
from fastops._specialize.guards.places import Places, any_name, code_of_users, names_of
from fastops._specialize.guards.watch import Globals
from fastops._specialize.libraries import is_of_keras
from fastops._specialize.recording.recording import NotReplayableError

_COPYING = _EagerTensorBase._copy_nograd.__code__

_INSTANCES = {"isinstance", "issubclass"}
"""Functions that ask an abstract class which other classes are registered with it."""


_CUSTOM_OBJECTS = "custom_objects_scope_dict"
"""The name of Keras's setting of a thread with the objects of `keras.saving.CustomObjectScope`."""


def _reached_by(names, kinds):
    """Return names, and those that properties of Keras's classes read if they are named.

    What properties of TensorFlow's classes read is bookkeeping, which decides no result.
    """
    reached, pending = set(names), list(names)
    bases = {base for kind in kinds for base in kind.__mro__ if is_of_keras(base.__module__)}
    while pending:
        name = pending.pop()
        for base in bases:
            member = vars(base).get(name)
            function = upstream(member.fget) if isinstance(member, property) else None
            if type(function) is types.FunctionType:
                more = _names_in(function.__code__) - reached
                reached |= more
                pending += more
    return reached


def _names_in(code):
    """Return the names that some code reads, with those of the functions that it defines."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def guards_of(codes, held, unasked, others, guard_of):
    """Return the globals and objects that code depends on, beside the object that is called.

    Parameters
    ----------
    codes : dict of tuple to dict
        The globals of the code that ran, by the code and the identity of the globals.
    held : Places
        The places of the object that is called.
    unasked : dict of type to set of str
        The names of attributes to ignore, as for `Places`.
    others : list of object
        More objects that the code uses without having them as arguments.
    guard_of : callable
        Returns the guard (`fastops._specialize.guards.names.Guard`) of the functions and classes
        that the code names. It takes a list of more functions that the code may call.

    Returns
    -------
    globals : fastops._specialize.guards.watch.Globals
        The names that the code looks up in modules.
    places : Places
        The places of the objects behind these names, and of `others`.

    Raises
    ------
    NotReplayableError
        If user code may read something that cannot be compared.
    """
    if any(code is _COPYING for code, _ in codes):
        raise NotReplayableError("copied_without_op")
    users = code_of_users(codes)
    for code in users:
        if (name := any_name(code)) is not None:
            raise NotReplayableError("reads_any_attribute", f"{code.co_name} uses {name}")
    modules, functions = list(held.modules), list(held.functions)
    while True:
        global_names = Globals(codes, guard_of(functions), modules)
        contents = global_names.contents()
        titles = [*contents, *(type(other).__name__ for other in others)]
        places = Places([*contents.values(), *others], unasked, titles)
        known = {id(module) for module, _ in modules}
        new = [pair for pair in places.modules if users and id(pair[0]) not in known]
        called = [function for function in places.functions if function not in functions]
        if not new and not called:
            break
        modules += new
        functions += called
    for code in users:
        names = _reached_by(names_of(code), unasked)
        if left := names & (held.unwatched | places.unwatched):
            raise NotReplayableError("reads_uncompared", f"{code.co_name} reads {min(left)}")
    if users and any(_CUSTOM_OBJECTS in code.co_consts for code, _ in codes):
        raise NotReplayableError("reads_uncompared", "the code looks up custom objects of Keras")
    if any(not _INSTANCES.isdisjoint(code.co_names) for code in users):
        places.note_registrations()
    return global_names, places
