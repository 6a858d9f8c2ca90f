"""Find everything that an object holds, and make reversible changes of each part.

The walk does not know what fastops compares. It follows all references that Python lets a program
reach.
"""

import functools
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

MOST = 20_000
"""The maximum number of parts of one object."""


@dataclass(frozen=True)
class Change:
    """A change of one part of an object.

    Attributes
    ----------
    path : str
        Where the part is, and how it is changed.
    apply : callable
        Makes the change, and returns a callable that undoes it.
    """

    path: str
    apply: Callable


def changes(root, title, modules=()):
    """Return every change of what an object holds, in a deterministic order.

    Parameters
    ----------
    root : object
        The object.
    title : str
        The name of the object in paths.
    modules : sequence of module
        Modules whose attributes may be changed.
    """
    result, seen = [], set()
    queue = deque([(root, title)])
    queue.extend((module, module.__name__) for module in modules)
    while queue and len(seen) < MOST:
        value, path = queue.popleft()
        if id(value) in seen or _is_leaf(value):
            continue
        seen.add(id(value))
        for change, inner in _of(value, path, modules):
            if change is not None:
                result.append(change)
            queue.extend(inner)
    return result


def _is_leaf(value):
    return isinstance(
        value,
        bool
        | int
        | float
        | complex
        | str
        | bytes
        | type(None)
        | tf.DType
        | tf.TensorShape
        | tf.Tensor
        | np.dtype
        | types.CodeType,
    )


def _of(value, path, modules):
    """Yield changes of an object itself, and the parts to visit next."""
    if isinstance(value, tf.Variable | keras.Variable):
        yield Change(f"{path}.assign", functools.partial(_assign, value)), []
    elif isinstance(value, types.ModuleType):
        if value in modules:
            for name in sorted(vars(value)):
                if not name.startswith("__") and not isinstance(vars(value)[name], type):
                    yield from _items(vars(value), name, f"{path}.{name}")
    elif isinstance(value, types.MethodType):
        yield None, [(value.__self__, f"{path}.__self__"), (value.__func__, f"{path}.__func__")]
    elif isinstance(value, functools.partial):
        yield None, [(value.func, f"{path}.func"), (value.args, f"{path}.args")]
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value, path)
    elif isinstance(value, type):
        yield from _of_class(value, path, modules)
    elif isinstance(value, np.ndarray):
        if value.flags.writeable and value.size and value.dtype.kind in "biuf":
            yield Change(f"{path}[...] written", functools.partial(_write, value)), []
    elif isinstance(value, types.MappingProxyType | tuple | frozenset | weakref.ref):
        inner = [value()] if isinstance(value, weakref.ref) else value
        inner = list(inner.values()) if isinstance(inner, types.MappingProxyType) else inner
        yield None, [(part, f"{path}[{i}]") for i, part in enumerate(inner)]
    elif not type(value).__module__.startswith(("tensorflow", "builtins", "threading", "_")) or (
        isinstance(value, dict | list | set)
    ):
        yield from _of_instance(value, path, modules)


def _of_instance(value, path, modules):
    if isinstance(value, dict):
        for name in list(value):
            yield from _items(value, name, f"{path}[{name!r}]")
        if len(value) > 1:
            yield Change(f"{path} in another order", functools.partial(_reorder, value)), []
    elif isinstance(value, list):
        for i in range(len(value)):
            yield from _items(value, i, f"{path}[{i}]")
        if value:
            yield Change(f"{path}.pop()", functools.partial(_replace_all, value, value[:-1])), []
            yield Change(f"{path} + 1", functools.partial(_replace_all, value, [*value, 1])), []
    elif isinstance(value, set):
        yield Change(f"{path}.add", functools.partial(_add, value)), []
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is dict:
        for name in list(attributes):
            yield from _items(attributes, name, f"{path}.{name}", deleted=False)
    if not type(value).__module__.startswith(("keras", "tensorflow", "builtins", "collections")):
        yield None, [(type(value), f"type({path})")]


def _of_function(function, path):
    for i, cell in enumerate(function.__closure__ or ()):
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        title = f"{path}.{function.__code__.co_freevars[i]}"
        for new in _others(content):
            yield Change(f"{title} = {_shown(new)}", functools.partial(_fill, cell, new)), []
        yield None, [(content, title)]
    for i, default in enumerate(function.__defaults__ or ()):
        for new in _others(default):
            title = f"{path}.__defaults__[{i}] = {_shown(new)}"
            yield Change(title, functools.partial(_default, function, i, new)), []
        yield None, [(default, f"{path}.__defaults__[{i}]")]
    for name in list(function.__dict__):
        yield from _items(function.__dict__, name, f"{path}.{name}")


def _of_class(kind, path, modules):
    if kind.__module__ not in {module.__name__ for module in modules}:
        return
    for base in kind.__mro__:
        if base.__module__ != kind.__module__:
            continue
        for name, value in list(vars(base).items()):
            if name.startswith("__"):
                continue
            for new in _others(value):
                title = f"{path}.{name} = {_shown(new)}"
                yield Change(title, functools.partial(_set, base, name, new)), []
            inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
            yield None, [(inner, f"{path}.{name}")]


def _items(holder, name, path, deleted=True):
    """Yield changes of one item of a dict or list."""
    value = holder[name]
    for new in _others(value):
        yield Change(f"{path} = {_shown(new)}", functools.partial(_put, holder, name, new)), []
    if deleted and isinstance(holder, dict):
        yield Change(f"del {path}", functools.partial(_delete, holder, name)), []
    yield None, [(value, path)]


def _others(value):
    """Return other values by which a program may replace a value."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 0] if value else [1]
    if isinstance(value, float):
        return [value * 2 + 1.0]
    if isinstance(value, str):
        return [value + "x"]
    if value is None:
        return [1.5]
    if isinstance(value, tf.Tensor) and value.dtype.is_floating:
        return [value + 1]
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return [value + 1]
    if isinstance(value, tuple) and value and all(isinstance(item, int) for item in value):
        return [(value[0] + 1, *value[1:])]
    if isinstance(value, types.FunctionType):
        return [_doubled(value)]
    return []


def _doubled(function):
    def other(*args, **kwargs):
        result = function(*args, **kwargs)
        return result * 2 if isinstance(result, tf.Tensor) and result.dtype.is_floating else result

    return other


def _shown(value):
    return "another function" if callable(value) else repr(value)[:40]


def _assign(variable):
    before = variable.numpy()
    if before.dtype.kind == "b":
        new = ~before
    elif before.dtype.kind in "iufV":
        new = before + before.dtype.type(1)
    else:
        return lambda: None
    variable.assign(new)
    return lambda: variable.assign(before)


def _write(array):
    before = array.copy()
    array.flat[0] = not before.flat[0] if array.dtype.kind == "b" else before.flat[0] + 1
    return lambda: array.__setitem__(..., before)


def _put(holder, name, new):
    before = holder[name]
    holder[name] = new
    return lambda: holder.__setitem__(name, before)


def _delete(holder, name):
    before = list(holder.items())
    del holder[name]
    return lambda: _refill(holder, before)


def _reorder(held):
    before = list(held.items())
    if isinstance(held, OrderedDict):
        held.move_to_end(before[0][0])
    else:
        _refill(held, [*before[1:], before[0]])
    return lambda: _refill(held, before)


def _refill(held, items):
    for name in list(held):
        del held[name]
    for name, value in items:
        held[name] = value


def _replace_all(held, elements):
    before = list(held)
    list.__setitem__(held, slice(None), elements)
    return lambda: list.__setitem__(held, slice(None), before)


def _add(held):
    new = object()
    held.add(new)
    return lambda: held.discard(new)


def _fill(cell, new):
    before = cell.cell_contents
    cell.cell_contents = new
    return lambda: setattr(cell, "cell_contents", before)


def _default(function, i, new):
    before = function.__defaults__
    function.__defaults__ = (*before[:i], new, *before[i + 1 :])
    return lambda: setattr(function, "__defaults__", before)


def _set(holder, name, new):
    before = vars(holder)[name]
    setattr(holder, name, new)
    return lambda: setattr(holder, name, before)
