"""The plan of a function of TensorFlow's runtime: see `fastops._plans.runtime_function`."""

import weakref

from tensorflow.python.eager import context

from fastops._plans.planned import Planned


class Trace:
    """A function of the runtime in the form of a trace without captured tensors.

    The reference to TensorFlow's object is weak, since this object has one to the plan.
    """

    captured_inputs = ()

    def __init__(self, atomic):
        self._reference = weakref.ref(atomic)

    @property
    def _inference_function(self):
        return self._reference()

    @property
    def name(self):
        return self._inference_function.name

    @property
    def function_type(self):
        return self._inference_function.function_type

    @property
    def graph(self):
        return self._inference_function.graph

    _func_graph = graph


class RuntimePlan(Planned):
    """A function of the runtime that runs as a plan if it can. All its tensors are arguments.

    Parameters
    ----------
    atomic : AtomicFunction
        The function.
    inputs : list of EagerTensor
        The tensors of a call, as an example.
    seeds : bool
        Whether random ops may have seeds. The plan is then never timed against TensorFlow, and
        kept as long as TensorFlow's context.
    """

    def __init__(self, atomic, inputs, seeds):
        self.seeds = seeds
        super().__init__(Trace(atomic), inputs=inputs)

    @property
    def title(self):
        """The function's name and arguments, as long as TensorFlow has the function."""
        alive = self.concrete is not None and self.concrete._inference_function is not None
        return super().title if alive else "a function"

    def allow_bare(self):
        """Do not keep TensorFlow's method: it would have a reference to its object."""

    def renew(self, inputs):
        """Make the plan valid again after a change of TensorFlow's context, or make a new one."""
        if not self.seeds or self.plan is None:
            super().renew(inputs)
            return
        self.plan.keep()
        options = context.context().function_call_options
        if options.as_attrs() == self.options[0].as_attrs():
            self.options.append(options)
