"""Tells which values are plain. From plain values, code that only computes makes plain values.

`proof` has the table of plain values, and says how they are used.
"""

import abc
import builtins
import dataclasses
import enum
import functools
import inspect
import math
import sys
import types
from collections import namedtuple

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.custom_gradient import Bind
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.trackable import data_structures

from fastops._core.reasons import RefusedError, advice
from fastops._specialize.guards.names import upstream
from fastops._specialize.libraries import computes, draws, is_of_keras, is_own
from fastops._specialize.policy import MAX_PLAIN_DEPTH
from fastops._specialize.signatures import COMPOSITES

_NUMBERS = (bool, int, float, complex)
VALUES = frozenset(
    {*_NUMBERS, str, bytes, range, slice, type(None), type(Ellipsis), type(NotImplemented)}
)
"""Classes whose instances never change and have no attributes of their own."""
_TENSORS = (EagerTensor, ResourceVariable, tf.IndexedSlices)
_IMMUTABLE = (tf.DType, tf.TensorShape, np.dtype, np.generic)
_SEQUENCES = (list, tuple, frozenset)  # no sets: their order may change while they stay equal
_WRAPPERS = (data_structures._DictWrapper, data_structures._TupleWrapper)

ATTRIBUTES = frozenset(
    {
        *("shape", "dtype", "ndim", "ndims", "rank", "base_dtype", "as_list", "get_shape"),
        *("is_floating", "is_integer", "is_complex", "is_bool", "num_elements"),
        *("get", "items", "keys", "values", "value", "read_value"),
        *("assign", "assign_add", "assign_sub"),
    }
)
"""Attributes that code may read of a value that is computed. They change nothing but variables, and
assignments to variables are ops, which recordings note."""

ATTRIBUTES_OF_CLASSES = frozenset(
    name
    for kind in (*_TENSORS, *COMPOSITES, *_NUMBERS, list, tuple, dict, str)
    for name in dir(kind)
)
"""Attributes that the class of a value decides: code may ask whether a computed value has them. An
instance may have others, which nothing compares if they are None or if it is a variable."""

_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "callable", "complex", "dict", "divmod", "enumerate"),
        *("filter", "float", "frozenset", "int", "isinstance", "issubclass", "len", "list", "map"),
        *("max", "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "sum"),
        *("tuple", "zip"),
    }
)
CLASSES = frozenset(
    {
        *(tf.Tensor, tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices, tf.TensorShape, tf.DType),
        tf.TensorSpec,
    }
)
"""Classes that code may name, to ask with `isinstance`."""

_OF_LAYERS = frozenset(
    {
        *("bias", "built", "compute_dtype", "dtype", "embeddings", "kernel", "layers", "name"),
        *("non_trainable_variables", "non_trainable_weights", "trainable", "trainable_variables"),
        *("trainable_weights", "variable_dtype", "variables", "weights"),
    }
)
"""Properties of Keras's layers and of modules that return plain values."""

_METHODS = frozenset(
    {
        *("__call__", "add_loss", "call", "compute_mask", "get_initial_state"),
        *("reset_state", "result", "update_state"),
    }
)
"""Methods of Keras's objects that only compute, assign to variables, and add losses."""

OF_GENERATORS = frozenset(
    {"make_seeds", "normal", "truncated_normal", "uniform", "uniform_full_int"}
)
"""Methods of `tf.random.Generator` whose only effect is on the variable with the state."""

_FIELD = type(vars(namedtuple("_", "field"))["field"])
"""The class of the field descriptors of named tuples."""

_LOOKUPS = frozenset(
    kind.__getattribute__ for kind in (object, float, int, str, tuple, types.SimpleNamespace)
)
"""How Python itself looks up the attributes of objects."""

_CHANGING = frozenset({"time", "datetime", "os", "random", "secrets", "uuid", "socket"})
MISSING = object()
"""Stands for a value that is plain, but not known."""


class UnprovenError(RefusedError):
    """Code is not shown to be pure. The text ends with the hint of the reason."""

    def __str__(self):
        return advice(self.name, self.detail)


def place(code, line):
    """Return the place of a line of code, as text."""
    return f"{code.co_filename}:{line}: {code.co_name}"


class Judge:
    """Judges the values that the code of one call uses.

    Parameters
    ----------
    proof : Proof
        The proof that the code is a part of.
    code : types.CodeType
        The code.

    Attributes
    ----------
    line : int
        The line that is being read.
    drawing : tuple or None
        The line where the code names a function that draws random numbers, and how it writes the
        function.
    has_seeds : bool
        Whether the code names a generator of seeds.
    """

    def __init__(self, proof, code):
        self.proof, self.code, self.line = proof, code, code.co_firstlineno
        self.drawing, self.has_seeds = None, False

    @property
    def here(self):
        """The line that is being read, as text."""
        return place(self.code, self.line)

    # -----------------------------------------------------------------------------------------
    # Attributes
    # -----------------------------------------------------------------------------------------

    def attribute(self, owner, name, title):
        """Return the value of an attribute of an owner; `MISSING` if it is plain but unknown."""
        kind = owner if isinstance(owner, type) else type(owner)
        if isinstance(owner, types.ModuleType):
            if (
                name not in vars(owner)
                or kind.__getattribute__ is not types.ModuleType.__getattribute__
                or (kind is not types.ModuleType and hasattr(kind, name))
            ):
                raise UnprovenError("attribute_made", title)
            return vars(owner)[name]
        if isinstance(owner, enum.EnumMeta) and name in owner._member_map_:
            return owner._member_map_[name]
        if _has(kind, "__getattr__") or kind.__getattribute__ not in _LOOKUPS:
            raise UnprovenError("attribute_looked_up", title)
        found = base = MISSING
        for base in kind.__mro__:
            if name in vars(base):
                found = upstream_or_self(vars(base)[name])
                break
        own = base is not MISSING and is_own(base.__module__)
        if isinstance(owner, enum.Enum) and own and name in ("name", "value"):
            return owner._name_ if name == "name" else owner._value_
        if isinstance(found, property):
            if owner is kind:
                raise UnprovenError("property_of_class", title)
            if own and not (name in _OF_LAYERS and _has_layers(base)):
                raise UnprovenError("property_of_library", title)
            return MISSING  # code of a user is shown to be pure when it runs
        if type(found) is _FIELD:
            return found.__get__(owner, kind) if owner is not kind else MISSING
        if hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"):
            raise UnprovenError("attribute_descriptor", title)
        if owner is not kind:
            held = _dict_of(owner)
            if name in held:
                return held[name]
        if found is MISSING:
            raise UnprovenError("attribute_missing", title)
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
        elif type(found) is types.FunctionType and own:
            return self.method_of_library(base, name, title)
        elif hasattr(type(found), "__get__") and type(found) is not types.FunctionType:
            raise UnprovenError("attribute_descriptor", title)
        return found

    def method_of_library(self, kind, name, title):
        """Judge a method that a class of a library defines."""
        if kind is tf.random.Generator:
            known = OF_GENERATORS
        else:
            known = _METHODS if is_of_keras(kind.__module__) else ()
        if name not in known:
            raise UnprovenError("method_of_library", title)
        return MISSING

    def attribute_of_super(self, kind, instance, name):
        """Return an attribute of `super(kind, instance)`; `MISSING` if it is plain but unknown."""
        kinds, title = type(instance).__mro__, f"super().{name}"
        if kind not in kinds:
            raise UnprovenError("super_other_class", title)
        for base in kinds[kinds.index(kind) + 1 :]:
            if name not in vars(base):
                continue
            found, own = upstream_or_self(vars(base)[name]), is_own(base.__module__)
            if type(found) in (staticmethod, classmethod) and not own:
                return found.__func__
            if type(found) is types.FunctionType:
                return self.method_of_library(base, name, title) if own else found
            if type(found) is property and not own:
                return MISSING  # its code is shown to be pure when it runs
            break
        raise UnprovenError("super_no_method", title)

    # -----------------------------------------------------------------------------------------
    # Values
    # -----------------------------------------------------------------------------------------

    def judge(self, value, title, named=True, depth=MAX_PLAIN_DEPTH):
        """Tell whether a value is plain. Code may only read attributes of a value that is not.

        Raises
        ------
        UnprovenError
            If code may not use the value at all.
        """
        kind = type(value)
        if kind in VALUES or _is_immutable(value):
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
            return not value.dtype.hasobject or self.refuse(value, title)
        if kind in _WRAPPERS:
            value, kind = value.__wrapped__, type(value.__wrapped__)
        if kind in _SEQUENCES or kind is dict or _is_tracked(kind):
            self.judge_container(value, title, named, depth)
            return True
        if isinstance(value, enum.Enum) and type(kind) is enum.EnumMeta:
            plain = self.judge(value._value_, f"{title}.value", named, depth - 1)
            return (plain and _has_no_attributes(value)) or self.refuse(value, title)
        if _is_generator_of_keras(kind):
            self.has_seeds = True
            return True
        if kind is tf.random.Generator:
            return False
        if isinstance(value, (types.ModuleType, type)) and value not in CLASSES:
            return self.judge_class(value, title)
        if kind is types.BuiltinFunctionType and value is vars(builtins).get(value.__name__):
            return self.judge_builtin(value, title)
        if callable(value):
            return self.judge_callable(value, title, named, depth)
        return self.judge_object(value, title)

    def judge_container(self, value, title, named, depth):
        if depth == 0:
            raise UnprovenError("nested_deeply", title)
        items = value
        if isinstance(value, dict):
            items = list(value.values())
            for name in value:
                if type(name) not in VALUES:
                    raise UnprovenError("keys_are_objects", title)
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
            issubclass(value, np.generic)
            and value.__module__ == "numpy"
            and value is not np.datetime64  # it takes "now" for the time
        ):
            return True
        if is_record(value):
            return True
        if type(value) is enum.EnumMeta:
            return False
        if type(value) in METACLASSES and not is_own(value.__module__):
            return False
        return self.refuse(value, title)

    def judge_builtin(self, value, title):
        name = value.__name__
        if isinstance(value, type) and issubclass(value, BaseException):
            return True
        return name in _BUILTINS or self.refuse(value, title)

    def judge_callable(self, value, title, named, depth):
        value = upstream(value)
        kind = type(value)
        if kind is types.FunctionType:
            if not ATTRIBUTES.isdisjoint(vars(value)):
                self.refuse(value, title)
            if not is_own(str(value.__globals__.get("__name__"))):
                return True  # its code is shown to be pure when it runs
            if not self.is_known(value):
                self.refuse(value, title)
            self.proof.functions[id(value)] = value
            if draws(value):
                self.drawing = self.line, title
            return True
        if kind is types.MethodType:
            function = value.__func__
            if (
                type(function) is types.FunctionType
                and ATTRIBUTES.isdisjoint(vars(function))
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
            self.proof.assigning = self.here  # it may have `out`
            return True
        if kind is Bind and is_custom_gradient(value):
            return self.judge(value._f, title, named, depth - 1)
        if value in CLASSES if isinstance(value, type) else is_called(value):
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
        own = is_own(kind.__module__) or kind.__module__ == "builtins"
        if type(kind) not in METACLASSES or own:
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
                "object_of_class", f"{title} ({kind.__module__}.{kind.__qualname__})"
            )
        if package == "builtins" or module == "":
            raise UnprovenError("uses_builtin", name)
        if package in _CHANGING or module.startswith("numpy.random") or "random" in module:
            raise UnprovenError("uses_changing", title)
        raise UnprovenError("uses_library", f"{title} ({module}.{name})")


_HEAP_TYPE = 1 << 9
METACLASSES = (type, abc.ABCMeta)
"""The metaclasses of classes whose attributes code may read: no other code runs then."""


def upstream_or_self(value):
    """Return the original of a stand-in in a class; any other value itself."""
    return value if isinstance(value, (property, staticmethod, classmethod)) else upstream(value)


def is_record(kind):
    """Tell whether a class is a named tuple or a dataclass, and a call of it only fills the fields.

    Code of users that the call runs, such as `__post_init__`, is shown to be pure when it runs.
    """
    if type(kind) not in METACLASSES or is_own(kind.__module__):
        return False
    if issubclass(kind, tuple):
        new = kind.__new__
        return (
            kind.__init__ is object.__init__
            and type(new) is types.FunctionType
            and new.__code__.co_name == "<lambda>"
            and str(new.__globals__.get("__name__")).startswith("namedtuple_")
        )
    return (
        is_dataclass(kind)
        and _fills_fields(kind.__init__)
        and all(_makes_anew(field.default_factory) for field in dataclasses.fields(kind))
    )


def _makes_anew(factory):
    """Tell whether the factory of a field is Python code, or only makes a container or number."""
    return (
        factory is dataclasses.MISSING
        or type(factory) is types.FunctionType
        or any(factory is kind for kind in (*_NUMBERS, *_SEQUENCES, str, bytes, dict, set))
    )


def is_dataclass(kind):
    """Tell whether a class is a dataclass whose instances keep all that they are in their dicts."""
    return (
        dataclasses.is_dataclass(kind)
        and not is_own(kind.__module__)
        and kind.__new__ is object.__new__
        and (kind.__basicsize__, kind.__dictoffset__) == _SIZES_OF_PLAIN
        and not _has(kind, "__del__")
    )


class _Plain:
    pass


_SIZES_OF_PLAIN = _Plain.__basicsize__, _Plain.__dictoffset__


def _fills_fields(function):
    """Tell whether the code of a method `__init__` is what `dataclasses` has made.

    Code of users has the same file name if it is given as text, as in ``python -c``.
    """
    code = getattr(function, "__code__", None)
    if code is None or (code.co_filename, code.co_name) != ("<string>", "__init__"):
        return False
    if sys.version_info >= (3, 11):
        return code.co_qualname == "__create_fn__.<locals>.__init__"
    # Before 3.11 code has no qualified name. The text has a function around this one.
    return bool(code.co_flags & inspect.CO_NESTED) and code.co_firstlineno == 2


def is_custom_gradient(bound):
    """Tell whether `tf.custom_gradient` has made an object of a function."""
    decorator = bound._d
    return (
        type(decorator) is types.FunctionType
        and decorator.__globals__ is tf.custom_gradient.__globals__
        and decorator.__qualname__ == "custom_gradient.<locals>.decorated"
        and ATTRIBUTES.isdisjoint(vars(bound))
    )


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


def _has(kind, name):
    """Tell whether instances of a class find a name in it."""
    return any(name in vars(base) for base in kind.__mro__)


def _has_layers(kind):
    """Tell whether a class is of Keras, or is the base class of modules."""
    return is_of_keras(kind.__module__) or kind is tf.Module


def _is_generator_of_keras(kind):
    """Tell whether a class is that of Keras's generators of seeds. Its state is in a variable."""
    return kind.__name__ == "SeedGenerator" and (
        kind.__module__ == "keras.src.random.seed_generator"
    )


def is_called(value):
    """Tell whether code may call a value, since the code of the call is known or will be proven.

    The call of a layer, loss or metric is Keras's code. A method `__call__` of a user is shown to
    be pure when it runs.
    """
    kind = type(value)
    if isinstance(value, (*_SEQUENCES, set, dict)):
        return False  # its items may be anything
    return (
        _has_call_of_users(kind)
        or not _CALLED.isdisjoint(f"{base.__module__}.{base.__name__}" for base in kind.__mro__)
    ) and _has_no_attributes(value)


def _has_call_of_users(kind):
    if type(kind) not in METACLASSES:
        return False
    for base in kind.__mro__:
        if "__call__" in vars(base):
            found = upstream(vars(base)["__call__"])
            return type(found) is types.FunctionType and not is_own(base.__module__)
    return False


def _has_no_attributes(value):
    """Tell whether no attribute of `ATTRIBUTES` runs code of a user or is more than a constant.

    Code may read these attributes of a computed value, which may be this one.
    """
    kind, held = type(value), _dict_of(value)
    return all(type(held[name]) in VALUES for name in ATTRIBUTES & held.keys()) and all(
        base is object
        or base in _NUMBERS  # they have `is_integer`
        or is_own(base.__module__)
        or ATTRIBUTES.isdisjoint(vars(base))
        for base in kind.__mro__
    )


_CALLED = frozenset(
    {
        *("keras.src.layers.layer.Layer", "keras.src.losses.loss.Loss"),
        *("keras.src.metrics.metric.Metric", "tf_keras.src.engine.base_layer.Layer"),
        "tf_keras.src.losses.Loss",
    }
)
"""Classes of Keras and tf_keras that define how objects are called."""


def _is_immutable(value):
    return isinstance(value, _IMMUTABLE) and not isinstance(value, np.void)


def is_member(value):
    """Tell whether a value is a member of an enumeration."""
    return isinstance(value, enum.Enum) and type(type(value)) is enum.EnumMeta


def has_own_identity(value):
    """Tell whether a value is a function or class: no argument of a recorded call can be one."""
    return isinstance(value, (types.FunctionType, type))


def is_kind(value, kinds):
    """Return whether a value is an instance of a class; `MISSING` if this is not known."""
    if value is MISSING or not isinstance(kinds, type) or type(kinds) not in METACLASSES[:1]:
        return MISSING
    if issubclass(type(value), kinds):
        return True
    # An object may report another class by `__class__`.
    tells = any("__class__" in vars(base) for base in type(value).__mro__ if base is not object)
    return MISSING if tells else False


def has_attribute(owner, name):
    """Return whether an object of a user has an attribute; `MISSING` if this is not known."""
    kind = type(owner)
    if (
        owner is MISSING
        or type(name) is not str
        or isinstance(owner, (type, types.ModuleType))
        or kind.__getattribute__ is not object.__getattribute__
        or _has(kind, "__getattr__")
    ):
        return MISSING
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), MISSING)
    if hasattr(type(found), "__get__") and type(found) is not types.FunctionType:
        return MISSING  # what a property does is not known
    return found is not MISSING or name in _dict_of(owner)


def item_of(container, key):
    """Return the item of a container for a key; `MISSING` if it is not known."""
    kind = type(container)
    if type(key) not in (int, str) or not (
        kind in (list, tuple, dict) or (_is_tracked(kind) and is_of_keras(kind.__module__))
    ):
        return MISSING
    try:
        return container[key]
    except (LookupError, TypeError):  # the code raises it, too
        return MISSING


def truth_of(value):
    """Return whether a value is true; None if this is not known."""
    kind = type(value)
    if kind in VALUES or kind in (list, tuple, dict):
        return bool(value)
    if value is MISSING or _has(kind, "__bool__") or _has(kind, "__len__"):
        return None
    return True


def is_simple(value):
    """Tell whether a value has no elements that a comparison could compare by identity."""
    if type(value) in VALUES or is_member(value):
        return True
    return isinstance(value, (*_TENSORS, *_IMMUTABLE, np.ndarray))
