"""What is replaced of gradients: what a tape calls for each op, as far as rules know the op."""

from functools import cache

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop

from fastops._install import lookups, restated, upstream
from fastops._install.gradients import rules
from fastops._install.target import Target


@cache
def _gradient_function(original):
    """Return one replacement for ever: TensorFlow may be inside it while another is announced."""
    return rules.gradient_function(original)


def _objection(op_name, registered):
    """Tell why a rule may not run."""
    return upstream.objection_to_registered("gradients", op_name) or restated.objection(
        "gradients", op_name, registered
    )


def targets():
    """Yield the target, and let those rules run that may."""
    rules.choose(_objection, lookups.of_function)
    yield Target(
        "gradients",
        "backprop._gradient_function",
        backprop,
        "_gradient_function",
        _gradient_function,
        announce=pywrap_tfe.TFE_Py_RegisterGradientFunction,
    )


def originals():
    """Yield what `fastops._install.targets.originals` does, for rules."""
    for op_name, rule in rules.RULES.items():
        yield "gradients", op_name, restated.name_of(rule.registered)


def in_force():
    """Return layer and name of each rule that may run."""
    return {("gradients", name) for name, rule in rules.RULES.items() if rule.restated}
