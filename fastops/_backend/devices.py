"""Which device the ops of this thread run on: only GPUs have kernels for channels first."""

import tensorflow as tf
from tensorflow.python.eager import context as _context

_gpus: list = [None, False]  # of which context


def _has_gpus():
    """Tell whether TensorFlow has found a GPU. That does not change while a context lives."""
    context = _context.context()
    if _gpus[0] is not context._context_handle or _gpus[0] is None:
        found = bool(tf.config.list_logical_devices("GPU"))
        _gpus[:] = [context._context_handle, found]
    return _gpus[1]


def runs_channels_first():
    """Tell whether ops are run where their kernels take the channels first.

    That is so where there is a GPU, and no `tf.device` says that this is for the CPU.
    """
    if not _has_gpus():
        return False
    if tf.executing_eagerly():
        name = _context.context().device_name
    else:
        asked = _Asked()
        tf.compat.v1.get_default_graph()._apply_device_functions(asked)
        name = asked.device
    return not name or tf.DeviceSpec.from_string(name).device_type != "CPU"


class _Asked:
    """In the place of an op, is told which device it would get."""

    device = ""

    def _set_device(self, device):
        self.device = device.to_string() if hasattr(device, "to_string") else device

    def _set_device_from_string(self, device):
        self.device = device
