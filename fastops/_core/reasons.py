"""The paths that a call may take, and why it did not take the direct one.

`reasons.pxd` numbers them, in the same order.
"""

PATHS = ("direct", "capi", "tensorflow")

REASONS = (
    ("direct", "the call ran its prepared kernel"),
    ("first_call", "no kernel was prepared for this op, these dtypes and attributes yet"),
    ("op", "the kernel of such calls is TensorFlow's alone to run"),
    ("options", "fastops.options(path=...) asks for another path"),
    ("graph", "a graph is being built"),
    ("context", "TensorFlow's eager context is not initialised, or was replaced"),
    ("remote", "the context is connected to other hosts"),
    ("callbacks", "op callbacks are registered"),
    ("async", "the thread's executor is asynchronous"),
    ("observed", "device placement, memory, the profiler or a file of nodes are recording"),
    ("arguments", "an argument is missing, unknown or positional"),
    ("input_type", "an input is not a tensor, variable, array, number, text, or a list of such"),
    ("input_device", "an input lives on another device"),
    ("input_state", "an input is remote, packed, not computed yet, or failed"),
    ("conversion", "an input could not be converted to a tensor"),
    ("attr_value", "an attribute's value cannot be encoded or compared"),
    ("dtype", "a resource or variant passes through"),
    ("device", "TensorFlow places the call on another device"),
    ("kernel", "there is no synchronous kernel for these dtypes, or it cannot be prepared"),
    ("kernel_error", "the kernel reported an error, and TensorFlow ran the call again"),
)
