# distutils: language = c++
"""Answers for `tf.nest`: nested lists, tuples, namedtuples and dicts, with leaves of any type.

TensorFlow's own functions handle other structures (mappings, attrs classes, expanded composites,
proxies, and classes that implement the protocol of `tf.nest`), and raise all errors. The first
comment line of each answer lists the parameters of the function.
"""

from cpython.dict cimport PyDict_GetItem, PyDict_Size
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject, Py_TYPE
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport Py_False, Py_True
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._install.helpers.classes cimport (
    COMPOSITE,
    DICT,
    LEAF,
    LIST,
    NAMED,
    OTHER,
    TUPLE,
    structure_of,
)
from fastops._specialize.policy cimport MAX_NESTING

import collections

from tensorflow.python.util import nest_util as _nest_util


cdef object _defaultdict = collections.defaultdict
cdef object _pack_in_python = _nest_util._tf_core_pack_sequence_as


# ---------------------------------------------------------------------------------------------
# One level
# ---------------------------------------------------------------------------------------------


cdef list _sorted_keys(dict mapping):
    """Return the sorted keys; None if comparing them may run Python code or raise."""
    cdef list keys = list(mapping)
    cdef Py_ssize_t i
    if len(keys) == 0:
        return keys
    if PyUnicode_CheckExact(keys[0]):
        for i in range(1, PyList_GET_SIZE(keys)):
            if not PyUnicode_CheckExact(<object>PyList_GET_ITEM(keys, i)):
                return None
    elif PyLong_CheckExact(keys[0]):
        for i in range(1, PyList_GET_SIZE(keys)):
            if not PyLong_CheckExact(<object>PyList_GET_ITEM(keys, i)):
                return None
    else:
        return None
    keys.sort()
    return keys


cdef list _items(PyObject* structure, int kind):
    """Return the items of a structure in order (by sorted keys in a dict); or None."""
    cdef list keys
    if kind == LIST or kind == TUPLE or kind == NAMED:
        return list(<object>structure)
    keys = _sorted_keys(<dict><object>structure)
    if keys is None:
        return None
    return [(<dict><object>structure)[key] for key in keys]


cdef object _like(object instance, int kind, list items):
    """Return the items in a structure of the same kind, like `nest_util.sequence_like`.

    Return DECLINED if only TensorFlow handles the structure.
    """
    cdef list keys
    if kind == LIST:
        return list(items)
    if kind == TUPLE:
        return tuple(items)
    if kind == NAMED:
        return type(instance)(*items)
    keys = _sorted_keys(<dict>instance)
    if keys is None:
        return DECLINED
    by_key = dict(zip(keys, items))
    made = (
        _defaultdict((<object>instance).default_factory)
        if type(instance) is _defaultdict
        else type(instance)()
    )
    for key in <object>instance:
        made[key] = by_key[key]
    return made


cdef bint _is_structure(int kind):
    return kind >= LIST


cdef int _flag(PyObject* value) noexcept:
    """Return 1 for True, 0 for False, and -1 for any other value."""
    if value == Py_False:
        return False
    return True if value == Py_True else -1


# ---------------------------------------------------------------------------------------------
# All levels. A function that returns a bint returns False to fall back to TensorFlow.
# ---------------------------------------------------------------------------------------------


cdef bint _flatten_into(list out, PyObject* structure, bint expand, int depth) except -1:
    cdef int kind = structure_of(structure)
    cdef Py_ssize_t i
    cdef list keys
    if kind == LEAF or kind == COMPOSITE and not expand:
        out.append(<object>structure)
        return True
    if kind == COMPOSITE or kind == OTHER or depth == 0:
        return False
    if kind == TUPLE or kind == NAMED:
        for i in range(PyTuple_GET_SIZE(<object>structure)):
            if not _flatten_into(
                out, PyTuple_GET_ITEM(<object>structure, i), expand, depth - 1
            ):
                return False
        return True
    if kind == LIST:
        i = 0
        while i < PyList_GET_SIZE(<object>structure):
            item = <object>PyList_GET_ITEM(<object>structure, i)  # own it: the list may change
            if not _flatten_into(out, <PyObject*>item, expand, depth - 1):
                return False
            i += 1
        return True
    keys = _sorted_keys(<dict><object>structure)
    if keys is None:
        return False
    for key in keys:
        item = (<dict><object>structure)[key]
        if not _flatten_into(out, <PyObject*>item, expand, depth - 1):
            return False
    return True


cdef bint _paths_into(list out, list leaves, PyObject* structure, tuple path, bint expand,
                      int depth) except -1:
    """Append the leaves and their paths."""
    cdef int kind = structure_of(structure)
    cdef object keys
    if kind == LEAF or kind == COMPOSITE and not expand:
        out.append(path)
        leaves.append(<object>structure)
        return True
    if kind == COMPOSITE or kind == OTHER or depth == 0:
        return False
    items = _items(structure, kind)
    if items is None:
        return False
    if kind == LIST or kind == TUPLE:
        keys = range(len(items))
    elif kind == NAMED:
        keys = (<object>structure)._fields
    else:
        keys = _sorted_keys(<dict><object>structure)
    for key, item in zip(keys, items):
        if not _paths_into(out, leaves, <PyObject*>item, path + (key,), expand, depth - 1):
            return False
    return True


cdef bint _same(
    PyObject* left, PyObject* right, bint check_types, bint expand, int depth
) except -1:
    """Whether two structures are known to be the same. Otherwise TensorFlow decides or raises."""
    cdef int kind = structure_of(left), other_kind = structure_of(right)
    cdef PyObject* other_value
    if kind == OTHER or other_kind == OTHER or depth == 0:
        return False
    if expand and (kind == COMPOSITE or other_kind == COMPOSITE):
        return False
    if not _is_structure(kind) or not _is_structure(other_kind):
        return not _is_structure(kind) and not _is_structure(other_kind)
    if kind == DICT or other_kind == DICT or kind == NAMED or other_kind == NAMED:
        if Py_TYPE(<object>left) != Py_TYPE(<object>right):
            return False
    elif check_types and kind != other_kind:
        return False
    if len(<object>left) != len(<object>right):
        return False
    if kind == DICT:
        if not check_types or _sorted_keys(<dict><object>left) is None:
            return False
        for key in _sorted_keys(<dict><object>left):
            other_value = PyDict_GetItem(<object>right, key)
            if other_value == NULL:
                return False
            item, other_item = (<dict><object>left)[key], <object>other_value
            if not _same(
                <PyObject*>item, <PyObject*>other_item, check_types, expand, depth - 1
            ):
                return False
        return _sorted_keys(<dict><object>right) is not None
    for item, other_item in zip(<object>left, <object>right):
        if not _same(<PyObject*>item, <PyObject*>other_item, check_types, expand, depth - 1):
            return False
    return True


cdef object _pack(PyObject* structure, object flat, Py_ssize_t* at, bint expand, int depth):
    """Return the structure with its leaves replaced by items of `flat` from `at` on.

    Return DECLINED if only TensorFlow handles the structure.
    """
    cdef int kind = structure_of(structure)
    cdef Py_ssize_t size = len(flat)
    cdef list items, packed
    if kind == LEAF or kind == COMPOSITE and not expand:
        if at[0] >= size:
            return DECLINED
        at[0] += 1
        return flat[at[0] - 1]
    if kind == COMPOSITE or kind == OTHER or depth == 0:
        return DECLINED
    items = _items(structure, kind)
    if items is None:
        return DECLINED
    packed = []
    for item in items:
        child = _pack(<PyObject*>item, flat, at, expand, depth - 1)
        if child is DECLINED:
            return DECLINED
        packed.append(child)
    return _like(<object>structure, kind, packed)


cdef object _packed(PyObject* structure, object flat, bint expand):
    """Do the work of `nest_util._tf_core_pack_sequence_as`; or return DECLINED."""
    cdef Py_ssize_t at = 0
    cdef list leaves = []
    if not PyList_CheckExact(flat) and not PyTuple_CheckExact(flat):
        return DECLINED
    if not _flatten_into(leaves, structure, expand, MAX_NESTING) or len(leaves) != len(flat):
        return DECLINED
    return _pack(structure, flat, &at, expand, MAX_NESTING)


cdef bint _flatten_up_to_into(list out, PyObject* shallow, PyObject* structure, bint expand,
                              int depth) except -1:
    """Append the parts of a structure at the positions of the leaves of the shallow one.

    Above these positions, both must have the same types.
    """
    cdef int kind = structure_of(shallow)
    cdef PyObject* part
    cdef list keys
    if kind == LEAF or kind == COMPOSITE and not expand:
        out.append(<object>structure)
        return True
    if kind == COMPOSITE or kind == OTHER or depth == 0:
        return False
    if Py_TYPE(<object>shallow) != Py_TYPE(<object>structure):
        return False
    if len(<object>shallow) != len(<object>structure):
        return False
    if kind != DICT:
        for item, inner in zip(<object>shallow, <object>structure):
            if not _flatten_up_to_into(
                out, <PyObject*>item, <PyObject*>inner, expand, depth - 1
            ):
                return False
        return True
    keys = _sorted_keys(<dict><object>shallow)
    if keys is None or _sorted_keys(<dict><object>structure) is None:
        return False
    for key in keys:
        part = PyDict_GetItem(<object>structure, key)
        if part == NULL:
            return False
        item, inner = (<dict><object>shallow)[key], <object>part
        if not _flatten_up_to_into(out, <PyObject*>item, <PyObject*>inner, expand, depth - 1):
            return False
    return True


cdef list leaves_of(object structure, bint expand):
    cdef list leaves = []
    return leaves if _flatten_into(leaves, <PyObject*>structure, expand, MAX_NESTING) else None


cdef list leaves_with_paths(object structure, bint expand):
    cdef list paths = [], leaves = []
    if not _paths_into(paths, leaves, <PyObject*>structure, (), expand, MAX_NESTING):
        return None
    return list(zip(paths, leaves))


# ---------------------------------------------------------------------------------------------
# Answers
# ---------------------------------------------------------------------------------------------


cdef object _is_nested(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # seq
    if n != 1 or keywords != NULL:
        return DECLINED
    return _is_structure(structure_of(args[0]))


cdef object _flatten(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # structure, expand_composites=False
    cdef PyObject* values[MAX_PARAMS]
    cdef list out
    if not self.bind(args, n, keywords, values) or _flag(values[1]) < 0:
        return DECLINED
    out = []
    return out if _flatten_into(out, values[0], _flag(values[1]), MAX_NESTING) else DECLINED


cdef object _flatten_with_tuple_paths(Answer self, PyObject* const* args, Py_ssize_t n,
                                      PyObject* keywords):
    # structure, expand_composites=False
    cdef PyObject* values[MAX_PARAMS]
    cdef list paths = [], leaves = []
    if not self.bind(args, n, keywords, values) or _flag(values[1]) < 0:
        return DECLINED
    if not _paths_into(paths, leaves, values[0], (), _flag(values[1]), MAX_NESTING):
        return DECLINED
    return list(zip(paths, leaves))


cdef object _flatten_with_joined_string_paths(Answer self, PyObject* const* args, Py_ssize_t n,
                                              PyObject* keywords):
    # structure, separator="/", expand_composites=False
    cdef PyObject* values[MAX_PARAMS]
    cdef list paths = [], leaves = []
    if not self.bind(args, n, keywords, values) or _flag(values[2]) < 0:
        return DECLINED
    if not PyUnicode_CheckExact(<object>values[1]):
        return DECLINED
    if not _paths_into(paths, leaves, values[0], (), _flag(values[2]), MAX_NESTING):
        return DECLINED
    separator = <str><object>values[1]
    return [
        (separator.join([str(key) for key in path]), leaf) for path, leaf in zip(paths, leaves)
    ]


cdef object _assert_same_structure(Answer self, PyObject* const* args, Py_ssize_t n,
                                   PyObject* keywords):
    # nest1, nest2, check_types=True, expand_composites=False
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values) or _flag(values[2]) < 0 or _flag(values[3]) < 0:
        return DECLINED
    if _same(values[0], values[1], _flag(values[2]), _flag(values[3]), MAX_NESTING):
        return None
    return DECLINED


cdef object _pack_sequence_as(Answer self, PyObject* const* args, Py_ssize_t n,
                              PyObject* keywords):
    # structure, flat_sequence, expand_composites=False
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values) or _flag(values[2]) < 0:
        return DECLINED
    return _packed(values[0], <object>values[1], _flag(values[2]))


cdef object _sequence_like(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # instance, args
    cdef int kind
    if n != 2 or keywords != NULL or not PyList_CheckExact(<object>args[1]):
        return DECLINED
    kind = structure_of(args[0])
    if not _is_structure(kind) or kind == OTHER:
        return DECLINED
    if kind == DICT and PyDict_Size(<object>args[0]) != PyList_GET_SIZE(<object>args[1]):
        return DECLINED
    return _like(<object>args[0], kind, <list><object>args[1])


cdef bint _options(PyObject* const* values, PyObject* keywords, int* check_types,
                   int* expand) except -1:
    """Read the keywords of the mapping functions, whose other arguments are variadic."""
    cdef Py_ssize_t i
    check_types[0] = True
    expand[0] = False
    if keywords == NULL:
        return True
    for i in range(PyTuple_GET_SIZE(<object>keywords)):
        keyword = <object>PyTuple_GET_ITEM(<object>keywords, i)
        if keyword == "check_types":
            check_types[0] = _flag(values[i])
        elif keyword == "expand_composites":
            expand[0] = _flag(values[i])
        else:
            return False
    return check_types[0] >= 0 and expand[0] >= 0


cdef list _map(object function, list columns):
    """Call a function with each row of the flattened structures; the shortest one ends it."""
    if len(columns) == 1:
        return [function(value) for value in <list>columns[0]]
    return [function(*row) for row in zip(*columns)]


cdef object _repack(PyObject* structure, list results, bint expand):
    packed = _packed(structure, results, expand)
    if packed is DECLINED:  # too late to fall back: the user's function has been called
        return _pack_in_python(<object>structure, results, expand_composites=expand)
    return packed


cdef object _map_structure(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # func, *structure, **kwargs
    cdef int check_types, expand
    cdef Py_ssize_t i
    cdef list column, columns = []
    if n < 2 or not _options(args + n, keywords, &check_types, &expand):
        return DECLINED
    if not callable(<object>args[0]):
        return DECLINED
    for i in range(2, n):
        if not _same(args[1], args[i], check_types, expand, MAX_NESTING):
            return DECLINED
    for i in range(1, n):
        column = []
        if not _flatten_into(column, args[i], expand, MAX_NESTING):
            return DECLINED
        columns.append(column)
    return _repack(args[1], _map(<object>args[0], columns), expand)


cdef object _map_structure_up_to(Answer self, PyObject* const* args, Py_ssize_t n,
                                 PyObject* keywords):
    # shallow_tree, func, *inputs, **kwargs
    cdef int check_types, expand
    cdef Py_ssize_t i
    cdef list column, columns = []
    if n < 3 or not _options(args + n, keywords, &check_types, &expand):
        return DECLINED
    for i in range(2, n):
        column = []
        if not _flatten_up_to_into(column, args[0], args[i], expand, MAX_NESTING):
            return DECLINED
        columns.append(column)
    return _repack(args[0], _map(<object>args[1], columns), expand)


cdef object _map_structure_with_tuple_paths_up_to(Answer self, PyObject* const* args,
                                                  Py_ssize_t n, PyObject* keywords):
    # shallow_tree, func, *inputs, **kwargs
    if n < 3:
        return DECLINED
    return _map_with_paths(args[0], args[1], args + 2, n - 2, args + n, keywords)


cdef object _map_structure_with_tuple_paths(Answer self, PyObject* const* args, Py_ssize_t n,
                                            PyObject* keywords):
    # func, *structure, **kwargs
    if n < 2:
        return DECLINED
    return _map_with_paths(args[1], args[0], args + 1, n - 1, args + n, keywords)


cdef object _map_with_paths(PyObject* shallow, PyObject* function, PyObject* const* inputs,
                            Py_ssize_t n, PyObject* const* options, PyObject* keywords):
    cdef int check_types, expand
    cdef Py_ssize_t i
    cdef list column, paths = [], leaves = [], columns = [paths]
    if not _options(options, keywords, &check_types, &expand):
        return DECLINED
    if not _paths_into(paths, leaves, shallow, (), expand, MAX_NESTING):
        return DECLINED
    for i in range(n):
        column = []
        if not _flatten_up_to_into(column, shallow, inputs[i], expand, MAX_NESTING):
            return DECLINED
        columns.append(column)
    return _repack(shallow, _map(<object>function, columns), expand)


cdef object _flatten_up_to(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # shallow_tree, input_tree, check_types=True, expand_composites=False
    cdef PyObject* values[MAX_PARAMS]
    cdef list out
    if not self.bind(args, n, keywords, values) or _flag(values[3]) < 0:
        return DECLINED
    out = []
    if not _flatten_up_to_into(out, values[0], values[1], _flag(values[3]), MAX_NESTING):
        return DECLINED
    return out


cdef object _assert_shallow_structure(Answer self, PyObject* const* args, Py_ssize_t n,
                                      PyObject* keywords):
    # shallow_tree, input_tree, check_types=True, expand_composites=False
    return DECLINED if _flatten_up_to(self, args, n, keywords) is DECLINED else None


register("helpers", "nest.is_nested", _is_nested)
register("helpers", "nest.flatten", _flatten)
register("helpers", "nest.flatten_with_tuple_paths", _flatten_with_tuple_paths)
register("helpers", "nest.flatten_with_joined_string_paths", _flatten_with_joined_string_paths)
register("helpers", "nest.assert_same_structure", _assert_same_structure)
register("helpers", "nest.pack_sequence_as", _pack_sequence_as)
register("helpers", "nest.map_structure", _map_structure)
register("helpers", "nest.map_structure_up_to", _map_structure_up_to)
register("helpers", "nest.map_structure_with_tuple_paths", _map_structure_with_tuple_paths)
register(
    "helpers", "nest.map_structure_with_tuple_paths_up_to", _map_structure_with_tuple_paths_up_to,
)
register("helpers", "nest.flatten_up_to", _flatten_up_to)
register("helpers", "nest.assert_shallow_structure", _assert_shallow_structure)
register("helpers", "nest_util.sequence_like", _sequence_like)
