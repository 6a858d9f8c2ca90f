"""Graphs of `tf.compat.v1`: the session that holds the values, and functions that it runs.

The session is the default session, if there is one. Otherwise each thread has one session for the
graph.
"""

import threading
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.util.nest import flatten_up_to

from fastops._backend.state import leaves_initialization, on_clear

_variables: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class _ThreadSession(threading.local):
    def __init__(self):
        self.session = None


_mine = _ThreadSession()


@on_clear
def _close():
    if _mine.session is not None:
        _mine.session.close()
        _mine.session = None


def in_graph():
    """Tell whether this thread builds a graph that a session will run."""
    return not tf.compat.v1.executing_eagerly_outside_functions()


def track(variable):
    """Note a variable of a graph: `session_of` initialises it before a session returns values."""
    if in_graph():
        _variables.setdefault(variable.graph, set()).add(variable)


def session_of(graph):
    """Return the session that holds the values of a graph; initialise the noted variables."""
    session = tf.compat.v1.get_default_session()
    if session is None:
        if _mine.session is None or _mine.session.graph is not graph:
            _close()
            _mine.session = tf.compat.v1.Session(graph=graph)
        session = _mine.session
    waiting = list(_variables.pop(session.graph, ()))
    if waiting and not leaves_initialization():
        with session.graph.as_default():
            known = session.run(
                [tf.compat.v1.is_variable_initialized(variable) for variable in waiting]
            )
            new = [
                variable for variable, is_known in zip(waiting, known, strict=True) if not is_known
            ]
            session.run(tf.compat.v1.variables_initializer(new))
    return session


def values_of(tensors):
    """Return the values of tensors and variables of a graph."""
    graph = tensors[0].graph
    with graph.as_default():
        return session_of(graph).run(tensors)


def assign(pairs):
    """Set variables of a graph from arrays."""
    with pairs[0][0].graph.as_default():
        session = session_of(pairs[0][0].graph)
        for variable, value in pairs:
            variable.load(value, session)


def _parts(value):
    """Return the tensors in a composite tensor; any other value as the only item of a list."""
    if isinstance(value, tf.__internal__.CompositeTensor) and not isinstance(value, tf.Variable):
        return tf.nest.flatten(value, expand_composites=True)
    return [value]


class SessionFunction:
    """A function between tensors of a graph, which a session runs; made by `function`."""

    def __init__(
        self,
        inputs,
        outputs,
        updates,
        name,
        fetches=(),
        feed_dict=None,
        options=None,
        run_metadata=None,
    ):
        if not isinstance(updates or [], (list, tuple)):
            raise TypeError("`updates` in a backend function should be a list or tuple.")
        self.name = name
        self._structure = inputs
        self._inputs = tf.nest.flatten(inputs, expand_composites=True)
        self._outputs = outputs
        with tf.control_dependencies(tf.nest.flatten(outputs, expand_composites=True)[:1]):
            self._updates = tf.group(
                *(
                    tf.compat.v1.assign(*update) if isinstance(update, tuple) else update
                    for update in updates or []
                )
            )
        fetches = fetches if isinstance(fetches, list) else [fetches] if fetches != () else []
        self.fetches = [tf.identity(fetch) for fetch in fetches]
        self.fetch_callbacks: dict = {}
        self.feed_dict = feed_dict
        self.run_options = options
        self.run_metadata = run_metadata

    def __call__(self, inputs):
        """Return the outputs, as arrays."""
        values = flatten_up_to(self._structure, inputs, check_types=False)
        values = [part for value in values for part in _parts(value)]
        session = session_of(self._updates.graph)
        feeds = {} if self.feed_dict is None else dict(self.feed_dict)
        for tensor, value in zip(self._inputs, values, strict=False):
            if value is None:
                continue
            if tf.is_tensor(value):
                value = session.run(value)
            feeds[tensor] = np.asarray(value, tensor.dtype.as_numpy_dtype)
        outputs, fetched, _ = session.run(
            (self._outputs, self.fetches, self._updates),
            feeds,
            options=self.run_options,
            run_metadata=self.run_metadata,
        )
        for fetch, value in zip(self.fetches, fetched, strict=True):
            if fetch in self.fetch_callbacks:
                self.fetch_callbacks[fetch](value)
        return outputs
