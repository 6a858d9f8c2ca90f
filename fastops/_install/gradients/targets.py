"""The patch points for gradients: the functions that walk over a tape."""

from functools import cache

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop

from fastops._autodiff import cases, rules
from fastops._install import lookups, restated, upstream
from fastops._install.gradients import gradient_function
from fastops._install.target import Target, generated


@cache
def _gradient_function(original):
    """Return the replacement, always the same one.

    TensorFlow keeps a reference to it, and may be running it while fastops is installed again.
    """
    return gradient_function.gradient_function(original)


def _objection(op_name, registered):
    """Return why a rule must not run; None if it may."""
    return upstream.objection_to_registered("_autodiff", op_name) or restated.objection(
        "gradients", op_name, registered
    )


def _is_later(registered):
    """Tell whether a gradient function has the code of later versions of TensorFlow."""
    return restated.variant(restated.name_of(registered)) == "later"


def targets():
    """Enable the rules and the replays of gradient functions, and yield the targets."""
    rules.choose(_objection, _is_later, lookups.of_function)
    cases.configure(generated, lookups.of_codes)
    yield Target(
        "gradients",
        "backprop._gradient_function",
        backprop,
        "_gradient_function",
        _gradient_function,
        announce=gradient_function.register,
    )
    yield Target(
        "gradients",
        "TFE_Py_TapeGradient",
        pywrap_tfe,
        "TFE_Py_TapeGradient",
        gradient_function.walk_of_runtime,
    )


def originals():
    """Yield the layer and name of each rule, and the name of the code that it mirrors."""
    for op_name, rule in rules.RULES.items():
        yield "gradients", op_name, restated.name_of(rule.registered)


def in_force():
    """Return the layer and name of each rule that may run."""
    return {("gradients", name) for name, rule in rules.RULES.items() if rule.restated}
