"""Records the ops of a call, for replays in later calls.

`record` is the context manager for a call that is recorded. While it is open, `hooks` are patched
into TensorFlow, the `recorder` notes ops and reads of tensor values, and the `witness` notes the
Python code that runs. `recording` turns these notes into the steps, constants and checks of a
replay.
"""
