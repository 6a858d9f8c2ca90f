"""How each op is called: one table of recipes, a file for each family of ops.

A recipe is a generator. It is given a `parity.draw.Draw`, which stands for one combination of
dtypes, and yields calls, each a dict of keyword arguments of `tf.raw_ops`. Attributes that hold a
dtype, and that no input determines, may be left out: they are filled in from the combination.

What is known about an op beside how to call it stands next to its recipe: dtypes for which a
kernel is registered that cannot run (`rejected`), results that TensorFlow itself does not
reproduce (`unstable`) or draws anew in each call (`drawn`), ops that it refuses under op
determinism (`nondeterministic`), ops without a recipe (`uncalled`).
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

RECIPES = {}
"""Op name to recipe."""

REJECTED = {}
"""Op name to a list of (type attribute, names of dtypes, why): TensorFlow's kernel refuses."""

MISMATCHED = {}
"""Op name to a list of (which combinations, why): those that TensorFlow's kernel refuses."""

UNSTABLE = {}
"""Op name to `Unstable`."""

DRAWN = {}
"""Op name to `Drawn`."""

NONDETERMINISTIC = {}
"""Op name to why TensorFlow refuses all calls under op determinism."""

NOT_DIFFERENTIATED = {}
"""Op name to (which calls, why): TensorFlow's gradient of them ends the process."""

INDIRECT = {}
"""Op name to (path, why): it has a kernel, which fastops does not run itself."""

UNCALLED = {}
"""Op name to why there is no recipe although the op has a kernel for the CPU."""


class Unstable(NamedTuple):
    """Outputs of an op, by number, that TensorFlow does not reproduce, and why.

    Those in `undefined` hold whatever was in memory; the values of those in `varying` depend on
    the order in which threads come. If that is so in some calls only, `only` tells these by the
    list of their outputs.
    """

    because: str
    undefined: tuple = ()
    varying: tuple = ()
    only: Callable = lambda outputs: True

    def covers(self, got, runs):
        """Tell whether a result is as near to TensorFlow's `runs` as these are to each other."""
        outputs = [run if isinstance(run, (list, tuple)) else [run] for run in (got, *runs)]
        if not self.only(outputs[0]):
            return False
        for place, (ours, *theirs) in enumerate(zip(*outputs, strict=True)):
            if (ours.dtype, ours.shape) != (theirs[0].dtype, theirs[0].shape):
                return False
            if place in self.undefined or _bytes(ours) in map(_bytes, theirs):
                continue
            ours, *theirs = map(_reals, (ours, *theirs))
            low, high = np.min(theirs, axis=0), np.max(theirs, axis=0)
            slack = (high - low) if place in self.varying else 0
            within = (low - slack <= ours) & (ours <= high + slack)
            if not (within | (np.isnan(ours) & np.isnan(low))).all():
                return False
        return True


class Drawn(NamedTuple):
    """Outputs of an op, by number, whose values are others in each call, and what holds of them.

    Their dtypes, shapes and devices are compared, and what `arrange` makes of their arrays: by
    default nothing. What a call must fulfil beside that, `holds` tells by its arguments and its
    outputs, these as arrays.
    """

    holds: Callable
    outputs: tuple = (0,)
    arrange: Callable = lambda array: None

    def settled(self, result):
        """Return a result so that two differ only if more than what was drawn differs."""
        outputs = result if isinstance(result, (list, tuple)) else [result]
        return type(result), [
            [one.dtype, one.shape, one.device, one.backing_device, self.arrange(one.numpy())]
            if place in self.outputs
            else one
            for place, one in enumerate(outputs)
        ]

    def fulfilled(self, arguments, result):
        """Tell whether what a call returned is what it may have drawn."""
        outputs = result if isinstance(result, (list, tuple)) else [result]
        return self.holds(arguments, *(one.numpy() for one in outputs))


def _bytes(tensor):
    return tensor.numpy().tobytes()


def _reals(tensor):
    values = tensor.numpy()
    return np.stack([values.real, values.imag]).astype(np.float64)


SIZES = (
    (),
    (0,),
    (3,),
    (2, 0, 3),
    (5, 7),
    (1, 1024, 1),
    (2, 1, 3, 1, 2, 1, 2, 1),
)
"""Shapes that an elementwise op is called with: scalar, empty, odd, of high rank."""

PAIRS = (
    ((), ()),
    ((0,), ()),
    ((3,), (3,)),
    ((2, 1), (3,)),
    ((1, 3, 1), (2, 1, 5)),
    ((7, 5), ()),
    ((0, 3), (1, 3)),
    ((1, 1024, 1), (1, 1, 3)),
    ((2, 1, 3, 1, 2, 1, 2, 1), (3, 1, 4)),
)
"""Pairs of shapes that broadcast."""

LARGE = (100, 1000, 10)
"""Where oneDNN and TensorFlow's own thread pool go other ways."""

MANY = (100, 100, 10)
"""What several threads share too, where each element takes long."""


def recipe(op_names):
    """Enter a generator as the recipe of ops of these names, separated by blanks."""

    def enter(generator):
        for op_name in op_names.split():
            assert op_name not in RECIPES, f"{op_name} has two recipes"
            RECIPES[op_name] = generator
        return generator

    return enter


def unary(op_names, argument, make="__call__", type_attr="T", **attrs):
    """Enter elementwise ops of one input. `make` names the method of `Maker` that draws it."""

    def calls(d):
        maker = getattr(getattr(d, type_attr), make)
        for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
            yield {argument: maker(*shape), **attrs}

    recipe(op_names)(calls)


def binary(op_names, arguments, make="__call__", type_attr="T", **attrs):
    """Enter elementwise ops of two inputs that broadcast, named in `arguments`.

    `make` names one method of `Maker` for both, or one for each.
    """
    first, second = arguments.split()

    def calls(d):
        maker = getattr(d, type_attr)
        makes = [getattr(maker, name) for name in make.split()]
        for one, other in (*PAIRS, *(((LARGE, LARGE), (LARGE, (10,))) if d.thorough else ())):
            yield {first: makes[0](*one), second: makes[-1](*other), **attrs}

    recipe(op_names)(calls)


def aligned(op_names, arguments, make="__call__", type_attr="T", **attrs):
    """Enter elementwise ops whose inputs, named in `arguments`, have one and the same shape."""

    def calls(d):
        maker = getattr(getattr(d, type_attr), make)
        for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
            yield {name: maker(*shape) for name in arguments.split()} | attrs

    recipe(op_names)(calls)


def rejected(op_names, because, **dtypes):
    """Note dtypes, as in ``T="int8 uint8"``, with which every valid call fails in TensorFlow."""
    for op_name in op_names.split():
        for attr, names in dtypes.items():
            REJECTED.setdefault(op_name, []).append((attr, names.split(), because))


def mismatched(op_names, because, which):
    """Note combinations of dtypes with which every valid call fails, though each fits some other.

    `which` tells them: it takes a dict of type attribute to `tf.DType`.
    """
    for op_name in op_names.split():
        MISMATCHED.setdefault(op_name, []).append((which, because))


def not_differentiated(op_names, because, which):
    """Note calls whose gradient ends TensorFlow's process; `which` tells by their arguments."""
    for op_name in op_names.split():
        NOT_DIFFERENTIATED[op_name] = (which, because)


def unstable(op_names, because, **outputs):
    """Note outputs that TensorFlow does not reproduce: see `Unstable`."""
    for op_name in op_names.split():
        UNSTABLE[op_name] = Unstable(because, **outputs)


def drawn(op_names, holds, **rest):
    """Note outputs whose values are others in each call: see `Drawn`."""
    for op_name in op_names.split():
        DRAWN[op_name] = Drawn(holds, **rest)


def nondeterministic(op_names, because):
    """Note ops of which TensorFlow refuses all calls under op determinism."""
    for op_name in op_names.split():
        NONDETERMINISTIC[op_name] = because


def indirect(op_names, path, because):
    """Note ops that take another path than the direct one, as in "capi:kernel"."""
    for op_name in op_names.split():
        INDIRECT[op_name] = (path, because)


def uncalled(op_names, because):
    """Note ops that no recipe can call."""
    for op_name in op_names.split():
        UNCALLED[op_name] = because


def load():
    """Fill the tables from the modules of this package."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return RECIPES
