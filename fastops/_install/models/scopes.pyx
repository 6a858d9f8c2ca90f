# distutils: language = c++
"""What Keras keeps for a thread: settings, and the scopes that are open in it."""

from cpython.dict cimport PyDict_GetItem, PyDict_Next
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from fastops._cpp.dicts cimport DictVersion

from fastops._install.models import library as _library


cdef dict _global_state = None
cdef tuple _last = None               # what was read last, outside of all scopes
cdef uint64_t _last_version = 0       # of the dict that it was read from
cdef str _TRACKER = "GLOBAL_STATE_TRACKER"
cdef str _CALL = "current_call_ctx"
cdef str _ENTRY = "entry_layer"
cdef str _AUTOCAST = "autocast_scope"
cdef frozenset _UNASKED = _library.UNASKED_STATE
cdef str _POLICY = "dtype_policy"
cdef str _SAVING = "saving_attr_skipset"
cdef str _NAMES = "object_name_uids"
cdef tuple _ATOMS = (bool, int, float, str)


def attach(keras):
    """Finds the state of ``keras.src``."""
    global _global_state
    _global_state = keras.backend.common.global_state.__dict__


cdef object call_context():
    """The context of the outermost layer's call; None outside of all."""
    cdef PyObject* context
    tracker = _global_state[_TRACKER]
    context = PyDict_GetItem(<dict>tracker.__dict__, _CALL)
    return None if context == NULL else <object>context


cdef dict names_given():
    """How many objects have got a name of each kind."""
    cdef PyObject* names
    tracker = _global_state[_TRACKER]
    names = PyDict_GetItem(<dict>tracker.__dict__, _NAMES)
    return {} if names == NULL else dict(<object>names)


cdef int give_names(dict counts) except -1:
    """Count as many more."""
    cdef PyObject* names
    tracker = _global_state[_TRACKER]
    names = PyDict_GetItem(<dict>tracker.__dict__, _NAMES)
    for kind, count in counts.items():
        (<object>names)[kind] += count
    return 0


cdef tuple read_scopes(PyObject* entry):
    """What calls depend on beside their arguments and their object, to be compared by `==`.

    None where that is unknown, or where `entry` is the outermost layer already.
    """
    global _last, _last_version
    cdef tuple found
    cdef bint outside = True
    tracker = _global_state[_TRACKER]
    state = <dict>tracker.__dict__
    if _last_version != 0 and _last_version == DictVersion(<PyObject*>state):
        return _last
    found = _read(state, entry, &outside)
    if outside:
        _last, _last_version = found, DictVersion(<PyObject*>state)
    return found


cdef tuple _read(dict state, PyObject* entry, bint* outside):
    cdef PyObject* name
    cdef PyObject* value
    cdef Py_ssize_t at = 0
    cdef list found = []
    while PyDict_Next(state, &at, &name, &value):
        if (
            <object>value is None
            or <object>name in _UNASKED
            or (<str><object>name).startswith(_SAVING)
        ):
            continue
        if <object>name == _CALL:
            outside[0] = False
            attributes = (<object>value).__dict__
            for one, setting in (<dict>attributes).items():
                if one == _ENTRY:
                    if <PyObject*>setting == entry:
                        return None
                elif setting is None or isinstance(setting, _ATOMS):
                    found.append((one, type(setting), setting))
                else:
                    return None
            found.append(_CALL)
        elif <object>name == _AUTOCAST:
            outside[0] = False
            found.append((_AUTOCAST, (<object>value).dtype))
        elif <object>name == _POLICY:
            found.append((_POLICY, (<object>value).name))
        elif isinstance(<object>value, _ATOMS):
            found.append((<object>name, type(<object>value), <object>value))
        elif type(<object>value) not in (list, dict) or <object>value:
            return None
        else:
            outside[0] = False  # it may be filled
    return tuple(found)
