# distutils: language = c++
"""Draws of random ops by a pair of seeds, the attributes ``seed`` and ``seed2``.

TensorFlow makes a kernel for each pair and keeps it, so that the next draw of the pair goes on
where the last one has ended. After `tf.random.set_seed`, each call without a seed of its own has
another pair: TensorFlow spends 0.3 ms on a kernel that never draws again.

Here one kernel makes the first draws of all pairs: see `SeededKernel`. The pairs are stored. If a
pair comes again, TensorFlow's kernel makes the first draw, too, before it makes the second. Later
draws of the pair are TensorFlow's.

This is right as long as no draw of TensorFlow's is unknown here. All of them pass through
fastops while `install` is active. `begin` is told whether any happened before. TensorFlow drops
its kernels when a global seed is set: `forget` then starts again.

A draw in the scope of the only device goes on in the same sequence as one outside of it, if
TensorFlow has one kernel for both. No header says so, so `_scope_is_none` finds out.
"""

cimport cython
from cpython.exc cimport PyErr_WriteUnraisable
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint32_t
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._core.entries cimport Entry, finalizing, make_entry, same_attrs
from fastops._core.observer cimport Observer
from fastops._core.schema cimport FASTOPS_MAX_PARAMS, Schema
from fastops._cpp.capi cimport CachedOp
from fastops._cpp.draws cimport (
    DrawSizes, IN_TENSORFLOW, SEED, SEED2, SeedPair, SeedPairs, SeededKernel, UNDRAWN,
)
from fastops._cpp.frame cimport Frame
from fastops._cpp.handle cimport HandleDtype
from fastops._cpp.kernel cimport Accepts, Manner
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.text cimport Message
from fastops._tf.protos cimport DT_INT32, DT_INT64, DataType, NodeDef
from fastops._tf.status cimport Status

cdef extern from "definitions.h":
    pass

import operator
import random
import weakref

import numpy as np
from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework import dtypes as _dtypes
from tensorflow.python.framework import random_seed as _random_seed
from tensorflow.python.framework.ops import EagerTensor as _EagerTensor

from fastops._core.tables.policy import UNREAD_SEEDS

SAMPLERS = frozenset(["LogUniformCandidateSampler", "UniformCandidateSampler"])

# Inputs whose values decide how many numbers are drawn. Of others, the shape does.
cdef frozenset _BY_VALUE = frozenset([b"num_samples", b"shape"])

cdef enum:
    MAX_PROBES = 8        # of whether the scope of the host matters
    MAX_KINDS = 64        # by op
    FEW_PAIRS = 64        # so many are always handed over
    SEEDS_AHEAD = 100_000

cdef int64_t MAX_INT32 = 2**31 - 1
cdef dict _ops = {}       # by name of an op: its `Drawn`
cdef type _Random = random.Random
cdef object _get_seed = _random_seed.get_seed
cdef object _internal_operation_seed = _tf_context.internal_operation_seed
cdef object _MAX_SEED = 2**31 - 1
cdef frozenset _UNREAD_SEEDS = frozenset(UNREAD_SEEDS)
cdef tuple _SEEDS = ("seed", "seed2")
cdef object _SEED_LIMIT = 2**63
cdef object _context = None  # a weak reference to TensorFlow's context
cdef bint _known = False
cdef bint _one_kernel = False  # whether TensorFlow has one kernel for draws in the host's scope too
cdef int _probes = 0           # how often this was tried without an answer
installed = False
era = 0


@cython.final
@cython.no_gc_clear
cdef class DrawKind:
    """Draws of one op with the same dtypes and the same attributes, except for the seeds.

    Attributes
    ----------
    entry : Entry
        Describes the calls. Its node has the seeds of `SeededKernel`.
    sizes, number
        `DrawSizes` of the last draw, and its number in `Drawn.draws`.
    """

    cdef Entry entry
    cdef shared_ptr[SeededKernel] kernel
    cdef string sizes
    cdef uint32_t number

    def __dealloc__(self):
        if finalizing:  # TensorFlow's own objects may be gone
            new shared_ptr[SeededKernel](self.kernel)


@cython.final
cdef class Drawn:
    """The pairs of seeds that an op has drawn from, and the kernels for further pairs."""

    cdef SeedPairs pairs
    cdef list kinds
    cdef list draws     # by the number that is stored for a pair: the `DrawKind`, and its arrays
    cdef dict numbers   # by `DrawKind` and sizes: the number
    cdef unsigned char slots[2]
    cdef unsigned long long seeds     # bit i: attribute i is a seed
    cdef unsigned long long by_value  # bit i: the value of input i matters
    cdef bint sampler

    def __init__(self, Schema op not None):
        cdef int i
        self.kinds, self.draws, self.numbers = [], [], {}
        self.sampler = op.op_name in SAMPLERS
        for i in range(op.num_attrs):
            if op.attr_names[i] in ("seed", "seed2"):
                self.slots[op.attr_names[i] == "seed2"] = op.attr_slots[i]
                self.seeds |= (<unsigned long long>1) << i
        for i in range(op.num_inputs):
            if <bytes>op.facts.inputs[i].name in _BY_VALUE:
                self.by_value |= (<unsigned long long>1) << i

    cdef int forget(self) except -1:
        cdef DrawKind kind
        self.pairs.Clear()
        self.draws, self.numbers = [], {}
        for kind in self.kinds:
            kind.number = 0
        return 0

    cdef bint read(self, PyObject** slots, int64_t* pair) except -1:
        """Read the seeds of a call. Return False if they are not those of TensorFlow's functions.

        TensorFlow makes all draws of such pairs.
        """
        cdef int i
        for i in range(2):
            pair[i] = 0
            if slots[self.slots[i]] == NULL or slots[self.slots[i]] == <PyObject*>None:
                continue
            try:
                pair[i] = operator.index(<object>slots[self.slots[i]])
            except (OverflowError, TypeError):
                return False
        return SeedPairs.CanStore(pair[0], pair[1])

    cdef DrawKind kind_of(self, Schema op, PyObject** slots, Frame* frame, const Runtime& runtime):
        """Return the kind of a call; None if TensorFlow has to draw."""
        cdef DrawKind kind
        for kind in self.kinds:
            if frame.SameSignature(<char*>kind.entry.signature, len(kind.entry.signature)) and (
                same_attrs(op, kind.entry, slots, self.seeds)
            ):
                return kind
        if len(self.kinds) >= MAX_KINDS:
            return None
        kind = self.made(op, slots, frame, runtime)
        self.kinds.insert(0, kind)
        return kind

    cdef DrawKind made(self, Schema op, PyObject** slots, Frame* frame, const Runtime& runtime):
        cdef PyObject* others[FASTOPS_MAX_PARAMS]
        cdef DrawKind kind = DrawKind.__new__(DrawKind)
        cdef int i
        for i in range(op.num_params):
            others[i] = slots[i]
        first, second = int(SEED), int(SEED2)
        others[self.slots[0]], others[self.slots[1]] = <PyObject*>first, <PyObject*>second
        kind.entry = make_entry(op, others, <PyObject*>"", frame, runtime, False, False)
        for i in range(frame.size):
            dtype = _dtypes.as_dtype(<int>HandleDtype(frame.handles[i]))
            if not dtype.is_numpy_compatible:
                return kind
        if kind.entry.node.get() != NULL and Accepts(
            deref(kind.entry.node), frame.tensors, frame.size
        ):
            kind.kernel = SeededKernel.Make(
                runtime, deref(kind.entry.node), kind.entry.num_outputs, self.sampler
            )
        return kind

    cdef uint32_t number_of(self, DrawKind kind, Schema op, Frame* frame) except? 0:
        """Return the number that stands for the size of a draw."""
        cdef string sizes = DrawSizes(frame.tensors, frame.size, self.by_value)
        cdef int i
        if kind.number and sizes == kind.sizes:
            return kind.number - 1
        key = kind, <bytes>sizes
        number = self.numbers.get(key)
        if number is None:
            inputs = []
            for i in range(frame.size):
                value = <object>frame.objects[i]
                if (self.by_value >> i) & 1:
                    filled = value.numpy()  # not the tensor, which would stay alive
                else:
                    filled = int(not self.sampler and <bytes>op.facts.inputs[i].name != b"minval")
                inputs.append((value.shape.as_list(), value.dtype, filled))
            number = self.numbers[key] = len(self.draws)
            self.draws.append((kind, inputs))
        kind.sizes, kind.number = sizes, number + 1
        return number

    cdef int hand_over(self, const int64_t* pair, uint32_t number,
                       const Runtime& runtime) except -1:
        """Have TensorFlow's kernel of a pair make the draw that was made here."""
        cdef DrawKind kind
        cdef Frame frame
        kind, inputs = self.draws[number]
        self.pairs.Store(pair[0], pair[1], IN_TENSORFLOW)
        if runtime.context == NULL:  # TensorFlow's kernels are gone
            return 0
        device = (<bytes>runtime.host_name).decode()
        tensors = [
            _EagerTensor(_array(*given), device, given[1]._type_enum) for given in inputs
        ]
        for tensor in tensors:
            frame.Add(<PyObject*>tensor, runtime.host)
        _draw_in_tensorflow(kind.entry, pair, &frame, b"", runtime)
        return 0


cdef list _draw_in_tensorflow(Entry entry, const int64_t* pair, Frame* frame, bytes device,
                              const Runtime& runtime):
    """Have TensorFlow's kernel of a pair draw. Return the results."""
    cdef NodeDef node = deref(entry.node)
    cdef Status status
    cdef PyObject* results[8]
    cdef list drawn
    cdef int i, code
    cdef CachedOp* op
    deref(node.mutable_attr())[b"seed"].set_i(pair[0])
    deref(node.mutable_attr())[b"seed2"].set_i(pair[1])
    op = new CachedOp(runtime.context, node, entry.num_outputs)
    try:
        code = op.Run(frame.handles, frame.size, device, results, &status)
    finally:
        del op
    if code < 0:
        raise SystemError("a draw could not be repeated")
    if code:
        raise SystemError(f"a draw could not be repeated: {Message(status).decode()}")
    drawn = [<object>results[i] for i in range(entry.num_outputs)]
    for result in drawn:
        Py_DECREF(result)
    return drawn


cdef bint _scope_is_none(object device_name, DrawKind kind, Frame* frame,
                         const Runtime& runtime) except -1:
    """Whether draws in a device scope are those outside of it.

    Two draws of a pair that no function of TensorFlow makes, one in the scope and one outside,
    differ if one kernel makes both. If they are equal, they may be so by chance.
    """
    global _one_kernel, _probes
    cdef int64_t pair[2]
    host = <bytes>runtime.host_name
    if device_name != host.decode():
        return False
    if not _one_kernel and _probes < MAX_PROBES:
        _probes += 1
        pair[0], pair[1] = -_probes, -MAX_INT32
        outside = _draw_in_tensorflow(kind.entry, pair, frame, b"", runtime)[0]
        inside = _draw_in_tensorflow(kind.entry, pair, frame, host, runtime)[0]
        if outside.dtype is not _dtypes.string:  # arrays of texts have addresses
            _one_kernel = outside.numpy().tobytes() != inside.numpy().tobytes()
    return _one_kernel


def _array(shape, dtype, values):
    """Return an array with a number or array of numbers; with empty texts if it is of texts."""
    if dtype is _dtypes.string:
        return np.full(shape, b"", object)
    return np.full(shape, values, dtype.as_numpy_dtype)


cdef Drawn _drawn(Schema op, const Runtime& runtime):
    """Return what is known of an op. Start again if TensorFlow has another context."""
    global _context
    cdef Drawn drawn
    if runtime.py_context != NULL:
        context = <object>runtime.py_context
        if _context is not None and _context() is not context:
            _ops.clear()
            _context = None
        if _context is None:
            _context = weakref.ref(context)
    drawn = _ops.get(op.op_name)
    if drawn is None:
        drawn = _ops[op.op_name] = Drawn(op)
    return drawn


cdef Entry draw(Schema op, PyObject** slots, PyObject* device_name, Frame* frame,
                const Runtime& runtime, PyObject** results, PyObject* measurer):
    cdef Drawn drawn = _drawn(op, runtime)
    cdef DrawKind kind = None
    cdef int64_t pair[2]
    cdef uint32_t number
    cdef Status status
    cdef Manner manner
    cdef int code
    if not drawn.read(slots, pair):
        return None
    number = drawn.pairs.Find(pair[0], pair[1])
    if number == IN_TENSORFLOW:
        return None
    if number != UNDRAWN:
        drawn.hand_over(pair, number, runtime)
        return None
    try:
        kind = drawn.kind_of(op, slots, frame, runtime)
        if (
            kind is not None
            and kind.kernel.get() != NULL
            and <object>device_name != ""
            and not _scope_is_none(<object>device_name, kind, frame, runtime)
        ):
            kind = None
        if kind is not None and kind.kernel.get() != NULL:
            number = drawn.number_of(kind, op, frame)
    except Exception:  # internal error: report it, and let TensorFlow draw
        PyErr_WriteUnraisable(op)
        kind = None
    if (
        kind is None
        or kind.kernel.get() == NULL
        or deref(kind.kernel).busy()
    ):
        drawn.pairs.Store(pair[0], pair[1], IN_TENSORFLOW)
        return None
    # First note the draw: another thread may ask for the same pair while the kernel runs.
    drawn.pairs.Store(pair[0], pair[1], number)
    manner.release_gil = True
    if measurer != NULL:
        manner.kernel_ns = (<Observer>measurer).begin_kernel()
    code = deref(kind.kernel).Run(pair[0], pair[1], frame.tensors, results, &status, &manner)
    if measurer != NULL:
        (<Observer>measurer).end_kernel(None if code else kind.entry, manner.in_caller)
    if code:
        drawn.pairs.Store(pair[0], pair[1], IN_TENSORFLOW)
        if code < 0:
            raise SystemError("the results of a draw could not be wrapped")
        return None  # TensorFlow raises the error
    return kind.entry


cdef tuple attrs_for_record(Schema op, PyObject** slots, Frame* frame):
    """No tape keeps the record of an op that takes only integers: its attributes do not matter."""
    cdef int i
    cdef DataType dtype
    for i in range(frame.size):
        dtype = HandleDtype(frame.handles[i])
        if dtype != DT_INT32 and dtype != DT_INT64:
            return op.attrs_for_gradient(op.attrs_of_call(slots), frame)
    return ()


cdef bint reads_no_seeds(Schema op):
    return op.op_name in _UNREAD_SEEDS


cdef bint leave_out_seeds(Schema op, PyObject** slots) except -1:
    cdef int i
    cdef PyObject* value
    for i in range(op.num_attrs):
        value = slots[op.attr_slots[i]]
        if op.attr_names[i] in _SEEDS and value != NULL and (
            type(<object>value) is not int or not 0 <= <object>value < _SEED_LIMIT
        ):
            return False
    for i in range(op.num_attrs):
        if op.attr_names[i] in _SEEDS:
            slots[op.attr_slots[i]] = NULL
    return True


cdef int leave(Schema op, PyObject** slots, const Runtime& runtime, bint anew) except -1:
    global _context
    cdef Drawn drawn
    cdef int64_t pair[2]
    cdef uint32_t number
    if anew:
        _ops.clear()
        _context = None
        drawn = _ops[op.op_name] = Drawn(op)
    else:
        drawn = _drawn(op, runtime)
    if not drawn.read(slots, pair):
        return 0
    number = drawn.pairs.Find(pair[0], pair[1])
    if number == UNDRAWN:
        drawn.pairs.Store(pair[0], pair[1], IN_TENSORFLOW)
    elif number != IN_TENSORFLOW:
        drawn.hand_over(pair, number, runtime)
    return 0


cdef object _next_seed(rng):
    """Return ``rng.randint(0, 2**31 - 1)``."""
    while True:
        number = rng.getrandbits(32)
        if number <= _MAX_SEED:
            return number


def _draws_like_randint():
    """Tell whether `_next_seed` gives the numbers that this version of Python draws."""
    rng, other = _Random(0), _Random(0)
    return [_next_seed(rng) for _ in range(64)] == [other.randint(0, _MAX_SEED) for _ in range(64)]


cdef bint _restated = _draws_like_randint()


cdef tuple seeds_of(op_seed):
    context = _tf_context._context
    if (
        not _restated
        or _random_seed.get_seed is not _get_seed
        or _tf_context.internal_operation_seed is not _internal_operation_seed
        or context is None
        or type(context._seed) is not int
        or op_seed is not None and type(op_seed) is not int
    ):
        return _random_seed.get_seed(op_seed)
    if op_seed is None:
        rng = context._rng
        if type(rng) is not _Random:
            return _random_seed.get_seed(None)
        op_seed = _next_seed(rng)
    first, second = context._seed % _MAX_SEED, op_seed % _MAX_SEED
    if not first and not second:  # kernels take (0, 0) for no seed
        second = _MAX_SEED
    return first, second


def begin(known):
    """Draw here from now on, under `install`.

    Parameters
    ----------
    known : bool
        Whether no kernel of TensorFlow has drawn by seeds so far. If not, draws begin after
        `forget`.
    """
    global installed, _known, live
    installed, _known = True, known
    live = known


def forget():
    """Start again: TensorFlow has dropped its kernels, which held the positions in sequences."""
    global _known, live, era
    cdef Drawn drawn
    era += 1
    for drawn in _ops.values():
        drawn.forget()
    _known = True
    live = installed


cdef int settle(const Runtime& runtime) except -1:
    cdef Drawn drawn
    cdef SeedPair pair
    cdef int64_t seeds[2]
    for drawn in list(_ops.values()):
        for pair in _to_hand_over(drawn.pairs.Unknown()):
            seeds[0], seeds[1] = pair.seed, pair.seed2
            drawn.hand_over(seeds, pair.number, runtime)
        drawn.forget()
    return 0


def _seeds(generator, number):
    """Return the next seeds that TensorFlow's context draws from a generator."""
    return {generator.randint(0, MAX_INT32) % MAX_INT32 for _ in range(number)}


cdef vector[SeedPair] _to_hand_over(vector[SeedPair] pairs):
    """Return the pairs that may come again.

    Those are the pairs with a seed that the program has chosen. The others have a seed that
    TensorFlow's context has drawn. Such a seed may come again by chance, once in 2**31 draws.
    """
    cdef vector[SeedPair] kept
    cdef SeedPair pair
    cdef int64_t first
    if pairs.size() <= FEW_PAIRS:
        return pairs
    try:
        context = _tf_context._context
        first = context._seed % MAX_INT32
        generator = random.Random(context._seed)
        drawn = _seeds(generator, 4 * pairs.size() + 10_000)
        generator.setstate(context._rng.getstate())
        ahead = _seeds(generator, SEEDS_AHEAD)
    except Exception:  # there is no global seed, or it is not an int
        return pairs
    for pair in pairs:
        if pair.seed != first or pair.seed2 not in drawn or pair.seed2 in ahead:
            kept.push_back(pair)
    return kept


def stop():
    """End what `begin` has begun."""
    global installed, _known, live
    installed = _known = live = False


cpdef size_t num_pairs():
    """Return how many pairs of seeds are stored."""
    cdef Drawn drawn
    return sum([drawn.pairs.size() for drawn in _ops.values()])
