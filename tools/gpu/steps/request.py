"""The request for a step, its findings, and functions that put tensors on the device."""

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
    """The findings of a step.

    Attributes
    ----------
    verdicts : list of dict
        See `tools.gpu.report`.
    figures : dict
        The measurements, as JSON types.
    table : list of list of str
        A table of measurements for the report.
    notes : list of str
        Other information for the reader.
    machine : dict of str to str
        Facts about the machine.
    outcome : str
        The outcome, if it does not follow from the verdicts.
    """

    verdicts: list = dataclasses.field(default_factory=list)
    figures: dict = dataclasses.field(default_factory=dict)
    table: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    machine: dict = dataclasses.field(default_factory=dict)
    outcome: str = ""


@dataclasses.dataclass
class Request:
    """The request for a step: the options of ``prove``, and the time limit in seconds."""

    step: str
    device: str
    out: str
    place: str
    quick: bool = False
    ops: list | None = None
    share: tuple[int, int] = (1, 1)
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
        """Return the full name of the device, as tensors have it."""
        kind, _, number = self.device.partition(":")
        return f"/job:localhost/replica:0/task:0/device:{kind.upper()}:{number or 0}"

    def left(self):
        return self.seconds - (time.monotonic() - self.begin)

    def stand_ins(self):
        """Return the names of the libraries that are still empty."""
        assembly = Assembly(self.place)
        return assembly.stand_ins() if assembly.notes.is_dir() else []

    def has(self, library):
        """Tell whether a library of NVIDIA is complete, or the device does not need it."""
        return self.kind == "CPU" or not any(name.startswith(library) for name in self.stand_ins())

    def has_device(self):
        """Tell whether TensorFlow has the device. If it does not, it uses the host instead."""
        import tensorflow as tf

        name = self.full_name.rpartition("device:")[2]
        return any(device.name.endswith(name) for device in tf.config.list_physical_devices())

    def scope(self):
        """Return the scope for calls: none, if calls are placed on the device by default."""
        import tensorflow as tf

        first = tf.constant(0.0).device
        return nullcontext() if first == self.full_name else tf.device(self.device)

    def give(self, findings):
        """Write the findings into the file that ``prove`` reads."""
        write_json(Path(self.out, f"{self.step}.json"), dataclasses.asdict(findings))


def synchronize():
    """Wait until the devices have finished their work."""
    import tensorflow as tf

    tf.test.experimental.sync_devices()


def put(value, device):
    """Return a tensor on a device; tensors of dtypes that stay on the host are unchanged."""
    import tensorflow as tf

    with tf.device(device):
        tensor = tf.convert_to_tensor(value)
    try:
        return tensor._copy(device_name=device)
    except (tf.errors.OpError, RuntimeError):
        return tensor


def bits(*values):
    """Return the concatenated bytes of tensors or variables."""
    return b"".join(value.numpy().tobytes() for value in values)
