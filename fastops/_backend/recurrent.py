"""Recurrent networks: run a step for each time, with the states of the previous step.

There are three ways. An eager call splits its input once, and calls the step in a Python loop. An
unrolled call runs the same loop, also in graphs. All other calls use TensorFlow's `tf.while_loop`.
"""

import tensorflow as tf

from fastops import _registry
from fastops._backend import below, facts, shapes, values
from fastops._backend.catalogue import unique
from fastops._backend.known import replayed_if_pure

_select_rows = _registry.op("Select")


@unique(
    "a loop over time of any step, with masks",
    keras="keras.layers.RNN",
    differs="Keras's layer takes cells, which are layers",
)
def rnn(
    step_function,
    inputs,
    initial_states,
    go_backwards=False,
    mask=None,
    constants=None,
    unroll=False,
    input_length=None,
    time_major=False,
    zero_output_for_mask=False,
    return_all_outputs=True,
):
    """Run a step for each time of sequences.

    Parameters
    ----------
    step_function : callable
        Takes the input of one time, of shape ``(batch, ...)``, and a tuple: the states, then the
        constants. Returns its output, of shape ``(batch, ...)``, and the next states, in the
        structure of those it was given.
    inputs : tensor, or structure of tensors
        Of shape ``(batch, time, ...)``, with at least three axes.
    initial_states : list of tensor
        The states of the first step.
    go_backwards : bool, default False
        Whether to begin with the last time. The outputs are in the order of the steps.
    mask : tensor, optional
        Of shape ``(batch, time)`` or ``(batch, time, 1)``, true unless zero: where it is false, the
        states stay, and the output is that of the step before.
    constants : list of tensor, optional
        Further arguments of each step, after the states.
    unroll : bool, default False
        Whether a graph gets the ops of each step instead of a loop. The number of times must be
        known.
    input_length : tensor, int or None, optional
        Used if there is no mask: a tensor of shape ``(batch,)`` with the number of steps of each
        sequence.
    time_major : bool, default False
        Whether inputs, mask and outputs have the time first, and then the batch.
    zero_output_for_mask : bool, default False
        Whether the output is zero where the mask is false.
    return_all_outputs : bool, default True
        Whether outputs of all steps are returned, or of the last one alone.

    Returns
    -------
    last_output : tensor, or structure of tensors
        Of shape ``(batch, ...)``.
    outputs : tensor, or structure of tensors
        Of shape ``(batch, time, ...)``; with a single time if not all are returned.
    new_states : list or tuple of tensor
        The states after the last step.

    Raises
    ------
    ValueError
        If the inputs have fewer than three axes, if the states change their shape or structure, or
        if `unroll` is true and the number of times is not known.

    Notes
    -----
    An eager call runs the step once for each time. If there are no times, it runs the step once, to
    learn the structure of the result. tf_keras always begins with a run of the step whose result is
    dropped. A step that `replayable` declares to be pure is recorded and replayed. So is a step
    whose code shows that it is pure: a function that names only variables, tensors, numbers,
    functions of the backend, and functions of TensorFlow that compute. The code is read when the
    step is passed for the second time.

    Examples
    --------
    >>> from fastops import backend
    >>> def add_up(x, states):
    ...     total = states[0] + x
    ...     return total, [total]
    >>> x = backend.constant([[[1.0], [2.0], [3.0]]])
    >>> last, outputs, states = backend.rnn(add_up, x, [backend.constant([[0.0]])])
    >>> last.numpy().tolist(), backend.flatten(outputs).numpy().tolist()
    ([[6.0]], [1.0, 3.0, 6.0])
    """
    constants = () if constants is None else tuple(constants)
    call = _Call(
        step_function,
        constants,
        go_backwards,
        zero_output_for_mask,
        return_all_outputs,
        time_major,
    )
    if not unroll and tf.executing_eagerly():
        results = call.eagerly(inputs, initial_states, mask, input_length)
        if results is not None:
            return results
    if not time_major:
        inputs = tf.nest.map_structure(_swapped, inputs)
    flat = tf.nest.flatten(inputs)
    for tensor in flat:
        tensor.shape.with_rank_at_least(3)
    if mask is not None:
        if mask.dtype != tf.bool:
            mask = below.cast(mask, tf.bool)
        if len(mask.shape) == 2:
            mask = below.expand_dims(mask, -1)
        if not time_major:
            mask = _swapped(mask)
    if unroll:
        last, outputs, states = call.unrolled(inputs, initial_states, mask)
    else:
        last, outputs, states = call.in_loop(inputs, initial_states, mask, input_length)
    steps = flat[0].shape[0] if return_all_outputs else 1
    outputs = tf.nest.map_structure(lambda output: _sized(output, steps, flat[0].shape[1]), outputs)
    if not time_major:
        outputs = tf.nest.map_structure(_swapped, outputs)
    return last, outputs, states


def _swapped(x):
    """Return a tensor with its first two axes exchanged."""
    return below.transpose(x, [1, 0, *range(2, len(x.shape))])


def _sized(x, steps, batch):
    if isinstance(x, tf.Tensor):
        x.set_shape([steps, batch, *x.shape.as_list()[2:]])
    return x


def _spread(mask, like, axes=1):
    """Broadcast a mask, which has the first axes of a tensor, to the shape of the tensor."""
    for value in (mask, like):
        if tf.nest.is_nested(value):
            raise ValueError(f"mask_t is expected to be tensor, but got {value}")
    for _ in range(len(like.shape) - len(mask.shape)):
        mask = below.expand_dims(mask, -1)
    return below.tile(mask, [1] * axes + like.shape.as_list()[axes:])


def _chosen(mask, new, old):
    """Select between pairs of tensors, by a mask that has their first axes."""
    axes = len(mask.shape)
    return tuple(
        below.where(_spread(mask, after, axes), after, before)
        for after, before in zip(new, old, strict=False)
    )


class _Call:
    """One call of `rnn`; the attributes are its arguments."""

    def __init__(self, step, constants, backwards, zero_output, all_outputs, time_major):
        self.step = step
        self.constants = constants
        self.backwards = backwards
        self.zero_output = zero_output
        self.all_outputs = all_outputs
        self.time_major = time_major

    # Eager calls ---------------------------------------------------------------------------------

    def eagerly(self, inputs, initial_states, mask, input_length):
        """Return the results of an eager call; None if TensorFlow's loop has to make the call."""
        alone = facts.is_plain(inputs)
        flat = [inputs] if alone else tf.nest.flatten(inputs)
        if not facts.are_plain(mask, *flat):
            return None
        ranks = [facts.ndim(tensor) for tensor in flat]
        if min(ranks) < 3:
            return None
        axis = 0 if self.time_major else 1
        count = facts.int_shape(flat[0])[axis]
        if count == 0 or any(facts.int_shape(tensor)[axis] != count for tensor in flat):
            return None
        masks = None
        if mask is not None:
            masks = self._masks(mask, axis)
            if masks is None:
                return None
        elif isinstance(input_length, tf.Tensor):
            masks = self._lengths(input_length, count)
        self.step = replayed_if_pure(self.step)
        apart = [below.unstack(tensor, count, axis) for tensor in flat]
        if self.backwards:
            for steps in apart:
                steps.reverse()
        if alone:
            given = apart[0]
        else:
            given = [tf.nest.pack_sequence_as(inputs, parts) for parts in zip(*apart, strict=True)]
        if masks is None:
            last, outputs, states = self._steps(given, initial_states)
        else:
            last, outputs, states = self._masked_steps(given, initial_states, masks)
        return last, self._together(outputs, axis), states

    def _masks(self, mask, axis):
        """Return a mask for each time. A last axis of size 1 is removed."""
        if facts.base_dtype(mask) is not tf.bool:
            mask = below.cast(mask, tf.bool)
        sizes = facts.int_shape(mask)
        if len(sizes) == 3 and sizes[2] == 1:
            mask = below.squeeze(mask, [2])
        elif len(sizes) != 2:
            return None
        masks = below.unstack(mask, sizes[axis], axis)
        if self.backwards:
            masks.reverse()
        return masks

    def _lengths(self, lengths, count):
        """Return a mask for each time, by the lengths of the sequences."""
        if self.backwards:
            longest = below.reduce_max(lengths, 0)
            from_end = below.subtract(below.subtract(longest, 1), lengths)
            return [below.less(from_end, time) for time in range(count)]
        return [below.greater(lengths, time) for time in range(count)]

    def _together(self, outputs, axis):
        """Return the outputs of all steps, each stacked to one tensor."""
        if not self.all_outputs:
            outputs = outputs[-1:]
        first = outputs[0]
        if facts.is_plain(first):
            return below.stack(outputs, axis)
        flat = zip(*(tf.nest.flatten(output) for output in outputs), strict=True)
        return tf.nest.pack_sequence_as(first, [below.stack(list(parts), axis) for parts in flat])

    def _steps(self, given, initial_states):
        step, constants, kept = self.step, self.constants, self.all_outputs
        before = states = tuple(initial_states)
        outputs = []
        for current in given:
            output, states = step(current, (*before, *constants) if constants else before)
            before = _next(before, states)
            if kept:
                outputs.append(output)
        if not kept:
            outputs.append(output)
        outputs[-1] = last = _as_tensors(output)
        return last, outputs, tuple(map(_as_tensors, _like(initial_states, before)))

    def _masked_steps(self, given, initial_states, masks):
        step, constants = self.step, self.constants
        before = tuple(initial_states)
        kept = zeros = None
        outputs = []
        for current, mask in zip(given, masks, strict=True):
            output, states = step(current, (*before, *constants))
            flat = tf.nest.flatten(output)
            if zeros is None:
                zeros = kept = [below.zeros_like(part) for part in flat]
            flat = [
                _select(mask, part, other)
                for part, other in zip(flat, zeros if self.zero_output else kept, strict=True)
            ]
            kept = flat
            new, old = tf.nest.flatten(states), tf.nest.flatten(before)
            for part, other in zip(new, old, strict=False):
                _check_sizes(other, part)
            chosen = [_select(mask, part, other) for part, other in zip(new, old, strict=False)]
            after = tuple(tf.nest.pack_sequence_as(states, chosen))
            tf.nest.assert_same_structure(before, after)
            before = after
            outputs.append(tf.nest.pack_sequence_as(output, flat))
        return outputs[-1], outputs, before

    # Graphs --------------------------------------------------------------------------------------

    def unrolled(self, inputs, initial_states, mask):
        """Run the steps in a Python loop; inputs and mask have the time axis first."""
        flat = tf.nest.flatten(inputs)
        count = flat[0].shape[0]
        if not count:
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        apart = [self._in_order(tensor) for tensor in flat]
        masks = None if mask is None else self._in_order(mask)
        states = tuple(initial_states)
        all_outputs, all_states = [], []
        for time in range(count):
            given = tf.nest.pack_sequence_as(inputs, [steps[time] for steps in apart])
            output, new = self.step(given, (*states, *self.constants))
            if masks is None:
                states = new
            else:
                previous = all_outputs[-1] if all_outputs else values.zeros_like(output)
                output = below.where(_spread(masks[time], output), output, previous)
                old = tf.nest.flatten(states)
                spread = [_spread(masks[time], state) for state in old]
                chosen = [
                    below.where(*three)
                    for three in zip(spread, tf.nest.flatten(new), old, strict=False)
                ]
                states = tf.nest.pack_sequence_as(states, chosen)
            if not self.all_outputs:
                all_outputs, all_states = [], []
            all_outputs.append(output)
            all_states.append(states)
        last, outputs = all_outputs[-1], below.stack(all_outputs)
        if mask is not None and self.zero_output:
            zeros = values.zeros_like(last)
            last = below.where(_spread(masks[-1], last), last, zeros)
            zeros = values.zeros_like(outputs)
            outputs = below.where(_spread(mask, outputs, 2), outputs, zeros)
        return last, outputs, all_states[-1]

    def _in_order(self, x):
        parts = below.unstack(x)
        return parts[::-1] if self.backwards else parts

    def in_loop(self, inputs, initial_states, mask, input_length):
        """Run the steps in a `tf.while_loop`; inputs and mask have the time axis first."""
        flat = tf.nest.flatten(inputs)
        count = tf.shape(flat[0])[0]
        states = tuple(initial_states)
        arrays = [self._array(tensor, count) for tensor in flat]
        first = tf.nest.pack_sequence_as(inputs, [tensor[0] for tensor in flat])
        like, _ = self.step(first, (*states, *self.constants))
        flat_like = tf.nest.flatten(like)
        size = count if self.all_outputs else 1
        results = tuple(
            tf.TensorArray(dtype=output.dtype, size=size, element_shape=output.shape)
            for output in flat_like
        )
        mask_at = self._mask_at(mask, input_length, count)
        zeros = tuple(tf.zeros_like(output) for output in flat_like) if mask_at else ()

        def body(time, results, previous, *states):
            given = tf.nest.pack_sequence_as(inputs, [array.read(time) for array in arrays])
            output, new = self.step(given, (*states, *self.constants))
            parts, old, flat_new = map(tf.nest.flatten, (output, states, new))
            for state, part in zip(old, flat_new, strict=False):
                if isinstance(part, tf.Tensor):
                    part.set_shape(state.shape)
            if mask_at:
                choose, where = mask_at
                here = where(time)
                parts = choose(here, parts, zeros if self.zero_output else previous)
                flat_new = choose(here, flat_new, old)
                previous = tuple(parts)
            new = tf.nest.pack_sequence_as(new if mask_at else initial_states, flat_new)
            at = time if self.all_outputs else 0
            results = tuple(
                result.write(at, part) for result, part in zip(results, parts, strict=True)
            )
            return (time + 1, results, previous, *new)

        final = tf.compat.v1.while_loop(
            cond=lambda time, *_: time < count,
            body=body,
            loop_vars=(tf.constant(0, tf.int32, name="time"), results, zeros, *states),
            maximum_iterations=self._most(count, input_length),
            parallel_iterations=32,
            swap_memory=True,
        )
        stacked = [result.stack() for result in final[1]]
        outputs = tf.nest.pack_sequence_as(like, stacked)
        last = tf.nest.pack_sequence_as(like, [output[-1] for output in stacked])
        return last, outputs, tuple(final[3:])

    def _array(self, x, count):
        array = tf.TensorArray(dtype=x.dtype, size=count)
        return array.unstack(shapes.reverse(x, 0) if self.backwards else x)

    def _mask_at(self, mask, input_length, count):
        """Return how the mask selects, and a function for the mask of a time; None if no mask."""
        if mask is not None:
            array = self._array(mask, count)
            return _chosen, array.read
        if not isinstance(input_length, tf.Tensor):
            return None

        def choose(mask, new, old):
            pairs = zip(new, old, strict=False)
            return tuple(tf.compat.v1.where(mask, after, before) for after, before in pairs)

        if self.backwards:
            from_end = tf.reduce_max(input_length, axis=0) - 1 - input_length
            return choose, lambda time: tf.less(from_end, time)
        return choose, lambda time: tf.greater(input_length, time)

    def _most(self, count, input_length):
        """Return the maximum number of iterations, which only XLA needs; None elsewhere."""
        if tf.executing_eagerly() or not _in_xla(tf.compat.v1.get_default_graph()):
            return None
        return count if input_length is None else tf.reduce_max(input_length)


def _in_xla(graph):
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(graph)


# The states of eager steps -----------------------------------------------------------------------


def _next(before, states):
    """Return the states for the next step. Raise ValueError if they do not fit the last ones."""
    after = tuple(states)
    if len(after) == len(before):
        for old, new in zip(before, after, strict=True):
            if not facts.same_sizes(old, new):
                break
        else:
            return after
    # A state is not a plain tensor, or the sizes of states differ.
    tf.nest.assert_same_structure(before, after)
    for old, new in zip(tf.nest.flatten(before), tf.nest.flatten(after), strict=True):
        _check_sizes(old, new)
    return after


def _check_sizes(old, new):
    if isinstance(new, tf.Tensor) and not facts.same_sizes(old, new):
        new.set_shape(old.shape)


def _like(initial_states, states):
    if all(map(facts.is_plain, states)):
        return states
    return tuple(tf.nest.pack_sequence_as(initial_states, tf.nest.flatten(states)))


def _as_tensors(x):
    return x if facts.is_plain(x) else tf.nest.map_structure(below.convert_to_tensor, x)


def _select(mask, new, old):
    """Select rows by a mask with one axis."""
    if facts.same_sizes(new, old) and facts.ndim(new) > 0:
        return _select_rows(condition=mask, x=new, y=old)
    mask = tf.reshape(mask, [-1] + [1] * (len(new.shape) - 1))
    return tf.where(mask, new, old)
