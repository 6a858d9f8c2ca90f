"""Every op of TensorFlow under its own name, in place of `tf.raw_ops`: ``raw_ops.AddV2``."""

from fastops._registry import raw_door

__getattr__, __dir__ = raw_door(__name__)

del raw_door
