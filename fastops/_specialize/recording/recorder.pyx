# distutils: language = c++
"""What a call runs: noted while TensorFlow makes it, as an observer of direct calls and, of other
calls, through TensorFlow's op callbacks."""

cimport cython

from fastops._core.observer cimport Observer
from fastops._core.threads cimport this_thread

import sys

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework.ops import uid as _uid
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsStopped as tapes_are_stopped

from fastops._specialize.recording import hooks

cdef str _CUSTOM_GRADIENTS = "/tensorflow/python/ops/custom_gradient.py"


@cython.final
cdef class Ran:
    """An op that was run.

    Attributes
    ----------
    op_name : str
        Its name in TensorFlow's registry.
    inputs, outputs : list of EagerTensor
        Flat.
    attrs : dict
        By their names in the OpDef; those that the inputs determine are among them.
    stopped : bool
        Whether tapes are not to be told of it.
    scope : str
        The device that it was asked to run on, if any.
    """

    cdef readonly str op_name
    cdef readonly list inputs
    cdef readonly dict attrs
    cdef readonly list outputs
    cdef readonly bint stopped
    cdef readonly str scope


@cython.final
cdef class Read:
    """A tensor whose value went to Python."""

    cdef readonly object tensor


@cython.final
cdef class Seeded:
    """Seeds that TensorFlow has made for a random op.

    Attributes
    ----------
    op_seed : int or None
        What they were made of.
    seeds : tuple
        The two that the op gets.
    """

    cdef readonly object op_seed
    cdef readonly tuple seeds


@cython.final
cdef class Recorder(Observer):
    """Notes what this thread runs and reads between `start` and `stop`.

    Attributes
    ----------
    events : list of Ran, Read or Seeded
        In their order.
    custom : bool
        Whether any of it, or what is around it, has a gradient that is not that of its ops.
    said : bool
        Whether it logs or warns.
    builds : bool
        Whether it builds a graph.
    failed : bool
        Whether the notes are incomplete.
    first_id : int
        What `tf.Tensor._id` of tensors that were there before is less than.
    """

    cdef readonly list events
    cdef readonly bint custom
    cdef readonly bint said
    cdef readonly bint builds
    cdef readonly bint failed
    cdef readonly object first_id

    def __init__(self):
        self.records = True
        self.events = []

    def start(self):
        """Begin. False if that is impossible now: another thread is recording a call, say."""
        if tapes_are_stopped():  # whether by the call or by its caller is unknown
            return False
        frame = sys._getframe(0)  # compiled functions have none
        while frame is not None and not self.custom:
            self.custom = frame.f_code.co_filename.endswith(_CUSTOM_GRADIENTS)
            frame = frame.f_back
        self.callback = self._told
        self.first_id = _uid()
        if not hooks.hang(
            self.callback, self._read, self._seeded, self._saying, self._customizing
        ):
            return False
        self.put_on(this_thread())
        return True

    def stop(self):
        """End."""
        self.take_off()
        self.failed = not hooks.take_down(self.callback) or self.failed
        self.callback = None

    def _told(self, kind, inputs, attrs, outputs, op_name=None, graph=None):
        """The op callback: of calls that are TensorFlow's."""
        if graph is not None:
            self.builds = True
            return
        self._add(kind, inputs, attrs, outputs)

    cdef int ran(self, str op_name, tuple inputs, tuple attrs, list outputs) except -1:
        return self._add(op_name, inputs, attrs, outputs)

    cdef int _add(self, kind, inputs, attrs, outputs) except -1:
        # What is raised here would be raised by the user's call.
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
            # As `context().device_name` tells.
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

    def _saying(self):
        self.said = True

    def _customizing(self):
        self.custom = True

    def _seeded(self, op_seed, seeds):
        cdef Seeded event = Seeded.__new__(Seeded)
        event.op_seed, event.seeds = op_seed, tuple(seeds)
        self.events.append(event)
