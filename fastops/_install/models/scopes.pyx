# distutils: language = c++
"""The settings and the open scopes that a library keeps for a thread."""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next
from cpython.object cimport PyObject

from fastops._cpp.dicts cimport DictVersion

import sys
from collections import defaultdict
from operator import itemgetter

from fastops._install.models import library as _library
from fastops._specialize.guards.names import upstream
from fastops._specialize.libraries import is_of_keras
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
cdef frozenset _OF_LOSSES = _library.OF_LOSSES
cdef tuple _METHODS_OF_LOSSES = ("_clear_losses", "_flatten_layers", "_get_own_losses", "add_loss")

# Names in the modules of tf_keras, and attributes of the objects there.
cdef str _OPEN_CALLS = "_call_context"
cdef str _OPEN_CALL = "call_context"
cdef str _ARGUMENTS = "call_context_args"
cdef str _TRAINING = "training"
cdef str _CASTS = "_autocast_dtype"
cdef str _DTYPE = "dtype"
cdef str _OWN_GRAPH = "_DUMMY_EAGER_GRAPH"
cdef str _PHASES = "_GRAPH_LEARNING_PHASES"
cdef str _NAMES_OF_GRAPHS = "PER_GRAPH_OBJECT_NAME_UIDS"
cdef str _NAMES_OF_GRAPH = "get_default_graph_uid_map"
cdef str _LOSSES = "_eager_losses"
cdef tuple _OUTSIDE = (False,)
cdef object _first = itemgetter(0)

cdef dict _modules = sys.modules
cdef str _KERAS = "keras"
cdef tuple _OF_KERAS = ("keras.",)


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

    cdef list stores_of(self, object root):
        return None

    cdef bint reads_losses(self, dict codes, bint apart) except -1:
        return False

    cdef int clear(self, list stores, tuple scopes) except -1:
        return 0

    cdef list layers_of(self, object root):
        return None

    cdef int add_losses(self, list stores, list losses) except -1:
        return 0

    cdef bint covers(self, dict codes) except -1:
        return True


@cython.final
cdef class OfKeras(Scopes):
    """Scopes of Keras.

    Parameters
    ----------
    state : module
        ``keras.src.backend.common.global_state``.
    layer : type
        Keras's class of layers.
    """

    def __init__(self, state, type layer not None):
        state.GLOBAL_STATE_TRACKER
        self.global_state = state.__dict__
        self.layer = layer
        if all([hasattr(layer, name) for name in _METHODS_OF_LOSSES]):
            reading = upstream(layer._get_own_losses)
            self.of_losses = reading.__code__, id(reading.__globals__)

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

    cdef bint reads_losses(self, dict codes, bint apart) except -1:
        return apart and self.of_losses in codes

    cdef int clear(self, list stores, tuple scopes) except -1:
        if self.call_context() is None:
            for reference in stores:
                layer = reference()
                for name in _OF_LOSSES:
                    getattr(layer, name).clear()
        return 0

    cdef list layers_of(self, object root):
        if self.of_losses is None or not isinstance(root, self.layer):
            return None
        layers = root._flatten_layers()
        for kind in set(map(type, layers)):
            for name in _METHODS_OF_LOSSES:
                definer = next(base for base in kind.__mro__ if name in vars(base))
                if not is_of_keras(definer.__module__):
                    return None
        return layers

    cdef int add_losses(self, list stores, list losses) except -1:
        for reference, added in zip(stores, losses):
            reference()._losses.extend(added)
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


@cython.final
cdef class OfTfKeras(Scopes):
    """Scopes of tf_keras's layers, models and losses.

    The first item of what `read` returns is whether a layer's call is open around this one.

    Parameters
    ----------
    calls, backend, casts : module
        ``base_layer_utils``, ``backend`` and ``autocast_variable`` of tf_keras.
    layer : type
        tf_keras's class of layers.
    """

    def __init__(self, calls, backend, casts, layer):
        self.calls, self.backend, self.casts = calls.__dict__, backend.__dict__, casts.__dict__
        self.layer = layer
        reading = vars(layer)[_LOSSES].fget
        self.of_losses = reading.__code__, id(reading.__globals__)
        self.read_settings()  # this and the next line raise if a name is missing
        self.names_given()

    cdef tuple read(self, PyObject* entry):
        try:
            return self.read_settings()
        except Exception:  # for example, one of the names has been deleted
            return None

    cdef tuple read_settings(self):
        cdef bint inside = False
        cdef list settings = None
        context = getattr(self.calls[_OPEN_CALLS], _OPEN_CALL, None)
        if context is not None and context.in_call is not False:
            inside = True
            settings = []
            arguments = context._state.get(_ARGUMENTS)
            if arguments is None:  # older versions pass on this one only
                arguments = {_TRAINING: context._state[_TRAINING]}
            for name, value in (<dict?>arguments).items():
                if value is not None and not isinstance(value, _ATOMS):
                    return None
                settings.append((name, type(value), value))
            settings.sort(key=_first)
        cast = getattr(self.casts[_CASTS], _DTYPE, None)
        own = self.backend[_OWN_GRAPH]
        phases = self.backend[_PHASES]
        is_set = own.learning_phase_is_set
        if is_set is False and type(phases) is not dict and not phases.data:
            phase = None
        else:
            phase = phases.get(own.key)
            if phase is not None and not isinstance(phase, _ATOMS):
                return None
        if settings is None and cast is None and phase is None and is_set is False:
            return _OUTSIDE
        return (inside, tuple(settings or ()), cast, is_set, type(phase), phase)

    cdef dict names_given(self):
        given = {}
        for names in list(self.backend[_NAMES_OF_GRAPHS].values()):
            for kind, count in names.items():
                given[kind] = given.get(kind, 0) + count
        return given

    cdef int give_names(self, dict counts) except -1:
        names = self.backend[_NAMES_OF_GRAPH]()
        for kind, count in counts.items():
            names[kind] += count
        return 0

    cdef list stores_of(self, object root):
        if not isinstance(root, self.layer):
            return None
        return [layer._thread_local for layer in root._flatten_layers()]

    cdef bint reads_losses(self, dict codes, bint apart) except -1:
        return self.of_losses in codes

    cdef int clear(self, list stores, tuple scopes) except -1:
        if not scopes[0]:
            for store in stores:
                setattr(store, _LOSSES, [])
        return 0


@cython.final
cdef class OfModules(Scopes):
    """Scopes of users' modules: those of Keras once it is imported, since modules may hold layers.

    Parameters
    ----------
    find : callable
        Returns the `Scopes` of Keras; None if Keras has another backend.
    """

    def __init__(self, find):
        self.find = find

    cdef tuple read(self, PyObject* entry):
        if self.keras is None:
            if PyDict_GetItem(_modules, _KERAS) == NULL:
                return ()
            try:
                self.keras = self.find()
            except Exception:  # Keras is being imported, or is not as expected
                return None
            if self.keras is None:
                self.keras = Scopes()
        return self.keras.read(entry) if type(self.keras) is OfKeras else ()

    cdef object call_context(self):
        return None if self.keras is None else self.keras.call_context()

    cdef dict names_given(self):
        return {} if self.keras is None else self.keras.names_given()

    cdef int give_names(self, dict counts) except -1:
        return self.keras.give_names(counts)

    cdef bint covers(self, dict codes) except -1:
        cdef bint by_keras = type(self.keras) is OfKeras
        for namespace in codes.values():
            name = namespace.get("__name__")
            if is_of_keras(str(name)) and not (by_keras and name.startswith(_OF_KERAS)):
                return False
        return True
