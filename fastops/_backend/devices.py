"""Tells which device runs the ops of this thread: only GPUs have kernels for channels first."""

import tensorflow as tf
from tensorflow.python.eager import context as _context

_gpus: list = [None, False]  # the handle of a context, and whether it has GPUs


def _has_gpus():
    """Tell whether TensorFlow has found a GPU. The answer is constant for one context."""
    context = _context.context()
    if _gpus[0] is not context._context_handle or _gpus[0] is None:
        has_gpu = bool(tf.config.list_logical_devices("GPU"))
        _gpus[:] = [context._context_handle, has_gpu]
    return _gpus[1]


def runs_channels_first():
    """Tell whether ops run on a device whose kernels take the channels first.

    This is so if there is a GPU, and no `tf.device` scope chooses the CPU.
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
    """Stands for an op, and receives the device that TensorFlow would give to the op."""

    device = ""

    def _set_device(self, device):
        self.device = device.to_string() if hasattr(device, "to_string") else device

    def _set_device_from_string(self, device):
        self.device = device
