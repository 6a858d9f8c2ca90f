"""List the records that a tape would keep of a program: ops, their order, and their tensors."""

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import forwardprop


def records(function, watched, *, leading=False):
    """Run a function and list what a tape around it would record.

    A forward accumulator records an op under the same conditions as a tape, and calls a Python
    function for each op. Here, that function is replaced by one that stores the op.

    Parameters
    ----------
    function : callable
        Takes no arguments. It may open tapes itself.
    watched : list of tf.Tensor or tf.Variable
        The tensors and variables that the tape watches. They have float dtypes.
    leading : bool
        Whether to leave out records that do not lead to a result of the function.

    Returns
    -------
    list of tuple
        For each record, the name of the op, its inputs and its outputs. A tensor is given as the
        number of the record that made it and its index among the outputs of that record; as
        ``"x0"`` and so on if it is watched; and as `None` otherwise.
    """
    names = {getattr(tensor, "handle", tensor)._id: f"x{i}" for i, tensor in enumerate(watched)}
    noted, alive = [], []

    def note(op_name, attrs, inputs, outputs, tangents, use_batch=False):
        made = [(len(noted), i) for i in range(len(outputs))]
        noted.append((op_name, [names.get(tensor._id) for tensor in inputs], made))
        names.update((tensor._id, name) for tensor, name in zip(outputs, made, strict=True))
        alive.append((inputs, outputs))  # keeps the tensors alive, so that no id is reused
        return [tensor if tensor.dtype.is_floating else None for tensor in outputs]

    pywrap_tfe.TFE_Py_RegisterJVPFunction(note)
    try:
        with tf.autodiff.ForwardAccumulator(watched, [tf.identity(tensor) for tensor in watched]):
            results = function()
    finally:
        pywrap_tfe.TFE_Py_RegisterJVPFunction(forwardprop._jvp_dispatch)
    if leading:
        return _leading(noted, [names.get(result._id) for result in tf.nest.flatten(results)])
    return noted


def _leading(noted, results):
    """Return the records that lead to some results, renumbered."""
    asked, kept = set(results), []
    for record in reversed(noted):
        if not asked.isdisjoint(record[2]):
            asked.update(record[1])
            kept.append(record)
    kept.reverse()
    numbers = {record[2][0][0]: i for i, record in enumerate(kept)}

    def anew(name):
        return (numbers[name[0]], name[1]) if isinstance(name, tuple) else name

    return [(op, *([anew(name) for name in names] for names in rest)) for op, *rest in kept]
