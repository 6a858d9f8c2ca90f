"""Sessions whose runs are plans."""

import time

import tensorflow as tf
from tensorflow.python.client import session as tf_session
from tensorflow.python.eager import context

from fastops._graphs.calls import Call, key_of_call
from fastops._graphs.resources import SessionVariables
from fastops._graphs.step import Step, names_of
from fastops._specialize.cache import Cache
from fastops._specialize.policy import MAX_SESSION_RUNS


class Session(tf.compat.v1.Session):
    """Runs a graph, by one plan for each set of feeds and fetches.

    It is a `tf.compat.v1.Session`: what that takes, returns and raises holds here.

    Parameters
    ----------
    graph : tf.Graph, optional
        The graph; by default the one that is built at the moment.

    Raises
    ------
    TypeError
        If `graph` is not a graph.

    Notes
    -----
    The first run with new feeds and fetches is TensorFlow's. A plan makes those that follow, if
    what it makes of the first run's feeds is, bit for bit, what TensorFlow made: results, and the
    new values of variables, of which it is given copies for that. It reads and writes the
    session's own variables, those of resources, on the host, with a value, and of which the graph
    says in which order they are read and written. Other variables, queues, tables, random ops of
    TensorFlow 1 and all else with a state are run by TensorFlow, as are calls with `options` or
    `run_metadata`. `describe` tells which is which. The graph may grow between runs.

    See Also
    --------
    load : for models that are saved.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import graph
    >>> with graph.Graph().as_default() as g:
    ...     x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
    ...     y = tf.multiply(x, 2.0, name="y")
    >>> with graph.Session(g) as session:
    ...     [session.run({"twice": "y:0"}, {x: [1.0, value]}) for value in (2.0, 3.0)]
    [{'twice': array([2., 4.], dtype=float32)}, {'twice': array([2., 6.], dtype=float32)}]
    """

    _session = None  # of TensorFlow, which fails before it has made one where `graph` is none

    def __init__(self, graph=None):
        super().__init__(graph=graph)
        self._steps, self._calls = Cache(MAX_SESSION_RUNS), Cache(MAX_SESSION_RUNS)
        self._variables = SessionVariables()

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Run what is needed for some fetches, and return their values.

        Parameters
        ----------
        fetches : tf.Tensor, tf.Operation, str, or nested list, tuple or dict of these
            What to compute. Operations are run, and have no value.
        feed_dict : dict, optional
            Values of tensors, by tensor or name, which are taken instead of computed.
        options, run_metadata : optional
            As for `tf.compat.v1.Session.run`, whose these calls are.

        Returns
        -------
        numpy.ndarray, numpy.generic, bytes, None, or a nest of these
            In the structure of `fetches`.

        Raises
        ------
        RuntimeError
            If the session is closed, or its graph is empty.
        TypeError, ValueError
            If fetches or feeds are not of the graph, or values do not fit their tensors.
        tf.errors.OpError
            If an operation fails.
        """
        if options is not None or run_metadata is not None:
            return super().run(fetches, feed_dict, options, run_metadata)
        key = key_of_call(fetches, feed_dict)
        call = None if key is None else self._calls.get(key)
        if call is None:
            results = super().run(fetches, feed_dict)
            if key is not None:
                self._remember(key, fetches, feed_dict)
            return results
        if not self._closed:
            values = call.run(self, feed_dict)
            if values is not None:
                return call.handler.build_results(self, values)
        return super().run(fetches, feed_dict)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """Return a function of the values of some feeds that returns those of some fetches.

        Parameters
        ----------
        fetches : nest of tf.Tensor, tf.Operation and str
            As for `run`.
        feed_list : list, optional
            The tensors that its arguments are values of.
        accept_options : bool
            Whether it takes `options` and `run_metadata`.

        Returns
        -------
        callable
        """
        if feed_list is not None or accept_options:
            return super().make_callable(fetches, feed_list, accept_options)
        super().make_callable(fetches)  # which raises what it has to
        return lambda: self.run(fetches)

    def describe(self):
        """Say for each set of feeds and fetches who runs it, and why.

        Returns
        -------
        list of dict
            With ``"feeds"``, ``"fetches"`` and ``"targets"``, the names of tensors and operations,
            ``"executor"``, and ``"reason"`` why that is TensorFlow.
        """
        return [step.describe() for step in self._steps.values()]

    def _do_run(self, handle, target_list, fetch_list, feed_dict, options, run_metadata):
        """Run what TensorFlow has checked and converted: tensors, operations and arrays."""
        rest = (options, run_metadata)
        if handle is not None or options is not None or run_metadata is not None:
            return super()._do_run(handle, target_list, fetch_list, feed_dict, *rest)
        feeds = [feed.deref() for feed in feed_dict]
        key = names_of(feeds, fetch_list, target_list)
        step = self._steps.get(key)
        values = None if step is None else step.run(self, tuple(feed_dict.values()))
        if values is not None:
            return values
        if step is None and not context.context().device_name:
            step = Step(self.graph, self._variables, feeds, fetch_list, target_list)
        trial = None if step is None else step.trial(self)
        begin = time.perf_counter_ns()
        values = super()._do_run(handle, target_list, fetch_list, feed_dict, *rest)
        if trial is not None:
            trial(self, tuple(feed_dict.values()), values, time.perf_counter_ns() - begin)
        if step is not None:
            step = self._steps.add(key, step)
        return values

    def _remember(self, key, fetches, feed_dict):
        """Note what a call has been found to be, for others like it."""
        handler = tf_session._FetchHandler(self.graph, fetches, {})
        feeds = [self.graph.as_graph_element(feed) for feed in feed_dict or ()]
        names = names_of(feeds, handler.fetches(), handler.targets())
        step = self._steps.get(names)
        if step is not None and step.reason is None and not {*names[0]} & {*names[1]}:
            self._calls.replace(key, Call(fetches, handler, feeds, step))
