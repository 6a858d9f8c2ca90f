"""The patch points: public functions and methods from the tables."""

import inspect
import sys
from functools import partial
from types import FunctionType

from fastops import _registry
from fastops._install import restated, upstream
from fastops._install.dtypes import parse
from fastops._install.handlers import handlers
from fastops._install.public import lowering
from fastops._install.public.functions import FUNCTIONS
from fastops._install.public.methods import METHODS
from fastops._install.target import (
    Target,
    claim,
    generated,
    original_of,
    places,
    resolve,
    signature,
)


def of_functions(layer, entries):
    """Return the claims on the functions of entries of a layer, in the form of `everywhere`."""
    claims = {}
    for name, holder, attribute, make in _found(layer, entries):
        claim(claims, vars(holder)[attribute], layer, name, make)
    return claims


def functions():
    """Return the claims on public functions, in the form that `everywhere` takes."""
    return of_functions("public", FUNCTIONS)


def methods():
    """Yield a target for each method."""
    for name, holder, attribute, make in _found("operators", METHODS):
        yield Target("operators", name, holder, attribute, make)


def standing_alone():
    """Return stand-ins for `FUNCTIONS` that are patched in nowhere: they work without `install`.

    Returns
    -------
    dict of str to callable
        The stand-ins, by name of the function. If the running TensorFlow has code that differs from
        the mirrored code, the value is TensorFlow's function.
    """
    stand_ins = {}
    for function in FUNCTIONS:
        holder, attribute = resolve(function.name)
        original = vars(holder)[attribute]
        original = getattr(original, "original", original)  # fastops may be installed
        known = (
            type(original) is FunctionType
            and signature(original) == function.signature
            and restated.objection("public", function.name, original) is None
        )
        stand_ins[function.name] = _stand_in(function, original, True) if known else original
    return stand_ins


def _found(layer, entries):
    """Yield the patch point and the replacement of each entry that the running TensorFlow has."""
    for function in entries:
        with upstream.contained(layer, function.name):
            holder, attribute = resolve(function.name)
            original = original_of(holder, attribute)
            if (why := _objection(function)) is not None:
                upstream.leave_out(layer, function.name, why)
            elif type(original) is FunctionType and signature(original) == function.signature:
                yield function.name, holder, attribute, partial(_stand_in, function)


def _objection(function):
    """Return why the lowering of a function cannot be used here; None if it can."""
    if function.lowering is None:
        return None
    return upstream.objection_to_registered(
        "public", function.lowering
    ) or upstream.objection_to_registered("keras", function.lowering)


def _stand_in(function, original, always=False):
    """Return the stand-in for a public function."""
    parameters = inspect.signature(original).parameters.values()
    names = tuple(sys.intern(parameter.name) for parameter in parameters)
    made = tuple(function.made.split())
    replaced = [generated(site.op) for site in function.sites]  # before other code may patch them

    def passed_by(site, early):
        return early if early[2] is not None else generated(site.op)

    def sites():
        return [
            lowering.Site(
                _registry.op(site.op),
                passed_by(site, early),
                site.sources(),
                site.constants,
                parse(site.dtypes),
                names + made,
            )
            for site, early in zip(function.sites, replaced, strict=True)
        ]

    registries, replay = handlers(original), upstream.load("replay.replayed")
    return lowering.Lowering(
        original,
        names=names,
        made=made,
        defaults=tuple(p.default for p in parameters if p.default is not p.empty),
        needs=dict(item.split("=") for item in function.needs.split()),
        sites=sites,
        lowering=function.lowering,
        handlers=registries,
        beyond=replay.Replayed(
            original,
            generated,
            registries,
            always=always,
            arrays=places(original, function.name, function.arrays),
        )
        if replay is not None and function.name.startswith("tf.")
        else None,
        always=always,
    )
