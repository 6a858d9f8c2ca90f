"""Records and replays functions that the user declares to be pure."""

import functools

import tensorflow as tf

from fastops._backend import below, state
from fastops._specialize.policy import MAX_HELD_DEPTH


class Pure:
    """A function of tensors, whose ops are recorded and replayed; made by `replayable`."""

    def __init__(self, function, call=None):
        functools.update_wrapper(self, function)
        if call is not None:
            del self.__wrapped__  # with `call`, this object must not keep the function alive
        self._function = function if call is None else call
        self._variables = tuple(_variables(function))
        self._replayed = below.replayed(self._run)

    def _run(self, args, variables, settings):
        return self._function(*args)

    def __call__(self, *args):
        """Call the function."""
        return self._replayed(args, self._variables, state.settings())

    def describe(self):
        """Tell how many signatures of arguments are replayed, and why others are not."""
        return self._replayed.describe()

    def recordings(self):
        """Describe each signature of arguments: the recordings, with ops, constants and guards."""
        return self._replayed.recordings()


def replayable(function):
    """Declare that a function depends only on its arguments and on variables that it holds.

    All callers, such as `rnn`, then record and replay its ops: its Python code runs only for the
    first two calls of each signature.

    Parameters
    ----------
    function : callable
        Takes tensors, or lists and tuples of tensors, by position. Only their dtypes and shapes
        decide which ops it runs, and it only computes tensors. The variables that it reads are in
        its closure, or attributes of the object whose method it is, perhaps in lists, tuples, dicts
        or layers; they must be there when this is called.

    Returns
    -------
    callable
        The same function, with two methods: ``describe()`` reports which calls are replayed, and
        ``recordings()`` shows which ops they run and what they compare.

    Notes
    -----
    All other objects that the function uses, such as a number or a tensor in its closure, must
    never change. A call that cannot be recorded, for example because it assigns to a variable, runs
    the function itself.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import backend
    >>> weights = tf.Variable([[2.0]])
    >>> @backend.replayable
    ... def step(x, states):
    ...     output = backend.dot(x, weights) + states[0]
    ...     return output, [output]
    >>> x = backend.ones((1, 50, 1)) + 0.0
    >>> backend.rnn(step, x, [backend.constant([[0.0]])])[0].numpy().tolist()
    [[100.0]]
    >>> step.describe()["replayed"]
    1
    """
    return Pure(function)


def _variables(function):
    """Return the variables that a function holds, without duplicates."""
    variables, seen = {}, set()

    def look(value, depth):
        if isinstance(value, tf.Variable):
            variables.setdefault(id(value), value)
            return
        if depth == 0 or id(value) in seen or isinstance(value, (tf.Tensor, str, bytes, type)):
            return
        seen.add(id(value))
        if isinstance(value, dict):
            parts = list(value.values())
        elif isinstance(value, (list, tuple, set)):
            parts = list(value)
        elif callable(value) and hasattr(value, "__code__"):
            parts = _held_by(value)
        else:
            parts = list(getattr(value, "__dict__", {}).values())
            parts.append(getattr(value, "_value", None))  # the tf.Variable in a Keras variable
        for part in parts:
            look(part, depth - 1)

    look(function, MAX_HELD_DEPTH)
    return variables.values()


def _held_by(function):
    """Return the object of a method, the closure and defaults of a function, and its globals."""
    parts = [getattr(function, "__self__", None), *(getattr(function, "__defaults__", None) or ())]
    inner = getattr(function, "__func__", function)
    for cell in getattr(inner, "__closure__", None) or ():
        try:
            parts.append(cell.cell_contents)
        except ValueError:  # the cell is empty
            continue
    names = getattr(inner, "__globals__", {})
    for name in inner.__code__.co_names:
        value = names.get(name)
        if isinstance(value, (tf.Variable, list, tuple, dict)):
            parts.append(value)
    return parts
