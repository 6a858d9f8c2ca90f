# distutils: language = c++
"""Answers for `tf.Module`: assignment of attributes, and the search for variables and modules.

The first comment line of each answer lists the parameters of the function.
"""

cimport cython
from cpython.object cimport PyObject, Py_TYPE
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._core.declined cimport DECLINED
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.python cimport Py_False, Py_None, Py_True
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._install.helpers.classes cimport (
    LEAF,
    NO,
    UNKNOWN,
    YES,
    Facts,
    facts_of,
    is_usual,
    notice_registrations,
    structure_of,
)
from fastops._install.helpers.structures cimport leaves_of, leaves_with_paths

from types import FunctionType

import numpy as np
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework.tensor_shape import TensorShape as _TensorShape
from tensorflow.python.module import module as _module
from tensorflow.python.ops.variables import Variable as _Variable
from tensorflow.python.trackable import data_structures as _data_structures
from tensorflow.python.trackable.autotrackable import AutoTrackable as _AutoTrackable
from tensorflow.python.util import nest as _nest


cdef enum:  # predicates that TensorFlow itself passes, and OTHER for those of users
    VARIABLE
    TRAINABLE
    NOT_TRAINABLE
    MODULE
    OTHER

cdef object _Module = _module.Module
cdef object _super = super
cdef object _missing = object()
cdef frozenset _plain = frozenset(
    [type(None), bool, int, float, complex, str, bytes, type, np.ndarray]
    + [_TensorShape, type(_dtypes.float32), FunctionType]
)
cdef object _is_variable = _module._is_variable
cdef object _is_trainable_variable = _module._is_trainable_variable
cdef object _is_non_trainable_variable = _module._is_non_trainable_variable
cdef object _is_module = _module._is_module
cdef object _flatten_composites = _module._flatten_non_variable_composites_with_tuple_path


cdef bint _a_variable(object value) except -1:
    """Whether a value is an instance of `tf.Variable`, which is an abstract class."""
    cdef Facts* facts
    if IsEagerTensor(<PyObject*>value):
        return False
    facts = facts_of(Py_TYPE(value))
    if facts == NULL or not is_usual(facts):
        return isinstance(value, _Variable)
    if facts.is_variable == UNKNOWN:
        is_variable = isinstance(value, _Variable)
        facts = facts_of(Py_TYPE(value))
        if facts == NULL:
            return is_variable
        facts.is_variable = YES if is_variable else NO
    return facts.is_variable == YES


cdef int _known(object predicate):
    if predicate is _is_trainable_variable:
        return TRAINABLE
    if predicate is _is_variable:
        return VARIABLE
    if predicate is _is_non_trainable_variable:
        return NOT_TRAINABLE
    return MODULE if predicate is _is_module else OTHER


cdef bint _holds(int known, object predicate, object leaf) except -1:
    if known == OTHER:
        return bool(predicate(leaf))
    if known == MODULE:
        return isinstance(leaf, _Module)
    if not _a_variable(leaf):
        return False
    return known == VARIABLE or bool(getattr(leaf, "trainable", False)) == (known == TRAINABLE)


cdef list _leaves(object prop, bint with_path, bint expand):
    """The leaves of an attribute, or pairs of path and leaf."""
    cdef list leaves
    cdef int kind = structure_of(<PyObject*>prop)
    if kind == LEAF:
        return [((), prop)] if with_path else [prop]
    leaves = leaves_with_paths(prop, expand) if with_path else leaves_of(prop, expand)
    if leaves is not None:
        return leaves
    leaves = list(_flatten_composites(prop)) if expand else _nest.flatten_with_tuple_paths(prop)
    return leaves if with_path else [leaf for _, leaf in leaves]


@cython.final
cdef class Walk:
    """Iterator over the items that `tensorflow.python.module.module._flatten_module` yields.

    Parameters
    ----------
    module, recursive, predicate, attribute_traversal_key, attributes_to_ignore, with_path, expand
        The parameters of that function. `expand` is its ``expand_composites``.
    """

    cdef object module, predicate, traversal_key, ignored
    cdef bint recursive, with_path, expand
    cdef int known
    cdef tuple path
    cdef set seen           # ids of leaves
    cdef list active        # ids of the modules around this one
    cdef list pending       # for each of these, the modules still to visit, and `recursive`
    cdef object properties  # the attributes of this module
    cdef list keys          # names of attributes that are still to visit
    cdef object key         # the current attribute
    cdef list leaves        # its leaves
    cdef Py_ssize_t at      # index of the next leaf
    cdef list submodules
    cdef bint ended

    def __init__(self, module, recursive, predicate, attribute_traversal_key,
                 attributes_to_ignore, with_path, expand):
        self.module = module
        self.recursive = recursive
        self.predicate = predicate
        self.known = _known(predicate)
        self.traversal_key = attribute_traversal_key
        self.ignored = attributes_to_ignore
        self.with_path = with_path
        self.expand = expand
        self.path = ()
        self.seen = {id(module)}
        self.active = []
        self.pending = []
        self.leaves = []

    def __iter__(self):
        return self

    def __next__(self):
        if self.ended:
            raise StopIteration
        self.ended = True  # stays True if the code below raises
        if self.keys is None:
            self.enter()
        while True:
            while self.at < len(self.leaves):
                leaf = self.leaves[self.at]
                self.at += 1
                leaf_path = None
                if self.with_path:
                    leaf_path, leaf = leaf
                    leaf_path = self.path + (self.key,) + leaf_path
                elif id(leaf) in self.seen:
                    continue
                else:
                    self.seen.add(id(leaf))
                if self.recursive and isinstance(leaf, _Module):
                    self.submodules.append((leaf_path, leaf))
                if _holds(self.known, self.predicate, leaf):
                    self.ended = False
                    return (leaf_path, leaf) if self.with_path else leaf
            if self.keys:
                self.look_at(self.keys.pop())
            elif not self.leave():
                raise StopIteration

    cdef int enter(self) except -1:
        """Start to visit the attributes of `self.module`."""
        if id(self.module) in self.active:
            self.recursive = False
        self.properties = vars(self.module)
        self.keys = sorted(self.properties, key=self.traversal_key)
        self.keys.reverse()
        self.submodules = []
        return 0

    cdef int look_at(self, key) except -1:
        """Find the leaves of an attribute."""
        if key in self.ignored:
            return 0
        self.key = key
        prop = self.properties[key]
        notice_registrations()
        try:
            self.leaves = _leaves(prop, self.with_path, self.expand)
        except Exception as cause:
            raise ValueError(f"Error processing property {key!r} of {prop!r}") from cause
        self.at = 0
        return 0

    cdef bint leave(self) except -1:
        """Continue with the next module. Return False if there is none."""
        self.active.append(id(self.module))
        self.submodules.reverse()
        self.pending.append((self.submodules, self.recursive))
        while self.pending:
            submodules, self.recursive = self.pending[len(self.pending) - 1]
            if submodules:
                path, self.module = (<list>submodules).pop()
                self.path = path or ()
                self.ignored = self.module._TF_MODULE_IGNORED_PROPERTIES
                self.enter()
                return True
            self.pending.pop()
            self.active.pop()
        return False


cdef object _flatten_module(Answer self, PyObject* const* args, Py_ssize_t n,
                            PyObject* keywords):
    # module, recursive, predicate, attribute_traversal_key, attributes_to_ignore, with_path,
    # expand_composites, module_path=(), seen=None, recursion_stack=None
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values):
        return DECLINED
    if values[7] != <PyObject*>() or values[8] != Py_None or values[9] != Py_None:
        return DECLINED  # a recursive call of TensorFlow's own function
    for i in (1, 5, 6):
        if values[<int>i] != Py_True and values[<int>i] != Py_False:
            return DECLINED
    return Walk(
        <object>values[0],
        values[1] == Py_True,
        <object>values[2],
        <object>values[3],
        <object>values[4],
        values[5] == Py_True,
        values[6] == Py_True,
    )


register("helpers", "module._flatten_module", _flatten_module)


cdef bint _is_plain(PyObject* value) except -1:
    """Whether the class of a value tells that it is neither tracked nor wrapped."""
    return IsEagerTensor(value) or <object>Py_TYPE(<object>value) in _plain


cdef bint _stays(PyObject* value) except -1:
    cdef Py_ssize_t i
    if not PyTuple_CheckExact(<object>value):
        return _is_plain(value)
    for i in range(PyTuple_GET_SIZE(<object>value)):
        if not _is_plain(PyTuple_GET_ITEM(<object>value, i)):
            return False
    return True


cdef object _set_attribute(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, name, value
    if n != 3 or keywords != NULL:
        return DECLINED
    owner, name, value = <object>args[0], <object>args[1], <object>args[2]
    if getattr(owner, name, _missing) is value:
        return None
    if getattr(owner, "_self_setattr_tracking", True) and not _stays(args[2]):
        value = _data_structures.sticky_attribute_assignment(
            trackable=owner, value=value, name=name
        )
    _super(_AutoTrackable, owner).__setattr__(name, value)
    return None


register("helpers", "AutoTrackable.__setattr__", _set_attribute)
