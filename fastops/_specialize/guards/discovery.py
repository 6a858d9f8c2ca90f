"""Finds the guards that recorded code needs, beside those of the arguments and of the object."""

from tensorflow.python.framework.ops import _EagerTensorBase

from fastops._specialize.guards.places import Places, any_name, code_of_users, names_of
from fastops._specialize.guards.watch import Globals
from fastops._specialize.recording.recording import NotReplayableError

_COPYING = _EagerTensorBase._copy_nograd.__code__

_INSTANCES = {"isinstance", "issubclass"}
"""Functions that ask an abstract class which other classes are registered with it."""


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
        if left := names_of(code) & (held.unwatched | places.unwatched):
            raise NotReplayableError("reads_uncompared", f"{code.co_name} reads {min(left)}")
    if any(not _INSTANCES.isdisjoint(code.co_names) for code in users):
        places.note_registrations()
    return global_names, places
