# distutils: language = c++
"""Records the ops of a call.

The recorder observes direct calls, and is an op callback of TensorFlow for all other calls.
"""

cimport cython

from fastops._core.observer cimport Observer
from fastops._core.threads cimport this_thread

import sys

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework.ops import uid as _uid
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsStopped as tapes_are_stopped

from fastops._specialize.recording import hooks
from fastops._specialize.recording.warned import may_issue as _may_issue, warned as _warned
from fastops._specialize.recording.witness import unwitnessed

cdef str _CUSTOM_GRADIENTS = "/tensorflow/python/ops/custom_gradient.py"


@cython.final
cdef class Ran:
    """An op that was run.

    Attributes
    ----------
    op_name : str
        The name in TensorFlow's registry.
    inputs, outputs : list of EagerTensor
        The flat lists of inputs and outputs.
    attrs : dict
        The attributes by their names in the OpDef, including those that the inputs determine.
    stopped : bool
        Whether tapes were stopped, and must not record the op.
    scope : str
        The device scope around the op; empty if there was none.
    """

    cdef readonly str op_name
    cdef readonly list inputs
    cdef readonly dict attrs
    cdef readonly list outputs
    cdef readonly bint stopped
    cdef readonly str scope


@cython.final
cdef class Read:
    """A read of a tensor's value by Python."""

    cdef readonly object tensor


@cython.final
cdef class Seeded:
    """The seeds that TensorFlow has made for a random op.

    Attributes
    ----------
    op_seed : int or None
        The seed that the caller of the op has passed.
    seeds : tuple
        The two seeds that the op gets.
    """

    cdef readonly object op_seed
    cdef readonly tuple seeds


@cython.final
cdef class Customized:
    """A call with a custom gradient, as tapes record it.

    Attributes
    ----------
    name : str
        The name of the function.
    outputs, inputs : list
        What the tape records.
    backward : function
        The gradient function.
    stopped : bool
        Whether tapes were stopped.
    """

    cdef readonly str name
    cdef readonly list outputs
    cdef readonly list inputs
    cdef readonly object backward
    cdef readonly bint stopped


@cython.final
cdef class Recorder(Observer):
    """Records the ops and reads of this thread between `start` and `stop`.

    Parameters
    ----------
    sizes : fastops._specialize.recording.sizes.SizeReads, optional
        Notes which sizes Python reads.

    Attributes
    ----------
    sizes : SizeReads or None
        The parameter.
    events : list of Ran, Read, Seeded or Customized
        In the order in which they happened.
    custom : bool
        Whether a function around the call has a custom gradient, or one inside that is not among
        the events.
    said : bool
        Whether the call logs, or issues warnings that replays cannot repeat.
    warned : list of fastops._specialize.recording.warned.Warned
        The other warnings that the call issues.
    builds : bool
        Whether the call builds a graph.
    failed : bool
        Whether the notes are incomplete.
    first_id : int
        Tensors that are older than the recording have a `tf.Tensor._id` below this number.
    """

    cdef readonly object sizes
    cdef readonly list events
    cdef bint around  # whether a function around the call has a custom gradient
    cdef int unrecorded  # functions with custom gradients that are not among the events
    cdef readonly bint said
    cdef readonly list warned
    cdef readonly bint builds
    cdef readonly bint failed
    cdef readonly object first_id

    def __init__(self, sizes=None):
        self.records, self.sizes = True, sizes
        self.events, self.warned = [], []

    def start(self):
        """Start. False if the hooks cannot be put in place: see `hooks.hang`."""
        frame = sys._getframe(0)  # compiled functions have none
        while frame is not None and not self.around:
            self.around = frame.f_code.co_filename.endswith(_CUSTOM_GRADIENTS)
            frame = frame.f_back
        self.callback = self._told
        self.first_id = _uid()
        if not hooks.hang(
            self.callback, self._read, self._seeded, self._saying, self._customizing,
            self._customized,
        ):
            return False
        if self.sizes is not None:
            try:
                hooks.watch_sizes(self.sizes)
            except BaseException:  # a signal handler has raised
                hooks.take_down(self.callback)
                raise
        self.put_on(this_thread())
        return True

    def stop(self):
        """Stop."""
        self.take_off()
        self.failed = not hooks.take_down(self.callback) or self.failed
        self.callback = None

    def _told(self, kind, inputs, attrs, outputs, op_name=None, graph=None):
        """The op callback for calls that TensorFlow runs."""
        if graph is not None:
            self.builds = True
            return
        self._add(kind, inputs, attrs, outputs)

    cdef int ran(self, str op_name, tuple inputs, tuple attrs, list outputs) except -1:
        return self._add(op_name, inputs, attrs, outputs)

    cdef int _add(self, kind, inputs, attrs, outputs) except -1:
        # An exception here would reach the user's call: set `failed` instead.
        cdef Ran event
        cdef Py_ssize_t i
        cdef tuple pairs
        try:
            event = Ran.__new__(Ran)
            event.op_name = kind.decode() if isinstance(kind, bytes) else kind
            event.attrs = {}
            if attrs:
                pairs = tuple(attrs)
                if len(pairs) % 2:
                    raise ValueError("an attribute has no value")
                for i in range(0, len(pairs), 2):
                    event.attrs[pairs[i]] = pairs[i + 1]
            event.outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            event.stopped = tapes_are_stopped()
            # The same as `context().device_name`.
            event.scope = _tf_context._context._thread_local_data.device_name or ""
            event.inputs = list(inputs)
            self.events.append(event)
        except Exception:
            self.failed = True
        return 0

    def _read(self, tensor):
        cdef Read event = Read.__new__(Read)
        event.tensor = tensor
        self.events.append(event)

    def _saying(self, warn=None, args=(), kwargs=None, frame=None):
        if warn is None:
            self.said = True
            return
        note, events = _warned(args, kwargs, frame), len(self.events)
        try:
            # The code that shows a warning is not part of the call, unless it runs ops.
            return unwitnessed(warn, *args, **kwargs)
        finally:
            if note is None or len(self.events) != events or not _may_issue([note]):
                self.said = True
            else:
                self.warned.append(note)

    @property
    def custom(self):
        return self.around or self.unrecorded != 0

    def _customizing(self):
        self.unrecorded += 1

    def _customized(self, name, outputs, inputs, backward, forward=None):
        cdef Customized event = Customized.__new__(Customized)
        try:
            event.name, event.outputs, event.inputs = name, list(outputs), list(inputs)
            event.backward, event.stopped = backward, tapes_are_stopped()
            self.events.append(event)
            self.unrecorded -= 1
        except Exception:
            self.failed = True

    def _seeded(self, get_seed, op_seed):
        cdef Seeded event = Seeded.__new__(Seeded)
        seeds = unwitnessed(get_seed, op_seed)  # replays make seeds in the same way
        event.op_seed, event.seeds = op_seed, tuple(seeds)
        self.events.append(event)
        return seeds
