"""What a step is asked for, what it gives, and how its tensors come to the device."""

import dataclasses
import time
from contextlib import nullcontext
from pathlib import Path

from tools.gpu.assembling import Assembly
from tools.gpu.pieces import write_json


class SkippedError(Exception):
    """A step cannot run here; the message says why."""


@dataclasses.dataclass
class Findings:
    """What a step gives.

    Attributes
    ----------
    verdicts : list of dict
        See `tools.gpu.report`.
    figures : dict
        What was measured, as JSON has it.
    table : list of list of str
        What of it is shown, row by row.
    notes : list of str
        What else a reader wants to know.
    machine : dict of str to str
        What was learnt of the machine.
    outcome : str
        Where it does not follow from the verdicts.
    """

    verdicts: list = dataclasses.field(default_factory=list)
    figures: dict = dataclasses.field(default_factory=dict)
    table: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    machine: dict = dataclasses.field(default_factory=dict)
    outcome: str = ""


@dataclasses.dataclass
class Request:
    """What a step is asked for: the options of ``prove``, and how many seconds it has."""

    step: str
    device: str
    out: str
    place: str
    quick: bool = False
    ops: list | None = None
    resume: bool = False
    seconds: float = float("inf")
    begin: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def tree(self):
        return Path(self.place, "tree")

    @property
    def kind(self):
        """Return the kind of the device, such as ``GPU``."""
        return self.device.partition(":")[0].upper()

    @property
    def full_name(self):
        """Return the device's name as tensors have it."""
        kind, _, number = self.device.partition(":")
        return f"/job:localhost/replica:0/task:0/device:{kind.upper()}:{number or 0}"

    def left(self):
        return self.seconds - (time.monotonic() - self.begin)

    def stand_ins(self):
        """Return the names of the libraries that are empty so far; none where nothing says so."""
        assembly = Assembly(self.place)
        return assembly.stand_ins() if assembly.notes.is_dir() else []

    def has(self, library):
        """Tell whether a library of NVIDIA's is there, if the device needs any."""
        return self.kind == "CPU" or not any(name.startswith(library) for name in self.stand_ins())

    def scope(self):
        """Return what calls run in: nothing, where they go to the device by themselves."""
        import tensorflow as tf

        first = tf.constant(0.0).device
        return nullcontext() if first == self.full_name else tf.device(self.device)

    def give(self, findings):
        """Write what was found where ``prove`` looks for it."""
        write_json(Path(self.out, f"{self.step}.json"), dataclasses.asdict(findings))


def synchronize():
    """Wait until the devices have done what they were given."""
    import tensorflow as tf

    tf.test.experimental.sync_devices()


def put(value, device):
    """Return a tensor on a device, of the dtypes that have memory there; others where they are."""
    import tensorflow as tf

    with tf.device(device):
        tensor = tf.convert_to_tensor(value)
    try:
        return tensor._copy(device_name=device)
    except (tf.errors.OpError, RuntimeError):
        return tensor


def bits(*values):
    """Return the bytes of tensors or variables, one after the other."""
    return b"".join(value.numpy().tobytes() for value in values)
