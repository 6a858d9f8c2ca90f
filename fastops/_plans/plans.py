"""The plans of a traced function: one for each trace, found by the signature of a call."""

import weakref

from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import function_type_utils, polymorphic_function

from fastops._plans import costs
from fastops._plans.caller import Caller, Case, Tally
from fastops._plans.leaves import Leaves
from fastops._plans.packing import packer
from fastops._plans.planned import Planned, options_of
from fastops._specialize.policy import MAX_FUNCTION_SIGNATURES

_MOST_TRACES = 32
"""Traces of one function whose nodes are counted, the last ones."""

_tallies: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
"""By that by which TensorFlow counts calls: it is one for all functions of the same code."""


def _tally(traced):
    """Return the tally of a traced function."""
    try:
        return _tallies.setdefault(traced._key_for_call_stats, Tally())
    except (AttributeError, TypeError):  # of another class, or nothing that TensorFlow can count by
        return Tally()


def _unoptimized(call):
    """Return the same function, which TensorFlow calls without its optimizer of graphs."""

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
    """What runs the calls of a traced function, by their signatures.

    The function itself is `_traced`, for classes derived from this to have.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        The function.
    target : callable or None
        What makes a call in TensorFlow's way, where that does not come with the call.
    executor : {None, "plan", "tensorflow"}
        Who runs it.
    optimize : bool
        Whether TensorFlow optimizes its graph.
    patient : bool
        Whether a plan is made when it pays: see `fastops._specialize.policy`.
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
        """Tell whether TensorFlow makes the first call of a signature, which is next."""
        self.tell_of_calls()
        return self._executor != "plan"

    def size_up(self):
        """Tell the number of nodes of a trace, whether there is but one, and a plan of it."""
        traces = costs.traces_of(self._traced)
        planned = any(one.plan is not None for one in self._planned.values())
        return costs.largest(traces[-_MOST_TRACES:]), len(traces) == 1, planned

    def prepare(self, args, kwargs, called, result):
        """See to a call with arguments of a signature, of which there is to be a case.

        Parameters
        ----------
        args, kwargs : tuple, dict
            Its arguments.
        called : bool
            Whether TensorFlow has made it, and traced if it had to.
        result : object
            What came of it.

        Returns
        -------
        case : Case
            What runs such calls from then on.
        called, result
            As given; of a method that makes the call itself, True and what came of it.
        """
        try:
            case = self._case(args, kwargs)
        except Exception as problem:
            if not called:
                raise
            # TensorFlow has made the call, so it was right: it is to make the next ones as well.
            obstacle = "binding_failed", f"{type(problem).__name__}: {problem}"
            case = Case(Planned(None, obstacle=obstacle), [], None)
        return case, called, result

    def tell_of_calls(self):
        """Count the calls that TensorFlow has not seen: it warns of functions traced too often."""
        unseen, self.tally.unseen = self.tally.unseen, 0
        manager = polymorphic_function._frequent_tracing_detector_manager
        key = getattr(self._traced, "_key_for_call_stats", None)
        if unseen and key is not None:
            manager.called_without_tracing(key)
            with manager._lock:
                detector = manager._get_detector(key)
                detector._calls_per_tracings[-1] += unseen - 1
                detector._call_count += unseen - 1

    def _case(self, args, kwargs):
        """Return what runs calls of a signature from then on, given one of them."""
        traced = self._traced
        leaves = Leaves()
        args, kwargs = leaves.replaced(args), leaves.replaced(kwargs)
        concrete = traced.get_concrete_function(*args, **kwargs)
        kind = concrete.function_type
        given = function_type_utils.canonicalize_function_inputs(
            args, kwargs, traced._function_type, traced._default_values, traced._is_pure
        )
        flat = kind.unpack_inputs(kind.bind(*given.args, **given.kwargs))
        takes = leaves.places(flat)
        if leaves.hide(takes, traced._default_values or {}):
            obstacle = ("argument_converted",)
            return Case(Planned(concrete, self._executor, obstacle=obstacle), [], None)
        devices = tuple(leaves.devices(flat))
        key = concrete, devices, *((one.dtype, str(one.shape)) for one in leaves.variables)
        if key not in self._planned:
            self._planned[key] = Planned(
                concrete, self._executor, flat, devices=devices, optimize=self._optimize
            )
        return Case(self._planned[key], takes, packer(concrete))

    def describe(self):
        """Say for each signature who runs it, and why.

        Returns
        -------
        list of dict
            With ``"arguments"`` (as TensorFlow shows them), ``"executor"``, ``"reason"`` why that
            is TensorFlow, and ``"nodes"`` of the plan.
        """
        return [case.runner.describe() for case in self.known_cases()]

    def reset(self):
        """Let go of all plans; what was traced stays with TensorFlow."""
        self._planned.clear()
        self.forget()

    def plans(self):
        """Return what the plans are made of.

        Returns
        -------
        list of PlanDescription
            One for each plan: its nodes in their order, with their slots, the buffers that they may
            take over, and their times in the calls that were made in a `fastops.profile`.
        """
        planned = dict.fromkeys(case.runner for case in self.known_cases())
        return [one.description() for one in planned if one.plan is not None]


class PlansBeside(Plans):
    """The plans of a function of TensorFlow's, beside which they live: `fastops.install`'s.

    Parameters
    ----------
    traced : tf.types.experimental.PolymorphicFunction
        The function, which holds this.
    """

    def __init__(self, traced):
        executor = "tensorflow" if traced._jit_compile else None
        super().__init__(traced, None, executor, patient=True)
        self._reference = weakref.ref(traced)

    @property
    def _traced(self):
        return self._reference()

    def __reduce__(self):
        return type(None), ()  # a copy of the function begins anew
