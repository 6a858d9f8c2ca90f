"""Shows that Python code of users is pure: what recordings compare decides what it computes.

A declaration says of user code that it depends only on what recordings compare, and that it changes
nothing that outlives the call. Here the bytecode is read to show the same. The proof rests on one
rule: every value that the code can reach is *plain* (below), and every instruction makes plain
values of plain values.

==========================  =======================================================================
Plain values                What the code can do with them
==========================  =======================================================================
tensors, variables, arrays  operators, and the few attributes in `_ATTRIBUTES`
numbers, strings, dtypes,   the same
shapes, None
containers of plain values  the same; items are read but not assigned
functions that compute      calls (`fastops._specialize.libraries.computes`)
functions of users          calls: their code is shown to be pure when it runs
layers of Keras             calls; attributes, see below
==========================  =======================================================================

Modules, objects and classes of users, and layers hold plain values. Code may only read an attribute
of such an *owner*, in the next instruction, so that the value is known here.

The witness of a recording asks for the proof whenever user code is called in it, with its
arguments. The guards of recordings (`fastops._specialize.guards`) compare all values that are
looked at here, in each call. So the proof has to hold only for the values of the recorded call.
"""

import builtins
import contextlib
import functools
import inspect
import math
import sys
import types
import weakref
from collections import namedtuple

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._specialize.guards.names import upstream
from fastops._specialize.libraries import computes, is_of_keras, is_own
from fastops._specialize.recording import instructions
from fastops._specialize.recording.instructions import (
    ASSIGNING,
    ATTRIBUTE,
    COMPARISON,
    CONSTANT,
    GLOBAL,
    IDENTITY,
    LOAD,
    REFUSED,
    STORE,
)
from fastops._specialize.signatures import COMPOSITES

_NUMBERS = (bool, int, float, complex)
_VALUES = frozenset(
    {*_NUMBERS, str, bytes, range, slice, type(None), type(Ellipsis), type(NotImplemented)}
)
_TENSORS = (EagerTensor, ResourceVariable, tf.IndexedSlices)
_IMMUTABLE = (tf.DType, tf.TensorShape, np.dtype, np.generic)
_SEQUENCES = (list, tuple, frozenset)  # no sets: their order may change while they stay equal

_ATTRIBUTES = frozenset(
    {
        *("shape", "dtype", "ndim", "ndims", "rank", "base_dtype", "as_list", "get_shape"),
        *("is_floating", "is_integer", "is_complex", "is_bool", "num_elements"),
        *("get", "items", "keys", "values", "value", "read_value"),
    }
)
"""Attributes that code may read of a value that is computed: none of them changes anything."""

_OF_LISTS = frozenset({"append", "extend", "insert", "pop", "reverse"})
"""Methods that code may call of a list that it has made itself."""

_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "callable", "complex", "dict", "divmod", "enumerate"),
        *("filter", "float", "frozenset", "int", "isinstance", "issubclass", "len", "list", "map"),
        *("max", "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "sum"),
        *("tuple", "zip"),
    }
)
_COMPARING = frozenset({"max", "min", "sorted"})
"""Builtins that compare: see `Proof.identified`."""

_CLASSES = frozenset(
    {
        *(tf.Tensor, tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices, tf.TensorShape, tf.DType),
        tf.TensorSpec,
    }
)
"""Classes that code may name, to ask with `isinstance`."""

_OF_LAYERS = frozenset(
    {
        *("bias", "built", "compute_dtype", "dtype", "embeddings", "kernel", "name"),
        *("non_trainable_variables", "non_trainable_weights", "trainable", "trainable_variables"),
        *("trainable_weights", "variable_dtype", "variables", "weights"),
    }
)
"""Properties of Keras's layers that return plain values."""

_FIELD = type(vars(namedtuple("_", "field"))["field"])
"""The class of the field descriptors of named tuples."""

_LOOKUPS = frozenset(
    kind.__getattribute__ for kind in (object, float, int, str, tuple, types.SimpleNamespace)
)
"""How Python itself looks up the attributes of objects."""

_CHANGING = frozenset({"time", "datetime", "os", "random", "secrets", "uuid", "socket"})
_MISSING = object()
_DEPTH = 8


class UnprovenError(Exception):
    """Code is not shown to be pure.

    Parameters
    ----------
    what : str
        What it does: a predicate, whose subject is the code.
    remedy : str
        What to write instead.
    """

    def __init__(self, what, remedy):
        super().__init__(f"{what}: {remedy}")


class Proof:
    """The proof for the user code of one recorded call.

    Attributes
    ----------
    mutable : bool
        Whether the code names, or was given, an object that an operator such as ``+=`` changes.
    identified : bool
        Whether the code names a tensor. Comparisons of containers ask first whether an element is
        the same object. So they could tell a later argument from one that only has equal values.
    assigning, comparing : str or None
        Where an operator assigns, or containers may be compared.
    functions : dict of int to callable
        The functions of libraries that the code may call, by their identity. A stand-in may run in
        the place of such a function, so the witness does not see all of them.
    """

    def __init__(self):
        self.mutable = self.identified = False
        self.functions = {}
        self.assigning = self.comparing = None

    def objection(self, frame):
        """Return why the code of a frame that begins is not shown to be pure; None if it is."""
        code = frame.f_code
        reader = _ProofReader(self, frame)
        try:
            reader.read()
        except UnprovenError as error:
            return f"{_place(code, reader.line)} {error}"
        if self.assigning is not None and self.mutable:
            return f"{self.assigning} may change a list or an array in place: use a + b, not a += b"
        if self.comparing is not None and self.identified:
            return f"{self.comparing} may compare containers of tensors: use tf.equal"
        return None


class _Frame:
    """What is known of a call before it is made."""

    def __init__(self, function):
        self.f_code, self.f_globals = function.__code__, function.__globals__
        self.f_builtins, self.f_locals = vars(builtins), {}
        cells = function.__closure__ or ()
        for name, cell in zip(self.f_code.co_freevars, cells, strict=True):
            with contextlib.suppress(ValueError):  # the cell is empty
                self.f_locals[name] = cell.cell_contents


_glances: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def objection_to_class(kind):
    """Return why the method `call` of a class cannot be shown to be pure; None if it may be.

    The attributes of the instance are not known, so the proof itself must wait for a call.
    """
    function = getattr(kind, "call", None)
    if type(function) is not types.FunctionType:
        return "it has no method `call` that is written in Python"
    if is_own(str(function.__globals__.get("__name__"))):
        return None
    if function not in _glances:
        reader = _Glance(Proof(), _Frame(function))
        try:
            _glances[function] = reader.read()
        except UnprovenError as error:
            _glances[function] = f"{_place(function.__code__, reader.line)} {error}"
    return _glances[function]


def _place(code, line):
    return f"{code.co_filename}:{line}: {code.co_name}"


class _ProofReader:
    """Reads the code of one call.

    Attributes
    ----------
    line : int
        The line that is being read.
    """

    def __init__(self, proof, frame):
        self.proof, self.frame, self.code = proof, frame, frame.f_code
        self.line = self.code.co_firstlineno
        self.known = {}  # values of parameters and of variables of outer functions

    def read(self):
        code, flags = self.code, self.code.co_flags
        if not instructions.REVIEWED:
            raise UnprovenError("runs in a version of Python that is new", "use Python 3.13")
        if self.frame.f_builtins is not vars(builtins) or type(self.frame.f_globals) is not dict:
            raise UnprovenError("has globals or builtins of its own", "define it in a module")
        if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise UnprovenError("is asynchronous", "use a plain function")
        if flags & inspect.CO_GENERATOR and not instructions.is_generator_expression(code):
            raise UnprovenError("is a generator", "return a list")
        steps = instructions.steps_of(code)
        stored = {step.value for step in steps if step.kind == STORE}
        starred = instructions.starred_parameters_of(code)
        values = self.frame.f_locals
        for name in (*instructions.parameters_of(code), *code.co_freevars):
            if name == ".0" or name not in values:  # the iterator of a comprehension is new
                continue
            value = values[name]
            if name in starred:  # a new tuple or dict, which the function may change
                value = tuple(value.values() if isinstance(value, dict) else value)
            plain = self.judge(value, f"its variable {name}", named=name in code.co_freevars)
            if name not in stored and name not in starred:
                self.known[name] = value
            elif not plain:
                raise UnprovenError(
                    f"binds its parameter {name} anew", "use another name for the new value"
                )
        self.follow(steps, instructions.lists_made_in(code))

    def follow(self, steps, lists):
        """Read the steps. `owner`: the object whose attribute must be read in the next step."""
        owner, must_read, title, simple = _MISSING, False, "", False
        before = None
        for step in steps:
            self.line = step.line
            kind, value = step.kind, step.value
            if owner is not _MISSING and kind == ATTRIBUTE and not step.is_target:
                title = f"{title}.{value}"
                found = self.attribute(owner, value, title)
            elif must_read:
                raise UnprovenError(
                    f"uses {title} as a value",
                    f"use its attributes ({title}.x), each where it is needed",
                )
            elif kind == GLOBAL:
                title, found = value, self.global_value(value)
            elif kind == LOAD and value in self.known:
                title, found = value, self.known[value]
            elif kind == REFUSED:
                raise UnprovenError(*value)
            else:
                if kind == ATTRIBUTE:
                    self.check_attribute(value, before, step, lists)
                elif kind == IDENTITY:
                    self.check_identity(before, step)
                elif kind == COMPARISON and not (simple and not step.is_target):
                    self.proof.comparing = _place(self.code, step.line)
                elif kind == ASSIGNING:
                    self.proof.assigning = _place(self.code, step.line)
                simple = (kind == CONSTANT and not isinstance(value, (tuple, frozenset))) or (
                    kind == ATTRIBUTE and value in ("dtype", "ndim", "rank", "shape")
                )
                before, owner, must_read = step, _MISSING, False
                continue
            before, owner, must_read, simple = step, _MISSING, False, False
            if found is _MISSING:  # plain, but unknown
                continue
            must_read = not self.judge(found, title, named=kind != LOAD)
            if must_read or _is_layer(found):
                owner = found
            simple = _is_simple(found)
        if must_read:
            raise UnprovenError(f"uses {title} as a value", "use its attributes")

    def global_value(self, name):
        names = self.frame.f_globals
        if name in names:
            return names[name]
        return vars(builtins).get(name, _MISSING)  # if it is missing, the code raises NameError

    def check_attribute(self, name, before, step, lists):
        if name in _ATTRIBUTES:
            return
        if (
            name in _OF_LISTS
            and before is not None
            and before.kind == LOAD
            and before.value in lists
            and not step.is_target
        ):
            return
        remedy = "use a function of TensorFlow or Keras"
        if name in _OF_LISTS or name in ("add", "clear", "remove", "sort", "update"):
            remedy = "append only to a list that the function makes itself by []"
        elif name in ("numpy", "item", "tolist"):
            remedy = "compute with functions of TensorFlow"
        elif name.startswith("assign"):
            remedy = "assign in a layer that is declared with fastops.keras.replayable"
        for other in instructions.steps_of(self.code):
            if other.kind == REFUSED and other.line == step.line:  # as in layer.count += 1
                raise UnprovenError(*other.value)
        raise UnprovenError(f"uses the attribute {name} of a value", remedy)

    def check_identity(self, before, step):
        if (
            step.is_target
            or before is None
            or before.kind != CONSTANT
            or not (before.value is None or before.value is Ellipsis or type(before.value) is bool)
        ):
            raise UnprovenError("compares with `is`", "compare with ==, or with None")

    def attribute(self, owner, name, title):
        """Return the value of an attribute of an owner; `_MISSING` if it is plain but unknown."""
        kind = owner if isinstance(owner, type) else type(owner)
        if isinstance(owner, types.ModuleType):
            if (
                name not in vars(owner)
                or kind.__getattribute__ is not types.ModuleType.__getattribute__
                or (kind is not types.ModuleType and hasattr(kind, name))
            ):
                raise UnprovenError(f"uses {title}, which is made when it is read", "import it")
            return vars(owner)[name]
        if hasattr(kind, "__getattr__") or kind.__getattribute__ not in _LOOKUPS:
            raise UnprovenError(f"uses {title}, which Python code looks up", "use a global")
        found = base = _MISSING
        for base in kind.__mro__:
            if name in vars(base):
                found = upstream_or_self(vars(base)[name])
                break
        own = base is not _MISSING and is_own(base.__module__)
        if isinstance(found, property):
            if owner is kind:
                raise UnprovenError(f"uses the property {title} of a class", "use an instance")
            if own and not (is_of_keras(base.__module__) and name in _OF_LAYERS):
                raise UnprovenError(f"reads the property {title}", "use another attribute")
            return _MISSING  # code of a user is shown to be pure when it runs
        if type(found) is _FIELD:
            return found.__get__(owner, kind) if owner is not kind else _MISSING
        if hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"):
            raise UnprovenError(f"uses {title}, which is a descriptor", "use an attribute")
        if owner is not kind:
            held = _dict_of(owner)
            if name in held:
                return held[name]
        if found is _MISSING:
            raise UnprovenError(f"uses {title}, which does not exist", "set it before")
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
        elif type(found) is types.FunctionType and own:
            if not (is_of_keras(base.__module__) and name == "call"):
                raise UnprovenError(f"calls {title}", "use a function of TensorFlow or Keras")
            return _MISSING
        elif hasattr(type(found), "__get__") and type(found) is not types.FunctionType:
            raise UnprovenError(f"uses {title}, which is a descriptor", "use an attribute")
        return found

    # -----------------------------------------------------------------------------------------
    # Values
    # -----------------------------------------------------------------------------------------

    def judge(self, value, title, named=True, depth=_DEPTH):
        """Tell whether a value is plain. Code may only read attributes of a value that is not.

        Raises
        ------
        UnprovenError
            If code may not use the value at all.
        """
        kind = type(value)
        if kind in _VALUES or _is_immutable(value):
            if named and isinstance(value, (float, complex, np.inexact)):
                self.proof.identified |= bool(value != value)
            return True
        if (
            (isinstance(value, _TENSORS) and is_own(kind.__module__))
            or kind in COMPOSITES
            or _is_variable_of_keras(kind)
        ):
            self.proof.identified |= named
            return True
        if kind is np.ndarray:
            self.proof.mutable = True
            return not value.dtype.hasobject or self.refuse(value, title)
        if kind in _SEQUENCES or kind is dict or _is_tracked(kind):
            self.judge_container(value, title, named, depth)
            return True
        if isinstance(value, (types.ModuleType, type)) and value not in _CLASSES:
            return self.judge_class(value, title)
        if kind is types.BuiltinFunctionType and value is vars(builtins).get(value.__name__):
            return self.judge_builtin(value, title)
        if callable(value):
            return self.judge_callable(value, title, named, depth)
        return self.judge_object(value, title)

    def judge_container(self, value, title, named, depth):
        self.proof.mutable |= type(value) not in (tuple, frozenset)
        if depth == 0:
            raise UnprovenError(f"uses {title}, which is nested too deeply", "use less nesting")
        items = value
        if isinstance(value, dict):
            items = list(value.values())
            for name in value:
                if type(name) not in _VALUES:
                    raise UnprovenError(f"uses {title}, whose keys are objects", "use strings")
        for item in items:
            if not self.judge(item, f"an item of {title}", named, depth - 1):
                self.refuse(item, f"an item of {title}")

    def judge_class(self, value, title):
        """Judge a module or a class."""
        if isinstance(value, types.ModuleType):
            return False
        if value is vars(builtins).get(value.__name__):
            return self.judge_builtin(value, title)
        if value is functools.partial or (
            issubclass(value, np.generic) and value.__module__ == "numpy"
        ):
            return True
        if type(value) is type and not is_own(value.__module__):
            return False
        return self.refuse(value, title)

    def judge_builtin(self, value, title):
        name = value.__name__
        if isinstance(value, type) and issubclass(value, BaseException):
            return True
        if name in _COMPARING:
            self.proof.comparing = _place(self.code, self.line)
        return name in _BUILTINS or self.refuse(value, title)

    def judge_callable(self, value, title, named, depth):
        value = upstream(value)
        kind = type(value)
        if kind is types.FunctionType:
            if not _ATTRIBUTES.isdisjoint(vars(value)):
                self.refuse(value, title)
            if not is_own(str(value.__globals__.get("__name__"))):
                return True  # its code is shown to be pure when it runs
            if not self.is_known(value):
                self.refuse(value, title)
            self.proof.functions[id(value)] = value
            return True
        if kind is types.MethodType:
            function = value.__func__
            if (
                type(function) is types.FunctionType
                and _ATTRIBUTES.isdisjoint(vars(function))
                and not is_own(str(function.__globals__.get("__name__")))
            ):
                return True
            return self.refuse(value, title)
        if kind is functools.partial:
            if vars(value):
                self.refuse(value, title)
            for part in (value.func, value.args, value.keywords):
                if not self.judge(part, f"a part of {title}", named, depth - 1):
                    self.refuse(part, f"a part of {title}")
            return True
        if kind is types.BuiltinFunctionType:
            known = getattr(math, value.__name__, None) is value
            return known or self.refuse(value, title)
        if kind is np.ufunc:
            if getattr(np, value.__name__, None) is not value:
                self.refuse(value, title)
            self.proof.assigning = _place(self.code, self.line)  # it may have `out`
            return True
        if value in _CLASSES if isinstance(value, type) else _is_layer(value):
            return True
        return self.judge_object(value, title)

    def is_known(self, function):
        module = sys.modules.get(str(function.__module__))
        there = vars(module).get(function.__name__) if module is not None else None
        return computes(function) and upstream(there) is function

    def judge_object(self, value, title):
        """Judge an object. Code may only read its attributes."""
        kind = type(value)
        if kind is types.SimpleNamespace:
            return False
        if type(kind) is not type or is_own(kind.__module__) or kind.__module__ == "builtins":
            return self.refuse(value, title)
        if kind.__flags__ & _HEAP_TYPE == 0:  # written in C
            return self.refuse(value, title)
        return False

    def refuse(self, value, title):
        """Raise `UnprovenError` for a value that code may not use."""
        module = str(getattr(value, "__module__", None) or "")
        package = module.partition(".")[0]
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        if name is None:
            kind = type(value)
            raise UnprovenError(
                f"uses {title}, an object of the class {kind.__module__}.{kind.__qualname__}",
                "use numbers, tensors, variables, and lists of these",
            )
        if package == "builtins" or module == "":
            raise UnprovenError(f"uses {name}", "do this outside of the function")
        if package in _CHANGING or module.startswith("numpy.random") or "random" in module:
            raise UnprovenError(
                f"uses {title}, whose result changes from call to call", "pass it as an argument"
            )
        raise UnprovenError(
            f"uses {title} ({module}.{name}), which may do more than compute",
            "use a function of TensorFlow or Keras",
        )


class _Glance(_ProofReader):
    """Reads code whose arguments are not known."""

    def check_attribute(self, name, before, step, lists):
        return


_HEAP_TYPE = 1 << 9


def upstream_or_self(value):
    """Return the original of a stand-in in a class; any other value itself."""
    return value if isinstance(value, (property, staticmethod, classmethod)) else upstream(value)


def _dict_of(value):
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


def _is_variable_of_keras(kind):
    return is_of_keras(kind.__module__) and any(
        base.__module__ == "keras.src.backend.common.variables" for base in kind.__mro__
    )


def _is_tracked(kind):
    """Tell whether a class is a container that Keras or TensorFlow makes of an attribute."""
    return issubclass(kind, (list, dict)) and kind.__module__ in (
        "keras.src.utils.tracking",
        "tensorflow.python.trackable.data_structures",
    )


def _is_layer(value):
    """Tell whether a value is a layer, loss or metric, whose call is Keras's code."""
    kind = type(value)
    if _CALLED.isdisjoint(f"{base.__module__}.{base.__name__}" for base in kind.__mro__):
        return False
    held = _dict_of(value)
    return all(type(held[name]) in _VALUES for name in _ATTRIBUTES & held.keys()) and all(
        base is object or is_own(base.__module__) or _ATTRIBUTES.isdisjoint(vars(base))
        for base in kind.__mro__
    )


_CALLED = frozenset(
    {
        *("keras.src.layers.layer.Layer", "keras.src.losses.loss.Loss"),
        "keras.src.metrics.metric.Metric",
    }
)
"""Classes of Keras that define how objects are called."""


def _is_immutable(value):
    return isinstance(value, _IMMUTABLE) and not isinstance(value, np.void)


def _is_simple(value):
    """Tell whether a value has no elements that a comparison could compare by identity."""
    return type(value) in _VALUES or isinstance(value, (*_TENSORS, *_IMMUTABLE, np.ndarray))
