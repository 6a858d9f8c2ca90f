"""Loops of TensorFlow over the elements of eager tensors: `tf.scan`, folds and `tf.map_fn`.

In eager mode, TensorFlow keeps the elements in arrays of Python, counts by ops, and compares
structures in each step. Here the same function of the user is called with the same tensors, and the
ops on elements are the same. What the function returns is taken if it is as plain as the elements.
Otherwise TensorFlow goes on: it gets the results of the calls that were made, and makes the others.

`tf.map_fn` converts the function by AutoGraph, also in eager mode. That makes no difference to a
function without branches and loops that calls only functions of TensorFlow, except for the text of
errors. If such a function is also shown to be pure, it is called as it is. If it raises,
TensorFlow makes the whole call again.
"""

import builtins
import dis
import types
from functools import partial

import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.framework import ops
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import array_ops_stack

from fastops._core.reasons import RefusedError
from fastops._install.bodies import MISSED, OTHER, Bodies, Body, OtherError
from fastops._install.lookups import of_codes
from fastops._specialize.guards.discovery import guards_of
from fastops._specialize.guards.names import upstream
from fastops._specialize.guards.places import Places, globals_in
from fastops._specialize.guards.watch import Watch
from fastops._specialize.learned import CallCounts, Learned
from fastops._specialize.recording import proof

_OPAQUE = frozenset({tf.resource, tf.variant})
_NUMBERS = frozenset({bool, int, float, np.ndarray})

_native = Learned("plain elements")
_native.learn(True)
_counts = {name: CallCounts(f"tf.{name}") for name in ("foldl", "foldr", "scan")}


class _Rows:
    """The elements of one structure: a tensor, or a list or tuple of tensors.

    Parameters
    ----------
    value : EagerTensor, list or tuple
        The structure.

    Raises
    ------
    OtherError
        If it is another structure.
    """

    def __init__(self, value):
        self.kind = type(value)
        self.flat = _flat(value, self.kind)
        self.size = self.flat[0].shape[0] if self.flat and self.flat[0].shape.rank else 0
        if self.size == 0 or any(
            tensor.shape.rank == 0 or tensor.shape[0] != self.size or tensor.dtype in _OPAQUE
            for tensor in self.flat
        ):
            raise OtherError

    def unstack(self):
        """Return the elements, each in the structure of the tensors."""
        columns = [array_ops_stack.unstack(tensor) for tensor in self.flat]
        if self.kind is EagerTensor:
            return columns[0]
        return [self.kind(row) for row in zip(*columns, strict=True)]


def _flat(value, kind):
    """Return the tensors of a structure of this class."""
    if kind is EagerTensor:
        flat = [value]
    elif kind is list or kind is tuple:
        flat = value
    else:
        raise OtherError
    if type(value) is not kind or any(type(tensor) is not EagerTensor for tensor in flat):
        raise OtherError
    return flat


def _packed(flat, kind):
    return flat[0] if kind is EagerTensor else kind(flat)


def _copied(value):
    return value if type(value) is EagerTensor else type(value)(value)


def _initial(value):
    """Return an initial value with tensors in the places of numbers."""
    kind = type(value)
    if kind in _NUMBERS:
        return tf.convert_to_tensor(value)
    if kind is list or kind is tuple:
        return kind([tf.convert_to_tensor(x) if type(x) in _NUMBERS else x for x in value])
    return value


def _continued(fn, made):
    """Return a function that first returns the results of the calls that were made."""

    def called(*args):
        return made.pop(0) if made else fn(*args)

    return called


def scan(original, fn, elems, initializer, reverse, name):
    """Make a call of `tf.scan`.

    Parameters
    ----------
    original : callable
        TensorFlow's function. It has all arguments but the first.
    fn, elems, initializer, reverse, name
        See `tf.scan`.

    Returns
    -------
    tuple or None
        The result as the only item; None if TensorFlow has to make the call.
    """
    counts = _counts["scan"]
    try:
        rows = _Rows(elems)
        start = elems if initializer is None else _initial(initializer)
        kind = type(start)
        columns = [[value] for value in _flat(start, kind)]
    except OtherError:
        counts.count(OTHER)
        return None
    made = []
    with ops.name_scope(name, "scan", rows.flat):
        items = rows.unstack()
        if reverse:
            items.reverse()
        if initializer is None:
            first = items.pop(0)
            columns = [[value] for value in _flat(first, kind)]
        state = _packed([column[0] for column in columns], kind)
        specs = [(column[0].dtype, column[0].shape) for column in columns]
        for item in items:
            made.append(fn(_copied(state), item))
            if not _fits(made[-1], kind, specs):
                break
            state = made[-1]
            for column, value in zip(columns, _flat(state, kind), strict=True):
                column.append(value)
        else:
            results = []
            for column in columns:
                values = column if initializer is None else column[1:]
                if reverse:
                    values.reverse()
                results.append(ops.convert_to_tensor(values, dtype=values[0].dtype))
            counts.count(_native)
            return (_packed(results, kind),)
    counts.count(OTHER)
    return (original(_continued(fn, made)),)


def _fits(value, kind, specs):
    """Tell whether a result has the structure, the dtypes and the shapes of the others."""
    try:
        flat = _flat(value, kind)
    except OtherError:
        return False
    return len(flat) == len(specs) and all(
        tensor.dtype == dtype and tensor.shape == shape
        for tensor, (dtype, shape) in zip(flat, specs, strict=True)
    )


def fold(original, title, fn, elems, initializer, name):
    """Make a call of `tf.foldl` or `tf.foldr`, whose name is the title.

    The parameters and the result are those of `scan`.
    """
    counts = _counts[title]
    try:
        rows = _Rows(elems)
        state = elems if initializer is None else initializer
        kind = type(state)
        length = len(_flat(state, kind))
    except OtherError:
        counts.count(OTHER)
        return None
    made = []
    with ops.name_scope(name, title, [elems]):
        items = rows.unstack()
        if title == "foldr":
            items.reverse()
        if initializer is None:
            state = items.pop(0)
        for item in items:
            state = fn(state, item)
            made.append(state)
            try:
                if len(_flat(state, kind)) == length:
                    continue
            except OtherError:
                pass
            break
        else:
            counts.count(_native)
            return (_copied(state),)
    counts.count(OTHER)
    return (original(_continued(fn, made)),)


# ---------------------------------------------------------------------------------------------
# tf.map_fn
# ---------------------------------------------------------------------------------------------

_maps = Bodies("tf.map_fn")

_JUMPING = ("JUMP", "FOR_ITER", "SETUP", "SEND", "YIELD", "GENERATOR", "EXCEPT", "RAISE")
_ENTERING = ("WITH", "LOAD_SPECIAL")
_CHANGING = ("IMPORT", "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_SUBSCR", "DELETE")
_ASKING = ("UNARY_NOT", "TO_BOOL", "CONTAINS_OP")
_REFUSED = (*_JUMPING, *_ENTERING, *_CHANGING, *_ASKING, "MAKE_FUNCTION", "PRINT")
"""Parts of the names of instructions that functions may not have."""

_METHODS = frozenset({"assign", "assign_add", "assign_sub"})


class _Straight(proof._ProofReader):
    """Reads code that calls nothing but functions of TensorFlow."""

    def judge_callable(self, value, title, named, depth):
        function = upstream(value)
        if type(function) is types.FunctionType:
            module, name = str(function.__module__), function.__name__  # of what it wraps
            if not module.startswith("tensorflow.") or (
                "stateless" not in name and ("random_ops" in module or "dropout" in name)
            ):
                self.refuse(function, title)
        elif not isinstance(value, type):
            self.refuse(value, title)
        return super().judge_callable(value, title, named, depth)

    def judge_object(self, value, title):
        self.refuse(value, title)


def _guards_of(function):
    """Return the guards under which AutoGraph makes no difference to a function, and the kept.

    Raises
    ------
    RefusedError
        If this is not shown.
    """
    code, namespace = function.__code__, function.__globals__
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if any(part in name for part in _REFUSED) or (
            name == "COMPARE_OP" and instruction.argval in ("==", "!=")
        ):
            raise RefusedError("body_unusable", f"it has the instruction {name}")
    if code.co_cellvars or not _METHODS.isdisjoint(code.co_names):
        raise RefusedError("body_unusable", "it defines functions or assigns to variables")
    if not globals_in(code) <= namespace.keys():
        raise RefusedError("body_unusable", "it names builtins")
    given = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    values = {name: cell.cell_contents for name, cell in given.items()}
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    values.update(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    values.pop(names[0] if names else None, None)  # the element
    frame = types.SimpleNamespace(
        f_code=code, f_globals=namespace, f_builtins=vars(builtins), f_locals=values
    )
    shown = proof.Proof()
    _Straight(shown, frame).read()
    if shown.assigning is not None or shown.comparing is not None:
        raise RefusedError("body_unusable", shown.assigning or shown.comparing)
    codes, functions = {(code, id(namespace)): namespace}, list(shown.functions.values())
    held = Places([function], {})
    names, places = guards_of(codes, held, {}, functions, partial(of_codes, [(code, namespace)]))
    return (names, Watch(places)), (functions, places)


class _Shown:
    """A body that is called as it is, while the guards hold."""

    def __init__(self, guards, kept):
        self.guards, self.kept = guards, kept

    def fits(self, tensors):
        """Tell whether the guards hold."""
        return all(guard.holds() for guard in self.guards)


def map_fn(fn, elems, name, signature):
    """Make a call of `tf.map_fn`.

    Parameters
    ----------
    fn, elems, name, signature
        The first arguments, the name, and the signature of the results.

    Returns
    -------
    tuple or None
        The result as the only item; None if TensorFlow has to make the call.
    """
    try:
        rows = _Rows(elems)
        kind, dtypes = _results_of(rows, signature)
        body = Body(fn, ())
        if ag_ctx.control_status_ctx().status != ag_ctx.Status.UNSPECIFIED:
            raise OtherError
    except OtherError:
        _maps.counts.count(OTHER)
        return None
    known, shown = _maps.find(body)
    if shown is None:
        _maps.counts.count(MISSED if known.learned.is_active else known.learned)
        if known.is_due():
            _learn(known, body, fn)
        return None
    try:
        result = _mapped(fn, rows, kind, dtypes, name)
    except Exception:  # TensorFlow raises its own
        result = None
    _maps.counts.count(_native if result is not None else OTHER)
    return result


def forget():
    """Forget all functions."""
    _maps.forget()


def _learn(known, body, fn):
    known.made += 1
    try:
        guards, kept = _guards_of(fn)
        known.add(_Shown(guards, (*body.kept, *body.variables, kept)))
    except Exception as why:  # only the proof has failed
        known.refuse(why)


def _results_of(rows, signature):
    """Return the class of the structure of results, and their dtypes."""
    if signature is None:
        return rows.kind, [tensor.dtype for tensor in rows.flat]
    kind = type(signature) if type(signature) in (list, tuple) else EagerTensor
    dtypes = [signature] if kind is EagerTensor else list(signature)
    if not dtypes or any(type(dtype) is not tf.DType for dtype in dtypes):
        raise OtherError
    return kind, dtypes


def _mapped(fn, rows, kind, dtypes, name):
    """Return the result as the only item of a tuple; None if the results do not fit."""
    columns = None
    with ops.name_scope(name, "map", rows.flat):
        for item in rows.unstack():
            value = fn(item)
            if columns is None:
                flat = _flat(value, kind)
                if len(flat) != len(dtypes):
                    return None
                specs = [(d, tensor.shape) for d, tensor in zip(dtypes, flat, strict=True)]
                columns = [[] for _ in dtypes]
            if not _fits(value, kind, specs):
                return None
            for column, tensor in zip(columns, _flat(value, kind), strict=True):
                column.append(tensor)
        results = [
            ops.convert_to_tensor(column, dtype=dtype)
            for column, dtype in zip(columns, dtypes, strict=True)
        ]
    return (_packed(results, kind),)
