"""What recorded code depends on beside the arguments of the call and the object that is called."""

from tensorflow.python.framework.ops import _EagerTensorBase

from fastops._specialize.guards.places import Places, any_name, code_of_users, names_of
from fastops._specialize.guards.watch import Globals
from fastops._specialize.recording.recording import NotReplayableError

_COPYING = _EagerTensorBase._copy_nograd.__code__


def guards_of(codes, held, unasked, others, guard):
    """Return what code of users, and of libraries, depends on beside the object that is called.

    Parameters
    ----------
    codes : dict of tuple to dict
        The globals of each, by the code and their identity.
    held : Places
        What the object holds.
    unasked : dict of type to set of str
        As for `Places`.
    others : list of object
        More objects that the code finds by itself.
    guard : fastops._specialize.guards.names.Guard
        Of the functions and classes that the code names.

    Returns
    -------
    globals : fastops._specialize.guards.watch.Globals
        What it asks its modules.
    places : Places
        What that holds, and the other objects.

    Raises
    ------
    NotReplayableError
        If code of users may read what cannot be compared.
    """
    if any(code is _COPYING for code, _ in codes):
        raise NotReplayableError("copied_without_op")
    users = code_of_users(codes)
    for code in users:
        if (name := any_name(code)) is not None:
            raise NotReplayableError("reads_any_attribute", f"{code.co_name} uses {name}")
    modules = list(held.modules)
    while True:
        found = Globals(codes, guard, modules)
        contents = found.contents()
        titles = [*contents, *(type(one).__name__ for one in others)]
        places = Places([*contents.values(), *others], unasked, titles)
        known = {id(module) for module, _ in modules}
        new = [one for one in places.modules if id(one[0]) not in known]
        if not new or not users:
            break
        modules += new
    for code in users:
        if left := names_of(code) & (held.unwatched | places.unwatched):
            raise NotReplayableError("reads_uncompared", f"{code.co_name} reads {min(left)}")
    return found, places
