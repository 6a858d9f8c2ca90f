"""Traced functions with their plans, which are timed against TensorFlow."""

import re

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import attributes
from tensorflow.python.eager.polymorphic_function.atomic_function import InterpolateRuntimeError
from tensorflow.python.framework import errors_impl

from fastops._core.garbage import without_collections
from fastops._core.reasons import text_of
from fastops._plans import costs
from fastops._plans.description import PlanDescription
from fastops._plans.eligibility import UnplannedError
from fastops._plans.observers import tell
from fastops._plans.plan import Plan
from fastops._plans.runner import Runner
from fastops._specialize.policy import MIN_TIMED_CALLS, TIMED_PLAN_NS

_HINT = (
    "\nHint: If you want to see a list of allocated tensors when OOM happens, add "
    "report_tensor_allocations_upon_oom to RunOptions for current allocation info. This isn't "
    "available when running in Eager mode.\n"
)
"""What TensorFlow's executor adds to the error of a kernel that has no memory."""


_MARKS = re.compile(r"\{\{(?:node|function_node) (.*?)\}\}")


def located(message, node, code):
    """Return a kernel's message as TensorFlow's executor returns it for a graph.

    It adds the location of the node (see `fastops._plans.nodes.location`), with marks for the
    innermost node, and a hint to some errors.
    """
    marked = _MARKS.sub(r"\1", node) if "{{node " in message else node
    hint = _HINT if code == errors_impl.RESOURCE_EXHAUSTED else ""
    return f"{message}\n\t [[{marked}]]{hint}"


def options_of(options, optimize):
    """Return the options of a call, unless `optimize` with TensorFlow's graph optimizer off."""
    if optimize:
        return options
    config = tf.compat.v1.ConfigProto.FromString(options.config_proto_serialized)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return context.FunctionCallOptions(options.executor_type, config)


class Planned(Runner):
    """A concrete function that runs as a plan if it can.

    The compiled base class has the code that each call runs. This class makes the plan, times it
    against TensorFlow, renews it, and describes it.

    Parameters
    ----------
    concrete : tf.types.experimental.ConcreteFunction or None
        The trace; None if it is unknown.
    executor : {None, "plan", "tensorflow"}
        The executor. None: the plan, unless calls that take long are faster in TensorFlow.
    inputs : list of EagerTensor or None, optional
        The tensors of a call, as an example. Only handles matter: by the devices, dtypes and shapes
        of the resources. This class keeps none of them, since it would keep iterators and their
        threads alive.
    obstacle : str, optional
        Why there can be no plan, if that is known.
    optimize : bool
        Whether TensorFlow optimizes the graph.
    devices : sequence of str, optional
        For each tensor that the function takes the name of its device, empty for the host. By
        default all tensors are on the host.
    options : FunctionCallOptions, optional
        The options of TensorFlow's calls. By default those of the context when the plan is made.
    free : bool
        Whether each call passes tensors in the places of the captured ones, after its arguments.

    Attributes
    ----------
    seeds : bool
        Whether random ops may have seeds: see `fastops._plans.runtime_function`.

    Raises
    ------
    RuntimeError
        If `executor` is "plan" and there can be no plan.
    """

    seeds = False

    def __init__(
        self,
        concrete,
        executor=None,
        inputs=(),
        obstacle=None,
        optimize=True,
        devices=None,
        options=None,
        free=False,
    ):
        self.concrete = concrete
        self.free = free
        self.executor = executor
        self.devices = devices
        self.obstacle = obstacle
        self.optimize = optimize
        self.times = {"plan": [], "tensorflow": []}
        self.settled = executor == "plan"
        self.prepare(inputs, options)

    def prepare(self, inputs, options=None):
        """Make the plan for TensorFlow's current context, or note the reason why there is none.

        Parameters
        ----------
        inputs : list of EagerTensor or None
            The tensors of a call, as for the class.
        options : FunctionCallOptions, optional
            As for the class.
        """
        self.plan = self.sentence = self.detail = None
        self.options = [options or context.context().function_call_options]
        if self.executor == "tensorflow":
            self.sentence = text_of("executor_chosen")
            return
        try:
            with without_collections():
                self.plan = self.planned(inputs)
        except UnplannedError as why:
            self.sentence, self.detail = why.sentence, why.detail
            if self.obstacle is None and self.optimize and not self.compiled:
                self.allow_bare()
            if self.executor == "plan":
                name = self.concrete.name.decode()
                raise RuntimeError(f"{name} cannot be planned: {why}") from None

    @property
    def compiled(self):
        """Whether XLA compiles the function."""
        given = self.concrete._inference_function.cached_definition.attr
        return attributes.XLA_COMPILE in given and given[attributes.XLA_COMPILE].b

    def planned(self, example):
        """Return the plan; raise `UnplannedError` if there can be none."""
        if self.obstacle is not None:
            raise UnplannedError(*self.obstacle)
        graph, function = self.concrete.graph, self.concrete._inference_function
        kind = self.concrete.function_type
        if self.compiled:
            raise UnplannedError("xla")
        if graph.deferred_external_captures or graph.deferred_internal_captures:
            raise UnplannedError("deferred_captures")
        for output in kind.flat_outputs:
            if output.dtype == tf.resource or output.dtype._handle_data:
                raise UnplannedError("output_dtype", output.dtype.name)
        captured = [] if self.free else list(self.concrete.captured_inputs)
        takes = graph.inputs[: len(graph.inputs) - len(captured)]
        handles = {
            i: tensor
            for i, tensor in enumerate(example)
            if tensor is not None and tensor.dtype == tf.resource
        }
        inputs = [handles.get(i) for i in range(len(takes))]
        for given, symbol in zip(inputs, takes, strict=True):
            if given is None and symbol.dtype in (tf.resource, tf.variant):
                raise UnplannedError("input_dtype", symbol.dtype.name)
        attrs = {
            name: value if isinstance(value, bytes) else value.encode()
            for name, value in options_of(self.options[0], self.optimize).as_attrs().items()
        }
        devices = [""] * len(inputs) if self.devices is None else list(self.devices)
        return Plan(function.name.decode(), attrs, inputs, captured, devices, self.seeds)

    def renew(self, inputs):
        """Make the plan valid again after a change of TensorFlow's context, or make a new one.

        Each thread has its own call options object. If it is equal to the known ones, the plan is
        valid for it too.

        Parameters
        ----------
        inputs : list of EagerTensor or None
            The tensors of the call that found the plan outdated.
        """
        options = context.context().function_call_options
        if (
            self.plan is not None
            and self.plan.is_current()
            and options.as_attrs() == self.options[0].as_attrs()
        ):
            self.options.append(options)
        else:
            self.prepare(inputs)

    def is_plans_turn(self):
        """Tell whether the plan is timed in this call, else TensorFlow. Each call runs once."""
        return len(self.times["plan"]) <= len(self.times["tensorflow"])

    def note_time(self, executor, ns):
        """Note the time of a call. With enough times, settle on the faster executor."""
        self.times[executor].append(ns)
        mine, theirs = self.times["plan"], self.times["tensorflow"]
        if executor == "plan" and ns < TIMED_PLAN_NS:
            self.settled = True
            self.learn_saving([self.call_ns], [ns])
        elif len(theirs) >= MIN_TIMED_CALLS:
            self.learn_saving(theirs, mine)
            if min(theirs) < min(mine):
                self.plan, self.sentence = None, text_of("executor_faster")
                if self.optimize:
                    self.allow_bare()
            self.settled = True

    def learn_saving(self, theirs, mine):
        """Update the estimate of savings, if the nodes of the trace have been counted."""
        if self.num_nodes:
            saved = max(1, min(theirs) - min(mine))
            costs.SAVING.measured(self.num_nodes + costs.AROUND_CALL, saved)

    def run_original(self, *inputs):
        """Have TensorFlow run the function; return its flat results."""
        inputs, captured = list(inputs), self.concrete.captured_inputs
        if self.free:
            first = len(inputs) - len(captured)
            inputs, captured = inputs[:first], inputs[first:]
        result = self.concrete._call_flat(inputs, captured)
        return tf.nest.flatten(result, expand_composites=True)

    def failure(self, plan, code, message, node):
        """Return the error to raise for a failed kernel; None if TensorFlow may make the call."""
        if not plan.schedule.has_effects:
            return None
        inference = self.concrete._inference_function
        name = inference.name.decode()
        try:
            with InterpolateRuntimeError(inference):
                raise errors_impl.exception_type_from_error_code(code)(
                    None,
                    None,
                    f"{{{{function_node {name}}}}} {located(message, node, code)} [Op:{name}]",
                )
        except errors_impl.OpError as error:
            return error.with_traceback(None)

    def observe(self, executor, ns):
        """Report a call to the observers: its executor and its time."""
        tell(self, executor, ns)

    @property
    def title(self):
        """The function's name, and its arguments as TensorFlow shows them."""
        if self.concrete is None:
            return "a function"
        return f"{self.concrete._func_graph.name}{self.concrete.function_type}"

    def description(self):
        """Return the `PlanDescription` of the plan; None if there is none."""
        plan = self.plan
        return None if plan is None else PlanDescription(self.title, plan.schedule, *plan.times())

    def describe(self):
        """Say which executor runs the function, and why.

        Returns
        -------
        dict
            With ``"arguments"`` (as TensorFlow shows them), ``"executor"``, ``"reason"`` (why there
            is no plan), and ``"nodes"`` (the number of steps of the plan).
        """
        plan = self.plan
        return {
            "arguments": None if self.concrete is None else str(self.concrete.function_type),
            "executor": "tensorflow" if plan is None else "plan",
            "reason": self.reason,
            "nodes": None if plan is None else len(plan.schedule.steps),
        }
