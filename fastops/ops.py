"""Every op of TensorFlow under its snake_case name: ``fastops.ops.add_v2(x=a, y=b)``."""

from fastops._registry import flat_door

__getattr__, __dir__ = flat_door(__name__)

del flat_door
