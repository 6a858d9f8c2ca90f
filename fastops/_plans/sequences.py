"""Which random ops of a function have seeds, so that their sequences go on from call to call."""

from fastops._core.tables import policy
from fastops._plans.eligibility import is_bound
from fastops._plans.nodes import functions_of

NONE, STEADY, VARYING = "none", "steady", "varying"


def draws_of(definition, function_def):
    """Tell whether a function draws by seeds, and whether all calls draw equally many numbers.

    Parameters
    ----------
    definition : FunctionDef
        The function.
    function_def : callable
        Returns the FunctionDef for a name, `None` if there is no such function.

    Returns
    -------
    {"none", "steady", "varying"}
        "steady": each random op with seeds runs once in a call, with constant inputs. "varying":
        there may be others.
    """
    constants = {node.name for node in definition.node_def if node.op == "Const"}
    steady, seen = False, set()
    for node in definition.node_def:
        if node.op in policy.UNSEEDED:
            if not is_bound(node):
                continue
            sources = (text.partition(":")[0] for text in node.input if not text.startswith("^"))
            if not constants.issuperset(sources):
                return VARYING
            steady = True
        elif any(_draws(name, function_def, seen) for name in functions_of(node)):
            return VARYING
    return STEADY if steady else NONE


def _draws(name, function_def, seen):
    """Tell whether a function has random ops with seeds, also in the functions that it calls."""
    if name in seen:
        return False
    seen.add(name)
    definition = function_def(name)
    if definition is None:
        return False
    return any(
        is_bound(node)
        if node.op in policy.UNSEEDED
        else any(_draws(inner, function_def, seen) for inner in functions_of(node))
        for node in definition.node_def
    )
