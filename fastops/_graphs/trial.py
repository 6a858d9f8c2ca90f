"""Trials: compare a plan with a run of TensorFlow's session on the same values.

`fastops._specialize.trial` has the trials of replays. It copies variables right before the recorded
call. A session runs in a graph, and its variables are known by their handles alone. So
`state` reads the values before the run. After the run, the plan gets copies made of these values.
"""

import tensorflow as tf
from tensorflow.python.ops import gen_resource_variable_ops

from fastops._graphs.eager import outside_of_graphs
from fastops._graphs.planned import LeftError, SessionPlan
from fastops._specialize.recording.alike import alike
from fastops._specialize.trial import private_handle


class Trial:
    """Decides, by a run of TensorFlow's session, whether a plan may make the following runs.

    Parameters
    ----------
    step : SessionStep
        The step that is run. It gets the plan, or the reason why there is none.
    before : list of EagerTensor or None
        The values of the variables before the run; `None` if the step writes none.
    """

    def __init__(self, step, before):
        self.step = step
        self.before = before

    def __call__(self, session, values, results, ns):
        """Make the plan, and compare its results with those of TensorFlow's run."""
        step = self.step
        handles, concrete = step.handles(session), step.part.concrete
        if handles is None or concrete is None:  # another thread has made the plan
            return
        try:
            with outside_of_graphs():
                inputs = [None] * len(step.dtypes) + list(handles)
                planned = SessionPlan(concrete, inputs=inputs)
                agrees = planned.plan is None or self.does_the_same(
                    planned, handles, values, results
                )
        except LeftError as left:
            if left.args:
                step.learned.refuse("plan_fails_alone", str(left))
            return
        except Exception as error:
            step.learned.refuse("plan_fails_alone", str(error))
            return
        if planned.plan is None:
            step.learned.leave(planned.sentence, planned.detail)
        elif agrees:
            step.learned.learn(planned)
        else:
            step.learned.refuse("session_differs")
        step.part.concrete = None  # the plan keeps it

    def does_the_same(self, planned, handles, values, results):
        """Tell whether a plan, on copies of the variables, computes the same as TensorFlow."""
        step = self.step
        if planned.plan.schedule.has_effects and self.before is None:
            return False
        mine = handles if self.before is None else copies(self.before, step.part.variables)
        got = [tensor.numpy() for tensor in step.fetch(planned, step.tensors(values), mine)]
        if self.before is not None:
            got += [tensor.numpy() for tensor in state(mine, step.part.dtypes)]
            results = results + [tensor.numpy() for tensor in state(handles, step.part.dtypes)]
        return alike(got, results)


def state(handles, dtypes):
    """Return the values of variables; `None` if they cannot be read."""
    if handles is None:
        return None
    try:
        with outside_of_graphs():
            return [
                gen_resource_variable_ops.read_variable_op(handle, dtype)
                for handle, dtype in zip(handles, dtypes, strict=True)
            ]
    except tf.errors.OpError:  # another thread has destroyed a variable
        return None


def copies(values, ops):
    """Return handles of private variables with these values, like the variables that ops made."""
    return tuple(
        private_handle(op.get_attr("dtype"), op.get_attr("shape"), value)
        for value, op in zip(values, ops, strict=True)
    )
