# distutils: language = c++
"""The settings and the open scopes that a library keeps for a thread."""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next
from cpython.object cimport PyObject

from fastops._cpp.dicts cimport DictVersion

from collections import defaultdict

from fastops._install.models import library as _library
from fastops._situation cimport is_plain


cdef str _TRACKER = "GLOBAL_STATE_TRACKER"
cdef str _CALL = "current_call_ctx"
cdef str _ENTRY = "entry_layer"
cdef str _AUTOCAST = "autocast_scope"
cdef frozenset _UNASKED = _library.UNASKED_STATE
cdef str _POLICY = "dtype_policy"
cdef str _SAVING = "saving_attr_skipset"
cdef str _NAMES = "object_name_uids"
cdef tuple _ATOMS = (bool, int, float, str)


cdef class Scopes:
    """Scopes of a library that keeps no settings of its own: only TensorFlow's matter.

    `read` returns a state only outside of all tapes and distribution strategies.
    """

    cdef tuple read(self, PyObject* entry):
        return () if is_plain(anywhere=True) else None

    cdef object call_context(self):
        return None

    cdef dict names_given(self):
        return {}

    cdef int give_names(self, dict counts) except -1:
        return 0


@cython.final
cdef class OfKeras(Scopes):
    """Scopes of Keras.

    Parameters
    ----------
    state : module
        ``keras.src.backend.common.global_state``.
    """

    def __init__(self, state):
        state.GLOBAL_STATE_TRACKER
        self.global_state = state.__dict__

    cdef tuple read(self, PyObject* entry):
        """Read Keras's settings for the thread; None if `entry` is already the outermost layer."""
        cdef tuple settings
        cdef bint outside = True
        tracker = self.global_state[_TRACKER]
        state = <dict>tracker.__dict__
        if self.last_version != 0 and self.last_version == DictVersion(<PyObject*>state):
            return self.last
        settings = _read(state, entry, &outside)
        if outside:
            self.last, self.last_version = settings, DictVersion(<PyObject*>state)
        return settings

    cdef object call_context(self):
        cdef PyObject* context
        tracker = self.global_state[_TRACKER]
        context = PyDict_GetItem(<dict>tracker.__dict__, _CALL)
        return None if context == NULL else <object>context

    cdef dict names_given(self):
        cdef PyObject* names
        tracker = self.global_state[_TRACKER]
        names = PyDict_GetItem(<dict>tracker.__dict__, _NAMES)
        return {} if names == NULL else dict(<object>names)

    cdef int give_names(self, dict counts) except -1:
        cdef PyObject* names
        tracker = self.global_state[_TRACKER]
        names = PyDict_GetItem(<dict>tracker.__dict__, _NAMES)
        if names == NULL:  # no names yet in this thread, or since clear_session()
            setattr(tracker, _NAMES, defaultdict(int))
            names = PyDict_GetItem(<dict>tracker.__dict__, _NAMES)
        for kind, count in counts.items():
            (<object>names)[kind] += count
        return 0


cdef tuple _read(dict state, PyObject* entry, bint* outside):
    cdef PyObject* name
    cdef PyObject* value
    cdef Py_ssize_t at = 0
    cdef list settings = []
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
            for attribute, setting in (<dict>attributes).items():
                if attribute == _ENTRY:
                    if <PyObject*>setting == entry:
                        return None
                elif setting is None or isinstance(setting, _ATOMS):
                    settings.append((attribute, type(setting), setting))
                else:
                    return None
            settings.append(_CALL)
        elif <object>name == _AUTOCAST:
            outside[0] = False
            settings.append((_AUTOCAST, (<object>value).dtype))
        elif <object>name == _POLICY:
            settings.append((_POLICY, (<object>value).name))
        elif isinstance(<object>value, _ATOMS):
            settings.append((<object>name, type(<object>value), <object>value))
        elif type(<object>value) not in (list, dict) or <object>value:
            return None
        else:
            outside[0] = False  # a list or dict may be filled without a new version of `state`
    return tuple(settings)
