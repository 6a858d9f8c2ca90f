# distutils: language = c++
"""Chooses between the plan and TensorFlow for each call of a traced function."""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libcpp.utility cimport move

from fastops._core cimport draws
from fastops._core.preparing cimport generation
from fastops._core.threads cimport this_thread
from fastops._cpp.declarations cimport IsEagerTensor
from fastops._cpp.handle cimport Inspect, Wrap, WrapPlaced, kReady
from fastops._cpp.plan cimport Borrowed, Made, NativeStep
from fastops._cpp.python cimport PySequence_Fast_ITEMS, call_object
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.text cimport Message
from fastops._cpp.timer cimport Nanoseconds
from fastops._dispatch cimport runtime
from fastops._plans.plan cimport Plan
from fastops._situation cimport is_plain
from fastops._specialize.policy cimport LONG_RUN_NS
from fastops._tf.device cimport Device
from fastops._tf.eager cimport EagerTensor_Handle, GetEagerContextThreadLocalData
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

from tensorflow.python.util.traceback_utils import filter_traceback as _filter_traceback


cdef Runtime* _where = runtime()  # the address never changes; `gate` keeps the contents current


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

    @property
    def reason(self):
        """Why there is no plan, with the particulars; None if there is a plan."""
        return self.sentence if self.detail is None else f"{self.sentence}: {self.detail}"

    def wait_for_seed(self):
        """Note that a plan may be possible once all sequences of random ops begin again."""
        self.waits_for_seed, self.era = True, draws.era

    def allow_bare(self):
        """Let `run_bare` run calls in the current context, without checks of the arguments."""
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
        if plan.seeded and plan.era != draws.era:
            plan.begin_again()
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
                failed.location.decode() if failed != NULL else None,
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
        return self.run_unrecorded(inputs) if is_plain() else self.run_original(*inputs)

    def run_unrecorded(self, inputs):
        """Like `run`. The caller makes sure that no tape or accumulator records the call."""
        cdef tuple taken = tuple(inputs)
        cdef Borrowed given
        cdef const Tensor* value
        cdef Py_ssize_t i
        cdef PyObject* tensor
        cdef Original call
        cdef Course course = LEFT
        if self.plan is None:
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
