"""From names to op objects, each made at its first use and kept: what is behind the doors.

Not in `_core`, since it makes objects of `_dispatch`; and pickles of ops name it.
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
    """Return the op object for a name of TensorFlow's registry; always the same one.

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


def _reduce(one):
    return op, (one.op_name,)


copyreg.pickle(Op, _reduce)  # an op is its name, in whichever process


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
        Whether ``__all__`` lists them. Without it a star import takes what it finds, which is the
        same but for names with an underscore.
    """
    namespace = sys.modules[module].__dict__

    def find(name):
        # The first attribute brings them all, as op objects that know their names only, and ends
        # this function: CPython does not specialise attributes of a module that has it, and every
        # call through the module would take 50 ns more.
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        with LOCK:
            found = {attribute: op(op_name) for attribute, op_name in names().items()}
        namespace.update(found)
        if star:
            namespace["__all__"] = sorted(found)
        namespace.pop("__getattr__", None)
        if name not in namespace:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return namespace[name]

    def listing():
        return sorted(names())

    return find, listing


def _ungenerated():
    """Return the public ops that the running TensorFlow has and the snapshot lacks."""
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
        Holds one op object per op, under its snake_case and under its CamelCase name. They are
        in `fastops.ops` and `fastops.raw_ops` from now on, too.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    tf.errors.NotFoundError
        The library cannot be loaded; the message is the dynamic linker's.
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"no library of ops at {path!r}")
    library = tf.load_op_library(path)
    module = types.ModuleType(
        os.path.basename(path).partition(".")[0], f"The ops of {os.path.basename(path)}."
    )
    # TensorFlow's module has a keyword-only function under each op's own name, among others.
    loaded = {raw_name(op_name): op_name for op_name in _ungenerated()}
    for name in loaded.keys() & vars(library).keys():
        found = op(loaded[name])
        for door, attribute in (("raw_ops", name), ("ops", found.__name__)):
            setattr(module, attribute, found)
            setattr(sys.modules[f"fastops.{door}"], attribute, found)
    return module
