"""Sessions that run plans."""

import time

import tensorflow as tf
from tensorflow.python.client import session as tf_session
from tensorflow.python.eager import context

from fastops._graphs.calls import SessionCall, key_of_call
from fastops._graphs.resources import SessionVariables
from fastops._graphs.step import SessionStep, names_of
from fastops._specialize.cache import Cache
from fastops._specialize.policy import MAX_SESSION_RUNS


class Session(tf.compat.v1.Session):
    """Runs a graph, by one plan for each set of feeds and fetches.

    It is a `tf.compat.v1.Session`: it takes, returns and raises the same.

    Parameters
    ----------
    graph : tf.Graph, optional
        The graph; by default the current default graph.

    Raises
    ------
    TypeError
        If `graph` is not a graph.

    Notes
    -----
    TensorFlow makes the first run with new feeds and fetches. Then a trial runs the plan with the
    same feeds, on copies of the variables. If its results and the new values of variables are
    equal to TensorFlow's bit by bit, the plan makes the following runs.

    A plan reads and writes the session's own variables. These must be resource variables on the
    host that have a value, and the graph must define the order in which they are read and
    written. TensorFlow runs everything else: other variables, queues, tables, random ops of
    TensorFlow 1 and other ops with a state, and calls with `options` or `run_metadata`.
    `describe` says which executor runs each set. The graph may grow between runs.

    See Also
    --------
    load : for models that are saved.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import graph
    >>> with graph.Graph().as_default() as g:
    ...     x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
    ...     y = tf.multiply(x, 2.0, name="double")
    >>> with graph.Session(g) as session:
    ...     [session.run({"twice": "double:0"}, {x: [1.0, value]}) for value in (2.0, 3.0)]
    [{'twice': array([2., 4.], dtype=float32)}, {'twice': array([2., 6.], dtype=float32)}]
    """

    _session = None  # TensorFlow reads this if its constructor fails

    def __init__(self, graph=None):
        super().__init__(graph=graph)
        self._steps, self._calls = Cache(MAX_SESSION_RUNS), Cache(MAX_SESSION_RUNS)
        self._variables = SessionVariables()

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Run the operations that the fetches need, and return the values of the fetches.

        Parameters
        ----------
        fetches : tf.Tensor, tf.Operation, str, or nested list, tuple or dict of these
            The tensors to compute. Operations are run, and their value is None.
        feed_dict : dict, optional
            Values by tensor or name. These tensors are not computed.
        options, run_metadata : optional
            As for `tf.compat.v1.Session.run`. TensorFlow runs such calls.

        Returns
        -------
        numpy.ndarray, numpy.generic, bytes, None, or a nest of these
            In the structure of `fetches`.

        Raises
        ------
        RuntimeError
            If the session is closed, or its graph is empty.
        TypeError, ValueError
            If fetches or feeds are not in the graph, or values do not fit their tensors.
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
        """Return a function that takes the values of feeds and returns the values of fetches.

        Parameters
        ----------
        fetches : nest of tf.Tensor, tf.Operation and str
            As for `run`.
        feed_list : list, optional
            The tensors for which the function's arguments are the values.
        accept_options : bool
            Whether the function takes `options` and `run_metadata`.

        Returns
        -------
        callable
        """
        if feed_list is not None or accept_options:
            return super().make_callable(fetches, feed_list, accept_options)
        super().make_callable(fetches)  # raises for invalid fetches
        return lambda: self.run(fetches)

    def describe(self):
        """Say for each set of feeds and fetches which executor runs it, and why.

        Returns
        -------
        list of dict
            With ``"feeds"``, ``"fetches"`` and ``"targets"`` (the names of tensors and operations),
            ``"executor"``, and ``"reason"`` (why no plan runs the set).
        """
        return [step.describe() for step in self._steps.values()]

    def _do_run(self, handle, target_list, fetch_list, feed_dict, options, run_metadata):
        """Run the tensors, operations and arrays that TensorFlow has checked and converted."""
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
            step = SessionStep(self.graph, self._variables, feeds, fetch_list, target_list)
        trial = None if step is None else step.trial(self)
        begin = time.perf_counter_ns()
        values = super()._do_run(handle, target_list, fetch_list, feed_dict, *rest)
        if trial is not None:
            trial(self, tuple(feed_dict.values()), values, time.perf_counter_ns() - begin)
        if step is not None:
            step = self._steps.add(key, step)
        return values

    def _remember(self, key, fetches, feed_dict):
        """Keep the `SessionCall` for a key, so that later calls skip TensorFlow's handlers."""
        handler = tf_session._FetchHandler(self.graph, fetches, {})
        feeds = [self.graph.as_graph_element(feed) for feed in feed_dict or ()]
        names = names_of(feeds, handler.fetches(), handler.targets())
        step = self._steps.get(names)
        if step is not None and step.reason is None and not {*names[0]} & {*names[1]}:
            self._calls.replace(key, SessionCall(fetches, handler, feeds, step))
