"""Maps names to op objects, for the modules `fastops.ops`, `fastops.raw_ops` and `fastops.gen`.

Each op object is made at its first use and kept. This module is not in `_core`, because it uses
`_dispatch`. Pickles of ops contain its name.
"""

import copyreg
import os
import sys
import types

import tensorflow as tf

from fastops._core import opdef
from fastops._core.errors import MissingOpError
from fastops._core.fallback import raw_name
from fastops._core.loading import LOCK
from fastops._core.tables import index
from fastops._dispatch import Op, named


def op(op_name):
    """Return the op object for a name in TensorFlow's registry; always the same one.

    Raises
    ------
    MissingOpError
        Neither the running TensorFlow nor any supported version has an op of that name.
    """
    if op_name not in index.FAMILIES and opdef.registered(op_name) is None:
        raise MissingOpError(
            f"TensorFlow {tf.version.VERSION} has no op named {op_name!r}; the ops of a "
            "library exist once it is loaded"
        )
    return named(op_name)


def _reduce(op_object):
    return op, (op_object.op_name,)


copyreg.pickle(Op, _reduce)  # a pickle contains only the op's name


def flat_door(module):
    """Return ``__getattr__`` and ``__dir__`` for a module with all ops in snake_case."""
    return _door(
        module,
        lambda: index.NAMES | {opdef.snake_case(op_name): op_name for op_name in _ungenerated()},
    )


def raw_door(module):
    """Return ``__getattr__`` and ``__dir__`` for a module with all ops under their own names."""
    return _door(
        module,
        lambda: {raw_name(op_name): op_name for op_name in (*index.FAMILIES, *_ungenerated())},
    )


def family_door(module):
    """Return ``__getattr__`` and ``__dir__`` for a module of `fastops.gen`."""
    family = module.rpartition(".")[2]

    def names():
        return {
            name: op_name
            for name, op_name in index.NAMES.items()
            if index.FAMILIES[op_name] == family
        }

    return _door(module, names, star=False)


def _door(module, names, star=True):
    """Return ``__getattr__`` and ``__dir__`` for a module whose attributes are ops.

    Parameters
    ----------
    module : str
        The module's name.
    names : callable
        Returns the dict from attributes to op names.
    star : bool
        Whether to set ``__all__``. Without it a star import takes all attributes except those with
        a leading underscore.
    """
    namespace = sys.modules[module].__dict__

    def find(name):
        # The first access adds all ops as attributes and removes `__getattr__`. At this point an op
        # object knows only its name. CPython does not specialise attribute access on a module with
        # `__getattr__`, which would cost 50 ns at every call through the module.
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        with LOCK:
            ops = {attribute: op(op_name) for attribute, op_name in names().items()}
        namespace.update(ops)
        if star:
            namespace["__all__"] = sorted(ops)
        namespace.pop("__getattr__", None)
        if name not in namespace:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return namespace[name]

    def listing():
        return sorted(names())

    return find, listing


def _ungenerated():
    """Return the public ops that the running TensorFlow has and the generated tables lack."""
    return [
        proto.name
        for proto in opdef.registry().op
        if not proto.name.startswith("_") and proto.name not in index.FAMILIES
    ]


def load_op_library(path):
    """Load a library of custom ops and return them, bound like TensorFlow's own.

    Parameters
    ----------
    path : str or os.PathLike
        The shared library.

    Returns
    -------
    module
        A module with one op object per op, under its snake_case and its CamelCase name. The ops are
        added to `fastops.ops` and `fastops.raw_ops`, too.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    tf.errors.NotFoundError
        The library cannot be loaded. The message comes from the dynamic linker.
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"no library of ops at {path!r}")
    library = tf.load_op_library(path)
    module = types.ModuleType(
        os.path.basename(path).partition(".")[0], f"The ops of {os.path.basename(path)}."
    )
    # TensorFlow's module has a keyword-only function under each op's own name, besides others.
    loaded = {raw_name(op_name): op_name for op_name in _ungenerated()}
    for name in loaded.keys() & vars(library).keys():
        op_object = op(loaded[name])
        for door, attribute in (("raw_ops", name), ("ops", op_object.__name__)):
            setattr(module, attribute, op_object)
            setattr(sys.modules[f"fastops.{door}"], attribute, op_object)
    return module
