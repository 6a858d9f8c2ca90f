"""Recipes that define how to call each op, in a file for each family of ops.

A recipe is a generator. It gets a `parity.draw.Draw` for one combination of dtypes, and yields
calls, each a dict of keyword arguments of `tf.raw_ops`. It may leave out dtype attributes that no
input determines: they are taken from the combination.

Other facts about an op are declared next to its recipe: dtypes whose registered kernel always fails
(`rejected`), results that vary in TensorFlow itself (`unstable`) or that are drawn in each call
(`drawn`), ops that TensorFlow rejects under op determinism (`nondeterministic`), ops without a
recipe (`uncalled`).
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

RECIPES = {}
"""Recipes by op name."""

REJECTED = {}
"""(type attribute, dtypes, reason) by op name, of calls that TensorFlow's kernel rejects."""

MISMATCHED = {}
"""(predicate of combinations, reason) by op name, of calls that TensorFlow's kernel rejects."""

UNSTABLE = {}
"""`Unstable` by op name."""

DRAWN = {}
"""`Drawn` by op name."""

NONDETERMINISTIC = {}
"""By op name, the reason why TensorFlow rejects all calls under op determinism."""

NOT_DIFFERENTIATED = {}
"""(predicate of calls, reason) by op name: TensorFlow's gradients of them end the process."""

INDIRECT = {}
"""By op name, (path, reason) of ops with a kernel that fastops does not run directly."""

UNCALLED = {}
"""By op name, the reason why an op with a kernel for the CPU has no recipe."""


class Unstable(NamedTuple):
    """The outputs of an op that vary in TensorFlow itself, by number, and the reason.

    Outputs in `undefined` have whatever was in memory. Outputs in `varying` depend on the order of
    threads. If only some calls vary, `only` recognizes them by the list of their outputs.
    """

    because: str
    undefined: tuple = ()
    varying: tuple = ()
    only: Callable = lambda outputs: True

    def covers(self, got, runs):
        """Tell whether a result is as close to TensorFlow's `runs` as these are to each other."""
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
    """The outputs of an op, by number, that are random in each call, and their properties.

    Their dtypes, shapes and devices are compared, and the results of `arrange` on their arrays, by
    default nothing. `holds` checks other conditions, given the arguments and the outputs as arrays.
    """

    holds: Callable
    outputs: tuple = (0,)
    arrange: Callable = lambda array: None

    def settled(self, result):
        """Return a result without the random values, so that two results can be compared."""
        outputs = result if isinstance(result, (list, tuple)) else [result]
        return type(result), [
            [
                output.dtype,
                output.shape,
                output.device,
                output.backing_device,
                self.arrange(output.numpy()),
            ]
            if place in self.outputs
            else output
            for place, output in enumerate(outputs)
        ]

    def fulfilled(self, arguments, result):
        """Tell whether a result is a possible draw of a call."""
        outputs = result if isinstance(result, (list, tuple)) else [result]
        return self.holds(arguments, *(output.numpy() for output in outputs))


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
"""Shapes for elementwise ops: scalar, empty, odd, of high rank."""

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
"""Shapes for which oneDNN or TensorFlow's thread pool use other code."""

MANY = (100, 100, 10)
"""Shapes that are split among threads if each element takes long."""


def recipe(op_names):
    """Register a generator as the recipe of the ops with these names, separated by blanks."""

    def enter(generator):
        for op_name in op_names.split():
            assert op_name not in RECIPES, f"{op_name} has two recipes"
            RECIPES[op_name] = generator
        return generator

    return enter


def unary(op_names, argument, make="__call__", type_attr="T", **attrs):
    """Register elementwise ops of one input. `make` names the method of `Maker` that draws it."""

    def calls(d):
        maker = getattr(getattr(d, type_attr), make)
        for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
            yield {argument: maker(*shape), **attrs}

    recipe(op_names)(calls)


def binary(op_names, arguments, make="__call__", type_attr="T", **attrs):
    """Register elementwise ops of two inputs that broadcast, named in `arguments`.

    `make` names a method of `Maker` for both inputs, or one for each.
    """
    first, second = arguments.split()

    def calls(d):
        maker = getattr(d, type_attr)
        makes = [getattr(maker, name) for name in make.split()]
        for one, other in (*PAIRS, *(((LARGE, LARGE), (LARGE, (10,))) if d.thorough else ())):
            yield {first: makes[0](*one), second: makes[-1](*other), **attrs}

    recipe(op_names)(calls)


def aligned(op_names, arguments, make="__call__", type_attr="T", **attrs):
    """Register elementwise ops whose inputs, named in `arguments`, have the same shape."""

    def calls(d):
        maker = getattr(getattr(d, type_attr), make)
        for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
            yield {name: maker(*shape) for name in arguments.split()} | attrs

    recipe(op_names)(calls)


def rejected(op_names, because, **dtypes):
    """Declare dtypes, as in ``T="int8 uint8"``, with which every valid call fails in TensorFlow."""
    for op_name in op_names.split():
        for attr, names in dtypes.items():
            REJECTED.setdefault(op_name, []).append((attr, names.split(), because))


def mismatched(op_names, because, which):
    """Declare combinations of dtypes, each of which is valid alone, for which every call fails.

    `which` recognizes them, given a dict of type attribute to `tf.DType`.
    """
    for op_name in op_names.split():
        MISMATCHED.setdefault(op_name, []).append((which, because))


def not_differentiated(op_names, because, which):
    """Declare calls whose gradient in TensorFlow ends the process; `which` recognizes them."""
    for op_name in op_names.split():
        NOT_DIFFERENTIATED[op_name] = (which, because)


def unstable(op_names, because, **outputs):
    """Declare outputs that vary in TensorFlow itself: see `Unstable`."""
    for op_name in op_names.split():
        UNSTABLE[op_name] = Unstable(because, **outputs)


def drawn(op_names, holds, **rest):
    """Declare outputs whose values are random in each call: see `Drawn`."""
    for op_name in op_names.split():
        DRAWN[op_name] = Drawn(holds, **rest)


def nondeterministic(op_names, because):
    """Declare ops of which TensorFlow rejects all calls under op determinism."""
    for op_name in op_names.split():
        NONDETERMINISTIC[op_name] = because


def indirect(op_names, path, because):
    """Declare ops that take another path than the direct one, such as "capi:kernel"."""
    for op_name in op_names.split():
        INDIRECT[op_name] = (path, because)


def uncalled(op_names, because):
    """Declare ops that no recipe can call."""
    for op_name in op_names.split():
        UNCALLED[op_name] = because


def load():
    """Fill the tables from the modules of this package."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return RECIPES
