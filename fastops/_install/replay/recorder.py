"""What a call runs: noted through TensorFlow's op callbacks while TensorFlow makes it."""

import sys
from dataclasses import dataclass

from tensorflow.python.eager.context import context
from tensorflow.python.framework.ops import uid
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsStopped as tapes_are_stopped

from fastops._install.replay import hooks

_CUSTOM_GRADIENTS = "/tensorflow/python/ops/custom_gradient.py"


@dataclass
class Ran:
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

    op_name: str
    inputs: list
    attrs: dict
    outputs: list
    stopped: bool
    scope: str = ""


@dataclass
class Read:
    """A tensor whose value went to Python."""

    tensor: object


@dataclass
class Seeded:
    """Seeds that TensorFlow has made for a random op.

    Attributes
    ----------
    op_seed : int or None
        What they were made of.
    seeds : tuple
        The two that the op gets.
    """

    op_seed: object
    seeds: tuple


class Recorder:
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
    begin : int
        What `tf.Tensor._id` of tensors that were there before is less than.
    """

    def __init__(self):
        self.events = []
        self.custom = False
        self.said = False
        self.builds = False
        self.failed = False
        self.begin = 0

    def start(self):
        """Begin. False if that is impossible now: another thread is recording a call, say."""
        if tapes_are_stopped():  # by whom, the call or its caller?
            return False
        frame = sys._getframe(1)
        while frame is not None and not self.custom:
            self.custom = frame.f_code.co_filename.endswith(_CUSTOM_GRADIENTS)
            frame = frame.f_back
        self.begin = uid()
        return hooks.hang(self._ran, self._read, self._seeded, self._saying, self._customizing)

    def stop(self):
        """End."""
        self.failed = not hooks.take_down(self._ran) or self.failed

    def _ran(self, kind, inputs, attrs, outputs, op_name=None, graph=None):
        # What is raised here would be raised by the user's call.
        if graph is not None:
            self.builds = True
            return
        try:
            if isinstance(kind, bytes):
                kind = kind.decode()
            attrs = dict(zip(attrs[::2], attrs[1::2], strict=True)) if attrs else {}
            outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
            stopped = tapes_are_stopped()
            scope = context().device_name or ""
            self.events.append(Ran(kind, list(inputs), attrs, outputs, stopped, scope))
        except Exception:
            self.failed = True

    def _read(self, tensor):
        self.events.append(Read(tensor))

    def _saying(self):
        self.said = True

    def _customizing(self):
        self.custom = True

    def _seeded(self, op_seed, seeds):
        self.events.append(Seeded(op_seed, seeds))
