# distutils: language = c++
"""Chooses between the plan and TensorFlow for each call of a traced function."""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libcpp.utility cimport move

from fastops._core.locals cimport default_graph, has_scopes, is_ordinary, of_this_thread
from fastops._core.threads cimport this_thread
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.handle cimport Inspect, Wrap, WrapPlaced, kReady
from fastops._cpp.plan cimport Borrowed, Made, NativeStep
from fastops._cpp.python cimport PySequence_Fast_ITEMS, call_object
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.text cimport Message
from fastops._cpp.timer cimport Nanoseconds
from fastops._dispatch cimport generation, in_order, on_host, runtime
from fastops._plans.plan cimport Plan
from fastops._specialize.policy cimport LONG_RUN_NS
from fastops._tf.device cimport Device
from fastops._tf.eager cimport EagerTensor_Handle, GetEagerContextThreadLocalData, recording
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

from tensorflow.python.distribute.distribute_lib import (
    _DefaultDistributionStrategy as _DefaultStrategy,
)
from tensorflow.python.eager import cancellation as _tf_cancellation
from tensorflow.python.eager.polymorphic_function import eager_function_run as _tf_run
from tensorflow.python.saved_model import save_context as _tf_save_context
from tensorflow.python.util.traceback_utils import filter_traceback as _filter_traceback


cdef Runtime* _where = runtime()  # the address never changes; `gate` keeps the contents current
cdef dict _run_globals = _tf_run.__dict__
cdef dict _cancellation_globals = _tf_cancellation.__dict__
cdef object _saving = _tf_save_context._save_context
cdef str _EAGERLY = "RUN_FUNCTIONS_EAGERLY"
cdef str _CANCELLED = "_active_context"
cdef object _FALSE = False


cpdef bint is_plain() except -1:
    """Tell whether nothing around a call of this thread affects how a traced function runs.

    The thread executes eagerly and the host is the only device. No tape records. There is no device
    scope, no distribution strategy and no export to a SavedModel.
    """
    return not recording() and on_host() and _is_plain(False)


cpdef bint is_plain_anywhere() except -1:
    """Like `is_plain`, but TensorFlow may place the call on devices other than the host."""
    return not recording() and in_order() and _is_plain(False)


cdef bint is_plain_but_for_tapes() except -1:
    return in_order() and _is_plain(False)


cdef bint is_plain_or_one_replica() except -1:
    return in_order() and _is_plain(True)


cdef bint _is_plain(bint one_replica) except -1:
    cdef PyObject* device_name
    cdef bint scoped
    device_name = GetEagerContextThreadLocalData(_where.py_context).device_name.get()
    if (
        device_name != <PyObject*>None and <object>device_name != ""
        or PyDict_GetItem(_run_globals, _EAGERLY) != <PyObject*>_FALSE
        or PyDict_GetItem(_cancellation_globals, _CANCELLED) != <PyObject*>None
        or _saving._in_save_context
    ):
        return False
    graph = default_graph(&scoped)
    return graph is None or not scoped and is_ordinary(graph) and (
        not has_scopes(graph, "_distribution_strategy_stack")
        or one_replica and _is_one_replica(graph)
    )


cdef bint _is_one_replica(object graph) except -1:
    """Whether the only strategies are TensorFlow's default one, which has a single replica."""
    stack = of_this_thread(graph._thread_local, "_distribution_strategy_stack")
    for mode in stack:
        if type(mode.strategy) is not _DefaultStrategy:
            return False
    return stack[len(stack) - 1].replica_context is not None


cdef object call_original(const Original* call):
    return call_object(call.target, call.args, call.nargsf, call.keywords)


cdef int _observed = 0  # how many observers of calls there are


def observe(change):
    """Change the number of observers by `change`."""
    global _observed
    _observed += change


cdef class Runner:
    """Runs each call of a traced function, by the plan or by TensorFlow.

    The derived class `fastops._plans.planned.Planned` makes the decisions that most calls do not
    need. It is written in Python.
    """

    def allow_bare(self):
        """Let `run_bare` run calls in the current context: TensorFlow does not check arguments."""
        runtime()
        self.bare = _filter_traceback(self.concrete._inference_function.call_preflattened)
        self.bare_for = generation

    def run_bare(self, inputs):
        """Have TensorFlow run the trace directly. The caller makes sure that no tape records."""
        cdef int64_t begin = Nanoseconds()
        result = self.bare(inputs + self.concrete.captured_inputs)
        if _observed:
            self.observe("tensorflow", Nanoseconds() - begin)
        return result

    cdef bint fits(self, Plan plan) except -1:
        """Whether a plan fits TensorFlow's current context. The caller has checked `is_plain`."""
        cdef PyObject* options
        if plan.made_for != generation:
            return False
        options = GetEagerContextThreadLocalData(_where.py_context).function_call_options.get()
        for known in self.options:
            if <PyObject*>known == options:
                return True
        return False

    def is_ready(self):
        """Tell whether there is a plan that fits TensorFlow's current context."""
        runtime()
        return self.plan is not None and _where.py_context != NULL and self.fits(self.plan)

    cdef bint is_outdated(self) except -1:
        """Whether there is a plan that does not fit TensorFlow's current context."""
        return self.plan is not None and not self.fits(self.plan)

    cdef object run_changed(self, list inputs, const Original* call):
        """Have TensorFlow run a call whose plan is outdated, then renew the plan.

        The caller has read the inputs before this call, since the call may change lists that hold
        them.
        """
        cdef int64_t begin = Nanoseconds()
        result = call_original(call)
        if _observed:
            self.observe("tensorflow", Nanoseconds() - begin)
        self.renew(inputs)
        return result

    cdef object run_as(self, const Borrowed& given, object pack, const Original* call,
                       Course* course):
        """Run a call: the plan takes `given`, TensorFlow takes the original call.

        `pack` makes the function's result of the list of the plan's results. Without `pack` there
        is exactly one result. Sets `course` to the course that the call took. The plan, if there is
        one, must fit: `run_changed` is for calls with an outdated plan.
        """
        cdef Made made
        cdef Device* device
        cdef const NativeStep* failed = NULL
        cdef Status status
        cdef Plan plan = self.plan
        cdef int64_t begin
        cdef size_t i
        begin = Nanoseconds()
        if plan is None or not (self.settled or self.is_plans_turn()):
            course[0] = LEFT
            result = call_original(call)
            if _observed:
                self.observe("tensorflow", Nanoseconds() - begin)
            if plan is not None:
                course[0] = TIMED
                self.note_time("tensorflow", Nanoseconds() - begin)
            return result
        status = plan.native.Run(
            given, plan.last_ns > LONG_RUN_NS or plan.waits or plan.device != NULL,
            this_thread().options.threads, _observed > 0, &made, &failed,
        )
        plan.last_ns = Nanoseconds() - begin
        if _observed:
            self.observe("plan", plan.last_ns)
        course[0] = PLANNED if status.ok() else FAILED
        if not status.ok():
            error = self.failure(
                plan,
                status.raw_code(),
                Message(status).decode("utf-8", "replace"),
                failed.name.decode() if failed != NULL else None,
            )
            if error is not None:
                raise error
            return call_original(call)  # the plan had no effect yet: TensorFlow raises the error
        if not self.settled:
            self.note_time("plan", plan.last_ns)
        if not _where.only_host:
            results = []
            for i in range(made.size()):
                device = plan.device
                if plan.in_host[i]:
                    device = NULL
                results.append(WrapPlaced(move(made[i]), device, plan.called_on, _where.context))
            return results[0] if pack is None else pack(results)
        if pack is None:
            return Wrap(move(made[0]), _where.host, _where.context)
        return pack([Wrap(move(made[i]), _where.host, _where.context) for i in range(made.size())])

    def run(self, inputs):
        """Run the function on some tensors.

        Parameters
        ----------
        inputs : sequence of EagerTensor
            The tensors for the function's parameters, without its captured tensors.

        Returns
        -------
        list of EagerTensor
            The results.
        """
        cdef tuple taken = tuple(inputs)
        cdef Borrowed given
        cdef const Tensor* value
        cdef Py_ssize_t i
        cdef PyObject* tensor
        cdef Original call
        cdef Course course = LEFT
        if self.plan is None or not is_plain():
            return self.run_original(*taken)
        for i in range(len(taken)):
            tensor = PyTuple_GET_ITEM(taken, i)
            value = NULL
            if not IsEagerTensor(tensor) or kReady != Inspect(
                EagerTensor_Handle(tensor), _where.host, &value
            ):
                return self.run_original(*taken)
            given.push_back(value)
        original = self.run_original
        call = Original(
            <PyObject*>original, PySequence_Fast_ITEMS(<PyObject*>taken), len(taken), NULL
        )
        if self.is_outdated():
            return self.run_changed(list(taken), &call)
        return self.run_as(given, list, &call, &course)
