# distutils: language = c++
"""Patch points: attributes of modules and classes that hold the originals of stand-ins.

TensorFlow and Keras refer to some 2,000 functions by 10,000 attributes of their modules, so the
loops over these are compiled.
"""

from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from cython.operator cimport dereference
from libcpp.unordered_map cimport unordered_map

from fastops._core.classes cimport set_attribute

import sys
from types import ModuleType

_PACKAGES = frozenset({"keras", "tensorflow"})


def referring_to(functions):
    """Find the attributes of the modules of TensorFlow and Keras that are one of some functions.

    Parameters
    ----------
    functions : collection of int
        The identities of the functions.

    Returns
    -------
    dict of int to list
        By identity, the modules and the names of their attributes in turn: ``[module, name, module,
        name, ...]``.
    """
    cdef dict found = {function: [] for function in functions}
    cdef unordered_map[size_t, PyObject*] points
    cdef unordered_map[size_t, PyObject*].iterator at
    cdef PyObject* name
    cdef PyObject* value
    cdef Py_ssize_t position
    cdef dict attributes
    for function, listed in found.items():
        points[<size_t>function] = <PyObject*>listed
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in _PACKAGES:
            continue
        if not issubclass(type(module), ModuleType):  # for example None, or a mock
            continue
        namespace = vars(module)
        if not isinstance(namespace, dict):
            continue
        attributes, position = <dict>namespace, 0
        # The loop makes no object that could start a garbage collection, which may change the dict.
        while PyDict_Next(attributes, &position, &name, &value):
            at = points.find(<size_t>value)
            if at != points.end():
                (<list>(<object>dereference(at).second)).append(module)
                (<list>(<object>dereference(at).second)).append(<object>name)
    return found


def patch(list placed not None, points, original, replacement, announce):
    """Set patch points to a replacement.

    Parameters
    ----------
    placed : list
        Five items are appended for each patch point: the module or class, the attribute, the
        original, the replacement, and `announce`. The list is flat, because ten thousand tuples
        would slow down every garbage collection.
    points : sequence
        The modules or classes and the names of their attributes, in turn.
    original, replacement : object
        The values before and after.
    announce : callable or None
        See `fastops._install.target.Target`.
    """
    cdef Py_ssize_t i
    for i in range(0, len(points), 2):
        placed += (points[i], points[i + 1], original, replacement, announce)
        _assign(points[i], points[i + 1], replacement, announce)


def restore(list placed not None, Py_ssize_t begin):
    """Set the last patch points to their originals, until `placed` has the length `begin`.

    An attribute that other code has set since then keeps its value. If an attribute cannot be set,
    the others are, before the first exception is raised.
    """
    cdef list problems = []
    cdef Py_ssize_t first
    while len(placed) > begin:
        first = len(placed) - 5
        holder, attribute, original = placed[first], placed[first + 1], placed[first + 2]
        replacement, announce = placed[first + 3], placed[first + 4]
        del placed[first:]
        try:
            if vars(holder).get(attribute) is replacement:
                _assign(holder, attribute, original, announce)
        except Exception as problem:
            problems.append(problem)
    if problems:
        raise problems[0]


cdef int _assign(holder, attribute, value, announce) except -1:
    set_attribute(holder, attribute, value)
    if announce is not None:
        announce(value)
    return 0
