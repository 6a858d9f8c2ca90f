"""`tape.jacobian` and `tape.batch_jacobian` by the traces of earlier calls.

In each eager call, TensorFlow walks over the tape while it traces a function, and vectorizes that
function by `pfor`. Such a trace depends on the records of the tape and on the tensors that they
keep. TensorFlow puts small tensors into the trace as constants, and feeds their values when the
function runs. While it traces, Python sees these values, and the gradient functions of the modules
that walks are replayed for read integers only. So a trace is used again if the walk has the same
description (`fastops._autodiff.walks`) and the same integers. The tensors of the call take the
places of those that were captured.

Before a trace counts, it has given the bytes of another call, which TensorFlow has made.
"""

import sys

import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.parallel_for import control_flow_ops
from tensorflow.python.platform import tf_logging

from fastops._autodiff.tape import use_up, walk_from
from fastops._core.reasons import RefusedError
from fastops._install.bodies import (
    CONSTANT_SIZE,
    MISSED,
    Bodies,
    BodyTrace,
    are_same,
    check_ops,
    code_in,
    is_of_library,
    observe,
)
from fastops._install.lookups import is_of_known_module, of_codes
from fastops._plans.repeated import RepeatedTrace
from fastops._specialize.guards.names import upstream
from fastops._specialize.learned import Learned

_PFOR = upstream(control_flow_ops.pfor).__code__
_VECTORIZING = upstream(control_flow_ops._pfor_impl).__code__
_WARNING = frozenset({tf_logging.warn.__code__, tf_logging.warning.__code__})

_OTHER = Learned("other tapes or arguments")
_OTHER.refuse("jacobian_walk")


class Method:
    """One of the two methods.

    Parameters
    ----------
    name : str
        Its name.
    fits : callable
        Tells whether TensorFlow accepts the shapes of the target and the sources.
    begin : callable
        Given the target, returns what the traced function takes rows of.
    finish : callable
        Given the result of the traced function, the target and the sources, returns the result of
        the method.
    """

    def __init__(self, name, fits, begin, finish):
        self.fits, self.begin, self.finish = fits, begin, finish
        self.traces = Bodies(f"tf.GradientTape.{name}")
        self.loop_fn = code_in(getattr(tf.GradientTape, name), "loop_fn")

    def __call__(self, call, tape, target, sources, unconnected):
        """Make a call.

        Parameters
        ----------
        call : callable
            Makes it as TensorFlow does.
        tape : tf.GradientTape
            The tape.
        target : EagerTensor
            The target.
        sources : EagerTensor, tf.Variable, or structure of these
            The sources.
        unconnected : str or tf.UnconnectedGradients
            What stands for the gradients of sources that are not connected.
        """
        flat = tf.nest.flatten(sources)
        found = None
        if all(map(_has_known_shape, flat)) and self.fits(target, sources):
            found = walk_from(tape, target, flat)
        if found is None:
            self.traces.counts.count(_OTHER)
            return call()
        walk = _Walk(*found, target, self.begin(target), unconnected)
        known, trace = self.traces.find(walk)
        if trace is not None:
            try:
                result = self.finish(trace.run(walk.tensors), target, sources)
            except tf.errors.OpError:  # another trace has other names in the text of the error
                return call()
            self.traces.counts.count(known.learned)
            use_up(tape)
            return result
        self.traces.counts.count(MISSED if known.learned.is_active else known.learned)
        if not known.is_due() or sys.getprofile() is not None:
            return call()
        return self._learn(known, walk, call, target, sources)

    def _learn(self, known, walk, call, target, sources):
        """Make a call as TensorFlow does. Keep its trace, or compare it with the kept one."""
        known.made += 1
        witness = _Witness(self.loop_fn)
        result = observe(call, witness)
        try:
            trace = _trace_of(witness, walk)
            trial = known.trial.setdefault(None, trace)  # at once: other threads learn, too
            if trial is not trace and trial.fits(walk.tensors):
                _compare_captures(trial, trace)
                _compare(self.finish(trial.run(walk.tensors), target, sources), result)
                known.add(known.trial.pop(None, trial))
            else:
                known.trial[None] = trace
        except Exception as why:  # the call has succeeded: only the trace is not kept
            known.refuse(why)
        return result


class _Walk:
    """What a call depends on: the key, and the tensors that it leaves out.

    Attributes
    ----------
    key : tuple
        The key.
    tensors : list of EagerTensor
        The tensors that the records keep, the sources (of variables the handles), the target, and
        its rows.
    kept : object
        Keeps alive what the key has by identity.
    """

    def __init__(self, description, kept, tensors, target, rows, unconnected):
        self.kept, self.tensors = kept, [*tensors, target, rows]
        self.key = description, target.dtype, tuple(target.shape), str(unconnected)


class _Witness:
    """Notes the traced function of a call, and the code that runs while it is traced.

    Parameters
    ----------
    loop_fn : types.CodeType
        The code of the function that is vectorized.

    Attributes
    ----------
    function : Function or None
        The traced function.
    rows : EagerTensor or None
        The tensor of which that function takes a row.
    codes : dict of tuple to dict
        The globals of the code that ran, by the code and the identity of the globals.
    """

    def __init__(self, loop_fn):
        self.loop_fn, self.function, self.rows = loop_fn, None, None
        self.codes, self.frame = {}, None

    def interrupt(self):
        """Forget the traced function, since other code sees the functions that start."""
        self.function = None

    def __call__(self, frame, event, argument):
        """Note an event, as a profile function."""
        if event == "call":
            if self.frame is None and frame.f_code is _VECTORIZING:
                self.frame = frame
            if frame.f_code is self.loop_fn:
                self.rows = frame.f_locals["target"]
            if self.frame is not None:
                self.codes[frame.f_code, id(frame.f_globals)] = frame.f_globals
        elif event == "return":
            if frame is self.frame:
                self.frame = None
            elif frame.f_code is _PFOR:
                self.function = frame.f_locals.get("f")


def _trace_of(witness, walk):
    """Return the trace of a call that was made."""
    if witness.function is None:
        raise RefusedError("jacobian_unusable", "the traced function is unknown")
    for (code, _), namespace in witness.codes.items():
        name = str(namespace.get("__name__"))
        if not (is_of_library(namespace, name) or is_of_known_module(namespace)):
            raise RefusedError("foreign_code", code.co_name)
        if code in _WARNING:  # in each call
            raise RefusedError("jacobian_unusable", "TensorFlow warns")
    concrete = witness.function.get_concrete_function()
    check_ops(concrete)
    places = {id(tensor): i for i, tensor in enumerate(walk.tensors)}
    places[id(witness.rows)] = len(walk.tensors) - 1
    captures = [places.get(id(tensor), tensor) for tensor in concrete.captured_inputs]
    if not all(type(item) is int or item.dtype.is_integer for item in captures):
        raise RefusedError("jacobian_unusable", "it captures a tensor that it has made")
    constants = [(i, tensor) for i, tensor in enumerate(walk.tensors) if _is_read(tensor)]
    guard = of_codes([(code, namespace) for (code, _), namespace in witness.codes.items()])
    return BodyTrace(RepeatedTrace(concrete), captures, constants, (guard,), (walk.kept,))


def _is_read(tensor):
    """Tell whether Python may read the values of a tensor while it traces a gradient."""
    dtype = tensor.dtype
    if dtype.is_floating or dtype.is_complex or dtype in (tf.resource, tf.variant):
        return False
    if dtype == tf.bool and tensor.shape.rank:
        return False
    return tensor.shape.num_elements() <= CONSTANT_SIZE


def _compare_captures(trace, other):
    """Raise `RefusedError` if two traces have captured other tensors.

    The traces may have made integers. These follow from the shapes of the kept tensors.
    """
    for mine, theirs in zip(trace.captures, other.captures, strict=True):
        if type(mine) is int or type(theirs) is int:
            same = type(mine) is type(theirs) and mine == theirs
        else:
            same = mine.shape == theirs.shape and are_same(mine, theirs)
        if not same:
            raise RefusedError("jacobian_unusable", "the captures differ from call to call")


def _compare(traced, result):
    """Raise `RefusedError` if a trace has not given the bytes of a result."""
    for mine, theirs in zip(tf.nest.flatten(traced), tf.nest.flatten(result), strict=True):
        if type(mine) is not type(theirs) or type(mine) not in (EagerTensor, type(None)):
            raise RefusedError("jacobian_unusable", f"it returns a {type(theirs).__name__}")
        if mine is not None and not (mine.shape == theirs.shape and are_same(mine, theirs)):
            raise RefusedError("jacobian_unusable", "the bytes differ from call to call")


def _has_known_shape(source):
    """Tell whether the sizes of a source are known: variables may have other sizes later."""
    shape = getattr(source, "shape", None)
    return not isinstance(shape, tf.TensorShape) or shape.is_fully_defined()


def _fits(target, sources):
    """Tell whether a jacobian exists: whatever the shapes are."""
    return True


def _flat(target):
    """Return the elements of the target of a jacobian in one row."""
    return tf.reshape(target, [-1])


def _whole(outputs, target, sources):
    """Give each output of a jacobian the shape of the target before that of the source."""
    shape = target.shape.as_list()
    outputs = [
        out if out is None else tf.reshape(out, shape + out.shape.as_list()[1:]) for out in outputs
    ]
    return tf.nest.pack_sequence_as(sources, outputs)


def _fits_by_batch(target, source):
    """Tell whether a batch jacobian exists: the first dimensions are the same."""
    shape = getattr(source, "shape", None)
    return (
        isinstance(shape, tf.TensorShape)
        and min(shape.rank, target.shape.rank) >= 2
        and 0 < shape[0] == target.shape[0]
    )


def _flat_by_batch(target):
    """Return the elements of the target of a batch jacobian, one row for each item of the batch."""
    size = target.shape[0]
    return tf.reshape(target, [size, target.shape.num_elements() // size])


def _by_batch(output, target, source):
    """Move the axis of the batch to the front, as the result of a batch jacobian has it."""
    shape = target.shape.as_list() + source.shape.as_list()[1:]
    if output is None:
        return tf.zeros(shape, target.dtype)
    size = target.shape[0]
    output = tf.reshape(output, [target.shape.num_elements() // size, size, -1])
    return tf.reshape(tf.transpose(output, [1, 0, 2]), shape)


jacobian = Method("jacobian", _fits, _flat, _whole)
batch_jacobian = Method("batch_jacobian", _fits_by_batch, _flat_by_batch, _by_batch)


def forget():
    """Forget all traces."""
    for method in (jacobian, batch_jacobian):
        method.traces.forget()
