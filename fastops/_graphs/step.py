"""Runs one set of feeds and fetches of a session. TensorFlow calls such a run a step."""

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from fastops._core.reasons import text_of
from fastops._graphs.accesses import StateError
from fastops._graphs.eager import outside_of_graphs
from fastops._graphs.part import Part
from fastops._graphs.planned import FailedError, LeftError
from fastops._graphs.trial import Trial, state
from fastops._specialize.learned import Learned


def names_of(feeds, fetches, targets):
    """Return the key of a step: the names of its feeds, fetches and targets."""
    return tuple(tuple(item.name for item in part) for part in (feeds, fetches, targets))


class SessionStep:
    """Runs one set of feeds and fetches.

    Parameters
    ----------
    graph : tf.Graph
        The graph of the session.
    variables : SessionVariables
        The variables of the session.
    feeds, fetches : list of tf.Tensor
        The tensors that a run takes, and the tensors that it returns.
    targets : list of tf.Operation
        The operations that are run without a result.
    """

    def __init__(self, graph, variables, feeds, fetches, targets):
        self.names = names_of(feeds, fetches, targets)
        self.dtypes = [feed.dtype.as_datatype_enum for feed in feeds]
        self.known = variables
        self.learned, self.part = Learned(self.names), None
        try:
            with outside_of_graphs():
                self.part = Part(graph, feeds, fetches, targets)
                self.variables = [variables.number(op.node_def) for op in self.part.variables]
        except StateError as why:
            self.learned.leave(why.sentence, why.detail)
        except Exception as error:  # the part cannot be made a function
            self.learned.refuse("not_a_function", str(error))

    @property
    def reason(self):
        """Why TensorFlow runs the step; `None` if a plan runs it."""
        if self.planned is not None:
            return self.planned.reason
        return self.learned.text or text_of("variables_unset")

    @property
    def planned(self):
        """The plan that runs the step; `None` until it is made, and if there can be none."""
        return self.learned.content

    def trial(self, session):
        """Return a callable that learns from the run which TensorFlow makes next.

        Returns
        -------
        callable or None
            Takes the session, the values of the feeds, the results, and the nanoseconds of the run.
            `None` if there is nothing to learn.
        """
        if self.planned is not None:
            return self.note_time if self.planned.times_the_session else None
        if self.learned.is_decided:
            return None
        before = None
        if self.part.writes:
            before = state(self.handles(session), self.part.dtypes)
            if before is None:  # this run may initialize the variables
                return None
        return Trial(self, before)

    def note_time(self, session, values, results, ns):
        """Note the time of a run by TensorFlow."""
        self.planned.note_time("tensorflow", ns)

    def handles(self, session):
        """Return the handles of the variables; `None` if one of them has no value on the host."""
        if not self.variables:
            return ()
        return self.known.handles(session, self.variables)

    def run(self, session, values):
        """Return the values of the fetches, or `None` if TensorFlow has to run the step."""
        here = context.context()
        if self.reason is not None or here.device_name:
            return None
        handles = self.handles(session)
        if handles is None:
            return None
        try:
            given = self.tensors(values)
        except Exception:  # TensorFlow's session raises the error, with its own message
            return None
        try:
            if here.executing_eagerly():
                results = self.fetch(self.planned, given, handles)
            else:
                with outside_of_graphs():
                    results = self.fetch(self.planned, given, handles)
        except LeftError:
            return None
        except FailedError as failed:
            return session._do_call(_raise, *failed.args)
        return [result.numpy() for result in results]

    def tensors(self, values):
        """Return tensors that share the memory of the fed arrays."""
        return tuple(
            ops.EagerTensor(value, None, dtype)
            for value, dtype in zip(values, self.dtypes, strict=True)
        )

    def fetch(self, planned, given, handles):
        """Run a plan; return the fetches as tensors."""
        planned.follow(given, handles)
        return planned.run(given + handles)

    def describe(self):
        """Say which executor runs the step, and why, for `Session.describe`."""
        feeds, fetches, targets = map(list, self.names)
        executor = "plan" if self.reason is None else "tensorflow"
        return {
            "feeds": feeds,
            "fetches": fetches,
            "targets": targets,
            "executor": executor,
            "reason": self.reason,
        }


def _raise(error):
    raise error
