"""The plans of a traced function: one for each trace. The signature of a call finds its plan."""

import weakref

from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import function_type_utils, polymorphic_function
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._plans import costs
from fastops._plans.caller import Caller, UnseenCalls
from fastops._plans.case import Bound
from fastops._plans.leaves import Leaves
from fastops._plans.packing import packer
from fastops._plans.planned import Planned, options_of
from fastops._plans.runtime_function import known
from fastops._plans.sequences import NONE
from fastops._specialize.policy import MAX_COUNTED_TRACES, MAX_FUNCTION_SIGNATURES

_tallies: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
"""Tallies by the key under which TensorFlow counts calls: functions of the same code share one."""


def _tally(traced):
    """Return the tally of a traced function."""
    try:
        return _tallies.setdefault(traced._key_for_call_stats, UnseenCalls())
    except (AttributeError, TypeError):  # of another class, or without a key to count by
        return UnseenCalls()


def _unoptimized(call):
    """Return a function that makes a call with TensorFlow's graph optimizer turned off."""

    def called(*args, **kwargs):
        here = context.context()
        before = here.function_call_options
        here.function_call_options = options_of(before, optimize=False)
        try:
            return call(*args, **kwargs)
        finally:
            here.function_call_options = before

    return called


class Plans(Caller):
    """Runs the calls of a traced function, by the plans of their signatures.

    Derived classes define the attribute `_traced`: the traced function.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        The traced function.
    target : callable or None
        Calls TensorFlow's function. None: the caller passes a target with each call.
    executor : {None, "plan", "tensorflow"}
        The executor of the graph: see `fastops.function`.
    optimize : bool
        Whether TensorFlow optimizes the graph.
    patient : bool
        Whether a plan is made only when it pays: see `fastops._specialize.policy`.
    """

    def __init__(self, traced, target, executor=None, optimize=True, patient=False):
        target = target if optimize else _unoptimized(target)
        super().__init__(target, executor != "tensorflow", MAX_FUNCTION_SIGNATURES, patient)
        self.tally = _tally(traced)
        self._executor = executor
        self._optimize = optimize
        self._planned = {}

    @property
    def title(self):
        """The function's name."""
        python_function = getattr(self._traced, "python_function", None)
        return getattr(python_function, "__qualname__", None) or repr(self._traced)

    def announce(self):
        """Prepare for the first call of a signature; tell whether TensorFlow makes that call."""
        self.tell_of_calls()
        return self._executor != "plan"

    def size_up(self):
        """Return the size of the function's traces.

        The number of nodes of the largest trace, whether a trace has a loop, whether there is only
        one trace, and whether there is a plan.
        """
        traces = costs.traces_of(self._traced)
        counted = traces[-MAX_COUNTED_TRACES:]
        planned = any(runner.plan is not None for runner in self._planned.values())
        return costs.largest(counted), costs.has_loops(counted), len(traces) == 1, planned

    def prepare(self, args, kwargs, called, result):
        """Bind the arguments of a signature, given a call, and make the plan of a new trace.

        Parameters
        ----------
        args, kwargs : tuple, dict
            The arguments of the call.
        called : bool
            Whether TensorFlow has made the call, and traced the function if necessary.
        result : object
            The result of the call, if it has been made.

        Returns
        -------
        bound : Bound
            Runs the calls of this signature from now on.
        called, result
            As passed. A method that makes the call itself returns True and the call's result.
        """
        try:
            bound = self._bound_to_trace(args, kwargs)
        except Exception as problem:
            if not called:
                raise
            # TensorFlow has made the call, so it is valid: TensorFlow makes the next ones too.
            obstacle = "binding_failed", f"{type(problem).__name__}: {problem}"
            bound = Bound(Planned(None, obstacle=obstacle), [], None)
        return bound, called, result

    def tell_of_calls(self):
        """Tell TensorFlow's detector of functions traced too often how many calls plans ran."""
        unseen, self.tally.unseen = self.tally.unseen, 0
        manager = polymorphic_function._frequent_tracing_detector_manager
        key = getattr(self._traced, "_key_for_call_stats", None)
        if unseen and key is not None:
            manager.called_without_tracing(key)
            with manager._lock:
                detector = manager._get_detector(key)
                detector._calls_per_tracings[-1] += unseen - 1
                detector._call_count += unseen - 1

    def _inputs_of(self, args, kwargs):
        """Bind the arguments of a call, as TensorFlow does.

        Returns
        -------
        leaves : Leaves
            The tensors among the arguments.
        concrete : ConcreteFunction
            The trace.
        flat, takes : list
            The tensors that the trace takes, and the sources that `Bound` asks for.
        obstacle : tuple or None
            Why later calls must not be bound in the same way.
        """
        traced = self._traced
        leaves = Leaves()
        args, kwargs = leaves.replaced(args), leaves.replaced(kwargs)
        concrete = traced.get_concrete_function(*args, **kwargs)
        if not leaves.are_identified():
            return leaves, concrete, [], [], ("argument_type",)
        kind = concrete.function_type
        given = function_type_utils.canonicalize_function_inputs(
            args, kwargs, traced._function_type, traced._default_values, traced._is_pure
        )
        flat = kind.unpack_inputs(kind.bind(*given.args, **given.kwargs))
        takes = leaves.sources(flat)
        obstacle = None
        if leaves.hide(takes, traced._default_values or {}):
            obstacle = ("argument_converted",)
        return leaves, concrete, flat, takes, obstacle

    def bind(self, args, kwargs):
        """Return the trace of a call, and its `Bound` without a plan; None if TensorFlow must bind.

        TensorFlow has already made a call of the same signature.
        """
        try:
            leaves, concrete, _, takes, obstacle = self._inputs_of(args, kwargs)
        except Exception:  # TensorFlow has made the call: it binds the next ones, too
            return None
        if obstacle is not None or not self._optimize:
            return None
        # The caller notifies tapes of the variables, as TensorFlow does when it binds them.
        if any(type(variable) is not ResourceVariable for variable in leaves.variables):
            return None
        return concrete, Bound(Planned(concrete, "tensorflow"), takes, None)

    def _bound_to_trace(self, args, kwargs):
        """Return the `Bound` of a signature, given a call."""
        leaves, concrete, flat, takes, obstacle = self._inputs_of(args, kwargs)
        if obstacle is not None:
            return Bound(Planned(concrete, self._executor, obstacle=obstacle), [], None)
        devices = tuple(leaves.devices(flat))
        drawing = known(concrete._inference_function)
        if drawing is not None and drawing.draws != NONE and self._optimize:
            captured = list(concrete.captured_inputs)
            if not any(devices) and drawing.own([*flat, *captured]):
                return Bound(drawing.runner, [*takes, *captured], packer(concrete))
        else:
            drawing = None
        key = (
            concrete,
            devices,
            *((variable.dtype, str(variable.shape)) for variable in leaves.variables),
        )
        planned = self._planned.get(key)
        if planned is None:
            planned = self._planned[key] = Planned(
                concrete, self._executor, flat, devices=devices, optimize=self._optimize
            )
        if drawing is not None:
            planned.wait_for_seed()
        return Bound(planned, takes, packer(concrete))

    def drop(self, key):
        """Drop the case of a signature, and its plan unless other cases use it; return the case."""
        case = super().drop(key)
        if (
            case is None
            or case.bound is None
            or any(other.runner is case.runner for other in self.known_cases())
        ):
            return case
        # A new dict: the garbage collector may call this method while another one reads the dict.
        self._planned = {
            trace: runner for trace, runner in self._planned.items() if runner is not case.runner
        }
        return case

    def describe(self):
        """Say for each signature which executor runs it, and why.

        Returns
        -------
        list of dict
            With ``"arguments"`` (as TensorFlow shows them, once they are bound), ``"executor"``,
            ``"reason"`` (why there is no plan), ``"nodes"`` (the number of steps of the plan), and
            ``"state"`` (see `fastops._plans.case`).
        """
        return [case.describe() for case in self.all_cases()]

    def reset(self):
        """Drop all plans. TensorFlow keeps the traces."""
        self._planned.clear()
        self.forget()

    def plans(self):
        """Return descriptions of the plans.

        Returns
        -------
        list of PlanDescription
            One for each plan: its nodes in execution order, with their slots, the buffers that they
            may take over, and their times in calls that were made while a `fastops.profile` was
            open.
        """
        planned = dict.fromkeys(case.runner for case in self.known_cases())
        return [runner.description() for runner in planned if runner.plan is not None]


class PlansBeside(Plans):
    """The plans of a `tf.function`, which `fastops.install` attaches to it.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        The function. It holds a reference to this object.
    """

    def __init__(self, traced):
        executor = "tensorflow" if traced._jit_compile else None
        super().__init__(traced, None, executor, patient=True)
        self._reference = weakref.ref(traced)

    @property
    def _traced(self):
        return self._reference()

    def __reduce__(self):
        return type(None), ()  # a copy of the function starts without plans
