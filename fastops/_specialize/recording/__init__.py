"""What a call runs, and what later calls have to run.

`record` is the context manager for a call that is recorded. In it, `hooks` are patched into
TensorFlow, the `recorder` notes ops and reads of tensor values, and the `witness` notes the Python
code that runs. `recording` makes of these notes the steps, constants and checks of a replay.
"""
