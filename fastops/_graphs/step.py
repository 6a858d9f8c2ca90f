"""What one set of feeds and fetches of a session runs: a step, as TensorFlow calls it."""

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from fastops._core.reasons import text_of
from fastops._graphs.accesses import StateError
from fastops._graphs.eager import outside_of_graphs
from fastops._graphs.part import Part
from fastops._graphs.planned import FailedError, LeftError
from fastops._graphs.trial import Trial, state


def names_of(feeds, fetches, targets):
    """Return what a step goes by: the names of what is given, asked for, and run besides."""
    return tuple(tuple(one.name for one in part) for part in (feeds, fetches, targets))


class Step:
    """What one set of feeds and fetches runs.

    Parameters
    ----------
    graph : tf.Graph
        The graph of all of these.
    variables : SessionVariables
        Those of the session.
    feeds, fetches : list of tf.Tensor
        What is given, and what is asked for.
    targets : list of tf.Operation
        What is run besides.
    """

    def __init__(self, graph, variables, feeds, fetches, targets):
        self.names = names_of(feeds, fetches, targets)
        self.dtypes = [feed.dtype.as_datatype_enum for feed in feeds]
        self.known = variables
        self.obstacle = self.planned = self.part = None
        try:
            with outside_of_graphs():
                self.part = Part(graph, feeds, fetches, targets)
                self.variables = [variables.number(op.node_def) for op in self.part.variables]
        except StateError as why:
            self.obstacle = str(why)
        except Exception as error:  # of a graph that is none of a function
            self.obstacle = text_of("not_a_function", str(error))

    @property
    def reason(self):
        """Why TensorFlow runs it; `None` where a plan does."""
        if self.obstacle is None and self.planned is None:
            return "its variables had no values before its last run"
        return self.obstacle or self.planned.reason

    def trial(self, session):
        """Return what is to be told of a run that TensorFlow is about to make.

        Returns
        -------
        callable or None
            Takes the session, the values of the feeds, the results, and nanoseconds; `None` where
            nothing is to be learned.
        """
        if self.planned is not None:
            return self.note_time if self.planned.times_the_session else None
        if self.obstacle is not None:
            return None
        before = None
        if self.part.writes:
            before = state(self.handles(session), self.part.dtypes)
            if before is None:  # perhaps this run is the one that gives them a value
                return None
        return Trial(self, before)

    def note_time(self, session, values, results, ns):
        """Take note of what a run of TensorFlow's took."""
        self.planned.note_time("tensorflow", ns)

    def handles(self, session):
        """Return handles of the variables; `None` if not all of them have values on the host."""
        if not self.variables:
            return ()
        return self.known.handles(session, self.variables)

    def run(self, session, values):
        """Return the values of the fetches, or `None` where they are TensorFlow's to compute."""
        here = context.context()
        if self.reason is not None or here.device_name:
            return None
        handles = self.handles(session)
        if handles is None:
            return None
        try:
            given = self.tensors(values)
        except Exception:  # which TensorFlow's session raises in its own words
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
        """Return the arrays that feeds are, as tensors that share their memory."""
        return tuple(
            ops.EagerTensor(value, None, dtype)
            for value, dtype in zip(values, self.dtypes, strict=True)
        )

    def fetch(self, planned, given, handles):
        """Have a plan run; return the fetches as tensors."""
        planned.follow(given, handles)
        return planned.run(given + handles)

    def describe(self):
        """Say who runs it, and why: what `Session.describe` has of it."""
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
