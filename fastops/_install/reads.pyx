# distutils: language = c++
"""Finds the names that code looks up, and the objects that they lead to.

Many guards cover the same code, so `reads_of` keeps the names that library code reads.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject

from fastops._cpp.python cimport _PyType_Lookup
from fastops._specialize.guards.names cimport Guard, holds

import opcode
import sys
from functools import lru_cache
from types import CodeType as _CodeType, FunctionType as _FunctionType, ModuleType as _ModuleType

from fastops._core.bytecode import SUBSCRIPT
from fastops._specialize.guards.names import is_hook as _is_hook
from fastops._specialize.policy import MAX_LIBRARY_CODES

# What an instruction means for a path of names.
cdef enum Effect:
    ENDS = 0        # the path ends: the effect of all instructions that are not below
    NOTHING
    EXTENDS_ARGUMENT
    LOADS_GLOBAL
    LOADS_ATTRIBUTE
    LOADS_METHOD
    IMPORTS
    IMPORTS_FROM
    STORES_LOCAL
    LOADS_LOCAL
    OPERATES

cdef Effect _effects[256]
cdef int _operation = opcode.opmap.get("BINARY_OP", -1)
cdef unsigned int _subscript = SUBSCRIPT
cdef int _shift_global = sys.version_info >= (3, 11)  # the lowest bit of the argument is a flag
cdef int _shift_attribute = sys.version_info >= (3, 12)

cdef frozenset _OPERATORS = frozenset([
    f"__{prefix}{name}__"
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    )
    for prefix in ("", "r")
]) | frozenset([
    "__neg__", "__invert__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
])


cdef int _fill() except -1:
    cdef int number
    for number in range(256):
        _effects[number] = ENDS
    for name, op in opcode.opmap.items():
        number = op
        if number > 255:  # only the compiler uses it, and no code contains it
            continue
        if name.startswith(("BINARY_", "INPLACE_", "UNARY_", "COMPARE_")) and name not in (
            "BINARY_SUBSCR", "BINARY_SLICE", "UNARY_NOT",
        ):
            _effects[number] = OPERATES
    for name, effect in (
        ("CACHE", NOTHING),
        ("EXTENDED_ARG", EXTENDS_ARGUMENT),
        ("LOAD_GLOBAL", LOADS_GLOBAL),
        ("LOAD_ATTR", LOADS_ATTRIBUTE),
        ("LOAD_METHOD", LOADS_METHOD),
        ("IMPORT_NAME", IMPORTS),
        ("IMPORT_FROM", IMPORTS_FROM),
        ("STORE_FAST", STORES_LOCAL),
        ("LOAD_FAST", LOADS_LOCAL),
        ("LOAD_FAST_BORROW", LOADS_LOCAL),
    ):
        op = opcode.opmap.get(name)
        if op is not None and op < 256:
            _effects[<int>op] = effect
    return 0


_fill()


@lru_cache(maxsize=MAX_LIBRARY_CODES)
def paths(code):
    """Return the paths of names that code follows.

    Returns
    -------
    frozenset of tuple of str
        The paths. Each begins with the name of a module, ``""`` for the module of the code itself.
    frozenset of str
        Names of all attributes that the code reads, of any object.
    """
    cdef set followed = set(), loose = set()
    cdef dict local = {}
    cdef tuple names = code.co_names, path = None, imported = None
    cdef bytes content = code.co_code
    cdef const unsigned char* at = <const unsigned char*>PyBytes_AS_STRING(content)
    cdef const unsigned char* end = at + PyBytes_GET_SIZE(content)
    cdef unsigned int argument, extended = 0
    cdef int number
    cdef Effect effect
    while at < end:
        number = at[0]
        effect = _effects[number]
        argument = at[1] | extended
        at += 2
        extended = 0
        if effect == NOTHING:
            continue
        if effect == EXTENDS_ARGUMENT:
            extended = argument << 8
        elif effect == LOADS_GLOBAL:
            path = ("", names[argument >> _shift_global])
            followed.add(path)
        elif effect == LOADS_ATTRIBUTE or effect == LOADS_METHOD:
            name = names[argument >> (_shift_attribute if effect == LOADS_ATTRIBUTE else 0)]
            loose.add(name)
            if path is not None:
                path = path + (name,)
                followed.add(path)
        elif effect == IMPORTS:
            imported = path = (names[argument],)
        elif effect == IMPORTS_FROM and imported is not None:
            path = imported + (names[argument],)
            followed.add(path)
        elif effect == STORES_LOCAL:
            local[argument] = path
            path = None
        elif effect == LOADS_LOCAL:
            path = local.get(argument)
        else:
            if effect == OPERATES and not (number == _operation and argument == _subscript):
                loose |= _OPERATORS
            path = None
    for inner in code.co_consts:
        if isinstance(inner, _CodeType):
            others, attributes = paths(inner)
            followed |= others
            loose |= attributes
    return frozenset(followed), frozenset(loose)


cdef dict _known = {}       # by the identity of a module's dict or a class: it, and its `Binding`s
cdef dict _reads = {}       # see `reads_of`


@cython.final
@cython.freelist(8)
cdef class Binding:
    """What a name in a module's dict or a class stands for.

    Parameters
    ----------
    value : object
        The value that it has without fastops.
    compared : bool
        Whether guards compare the value. Otherwise it is a setting, which may change.
    called : bool
        Whether the value is a function, method or property, which code may call.
    foreign : bool
        Whether code other than TensorFlow's and Keras's has put it there.
    piece : str or None
        The title of the function, if a stand-in mirrors it.
    known : bool
        Whether it is a Python function of TensorFlow or Keras.
    generated : bool
        Whether it is one of the generated functions.
    kept : bool
        Whether the holder belongs to TensorFlow or Keras, so that `name_in` may keep the binding.
    """

    cdef readonly object value, piece
    cdef readonly bint compared, called, foreign, known, generated, kept
    cdef object present

    def __init__(self, value, *, bint compared, bint called, bint foreign, piece, bint known,
                 bint generated, bint kept):
        self.value, self.compared, self.called, self.foreign = value, compared, called, foreign
        self.piece, self.known, self.generated, self.kept = piece, known, generated, kept


cpdef Binding name_in(holder, str name, classify):
    """Return what a name in a module's dict or a class stands for.

    Parameters
    ----------
    holder : dict or type
        The module's dict, or the class.
    name : str
        The name.
    classify : callable
        Returns the `Binding`. It takes the holder, the name, and the value that is there, or
        `MISSING`.
    """
    cdef PyObject* there
    cdef PyObject* known
    cdef Binding found
    cdef dict names = None
    if isinstance(holder, type):
        there = _PyType_Lookup(<PyTypeObject*>holder, <PyObject*>name)
    else:
        there = PyDict_GetItem(<dict>holder, name)
    present = MISSING if there == NULL else <object>there
    known = PyDict_GetItem(_known, <size_t><PyObject*>holder)
    if known != NULL:
        names = <dict>(<tuple>known)[1]
        known = PyDict_GetItem(names, name)
        if known != NULL and (<Binding>known).present is present:
            return <Binding>known
    found = classify(holder, name, present)
    if found.kept and not _is_hook(present):
        found.present = present
        if names is None:
            names = {}
            _known[<size_t><PyObject*>holder] = (holder, names)
        names[name] = found
    return found


MISSING = object()


@cython.final
cdef class Reads:
    """What code reads by name, and what it calls.

    Parameters
    ----------
    code : code object
        The code.
    namespace : dict
        Its global variables.
    mirrored : bool
        Whether a stand-in mirrors the code. If not, mirrored code calls it.
    kinds : tuple of tuple
        Classes of the values on which code calls methods, each with the names of its methods.
    classify : callable
        See `name_in`.

    Attributes
    ----------
    names : list of tuple
        The dict of each module and each class, with the compared objects by name.
    called : set of int
        The identities of the dicts and classes in which mirrored code looks up functions.
    below : list of callable
        Functions of the same module that the code calls, unless the guard covers them in full.
    pieces : list of str
        The functions that it calls and that are mirrored, too.
    generated : list of tuple
        The code and the globals of the generated functions that it calls.
    foreign : bool
        Whether other code than TensorFlow's and Keras's has put an object in one of the places.
    """

    cdef readonly list names, below, pieces, generated
    cdef readonly set called
    cdef readonly bint foreign
    cdef bint mirrored
    cdef dict namespace, found
    cdef object code, classify
    cdef Guard guard

    def __init__(self, code, dict namespace not None, bint mirrored, tuple kinds not None,
                 classify):
        self.called, self.below, self.pieces, self.generated = set(), [], [], []
        self.code = code
        self.namespace, self.mirrored, self.classify, self.found = namespace, mirrored, classify, {}
        followed, loose = paths(code)
        for path in followed:
            self.follow(path)
        for kind, methods in kinds:
            for name in loose & methods:
                self.call(self.read(kind, name).value)
        self.names = list(self.found.values())
        self.guard = Guard(self.compared)

    def compared(self):
        """Return the compared names in the form that `Guard` expects."""
        return [(holder, names, True) for holder, names in self.names], True

    cdef int follow(self, tuple path) except -1:
        cdef Binding found = None
        cdef Py_ssize_t i
        holder = self.namespace
        if path[0]:
            module = sys.modules.get(path[0])
            if module is None:
                return 0
            holder = module.__dict__
        for i in range(1, len(path)):
            if holder is None:
                return 0
            found = self.read(holder, path[i])
            if type(found.value) is _ModuleType:
                holder = found.value.__dict__
            else:
                holder = found.value if isinstance(found.value, type) else None
        if found is None or type(found.value) is not _FunctionType:
            return 0
        # If that function is mirrored, too, the guard covers it in full.
        if self.mirrored and found.piece is not None:
            self.pieces.append(found.piece)
        elif self.mirrored and found.generated:
            self.generated.append((found.value.__code__, found.value.__globals__))
        elif found.known:
            self.call(found.value)
        return 0

    cdef Binding read(self, holder, name):
        """Return what a name stands for, and note it."""
        cdef Binding found = name_in(holder, name, self.classify)
        cdef PyObject* noted
        self.foreign = self.foreign or found.foreign
        if found.compared:
            noted = PyDict_GetItem(self.found, <size_t><PyObject*>holder)
            if noted == NULL:
                self.found[<size_t><PyObject*>holder] = (holder, {name: found.value})
            else:
                (<dict>(<tuple>noted)[1])[name] = found.value
            if self.mirrored and found.called:
                self.called.add(<size_t><PyObject*>holder)
        return found

    cdef int call(self, function) except -1:
        if getattr(function, "__globals__", None) is self.namespace:
            self.below.append(function)
        return 0


def reads_of(code, namespace, mirrored, kinds, classify, keep):
    """Return the `Reads` of code.

    If `keep`, the next call returns the same `Reads`, while the names lead to the same objects.
    """
    cdef Reads reads
    cdef PyObject* known
    # The `Reads` keep both alive. To hash a code object means to hash all its constants.
    key = <size_t><PyObject*>code, <size_t><PyObject*>namespace, mirrored
    known = PyDict_GetItem(_reads, key)
    if known != NULL:
        reads = <Reads>known  # kept alive: another thread may replace it while the guard looks
        if holds(reads.guard):
            return reads
    reads = Reads(code, namespace, mirrored, kinds, classify)
    if keep and not reads.foreign:
        _reads[key] = reads
    return reads
