"""Recognizes steps that are pure by their bytecode: it only calls pure functions.

A function is known to be pure if its code names only pure functions of the backend and of
TensorFlow, variables, tensors, numbers, and functions that are known to be pure. It may assign only
to its local variables. The objects that it names are compared before each replay.
"""

import builtins
import dis
import types
import weakref

import tensorflow as tf

from fastops._backend.catalogue import describe, described
from fastops._backend.pure import Pure
from fastops._core import bytecode, opdef
from fastops._core.tables import index
from fastops._install.public.functions import FUNCTIONS
from fastops._install.replay.functions import FUNCTIONS as REPLAYED
from fastops._install.target import gen_module, resolve
from fastops._specialize.policy import MAX_READ_DEPTH

_FORBIDDEN = frozenset(
    [
        "BEFORE_ASYNC_WITH",
        "BEFORE_WITH",
        "DELETE_ATTR",
        "DELETE_DEREF",
        "DELETE_GLOBAL",
        "DELETE_NAME",
        "DELETE_SUBSCR",
        "GET_AITER",
        "GET_AWAITABLE",
        "IMPORT_FROM",
        "IMPORT_NAME",
        "IMPORT_STAR",
        "LOAD_BUILD_CLASS",
        "LOAD_CLASSDEREF",
        "LOAD_FROM_DICT_OR_DEREF",
        "LOAD_FROM_DICT_OR_GLOBALS",
        "LOAD_NAME",
        "LOAD_SPECIAL",
        "LOAD_SUPER_ATTR",
        "PRINT_EXPR",
        "SEND",
        "SETUP_ASYNC_WITH",
        "SETUP_WITH",
        "STORE_ATTR",
        "STORE_GLOBAL",
        "STORE_NAME",
        "STORE_SLICE",
        "STORE_SUBSCR",
        "YIELD_FROM",
    ]
)
_SILENT = frozenset(["CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "PUSH_NULL", "RESUME"])
_BUILTINS = frozenset(
    [
        "abs",
        "bool",
        "dict",
        "divmod",
        "enumerate",
        "float",
        "int",
        "isinstance",
        "len",
        "list",
        "map",
        "max",
        "min",
        "range",
        "reversed",
        "slice",
        "sorted",
        "sum",
        "tuple",
        "zip",
    ]
)
_ATTRIBUTES = frozenset(["dtype", "ndims", "rank", "shape"])
"""The attributes of tensors that code may read."""

_OF_LISTS = frozenset(["append", "extend", "insert", "pop", "reverse"])
"""The methods that code may call on lists that the function makes itself."""

_CHANGING = frozenset(
    [
        "batch_get_value",
        "batch_set_value",
        "dropout",
        "eval",
        "eye",
        "get_value",
        "gradients",
        "moving_average_update",
        "ones",
        "set_value",
        "stop_gradient",
        "switch",
        "update",
        "update_add",
        "update_sub",
        "variable",
        "zeros",
    ]
)
"""Aliases and thicker functions of the backend that are not pure, or that take callables."""

_VALUES = (bool, int, float, str, type(None), tf.DType, tf.TensorShape, tf.__internal__.EagerTensor)
_GLANCES = 2  # a function is read in its second call: many run once

_pure: dict[int, object] = {}


def _pure_functions():
    """Return the pure functions, by their identity."""
    if not _pure:
        for entry in describe().values():
            if (
                entry.category != "unique"
                and entry.name not in _CHANGING
                and "random" not in entry.name
            ):
                _pure[id(described[entry.name])] = described[entry.name]
        for name, op_name in index.NAMES.items():
            definition = opdef.registered(op_name)
            if definition is not None and definition.obstacle is None:
                function = getattr(gen_module(op_name), name, None)
                function = getattr(function, "original", function)
                _pure[id(function)] = function
        names = [entry.name for entry in FUNCTIONS]
        names += [f"{space}.{name}" for space, some in REPLAYED.items() for name in some.split()]
        for name in names:
            if "random" in name or name in ("tf.cond", "tf.case", "tf.switch_case"):
                continue
            try:
                holder, attribute = resolve(name)
            except LookupError:  # this TensorFlow does not have it
                continue
            function = getattr(holder, attribute, None)
            function = getattr(function, "original", function)
            _pure[id(function)] = function
    return _pure


class _UnknownError(Exception):
    """The code of a function does not show that it is pure."""


class _NameGuard:
    """A name in a function's code: how to look it up, and the object that it refers to."""

    def __init__(self, look, value):
        self.look = look
        self.value = value

    def holds(self):
        try:
            return self.look() is self.value
        except (AttributeError, KeyError, ValueError):
            return False


class _ItemsGuard(_NameGuard):
    """The items of a list."""

    def __init__(self, items):
        super().__init__(lambda: items, tuple(items))

    def holds(self):
        now = self.look()
        return len(now) == len(self.value) and all(map(_is, now, self.value))


def _is(value, other):
    return value is other


class _Reader:
    """Reads the code of a function; raises `_UnknownError` if the function may not be pure.

    Attributes
    ----------
    guards : list of _NameGuard
        The objects that the function names.
    """

    def __init__(self):
        self.guards = []
        self._mutable = False
        self._assigns = False
        self._seen = set()

    def read(self, function, depth=MAX_READ_DEPTH):
        if type(function) is not types.FunctionType or depth == 0:
            raise _UnknownError
        if not bytecode.REVIEWED:
            raise _UnknownError
        if function in self._seen:
            return
        self._seen.add(function)
        held = weakref.ref(function)  # the guards of a function must not keep it alive
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._note(lambda name=name: getattr(held(), name))
        for value in (function.__defaults__, function.__kwdefaults__):
            self._take(value, depth)
        self._read_code(function, function.__code__, depth)
        if self._mutable and self._assigns:
            raise _UnknownError

    def _note(self, look):
        guard = _NameGuard(look, look())
        self.guards.append(guard)
        return guard.value

    def _read_code(self, function, code, depth):
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        owner = None  # a module: the next instruction must read an attribute
        instructions = [
            instruction
            for instruction in dis.get_instructions(code)
            if instruction.opname not in _SILENT
        ]
        lists = _lists_made_in(code, instructions)
        for before, instruction in zip([None, *instructions], instructions, strict=False):
            name = instruction.opname
            if name in _FORBIDDEN or (name == "YIELD_VALUE" and code is function.__code__):
                raise _UnknownError
            if name == "STORE_DEREF" and instruction.argval in cells:
                raise _UnknownError
            self._assigns |= name.startswith("INPLACE_")
            self._assigns |= name == "BINARY_OP" and instruction.arg in bytecode.INPLACE
            value = None
            if name == "LOAD_GLOBAL":
                value = self._global(function, instruction.argval)
            elif name == "LOAD_DEREF" and instruction.argval in cells:
                cell = cells[instruction.argval]
                value = self._note(lambda cell=cell: cell.cell_contents)
            elif name in ("LOAD_ATTR", "LOAD_METHOD"):
                if owner is not None:
                    module, attribute = owner, instruction.argval
                    value = self._note(lambda m=module, a=attribute: getattr(m, a))
                elif instruction.argval in _ATTRIBUTES or (
                    instruction.argval in _OF_LISTS
                    and before.opname in ("LOAD_FAST", "LOAD_FAST_BORROW")
                    and before.argval in lists
                ):
                    continue
                else:
                    raise _UnknownError
            elif owner is not None:  # the code uses a module as a value
                raise _UnknownError
            else:
                continue
            owner = value if isinstance(value, types.ModuleType) else None
            if owner is None:
                self._take(value, depth)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._read_code(function, constant, depth)

    def _global(self, function, name):
        names = function.__globals__
        if name in names:
            return self._note(lambda: names[name])
        if name not in _BUILTINS:
            raise _UnknownError
        return self._note(lambda: names[name] if name in names else getattr(builtins, name))

    def _take(self, value, depth):
        """Accept a value that the function names, or raise `_UnknownError`."""
        if isinstance(value, (*_VALUES, tf.Variable)):
            return
        if isinstance(value, type) or type(value) is types.BuiltinFunctionType:
            if getattr(builtins, getattr(value, "__name__", ""), None) is value:
                return
            raise _UnknownError
        if type(value) in (list, tuple, dict):
            if type(value) is not tuple:
                self._mutable = True
            items = value.values() if type(value) is dict else value
            if type(value) is dict:
                self.guards.append(_ItemsGuard(_Values(value)))
            elif type(value) is list:
                self.guards.append(_ItemsGuard(value))
            if depth == 0:
                raise _UnknownError
            for item in items:
                self._take(item, depth - 1)
            return
        if id(getattr(value, "original", value)) in _pure_functions() or id(value) in _pure:
            return
        self.read(value, depth - 1)


def _lists_made_in(code, instructions):
    """Return the local variables to which the code assigns only lists that it makes."""
    made, others = set(), set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    for before, instruction in zip([None, *instructions], instructions, strict=False):
        if instruction.opname.startswith("STORE_FAST"):
            is_made = instruction.opname == "STORE_FAST" and before.opname == "BUILD_LIST"
            names = (
                instruction.argval
                if isinstance(instruction.argval, tuple)
                else (instruction.argval,)
            )
            (made if is_made else others).update(names)
    return made - others


class _Values:
    """The keys and values of a dict, as a sequence."""

    def __init__(self, of):
        self._of = of

    def __len__(self):
        return 2 * len(self._of)

    def __iter__(self):
        yield from self._of.keys()
        yield from self._of.values()


class _Known:
    """A function that is pure, as long as the objects that it names do not change."""

    def __init__(self, function):
        reader = _Reader()
        reader.read(function)
        self._guards = reader.guards
        reference = weakref.ref(function)
        self.replayed = Pure(function, lambda *args: reference()(*args))

    def holds(self):
        """Tell whether the function still names the same objects."""
        return all(guard.holds() for guard in self._guards)


_functions: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def replayed_if_pure(function):
    """Return a function that replays a step, if the step is known to be pure, else the step.

    Parameters
    ----------
    function : callable
        A step that will run many times.
    """
    if type(function) is not types.FunctionType:
        return function
    entry = _functions.get(function, 0)
    if isinstance(entry, int):
        if entry < 0:
            return function
        if entry + 1 < _GLANCES:
            _functions[function] = entry + 1
            return function
        entry = _look_at(function)
    elif not entry.holds():
        entry = _look_at(function)
    return function if entry is None else entry.replayed


def _look_at(function):
    try:
        known = _Known(function)
    except _UnknownError:
        _functions[function] = -1
        return None
    _functions[function] = known
    return known
