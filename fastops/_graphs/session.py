"""Sessions whose runs are plans."""

import time
from contextlib import contextmanager

import numpy as np
import tensorflow as tf
from tensorflow.python.client import session as tf_session
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl, importer, op_def_registry, ops
from tensorflow.python.ops import gen_resource_variable_ops, handle_data_util

from fastops._graphs.accesses import KNOWN, StateError, check_order, writes
from fastops._graphs.resources import SessionVariables
from fastops._plans.planned import Planned, located
from fastops._plans.schedule import HARMLESS, functions_of

MOST_RUNS = 256
"""Sets of feeds and fetches of one session that are kept; beyond, the one made first goes."""

_LEAVES = (tf.Tensor, tf.Operation, tf.SparseTensor, tf.IndexedSlices)
_LOWERED = frozenset({"Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"})
_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
_COMPILED = ("_XlaMustCompile", "_XlaCompile")


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
        self._steps = {}
        self._calls = {}
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
        key = _key(fetches, feed_dict)
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
        return [step.describe() for step in list(self._steps.values())]

    def _do_run(self, handle, target_list, fetch_list, feed_dict, options, run_metadata):
        """Run what TensorFlow has checked and converted: tensors, operations and arrays."""
        rest = (options, run_metadata)
        if handle is not None or options is not None or run_metadata is not None:
            return super()._do_run(handle, target_list, fetch_list, feed_dict, *rest)
        feeds = [feed.deref() for feed in feed_dict]
        key = _names(feeds, fetch_list, target_list)
        step = self._steps.get(key)
        values = None if step is None else step.run(self, tuple(feed_dict.values()))
        if values is not None:
            return values
        if step is None and not context.context().device_name:
            step = _Step(self.graph, self._variables, feeds, fetch_list, target_list)
        trial = None if step is None else step.trial(self)
        begin = time.perf_counter_ns()
        values = super()._do_run(handle, target_list, fetch_list, feed_dict, *rest)
        if trial is not None:
            trial(self, tuple(feed_dict.values()), values, time.perf_counter_ns() - begin)
        if step is not None and key not in self._steps:
            _keep(self._steps, key, step)
        return values

    def _remember(self, key, fetches, feed_dict):
        """Note what a call has been found to be, for others like it."""
        handler = tf_session._FetchHandler(self.graph, fetches, {})
        feeds = [self.graph.as_graph_element(feed) for feed in feed_dict or ()]
        names = _names(feeds, handler.fetches(), handler.targets())
        step = self._steps.get(names)
        if step is not None and step.reason is None and not {*names[0]} & {*names[1]}:
            _keep(self._calls, key, _Call(fetches, handler, feeds, step))


def _keep(kept, key, value):
    while len(kept) >= MOST_RUNS:
        kept.pop(next(iter(kept)), None)
    kept[key] = value


def _names(feeds, fetches, targets):
    return tuple(tuple(one.name for one in part) for part in (feeds, fetches, targets))


def _key(fetches, feed_dict):
    """Return what calls with the same fetches and feeds have in common; `None` if that varies."""
    for feed in feed_dict or ():
        if type(feed) is not str and not isinstance(feed, tf.Tensor):
            return None
    try:
        return (_key_of(fetches), *map(_key_of, feed_dict or ()))
    except TypeError:
        return None


def _key_of(one):
    kind = type(one)
    if kind is str:
        return one
    if isinstance(one, _LEAVES):
        return id(one)
    if kind is list or isinstance(one, tuple):
        return (kind, *map(_key_of, one))
    if kind is dict:
        return (kind, *((type(name), name) for name in one), *map(_key_of, one.values()))
    raise TypeError(kind)


class _Call:
    """Calls of `Session.run` with the same fetches and feeds, which are of plain types."""

    def __init__(self, fetches, handler, feeds, step):
        self.kept = feeds, tf.nest.flatten(fetches)  # so that their ids stay theirs
        self.handler = handler
        self.step = step
        self.feeds = [(feed.dtype.as_numpy_dtype, dims_of(feed.shape)) for feed in feeds]

    def run(self, session, feed_dict):
        """Return the values of the fetches, or `None` where the call is TensorFlow's."""
        values = []
        try:
            for value, (dtype, dims) in zip((feed_dict or {}).values(), self.feeds, strict=True):
                array = _array(value, dtype)
                if array is None or not fits(array.shape, dims):
                    return None
                values.append(array)
        except (TypeError, ValueError, OverflowError):
            return None  # let TensorFlow say so
        return self.step.run(session, values)


def _array(value, dtype):
    """Return a value as TensorFlow feeds it; `None` where that takes TensorFlow."""
    if type(value) is np.ndarray:
        return value if value.dtype == dtype else np.asarray(value, dtype)
    if type(value) in (float, bool, str, bytes, list) or isinstance(value, np.generic):
        return np.asarray(value, dtype)
    return None


def dims_of(shape):
    """Return a shape as a tuple, with `None` for what is not known."""
    return None if shape.rank is None else tuple(shape.as_list())


def fits(dims, wanted):
    """Tell whether two shapes, as `dims_of` has them, may be the same."""
    if dims is None or wanted is None:
        return True
    return len(dims) == len(wanted) and all(
        one is None or other in (None, one) for one, other in zip(dims, wanted, strict=True)
    )


class _LeftError(Exception):
    """A run that a plan leaves to its session, before it has changed anything."""


class _FailedError(Exception):
    """A run of a plan that has failed after it may have changed something, and how."""


class _SessionPlan(Planned):
    """What a session runs. Where a plan is not right, that is the session's to run."""

    def prepare(self):
        super().prepare()
        self.handles = {}  # which would keep the variables that a session destroys

    def run_original(self, *inputs):
        raise _LeftError

    def failure(self, plan, code, message, node):
        if not plan.schedule.has_effects:
            return _LeftError(message)
        kind = errors_impl.exception_type_from_error_code(code)
        return _FailedError(kind(None, None, located(message, node)))

    def follow(self, given, handles):
        """Make up for what changed in TensorFlow; of what it takes, handles come last."""
        if not self.is_ready():
            self.handles = dict(enumerate(handles, len(given)))
            self.renew()

    @property
    def times_the_session(self):
        """Whether the next run is the session's, to see who is faster."""
        return self.plan is not None and not self.settled and not self.is_plans_turn()


class _Step:
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
        self.names = _names(feeds, fetches, targets)
        self.dtypes = [feed.dtype.as_datatype_enum for feed in feeds]
        self.obstacle = self.planned = self.part = None
        try:
            with outside_of_graphs():
                self.part = _Part(graph, feeds, fetches, targets)
                self.variables = [variables.number(op.node_def) for op in self.part.variables]
        except StateError as why:
            self.obstacle = str(why)
        except Exception as error:  # of a graph that is none of a function
            self.obstacle = f"it cannot be taken out of its graph: {error}"

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
            before = self.state(self.handles(session))
            if before is None:  # perhaps this run is the one that gives them a value
                return None
        return lambda *run: self.prove(before, *run)

    def note_time(self, session, values, results, ns):
        self.planned.note_time("tensorflow", ns)

    def prove(self, before, session, values, results, ns):
        """Make the plan, and hold it against what TensorFlow has made of the same values."""
        handles, concrete = self.handles(session), self.part.concrete
        if handles is None or concrete is None:  # another thread has made the plan
            return
        try:
            with outside_of_graphs():
                inputs = [None] * len(self.dtypes) + list(handles)
                planned = _SessionPlan(concrete, inputs=inputs)
                same = planned.reason is not None or self.does_the_same(
                    planned, handles, before, values, results
                )
        except _LeftError as left:
            if left.args:
                self.obstacle = f"its plan fails where TensorFlow does not: {left}"
            return
        except Exception as error:
            self.obstacle = f"its plan fails where TensorFlow does not: {error}"
            return
        if not same:
            self.obstacle = "TensorFlow's session computes other values than its functions"
        self.planned = planned
        self.part.concrete = None  # which the plan keeps

    def does_the_same(self, planned, handles, before, values, results):
        """Tell whether a plan does what TensorFlow has done, to copies of what it changes."""
        if planned.plan.schedule.has_effects and before is None:
            return False
        mine = handles if before is None else self.copies(before)
        got = [one.numpy() for one in self.fetch(planned, self.tensors(values), mine)]
        if before is not None:
            got += [one.numpy() for one in self.state(mine)]
            results = results + [one.numpy() for one in self.state(handles)]
        return all(map(_same, got, results))

    def handles(self, session):
        """Return handles of the variables; `None` if not all of them have values on the host."""
        if not self.variables:
            return ()
        return session._variables.handles(session, self.variables)

    def state(self, handles):
        """Return the values of variables; `None` if they are not to be had."""
        if handles is None:
            return None
        try:
            with outside_of_graphs():
                return [
                    gen_resource_variable_ops.read_variable_op(handle, dtype)
                    for handle, dtype in zip(handles, self.part.dtypes, strict=True)
                ]
        except tf.errors.OpError:  # another thread has destroyed one
            return None

    def copies(self, values):
        """Return handles of variables of nobody else's, with these values."""
        handles = []
        for value, op in zip(values, self.part.variables, strict=True):
            dtype, shape = op.get_attr("dtype"), op.get_attr("shape")
            name = context.anonymous_name()
            handle = gen_resource_variable_ops.var_handle_op(dtype, shape, shared_name=name)
            gen_resource_variable_ops.assign_variable_op(handle, value)
            handles.append(handle)
        return tuple(handles)

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
        except _LeftError:
            return None
        except _FailedError as failed:
            return session._do_call(_raise, *failed.args)
        return [result.numpy() for result in results]

    def tensors(self, values):
        return tuple(
            ops.EagerTensor(value, None, dtype)
            for value, dtype in zip(values, self.dtypes, strict=True)
        )

    def fetch(self, planned, given, handles):
        planned.follow(given, handles)
        return planned.run(given + handles)

    def describe(self):
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


@contextmanager
def outside_of_graphs():
    """Leave the graph under construction, which a session's may be, for a while."""
    graphs = ops._default_graph_stack
    stack, graphs.stack = graphs.stack, []
    try:
        with context.eager_mode():
            yield
    finally:
        graphs.stack = stack


def _same(got, want):
    """Tell whether two fetched values are the same, bit for bit."""
    if type(got) is not type(want):
        return False
    if isinstance(want, bytes):
        return got == want
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    if got.dtype == object:
        return got.tolist() == want.tolist()
    return got.tobytes() == want.tobytes()


# ---------------------------------------------------------------------------------------------
# What is run, taken out of its graph
# ---------------------------------------------------------------------------------------------


class _Part:
    """What leads from some tensors to others, as a function of these and of variables.

    Attributes
    ----------
    concrete : tf.types.experimental.ConcreteFunction
        It.
    variables : list of tf.Operation
        Those that name the variables that it takes after the feeds.
    dtypes : list of tf.DType
        Their dtypes.
    writes : bool
        Whether it writes any.
    """

    def __init__(self, graph, feeds, fetches, targets):
        for one in (*feeds, *fetches):
            if one.dtype in (tf.resource, tf.variant) or one.dtype._is_ref_dtype:
                raise StateError(f"{one.name} is a {one.dtype.name}")
        fed = {feed.name for feed in feeds}
        definition, self.variables = _part(graph, fed, fetches, targets)
        self.dtypes = [op.get_attr("dtype") for op in self.variables]
        self.writes = any(map(writes, definition.node))
        used = {name for node in definition.node for name in node.input}
        taken = [*feeds, *(op.outputs[0] for op in self.variables)]
        # In a GraphDef, an operation's first output goes by the operation's name.
        inputs = {one.name: one.name.removesuffix(":0") for one in taken}
        wanted = [one.name for one in (*fetches, *targets)]

        def body(*given):
            replaced = {}
            for one, tensor in zip(taken, given, strict=True):
                if one.dtype == tf.resource:
                    data = handle_data_util.get_resource_handle_data(one)
                    handle_data_util.set_handle_data(tensor, data)
                if inputs[one.name] in used:
                    replaced[inputs[one.name]] = tensor
            found = importer.import_graph_def(definition, replaced, wanted, name="")
            tf.compat.v1.get_default_graph().control_outputs.extend(found[len(fetches) :])
            # What a function returns takes its name from the node that makes it.
            return [
                tf.identity(one, f"fastops_fetch_{place}")
                for place, one in enumerate(found[: len(fetches)])
            ]

        specs = [
            tf.TensorSpec(one.shape, one.dtype, f"fastops_feed_{place}")
            for place, one in enumerate(taken)
        ]
        self.concrete = tf.compat.v1.wrap_function(body, specs)


def _part(graph, fed, fetches, targets):
    """Return the GraphDef of the nodes that are run, and the operations that name variables."""
    ops_fed = (graph.get_tensor_by_name(name).op for name in fed)
    # Who waits for one of these does so no longer; other operations are run all the same.
    given = {op.name for op in ops_fed if op.type in _PLACEHOLDERS}
    waiting = [*targets, *(fetch.op for fetch in fetches)]
    found, variables = {}, {}
    while waiting:
        op = waiting.pop()
        if op.name in found or op.name in variables:
            continue
        if _names_a_variable(op) and op not in targets:
            variables[op.name] = op
            given.add(op.name)
            continue
        found[op.name] = op
        waiting += [source for source in op.control_inputs if source.name not in given]
        waiting += [source.op for source in op.inputs if source.name not in fed]
    definition = tf.compat.v1.GraphDef(versions=graph.graph_def_versions)
    definition.node.extend(op.node_def for op in found.values())
    library = {}
    if any(len(functions_of(node)) > 1 or node.op in graph._functions for node in definition.node):
        library = {one.signature.name: one for one in graph.as_graph_def().library.function}
    called = {}
    _check(definition.node, library, called, KNOWN)
    definition.library.function.extend(called.values())
    for node in definition.node:
        inputs = [one for one in node.input if not (one[0] == "^" and one[1:] in given)]
        node.input[:] = inputs
        node.attr.pop("_class", None)  # the neighbour may be left out
        if node.op == "PlaceholderWithDefault":  # which nobody feeds
            node.op = "Identity"
            node.attr["T"].CopyFrom(node.attr.pop("dtype"))
            del node.attr["shape"]
        if node.op in _LOWERED:
            node.attr["_lower_using_switch_merge"].b = True
    if any(map(writes, definition.node)):
        kept = {
            name: (op.get_attr("container"), op.get_attr("shared_name").decode())
            for name, op in variables.items()
        }
        callers = {node.name for node in definition.node if functions_of(node) & called.keys()}
        check_order(definition.node, kept, callers)
    return definition, list(variables.values())


def _names_a_variable(op):
    """Tell whether an operation names a variable, of a name of its own, on the host."""
    if op.type != "VarHandleOp" or op.control_inputs:
        return False
    name = op.get_attr("shared_name")
    device = tf.DeviceSpec.from_string(op.device)
    return (
        name not in (b"", context.anonymous_name().encode())
        and device.device_type in (None, "CPU")
        and device.device_index in (None, 0)
    )


def _check(nodes, library, called, known):
    """Raise `StateError` for states that are not known; collect the functions that are called."""
    for node in nodes:
        functions = sorted(functions_of(node) & library.keys())
        found = op_def_registry.get(node.op)
        if node.op in _PLACEHOLDERS:
            raise StateError(f"{node.name} is not fed")
        if found is not None and found.is_stateful and not functions and node.op not in known:
            raise StateError(f"{node.op} has a state that is the session's")
        if any(node.attr[name].b for name in _COMPILED if name in node.attr):
            raise StateError(f"{node.name} is compiled by XLA")
        for name in functions:
            if name not in called:
                called[name] = library[name]
                _check(library[name].node_def, library, called, HARMLESS)
