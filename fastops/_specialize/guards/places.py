"""Lists the contents of an object, direct and indirect, that its methods may read.

The list has places in order: each place comes after the place that holds it. So if all places
before one are unchanged, its objects are alive and can be compared.

One rule holds for all objects. Everything that code can read is either compared in each call, or
refuses the recording with a reason that names its path. No type or name is an exception. The
only attributes that are left out are those of TensorFlow's and Keras's bookkeeping
(`UNASKED` in `_install/models/library.py`). Even these refuse the recording if user code names
one of them (`Places.unwatched`).
"""

import abc
import ast
import builtins
import contextlib
import dis
import enum
import functools
import gc
import inspect
import re
import sys
import textwrap
import threading
import types
import typing
import weakref
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import (
    Function,
    UnliftedInitializerVariable,
)
from tensorflow.python.framework._pywrap_python_api_dispatcher import PythonAPIDispatcher
from tensorflow.python.framework.ops import EagerTensor, name_scope_v2
from tensorflow.python.ops.lookup_ops import LookupInterface
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.trackable import data_structures
from tensorflow.python.trackable.base import Trackable
from tensorflow.python.util import dispatch

from fastops._core import bytecode
from fastops._core.classes import version_of
from fastops._specialize.guards.names import is_stand_in, upstream
from fastops._specialize.libraries import (
    BOOKKEEPING,
    OF_MODULES,
    OF_SCOPES,
    is_of_keras,
    is_own,
    is_pure,
)
from fastops._specialize.policy import MAX_CODES, MAX_GUARDED_PLACES, MAX_VALUE_BYTES
from fastops._specialize.recording.recording import NotReplayableError

_VALUES = frozenset(
    {
        *(bool, int, float, complex, str, bytes, range),
        *(type(None), type(Ellipsis), type(NotImplemented), tf.TensorSpec),
    }
)
"""Classes whose instances never change. Instances of subclasses may have attributes."""

_FIELD = type(vars(namedtuple("_", "field"))["field"])
"""The class of the field descriptors of named tuples."""

_CONSTANT = (
    _FIELD,
    *(np.dtype, tf.DType, tf.TensorShape, types.CodeType, re.Pattern),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType),
    *(types.MemberDescriptorType, types.ClassMethodDescriptorType),
    *(types.GenericAlias, types.UnionType, inspect.Signature, inspect.Parameter),
    *(typing.ForwardRef, typing.TypeVar),
)
"""Classes whose instances never change, including instances of subclasses."""

SEALED = (type(threading.Lock()), type(threading.RLock()), Function, tf.Graph, name_scope_v2)
"""Classes whose instances are compared by identity alone: calls do not read their contents."""

_VARIABLES = (ResourceVariable, UnliftedInitializerVariable)
"""Classes of variables. A variable that is made while a function is traced is of the second one."""

_WRAPPERS = (data_structures._DictWrapper, data_structures._TupleWrapper)
"""TensorFlow's classes whose instances behave like the object that they wrap."""

_OF_DESCRIPTORS = {
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
"""By class, the attributes of which an instance consists. They cannot be set."""

_PARTS = {
    functools.partial: ("func", "args", "keywords"),
    types.MethodType: ("__self__", "__func__"),
    slice: ("start", "stop", "step"),
    **dict.fromkeys(_WRAPPERS, ("__wrapped__",)),
    **_OF_DESCRIPTORS,
}
"""By class, the attributes of which an instance consists."""

_OF_NUMPY = frozenset({np.ufunc, type(np.concatenate)}) - {types.FunctionType}
"""Classes of NumPy's functions that are written in C, or have a dispatcher written in C."""

_CONTAINERS = (dict, list, set, OrderedDict, defaultdict, np.ndarray)

_OF_CLASSES = frozenset(
    {
        *("__abstractmethods__", "__annotate_func__", "__annotations__", "__annotations_cache__"),
        *("__dict__", "__doc__", "__module__"),
        *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__orig_bases__"),
        *("__parameters__", "__slots__", "__weakref__", "_abc_impl"),
    }
)
"""Attributes that describe a class. Setting one of them changes the version of the class."""

_NUMBERS_AND_TEXTS = frozenset({int, float, complex, str, bytes})

_LAYOUTS = _NUMBERS_AND_TEXTS | {
    *(object, dict, list, set, frozenset, tuple, OrderedDict, defaultdict),
    types.SimpleNamespace,
}
"""Classes written in C whose instances can be compared completely."""

_UNSEARCHED = tf.Module._TF_MODULE_IGNORED_PROPERTIES
"""Attributes in which modules do not search for variables, unless their class says otherwise."""

_POINTER = np.dtype(np.intp).itemsize

MISSING = object()
"""Stands for an attribute that a module does not have, and for the content of an empty cell."""

KINDS = {
    "instance": "the class of an object",
    "class": "a class",
    "dict": "a dict",
    "list": "a list",
    "set": "a set",
    "cell": "a variable of an outer function",
    "reference": "a weak reference",
    "array": "an array",
    "tuple": "a tuple",
    "function": "a function",
    "parts": "an object",
    "order": "the order of an OrderedDict",
    "handlers": "the dispatch handlers of a function",
    "value": "a number or text",
    "proxy": "a view of a dict",
    "attributes": "the attributes of a tensor",
    "registry": "the classes that are registered with abstract classes",
}
"""By kind of place, what has changed if such a place differs. The order is that of the enum `Kind`
in watch.pxd, as a test checks."""


class Places:
    """The contents of some objects, place by place.

    Parameters
    ----------
    roots : list of object
        The objects where the search begins.
    unasked : dict of type to set of str
        By class, the names of attributes that no recorded call reads.
    titles : list of str, optional
        The names of the roots in reasons. By default the names of their classes.
    unasked_of : dict of int to set of str, optional
        By the identity of an object, the names of more such attributes.

    Attributes
    ----------
    entries : list of tuple
        For each place its kind (a key of `KINDS`), and the data that
        `fastops._specialize.guards.watch.Watch` needs for such a place.
    owners : list of int
        The identity of the object that each entry describes.
    kept : list of object
        The objects in places that do not change.
    variables : dict of int to tf.Variable
        The variables that were found, by the identity of the handle.
    tables : dict of int to object
        The lookup tables that were found, by the identity of the handle.
    modules : list of tuple
        Pairs of a module that was found, and its path. The code that ran decides which attributes
        of a module are compared.
    functions : list of callable
        The functions of libraries that were found and that a module has under their names. Code may
        call them without naming them.
    unwatched : set of str
        The names of attributes that exist and are not compared.
    seen : set of int
        The identities of all objects that were found.

    Raises
    ------
    NotReplayableError
        If an object is found whose changes cannot be detected.
    """

    def __init__(self, roots, unasked, titles=None, unasked_of=None):
        self.unasked, self.unasked_of = unasked, unasked_of or {}
        self.entries = []
        self.owners = []
        self.kept = []
        self.variables = {}
        self.tables = {}
        self.modules = []
        self.functions = []
        self.unwatched = set()
        self.seen = set()
        self.alive = []  # during the search: reading an attribute may make a new object
        self.skipped = {}
        self.sources = {}  # by identity: the identity of the holder, and the step from it
        titles = titles or [type(root).__name__ for root in roots]
        self.queue = deque((root, None, title) for root, title in zip(roots, titles, strict=True))
        while self.queue:
            value, holder, step = self.queue.popleft()
            if id(value) in self.seen:
                continue
            self.seen.add(id(value))
            self.alive.append(value)
            self.sources[id(value)] = holder, step
            self.visit(value)
            if len(self.entries) > MAX_GUARDED_PLACES:
                raise NotReplayableError("object_too_large", titles[0])
        del self.alive

    def path(self, value):
        """Return the path to an object, as code would write it."""
        return self.path_of(id(value))

    def path_of(self, place):
        """Return the path to the object with an identity."""
        steps = []
        while place is not None:
            place, step = self.sources[place]
            steps.append(step_text(step))
        return "".join(reversed(steps))

    def note(self, owner, *entry):
        """Add a place of an object."""
        self.entries.append(entry)
        self.owners.append(id(owner))

    def enqueue(self, holder, values, steps):
        """Queue the values that an object holds, each with the step to it, for a visit."""
        here = id(holder)
        self.queue.extend((value, here, step) for value, step in zip(values, steps, strict=True))

    def visit(self, value):
        """Add the places of an object."""
        kind = type(value)
        if is_constant(value):
            self.kept.append(value)
        elif is_stand_in(value):
            self.kept.append(value)
            self.enqueue(value, [value.original], [""])
        elif isinstance(value, types.ModuleType):
            self.kept.append(value)
            self.modules.append((value, self.path(value)))
        elif isinstance(value, type):
            self.visit_class(value)
        elif isinstance(value, SEALED):
            self.kept.append(value)
        elif kind is EagerTensor:
            self.visit_tensor(value)
        elif kind is types.FunctionType:
            self.visit_function(value)
        elif kind is types.BuiltinFunctionType:
            if not (isinstance(value.__self__, types.ModuleType | type | None) and is_pure(value)):
                name = value.__name__
                raise NotReplayableError("holds_c_function", f"{self.path(value)} is {name}")
            self.kept.append(value)
        elif kind is functools._lru_cache_wrapper:
            if not is_own(value.__module__ or ""):
                raise NotReplayableError("holds_cache", self.path(value))
            self.kept.append(value)
        elif kind in _OF_NUMPY:
            self.visit_function_of_numpy(value)
        elif kind is PythonAPIDispatcher:
            self.visit_dispatcher(value)
        elif kind in _PARTS:
            parts = [getattr(value, name) for name in _PARTS[kind]]
            self.note(value, "parts", value, _PARTS[kind], parts)
            self.enqueue(value, parts, [(".", name) for name in _PARTS[kind]])
            if kind is functools.partial:
                self.visit_attributes(value, kind)
        elif kind is types.MappingProxyType:
            (mapping,) = gc.get_referents(value)
            self.note(value, "proxy", value, mapping)
            self.enqueue(value, [mapping], [""])
        elif kind is types.CellType:
            self.visit_cell(value)
        elif isinstance(value, weakref.ref):
            if not (kind is weakref.ref or is_own(kind.__module__)):
                if _layout(kind) is not weakref.ref:
                    title = f"{self.path(value)} is a {_title(kind)}"
                    raise NotReplayableError("holds_opaque", title)
                self.visit_attributes(value, kind)
            referent = weakref.ref.__call__(value)
            self.note(value, "reference", value, referent)
            self.enqueue(value, [referent], ["()"])
        elif isinstance(value, np.ndarray):
            self.visit_array(value)
        else:
            self.visit_instance(value, kind)

    def visit_class(self, kind):
        """Add a class, and queue its attributes."""
        _settle_annotations(kind)
        self.note(kind, "class", kind, version_of(kind))
        if type(kind) is not type and not is_own(type(kind).__module__):
            self.enqueue(kind, [type(kind)], [(".", "__class__")])
        for base in kind.__mro__:
            if base is object or base in _LAYOUTS:
                continue
            own = is_own(base.__module__)
            for name, value in list(vars(base).items()):
                if own and not is_of_keras(base.__module__):
                    break
                if name in _OF_CLASSES:
                    self.unwatched.add(name)
                    continue
                # The version of a class covers the identity of its functions. Keras's functions
                # hold nothing that changes.
                if not own or isinstance(value, _CONTAINERS) or _is_of_users(value):
                    self.visit_attribute(kind, name, value)

    def visit_attribute(self, kind, name, value):
        """Queue an attribute of a class. The version of the class covers a property itself."""
        names = _OF_DESCRIPTORS.get(type(value))
        if names is None or id(value) in self.seen:
            self.enqueue(kind, [value], [(".", name)])
            return
        self.seen.add(id(value))
        self.alive.append(value)
        self.sources[id(value)] = id(kind), (".", name)
        self.enqueue(
            value, [getattr(value, part) for part in names], [(".", part) for part in names]
        )

    def note_registrations(self):
        """Compare the classes that are registered with abstract classes: `isinstance` asks them."""
        self.sources[id(abc.ABCMeta)] = None, "abc.ABCMeta"
        self.note(abc.ABCMeta, "registry", abc.ABCMeta, abc.get_cache_token())

    def visit_tensor(self, tensor):
        """Add an eager tensor and its attributes, such as a mask of Keras."""
        self.kept.append(tensor)
        if tensor.dtype != tf.resource:
            attributes = vars(tensor)
            self.note(tensor, "attributes", tensor, attributes)
            self.enqueue(tensor, attributes.values(), [(".", name) for name in attributes])

    def visit_function(self, function):
        """Add a function: its code, closure, defaults and attributes."""
        parts = function.__closure__, function.__defaults__, function.__kwdefaults__
        attributes = function.__dict__
        self.kept.append(function.__code__)
        self.note(function, "function", function, function.__code__, *parts, attributes)
        names = ("__closure__", "__defaults__", "__kwdefaults__")
        self.enqueue(function, parts, [(".", name) for name in names])
        self.visit_dict(function, attributes, frozenset(), ".")

        if is_own(str(function.__module__)) and is_of_module(function):
            self.functions.append(function)

    def visit_function_of_numpy(self, function):
        """Add a public function of NumPy that is written in C, or the Python function behind it."""
        if getattr(np, function.__name__, None) is not function:
            raise NotReplayableError(
                "holds_c_function", f"{self.path(function)} is {function.__name__}"
            )
        self.kept.append(function)
        if not isinstance(function, np.ufunc):
            inner = function._implementation
            self.enqueue(function, [inner], [(".", "_implementation")])

    def visit_dispatcher(self, dispatcher):
        """Add the handlers that are registered with a public function of TensorFlow, by type.

        The dispatcher itself is written in C++, but TensorFlow also keeps a table of its handlers.
        """
        table = _handlers_of(dispatcher)
        if table is None:
            raise NotReplayableError("holds_opaque", f"{self.path(dispatcher)} has no handlers")
        self.kept += [dispatcher, table]
        for handler in table:  # the watch keeps no handler alive
            reference = weakref.ref(handler)
            self.kept.append(reference)
            self.note(dispatcher, "reference", reference, handler)
        counts = tuple(map(len, table.values()))
        self.note(dispatcher, "handlers", table, tuple(table), counts)

    def visit_cell(self, cell):
        """Add a cell: a variable of an outer function."""
        try:
            content = cell.cell_contents
        except ValueError:  # the variable has no value
            self.note(cell, "cell", cell, MISSING)
            return
        self.note(cell, "cell", cell, content)
        self.enqueue(cell, [content], [(".", "cell_contents")])

    def visit_array(self, array):
        """Add an array. Its contents are compared, since user code may write to it at any time."""
        if type(array) is not np.ndarray:
            name = type(array).__name__
            raise NotReplayableError("holds_array_subclass", f"{self.path(array)} is a {name}")
        if array.dtype.names is not None:  # a program can change these names
            raise NotReplayableError("holds_opaque", f"{self.path(array)} has fields")
        if array.nbytes > MAX_VALUE_BYTES or array.dtype.hasobject:
            raise NotReplayableError("holds_large_array", self.path(array))
        self.note(array, "array", array, array.dtype, array.shape, array.tobytes())

    def visit_instance(self, value, kind):
        """Add an instance of any other class."""
        if isinstance(value, threading.local):
            raise NotReplayableError("holds_thread_local", self.path(value))
        if (layout := _layout(kind)) not in _LAYOUTS:
            raise NotReplayableError("holds_opaque", f"{self.path(value)} is a {_title(kind)}")
        if kind not in _LAYOUTS or kind is types.SimpleNamespace:
            self.visit_attributes(value, kind)
        if isinstance(value, _VARIABLES):
            self.variables[id(value._handle)] = value
        elif isinstance(value, LookupInterface):
            handle = vars(value).get("_resource_handle_value")
            if type(handle) is EagerTensor:
                self.tables[id(handle)] = value
        # The members of an enumeration live as long as its class.
        if layout in _NUMBERS_AND_TEXTS and not isinstance(value, enum.Enum):
            self.note(value, "value", value, layout.__getnewargs__)
        if layout is defaultdict:
            self.note(value, "parts", value, ("default_factory",), [value.default_factory])
            self.enqueue(value, [value.default_factory], [(".", "default_factory")])
        if layout is OrderedDict:
            self.note(value, "order", value, tuple(OrderedDict.__iter__(value)))
        if isinstance(value, dict):
            self.visit_dict(value, value, frozenset(), "[")
        elif isinstance(value, list):
            self.visit_row("list", value, list.__iter__(value))
        elif isinstance(value, (set, frozenset)):
            kind = set if isinstance(value, set) else frozenset
            self.visit_row("set", value, kind.__iter__(value))
        elif isinstance(value, tuple):
            self.visit_row("tuple", value, tuple.__iter__(value))

    def visit_attributes(self, value, kind):
        """Add the class and the attributes of an object."""
        self.enqueue(value, [kind], [(".", "__class__")])
        attributes = _attributes(value)
        self.note(value, "instance", value, kind, attributes)
        if attributes is not None:
            skipped = self.skipped_of(kind) | self.unasked_of.get(id(value), frozenset())
            self.visit_dict(value, attributes, skipped, ".")

    def visit_row(self, kind, held, elements):
        """Add the elements of a list, set or tuple, even if its class hides them."""
        elements = tuple(elements)
        self.note(held, kind, held, elements)
        self.enqueue(held, elements, [("[", i) for i in range(len(elements))])

    def visit_dict(self, holder, held, skipped, step):
        """Add a dict that is an object, or holds its attributes."""
        items, ignored = {}, []
        for name, value in dict.items(held):
            if not (is_constant(name) or isinstance(name, type)):
                raise NotReplayableError(
                    "holds_keys", f"{self.path(holder)} has a {type(name).__name__} for a key"
                )
            if name in skipped:
                self.unwatched.add(name)
                ignored.append(name)
            else:
                items[name] = value
        self.note(holder, "dict", held, items, skipped, step, tuple(ignored))
        self.enqueue(holder, items.values(), [(step, name) for name in items])

    def skipped_of(self, kind):
        """Return the names of attributes of a class's instances that no recorded call reads."""
        skipped = self.skipped.get(kind)
        if skipped is None:
            sets = [names for base, names in self.unasked.items() if issubclass(kind, base)]
            if issubclass(kind, tf.Module):
                sets.append(BOOKKEEPING - OF_MODULES)
                # The search for variables reads all attributes that the class does not list.
                if not _UNSEARCHED.issubset(kind._TF_MODULE_IGNORED_PROPERTIES):
                    sets[-1] -= _UNSEARCHED
            elif issubclass(kind, Trackable):
                sets.append(BOOKKEEPING)
            skipped = self.skipped[kind] = frozenset().union(*sets)
        return skipped


def _settle_annotations(kind):
    """Read the annotations of a class, since the first read gives it another version.

    From CPython 3.14 on, the first read runs their code. That of users is left alone: if the
    program reads them later, a recording that depends on the class is made again.
    """
    for base in kind.__mro__:
        if vars(base).get("__annotate_func__") is None or is_own(base.__module__):
            with contextlib.suppress(Exception):  # a name in them does not exist
                getattr(base, "__annotations__", None)


def is_constant(value):
    """Tell whether a value never changes in any part that code can read."""
    kind = type(value)
    if kind in _VALUES or isinstance(value, _CONSTANT):
        return True
    if kind is tuple:
        return all(map(is_constant, value))
    if isinstance(value, np.generic):
        return not isinstance(value, np.void) and kind.__module__ == "numpy"
    return isinstance(value, enum.Enum) and is_own(kind.__module__)


def _is_of_users(value):
    """Tell whether a value is a user's class or function, or an instance of a user's class."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind in (types.FunctionType, type) and not is_own(value.__module__ or "")
    return not (is_constant(value) or is_own(kind.__module__))


def is_of_module(function):
    """Tell whether the module of a function has it under its name: code may look it up there."""
    namespace = getattr(sys.modules.get(str(function.__module__)), "__dict__", {})
    return upstream(namespace.get(function.__name__)) is function


def _handlers_of(dispatcher):
    """Return TensorFlow's table of the handlers of a dispatcher; None if it is unknown."""
    for function, table in list(dispatch._TYPE_BASED_DISPATCH_SIGNATURES.items()):
        if getattr(function, dispatch.TYPE_BASED_DISPATCH_ATTR, None) is dispatcher:
            return table
    return None


def _attributes(value):
    """Return the dict of an instance itself; None if there is none."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if type(attributes) is dict else None


_layouts: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _layout(kind):
    """Return the base class that defines the memory layout of instances beside their dict."""
    found = _layouts.get(kind)
    if found is None:
        found = _found_layout(kind)
        if found is not kind:  # the entry would keep its key alive
            _layouts[kind] = found
    return found


def _found_layout(kind):
    base = kind.__base__
    if base is None:
        return kind
    size = kind.__basicsize__ - base.__basicsize__
    for name in ("__dictoffset__", "__weakrefoffset__"):
        # It is negative for instances of variable size, and -1 if it takes no place in them.
        if getattr(kind, name) not in (0, -1) and getattr(base, name) == 0:
            size -= _POINTER
    return kind if size > 0 or kind.__itemsize__ != base.__itemsize__ else _layout(base)


def _title(kind):
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def step_text(step):
    if isinstance(step, str):
        return step
    kind, name = step
    return f".{name}" if kind == "." else f"[{name!r}]"


_BUILTINS = vars(builtins)


_ANY_NAME = frozenset(
    {
        *("__dict__", "__getattribute__", "__import__", "attrgetter", "dir", "eval", "exec"),
        *("globals", "import_module", "locals", "methodcaller", "vars"),
    }
)
"""Names by which code may read attributes that the code does not name."""

_GIVEN_NAME = frozenset({"delattr", "getattr", "hasattr", "setattr"})
"""Functions that may read such attributes unless the name argument is a constant."""


def globals_of(codes, held=()):
    """Return the globals that some code may read from its module, and from modules in it.

    Library code may read the names in the code, from its own module and from library modules that
    it names. User code may read the names and the constant strings in the code, from all modules
    that it can reach; a name that a user's module does not have must stay absent.

    Parameters
    ----------
    codes : dict of tuple to dict
        The globals of the code that ran, by the code and the identity of the globals.
    held : list of tuple
        Pairs of a module that objects hold, and its path: user code may read these modules.

    Returns
    -------
    list of tuple
        Pairs of the dict of a module, and a dict of the values by name (`MISSING`: absent).
    """
    by_module = {}
    for (code, _), namespace in codes.items():
        users = is_of_users(namespace)
        names = names_of(code) if users else code.co_names
        covered = OF_SCOPES.get(namespace.get("__name__"))
        if covered is not None:
            names = [name for name in names if name not in covered]
        # Of its own module, code reads only the globals that it names, unless it reaches the module
        # as an object.
        modules = [(namespace, globals_in(code) if users else names)]
        if users:
            loaded = {name: sys.modules[name] for name in imports_of(code) if name in sys.modules}
            _asked(by_module, sys.modules).update(loaded)
            modules += [(vars(module), names) for module in loaded.values()]
            modules += [(vars(module), names) for module, _ in held]
        passed = set()
        while modules:
            of, names_there = modules.pop()
            if (id(of), names_there is names) in passed:
                continue
            passed.add((id(of), names_there is names))
            asked = _asked(by_module, of)
            absent = users and is_of_users(of)
            for name in names_there:
                if name in of:
                    asked[name] = value = of[name]
                    # An attribute of a module that is loaded lazily could import it.
                    if isinstance(value, types.ModuleType) and (
                        users or is_own(str(vars(value).get("__name__")))
                    ):
                        modules.append((vars(value), names))
                elif absent:
                    asked[name] = MISSING
                if of is namespace and name not in of and name in _BUILTINS:
                    _asked(by_module, _BUILTINS)[name] = _BUILTINS[name]
    return [(of, asked) for of, asked in by_module.values() if asked]


def _asked(by_module, namespace):
    return by_module.setdefault(id(namespace), (namespace, {}))[1]


def is_of_users(namespace):
    """Tell whether a dict holds the globals of a module that does not belong to a library."""
    name = str(namespace.get("__name__"))
    return not (is_own(name) or name == "builtins" or namespace is _OF_ABSTRACT_CLASSES)


_OF_ABSTRACT_CLASSES = vars(sys.modules["_collections_abc"])  # its `__name__` differs


def code_of_users(codes):
    """Return the user code among code that ran, without the code of named tuples."""
    return [
        code
        for (code, _), namespace in codes.items()
        if is_of_users(namespace) and not str(namespace.get("__name__")).startswith("namedtuple_")
    ]


@functools.lru_cache(maxsize=MAX_CODES)
def names_of(code):
    """Return the names of attributes and globals that some code may read."""
    names = set(code.co_names)
    pending = list(code.co_consts)
    while pending:
        constant = pending.pop()
        if type(constant) is str and constant.replace(".", "_").isidentifier():
            names.add(constant)
        elif isinstance(constant, (tuple, frozenset)):
            pending += constant
    return frozenset(names)


@functools.lru_cache(maxsize=MAX_CODES)
def globals_in(code):
    """Return the names of globals and builtins that some code reads."""
    if not bytecode.REVIEWED:
        return names_of(code)
    return frozenset(
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    )


@functools.lru_cache(maxsize=MAX_CODES)
def imports_of(code):
    """Return the names of modules that some code may import, or look up in `sys.modules`."""
    if not bytecode.REVIEWED:
        return names_of(code)
    names = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname == "IMPORT_NAME"
    }
    return names | names_of(code) if "modules" in code.co_names else names


@functools.lru_cache(maxsize=MAX_CODES)
def any_name(code):
    """Return the name by which code may read attributes that it does not name; None if none."""
    if names := sorted(_ANY_NAME.intersection(code.co_names)):
        return names[0]
    asked = _GIVEN_NAME.intersection(code.co_names)
    if not asked:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, ValueError):  # no source, or only part of a line
        return min(asked)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in asked:
            name = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(name, ast.Constant) and type(name.value) is str):
                return node.func.id
        elif isinstance(node, ast.Name) and node.id in asked and not _is_called(tree, node):
            return node.id
    return None


def _is_called(tree, name):
    return any(isinstance(node, ast.Call) and node.func is name for node in ast.walk(tree))
