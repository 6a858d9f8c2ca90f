"""Which graphs a plan may run, and why TensorFlow has to run the others."""

from fastops._core.reasons import RefusedError
from fastops._core.tables import policy
from fastops._plans.nodes import (
    ARGUMENTS,
    CALLS,
    COPIES,
    HARMLESS,
    PRIVATE,
    PYTHON,
    RESULTS,
    STATEFUL,
    SWITCHES,
    UNPLANNED,
    functions_of,
)


class UnplannedError(RefusedError):
    """A graph gets no plan: TensorFlow runs it."""


def is_bound(node):
    """Tell whether attributes bind a random node to a sequence of numbers."""
    bound = (node.attr[name] for name in policy.BINDING if name in node.attr)
    return any(value.i or value.b or value.s for value in bound)


def has_seeds(node):
    """Tell whether only a pair of seeds binds a random node. Plans can begin with such seeds."""
    others = policy.BINDING - {"seed", "seed2"}
    return node.op in policy.SEEDED and not any(
        value.b or value.s for name, value in node.attr.items() if name in others
    )


class Eligibility:
    """Checks the nodes of a graph, one by one.

    Parameters
    ----------
    op_def, function_def, seeds : callable, callable, bool
        See `fastops._plans.schedule.schedule`.

    Attributes
    ----------
    has_effects : bool
        Whether a checked node may change state, so that it must not run a second time. Nodes that
        run Python may.
    seeded : bool
        Whether a checked node is a random op with seeds.
    """

    def __init__(self, op_def, function_def, seeds):
        self.op_def = op_def
        self.function_def = function_def
        self.seeds = seeds
        self.seeded = False
        self.called = set()  # names of functions that nodes call
        self.has_effects = False

    def check(self, node):
        """Raise `UnplannedError` for a node that plans cannot run."""
        if node.op in ARGUMENTS | RESULTS | COPIES | SWITCHES | {"Const", "Merge", "NoOp"}:
            return
        self.check_state(node, self.seeds)
        if node.op in policy.UNSEEDED | CALLS | PYTHON:
            return
        op_def = self.op_def(node.op)
        private = node.op.startswith("_") and not node.op.startswith(PRIVATE)
        if op_def is None or private or node.op in UNPLANNED:
            raise UnplannedError("node_unsupported", node.op)
        if node.op in policy.EXCLUDED and node.op not in STATEFUL:
            raise UnplannedError("node_excluded", f"{node.op}, {policy.EXCLUDED[node.op]}")
        if any(arg.is_ref for arg in (*op_def.input_arg, *op_def.output_arg)):
            raise UnplannedError("node_reference", node.op)
        if any(attr.type in ("func", "list(func)") for attr in op_def.attr):
            raise UnplannedError("node_functions", node.op)

    def check_state(self, node, seeds):
        """Raise `UnplannedError` for a node whose state belongs to one kernel.

        The plan's kernel would not share the state of TensorFlow's kernel. The check includes the
        nodes of functions that the node calls: under a plan, TensorFlow runs these by other kernels
        than it would without the plan. `seeds` says whether the node may be a random op with seeds.
        """
        op_def = self.op_def(node.op)
        called = functions_of(node) - self.called - ({node.op} if op_def is not None else set())
        self.called |= called
        for name in sorted(called):
            function = self.function_def(name)
            if function is None:
                raise UnplannedError("function_missing", f"{node.op} calls {name}")
            for inner in function.node_def:
                self.check_state(inner, False)
        if node.op in policy.UNSEEDED:
            if is_bound(node):
                if not seeds or not has_seeds(node):
                    raise UnplannedError("node_seeded", node.op)
                self.seeded = self.has_effects = True
        elif node.op in STATEFUL:
            self.has_effects |= node.op not in HARMLESS
        elif node.op in PYTHON:
            self.has_effects = True
        elif node.op in policy.STATELESS | CALLS:
            pass
        elif op_def is not None and op_def.is_stateful:
            raise UnplannedError("node_state", node.op)
