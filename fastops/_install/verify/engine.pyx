# distutils: language = c++
"""Makes calls both by fastops and by TensorFlow, and compares them.

During verification, calls of a replacement go to `_verified`. Replacements contain no check for
verification, so it costs nothing while it is off. Of nested calls, only the outermost one is
verified. In fastops's call, inner calls use replacements without verification; in TensorFlow's
call, inner calls use TensorFlow's functions only. A trap in place of the original detects that a
replacement falls back to TensorFlow. Such a call is not made a second time.

This module is compiled, so that no frame of fastops is in the stack traces that TensorFlow records.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM

from fastops._autodiff.walks cimport expand
from fastops._core.observer cimport is_recorded
from fastops._core.threads cimport this_thread
from fastops._cpp.python cimport (
    PyObject_Vectorcall,
    PySequence_Fast_ITEMS,
    PyVectorcall_NARGS,
    call_object,
)
from fastops._cpp.vectorcall cimport vectorcall_t
from fastops._install.public.lowering cimport Lowering
from fastops._install.replacement cimport Replacement, enable, live
from fastops._situation cimport EAGERLY, missing
from fastops._specialize.policy cimport MAX_DIFFERENCES, MAX_VERIFIED_GRADIENTS
from fastops._tf.eager cimport TFE_Py_TapeSetRestartOnThread, TFE_Py_TapeSetStopOnThread
from fastops._tf.eager cimport recording

cdef extern from *:
    """
    // What this thread does for verification: nothing (kPlain), a call of a stand-in that is being
    // verified (kTrial), or TensorFlow's call, without stand-ins (kStock).
    enum FastopsWay { kPlain, kTrial, kStock };
    static thread_local FastopsWay fastops_way = kPlain;
    // In a trial: the stand-in, the first argument of the call, and whether the call has fallen
    // back.
    static thread_local PyObject* fastops_tried = nullptr;
    static thread_local PyObject* fastops_first = nullptr;
    static thread_local bool fastops_left = false;
    // Whether this thread's verification makes calls with effects in other threads wait.
    static thread_local bool fastops_holds = false;
    """
    ctypedef enum Way "FastopsWay":
        kPlain
        kTrial
        kStock
    Way way "fastops_way"
    PyObject* tried "fastops_tried"
    PyObject* first_argument "fastops_first"
    bint left "fastops_left"
    bint holds "fastops_holds"

import os
import threading
import warnings

import numpy as np
import tensorflow as _tf
from tensorflow.python.eager.backprop import GradientTape as _GradientTape
from tensorflow.python.eager import tape as _tape
from tensorflow.python.eager.core import _FallbackException
from tensorflow.python.pywrap_tfe import TFE_Py_TapeGradient as _tape_gradient

from fastops._core.errors import VerificationError, VerificationWarning
from fastops._specialize.guards.names import watches as _watches
from fastops._install.gradients.tape_methods import Gradient as _Gradient
from fastops._install.verify import effects as _effects
from fastops._install.verify.comparison import difference, difference_of_errors
from fastops._install.verify.description import describe as _describe
from fastops._install.verify.results import RESULTS

cdef dict _subjects = {}  # by address of the replacement
cdef long long _every = 1
cdef bint _raises = True
cdef object _PLAIN = _effects.Effects()

# Held while a call with effects is made both ways. Restoring variables in between would undo the
# assignments of a verified call in another thread.
_in_turn = threading.RLock()
SECONDS = 60
"""How long a call with effects waits for one in another thread. After that, it is not verified."""

_tapes = threading.local()


@cython.final
cdef class Subject:
    """A replacement whose calls are verified.

    Attributes
    ----------
    layer, name : str
        The layer and name of the `fastops._install.target.Target`.
    replacement : Replacement
        The replacement.
    original : callable
        The callable that it replaces.
    """

    cdef readonly Replacement replacement
    cdef Subject beyond         # the subject for the fallback of a `Lowering`
    cdef vectorcall_t ordinary  # handles calls of the replacement when they are not verified
    cdef readonly object original
    cdef Replacement trap
    cdef int trials             # the number of trials in progress, in all threads
    cdef readonly str layer
    cdef readonly str name
    cdef long long calls

    cdef PyObject* run(self, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
        """Call the replacement without verification."""
        try:
            return self.ordinary(<PyObject*>self.replacement, args, nargsf, keywords)
        finally:
            # Some replacements set their `vectorcall` in their first call.
            if self.replacement.vectorcall != _verified:
                self.keep()

    cdef int keep(self) except -1:
        if PyDict_GetItem(_subjects, <size_t><PyObject*>self.replacement) == <PyObject*>self:
            self.ordinary = self.replacement.vectorcall
            self.replacement.vectorcall = _verified
        return 0

    cdef int set_trap(self) except -1:
        self.trials += 1
        self.replacement.original = self.trap
        if self.beyond is not None:
            self.beyond.set_trap()
        return 0

    cdef int take_trap(self) except -1:
        self.trials -= 1
        if self.trials == 0:
            self.replacement.original = self.original
        if self.beyond is not None:
            self.beyond.take_trap()
        return 0

    cdef tuple attempt(self, PyObject* const* args, size_t nargsf, PyObject* keywords):
        """Call the replacement with a trap; return whether it fell back, its result, its error."""
        cdef Way before = way
        cdef PyObject* tried_before = tried
        cdef PyObject* first_before = first_argument
        cdef bint left_before = left
        cdef bint was_left
        cdef PyObject* made
        global way, tried, first_argument, left
        result = error = None
        self.set_trap()
        way, left = kTrial, False
        tried = <PyObject*>self.replacement
        first_argument = args[0] if PyVectorcall_NARGS(nargsf) else NULL
        try:
            try:
                made = self.run(args, nargsf, keywords)
                result = <object>made
                Py_DECREF(result)  # the call's own reference
            except BaseException as raised:
                error = raised
        finally:
            was_left = left
            way, left = before, left_before
            tried = tried_before
            first_argument = first_before
            self.take_trap()
        return was_left, result, error


@cython.final
@cython.no_gc_clear
cdef class Trap(Replacement):
    """Stand-in for an original while its replacement is tried."""

    cdef PyObject* of  # borrowed: the replacement


cdef PyObject* _trapped(PyObject* callable, PyObject* const* args, size_t nargsf,
                        PyObject* keywords) except NULL:
    cdef Trap self = <Trap>callable
    cdef PyObject* tried_before = tried
    cdef PyObject* first_before = first_argument
    global way, tried, first_argument, left, holds
    if way != kTrial or tried != self.of or (
        PyVectorcall_NARGS(nargsf) != 0 and args[0] != first_argument
    ):
        return PyObject_Vectorcall(<PyObject*>self.original, args, nargsf, keywords)
    # The replacement falls back to TensorFlow, so calls inside this call are verified. No state
    # will be restored after it. It may wait for other threads, so the lock is released.
    left = True
    if holds:
        holds = False
        _in_turn.release()
    way = kPlain
    tried = NULL
    first_argument = NULL
    try:
        return PyObject_Vectorcall(<PyObject*>self.original, args, nargsf, keywords)
    finally:
        way, left = kTrial, True
        tried = tried_before
        first_argument = first_before


cdef PyObject* _verified(PyObject* callable, PyObject* const* args, size_t nargsf,
                         PyObject* keywords) except NULL:
    """Handle a call of a replacement during verification."""
    cdef Subject subject
    cdef PyObject* stored = PyDict_GetItem(_subjects, <size_t>callable)
    if stored == NULL:  # verification has ended
        return PyObject_Vectorcall(callable, args, nargsf, keywords)
    subject = <Subject>stored
    if way == kStock:
        return PyObject_Vectorcall(<PyObject*>subject.original, args, nargsf, keywords)
    if way == kTrial or not live or is_recorded(this_thread()) or missing(EAGERLY):
        return subject.run(args, nargsf, keywords)
    subject.calls += 1
    if _every > 1 and (subject.calls - 1) % _every:
        return subject.run(args, nargsf, keywords)
    return _verify(subject, args, nargsf, keywords)


cdef PyObject* _verify(Subject subject, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    cdef Way before = way
    cdef tuple names = () if keywords == NULL else <tuple>keywords
    cdef bint waited, holds_before = holds
    global way, holds
    given = tuple([<object>args[i] for i in range(n)])
    named = {name: <object>args[n + i] for i, name in enumerate(names)}
    way = kStock
    try:
        effects = _effects.of(subject.replacement, subject.name, given, named)
    except Exception as problem:  # unforeseen arguments must not break the user's call
        effects = f"{type(problem).__name__} where its effects are looked for"
    finally:
        way = before
    if type(effects) is str:
        _count(subject, effects)
        return subject.run(args, nargsf, keywords)
    if effects.nothing:
        return _both(subject, args, nargsf, keywords, effects, given, named)
    waited = _acquire()
    if not waited and effects.arguments is None:
        _count(subject, "another thread makes a call with effects")
        return subject.run(args, nargsf, keywords)
    holds = waited
    try:
        return _both(subject, args, nargsf, keywords, effects, given, named)
    finally:
        if holds:
            _in_turn.release()
        holds = holds_before


cdef bint _acquire() except -1:
    return _in_turn.acquire(timeout=SECONDS)


cdef int _count(Subject subject, str why) except -1:
    if why == _effects.LEFT:
        RESULTS.left[subject.layer] += 1
    else:
        RESULTS.skipped[why] += 1
    return 0


cdef PyObject* _both(Subject subject, PyObject* const* args, size_t nargsf, PyObject* keywords,
                     effects, tuple given, dict named) except NULL:
    """Make a call by fastops and by TensorFlow. The result and the final state are TensorFlow's."""
    cdef Way before = way
    cdef bint was_left
    cdef bint taped = recording()
    cdef tuple ways = None
    cdef PyObject* const* mine_given = args
    cdef PyObject* const* wanted_given = args
    global way
    saved = after = mine = theirs = None
    way = kStock
    try:
        if effects.arguments is not None:
            values = tuple(named.values())
            ways = effects.arguments() + values, effects.arguments() + values
            mine_given = PySequence_Fast_ITEMS(PyTuple_GET_ITEM(ways, 0))
            wanted_given = PySequence_Fast_ITEMS(PyTuple_GET_ITEM(ways, 1))
        saved = effects.state()
        inputs = _inputs(given, named, effects) if taped else []
        if inputs:
            mine = _tape_of(inputs)
    except Exception as problem:
        way = before
        _count(subject, f"{type(problem).__name__} where what it may change is copied")
        return subject.run(mine_given, len(given), keywords)
    try:
        way = before
        was_left, result, error = subject.attempt(mine_given, len(given), keywords)
        way = kStock
        if mine is not None:
            mine._pop_tape()
        if was_left or error is not None and not isinstance(error, Exception):
            _count(subject, _effects.LEFT)
            if error is not None:
                raise error
            Py_INCREF(result)
            return <PyObject*>result
        _stop_tapes()
        try:
            after = effects.state()
            effects.put_back(saved)
        finally:
            _restart_tapes()
        if inputs:
            theirs = _tape_of(inputs)
        wanted = wanted_error = None
        try:
            wanted = call_object(
                <PyObject*>subject.original, wanted_given, len(given), keywords
            )
        except Exception as raised:
            wanted_error = raised
        finally:
            if theirs is not None:
                theirs._pop_tape()
        if error is None and type(wanted_error) is _FallbackException:
            _count(subject, "TensorFlow makes it in another function")
            raise wanted_error
        RESULTS.compared[subject.layer] += 1
        _stop_tapes()
        try:
            told = difference_of_errors(error, wanted_error)
            if told is None and error is None:
                told = effects.compare(result, wanted) or _of_identity(result, wanted, given, named)
            if told is None:
                told = effects.difference(after, effects.state())
            if told is None and inputs and error is None:
                told = _of_gradients(mine, result, theirs, wanted, inputs)
            if told is None and error is None and type(subject.replacement) is _Gradient:
                told = _of_outer_gradients(given, named, result, wanted)
            if told is not None and _is_unsteady(
                subject, effects, saved, given, named, keywords, wanted, wanted_error
            ):
                told = None
                RESULTS.skipped["TensorFlow itself gives something else each time"] += 1
            if told is not None and type(subject.replacement) is _Gradient:
                told += _rules(subject, effects, saved, args, nargsf, keywords)
            if told is not None:
                told = _message(subject, told, given, named)
        except Exception as problem:  # unforeseen values must not break the user's call
            told = None
            RESULTS.skipped[f"{type(problem).__name__} where results are compared"] += 1
        finally:
            _restart_tapes()
    finally:
        way = before
    if told is not None:
        _tell(told, wanted_error)
    if wanted_error is not None:
        raise wanted_error
    Py_INCREF(wanted)
    return <PyObject*>wanted


cdef bint _is_unsteady(Subject subject, effects, saved, tuple given, dict named,
                       PyObject* keywords, wanted, wanted_error) except -1:
    """Whether TensorFlow's function gives a different result when it is called again."""
    cdef tuple values
    left_now = effects.state()
    effects.put_back(saved)
    again = error = None
    try:
        values = (effects.arguments() if effects.arguments is not None else given)
        values += tuple(named.values())
        try:
            again = call_object(
                <PyObject*>subject.original, PySequence_Fast_ITEMS(<PyObject*>values), len(given),
                keywords,
            )
        except Exception as raised:
            error = raised
        if difference_of_errors(error, wanted_error) is not None:
            return True
        if error is None and effects.compare(again, wanted) is not None:
            return True
        return effects.difference(effects.state(), left_now) is not None
    finally:
        effects.put_back(left_now)


cdef int _tell(str text, cause) except -1:
    if len(RESULTS.differences) < MAX_DIFFERENCES:
        RESULTS.differences.append(text)
    if _raises:
        raise VerificationError(text) from cause
    warnings.warn(text, VerificationWarning, stacklevel=1)
    return 0


cdef str _message(Subject subject, str told, tuple given, dict named):
    try:
        about = _describe(subject, given, named)
    except Exception as problem:  # report the difference without the description
        about = f"  {type(problem).__name__} where the call is described"
    left_to = subject.layer if subject.layer == "gradients" else subject.name
    return (
        f"{subject.name} ({subject.layer}) does not give what TensorFlow gives.\n"
        f"  {told}\n{about}\n"
        f"  Please report this. install(exclude=[\"{left_to}\"]) leaves the call to TensorFlow."
    )


# ---------------------------------------------------------------------------------------------
# Results that are arguments
# ---------------------------------------------------------------------------------------------

cdef str _of_identity(result, wanted, tuple given, dict named):
    """Return a text if one call returns an argument itself, and the other one does not."""
    mine = result if isinstance(result, (list, tuple)) else (result,)
    theirs = wanted if isinstance(wanted, (list, tuple)) else (wanted,)
    for item, other in zip(mine, theirs):
        if item is other or not isinstance(item, (_tf.Tensor, _tf.Variable)):
            continue
        for value in (*given, *named.values()):
            if (value is item) != (value is other):
                return "result: one way returns the argument itself, the other one something else"
    return None


# ---------------------------------------------------------------------------------------------
# Gradients that tapes have recorded
# ---------------------------------------------------------------------------------------------

cdef int _stop_tapes() except -1:
    TFE_Py_TapeSetStopOnThread()
    return 0


cdef int _restart_tapes() except -1:
    TFE_Py_TapeSetRestartOnThread()
    return 0


cdef list _inputs(tuple given, dict named, effects):
    """Return the tensors and handles with respect to which gradients are compared."""
    cdef list values = []
    for value in _tf.nest.flatten((list(given), list(named.values()))):
        if isinstance(value, _tf.Tensor) and _is_differentiable(value):
            values.append(value)
        elif isinstance(value, _tf.Variable) and _is_differentiable(value):
            values.append(value._handle)
    values += effects.handles
    return list({id(value): value for value in values}.values())[:MAX_VERIFIED_GRADIENTS]


cdef bint _is_differentiable(value) except -1:
    return value.dtype.is_floating or value.dtype.is_complex


cdef object _tape_of(list inputs):
    """Start a persistent tape that watches the inputs, and return it."""
    tape = _GradientTape(persistent=True)
    tape._tape = _tape.push_new_tape(persistent=True, watch_accessed_variables=True)
    tape._recording = True
    for value in inputs:
        if value.dtype != _tf.resource:
            _tape.watch(tape._tape, value)
    return tape


cdef list _seeds(list targets):
    """Return seeds for gradients. All elements differ, so that errors do not cancel in sums."""
    cdef list seeds = []
    for target in targets:
        size = int(np.prod(target.shape.as_list(), dtype=np.int64))
        values = np.cos(np.arange(size, dtype=np.float64)) + 1.5
        seeds.append(_tf.constant(values.reshape(target.shape.as_list()), _tf.float64))
        seeds[len(seeds) - 1] = _tf.cast(seeds[len(seeds) - 1], target.dtype)
    return seeds


cdef list _targets(result):
    return [
        value
        for value in _tf.nest.flatten(result)
        if isinstance(value, _tf.Tensor) and _is_differentiable(value)
    ][:MAX_VERIFIED_GRADIENTS]


cdef object _gradients_of(tape, list targets, list inputs):
    """Return the gradients and None, or None and the exception."""
    if not targets:
        return [], None
    try:
        expand(tape)
        return _tape_gradient(tape, targets, inputs, _seeds(targets), inputs, "none"), None
    except Exception as error:
        return None, error


cdef str _of_gradients(mine, result, theirs, wanted, list inputs):
    gradients, failed = _gradients_of(mine._tape._tape, _targets(result), inputs)
    wanted_gradients, wanted_failed = _gradients_of(theirs._tape._tape, _targets(wanted), inputs)
    told = difference_of_errors(failed, wanted_failed)
    if told is not None:
        return f"recorded gradients: {told}"
    return difference(gradients, wanted_gradients, "recorded gradients")


cdef str _of_outer_gradients(tuple given, dict named, result, wanted):
    """Compare the gradients of two gradients with respect to the sources of outer tapes."""
    inner = given[0]
    known = _inputs(given, named, _PLAIN)
    for tape in _active():
        if tape is inner or tape._tape is None or not tape._recording:
            continue
        sources = [*known, *(variable.handle for variable in tape._tape.watched_variables())]
        sources = list({id(source): source for source in sources}.values())[:MAX_VERIFIED_GRADIENTS]
        if not sources:
            continue
        gradients, failed = _gradients_of(tape._tape._tape, _targets(_given(result)), sources)
        wanted_gradients, wanted_failed = _gradients_of(
            tape._tape._tape, _targets(_given(wanted)), sources
        )
        told = difference_of_errors(failed, wanted_failed)
        if told is None:
            told = difference(gradients, wanted_gradients, "gradients of the gradients")
        if told is not None:
            return told
    return None


cdef str _rules(Subject subject, effects, saved, PyObject* const* args, size_t nargsf,
                PyObject* keywords):
    """Return a text with the first rule whose gradient differs from TensorFlow's."""
    cdef Py_ssize_t before = len(RESULTS.differences)
    global way
    state = effects.state()
    effects.put_back(saved)
    way = kPlain
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call_object(<PyObject*>subject.original, args, nargsf, keywords)
    except Exception:  # the same exception as in the first call
        pass
    finally:
        way = kStock
        effects.put_back(state)
    told = RESULTS.differences[before:]
    del RESULTS.differences[before:]
    if not told:
        return "\n  No rule gives another gradient by itself: sums are taken in another order."
    return f"\n  The first rule: {told[0]}"


cdef list _given(result):
    return [value for value in _tf.nest.flatten(result) if value is not None]


cdef list _active():
    return [tape for tape in getattr(_tapes, "active", ())]


def _push_tape(self):
    """Replace `tf.GradientTape._push_tape`: each tape is persistent, so it can be used twice."""
    if self._recording or self._tape is not None:
        _own_push(self)
    else:
        self._tape = _tape.push_new_tape(
            persistent=True, watch_accessed_variables=self._watch_accessed_variables
        )
        self._recording = True
    if not hasattr(_tapes, "active"):
        _tapes.active = []
    _tapes.active.append(self)


def _pop_tape(self):
    """Replace `tf.GradientTape._pop_tape`, and forget the tape."""
    _own_pop(self)
    _tapes.active = [tape for tape in getattr(_tapes, "active", ()) if tape is not self]


_own_push, _own_pop = _GradientTape._push_tape, _GradientTape._pop_tape
_watches(_push_tape, _own_push)  # guards of the methods of tapes must accept these patches
_watches(_pop_tape, _own_pop)


# ---------------------------------------------------------------------------------------------
# Start and stop
# ---------------------------------------------------------------------------------------------

cdef Subject _subject_of(Replacement replacement, str layer, str name, PyObject* of):
    cdef Subject subject = Subject.__new__(Subject)
    cdef Trap trap = Trap.__new__(Trap)
    trap.original, trap.of, trap.vectorcall = replacement.original, of, _trapped
    subject.replacement, subject.original, subject.trap = replacement, replacement.original, trap
    subject.layer, subject.name, subject.ordinary = layer, name, replacement.vectorcall
    return subject


def verify(str layer, str name, attribute):
    """Verify the calls of a replacement from now on."""
    cdef Subject subject
    cdef Replacement replacement
    if type(attribute) is staticmethod:
        attribute = attribute.__func__
    elif type(attribute) is property:
        attribute = attribute.fget
    if not isinstance(attribute, Replacement):
        raise SystemError(f"what replaces {name} is a {type(attribute).__name__}")
    replacement = attribute
    if <size_t><PyObject*>replacement in _subjects:
        return
    subject = _subject_of(replacement, layer, name, <PyObject*>replacement)
    if type(replacement) is Lowering:
        beyond = (<Lowering>replacement).beyond
        if type(beyond) is not type(replacement.original):
            subject.beyond = _subject_of(beyond, layer, name, <PyObject*>replacement)
    _subjects[<size_t><PyObject*>replacement] = subject
    replacement.vectorcall = _verified


def start(str mode, long long every):
    """Start verification. After that, `verify` is called for each replacement."""
    global _every, _raises
    _every, _raises = every, mode == "raise"
    RESULTS.mode, RESULTS.every = mode, every
    _GradientTape._push_tape, _GradientTape._pop_tape = _push_tape, _pop_tape


def stop():
    """Stop verification, and restore all replacements."""
    cdef Subject subject
    for subject in list(_subjects.values()):
        if subject.replacement.vectorcall == _verified:
            subject.replacement.vectorcall = subject.ordinary
    _subjects.clear()
    RESULTS.mode = None
    if _GradientTape._push_tape is _push_tape:
        _GradientTape._push_tape, _GradientTape._pop_tape = _own_push, _own_pop


enable(Trap)
# TensorFlow's own calls hang in a forked process if threads of the parent have run kernels.
os.register_at_fork(after_in_child=stop)
