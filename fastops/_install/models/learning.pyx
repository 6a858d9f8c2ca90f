# distutils: language = c++
"""The recording of a method call: guards prepared before the call, and the replay made after it.

A recording belongs to one object and one signature of the arguments. Its guards compare the state
of the object, Keras's settings, and the globals of the code that ran. Two calls are recorded, and
they must have run the same ops. The replay is then tried on copies of the variables, and must give
the result of the second call. Only after that are calls replayed.

If the two calls differ in the batch size, their recordings are compared without the sizes that
depend on it (`recording(any_batch=True)`). The replay then serves all batch sizes.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject

from fastops._cpp.signature cimport Signature
from fastops._dispatch cimport Op
from fastops._install.models.scopes cimport Scopes
from fastops._specialize.guards.watch cimport Watch
from fastops._specialize.objects.case cimport MethodCase
from fastops._specialize.objects.receiver cimport Receiver
from fastops._specialize.objects.state cimport ObjectState
from fastops._specialize.policy cimport Account, MAX_OBJECT_OPS, now
from fastops._specialize.replay cimport Replay
from fastops._specialize.trial cimport copies_of, try_replay
from fastops._tf.eager cimport recording as taped

cdef extern from "definitions.h":
    pass

from functools import partial
from weakref import ref as _reference

import tensorflow as _tf

from fastops._install.lookups import of_codes as _of_codes
from fastops._install.models.library import OF_LOSSES
from fastops._install.target import generated
from fastops._specialize.guards.discovery import guards_of
from fastops._specialize.recording.alike import alike
from fastops._specialize.recording.plain import is_dataclass
from fastops._specialize.recording.recording import Held, NotReplayableError, parts_of, recording

cdef dict _ops = {}


cdef Op _op(key):
    """Return the `Op` of a step. Each step has one of its own, which remembers its last key."""
    op = _ops.get(key)
    return _ops.setdefault(key, Op(key[2])) if op is None else op


@cython.final
cdef class MethodRecording:
    """The recording of one call of a method.

    The caller calls `prepare`, makes the call while it is recorded, and then calls `learn`.

    Parameters
    ----------
    source : Scopes
        The settings and scopes that the library keeps for a thread.
    unasked : dict of type to set of str
        See `fastops._specialize.guards.places.Places`.
    root : object
        The object whose method is called.
    scopes : tuple
        What `source` has read before the call.
    """

    def __init__(self, Scopes source not None, dict unasked, root, tuple scopes):
        self.source, self.unasked, self.root, self.scopes = source, unasked, root, scopes
        self.began = now()

    cdef bint prepare(self, Receiver receiver, ObjectState state, MethodCase case,
                      Account account, const Signature& signature) except -1:
        cdef size_t i
        self.receiver, self.case = receiver, case
        self.arguments = [<object>signature.object(i) for i in range(signature.num_leaves())]
        self.holders = [<object>signature.holder(i) for i in range(signature.num_holders())]
        self.identities = [
            <object>signature.identity(i) for i in range(signature.num_identities())
        ]
        self.context = self.source.call_context()
        if self.context is not None:
            self.around = dict(self.context.__dict__)
        self.note_losses()
        if receiver.adds_losses and state is not None and state.losses is None:
            receiver.states.clear()
            state = case = None
        unasked_of = None
        if receiver.adds_losses:
            unasked_of = {id(layer): OF_LOSSES for layer in self.layers}
        state = receiver.recordable(state, self.root, self.unasked, unasked_of)
        if state is None:
            return False
        if state.losses is None:
            state.losses = self.source.stores_of(self.root)
            if receiver.adds_losses:
                state.losses = [_reference(layer) for layer in self.layers]
        self.state, self.names = state, self.source.names_given()
        if case is None:
            key = PyBytes_FromStringAndSize(signature.data(), signature.size())
            case = MethodCase(key, self.scopes, account)
            case.adds_losses = receiver.adds_losses
            state.cases.replace((key, self.scopes), case)
            self.case = case
        self.attributes = [dict(vars(tensor)) for tensor in self.arguments]
        self.first = case.first  # another thread may drop it meanwhile
        self.confirms = self.first is not None and case.holds()
        if self.confirms:
            self.copies = copies_of(self.first.variables)
        if not case.adds_losses and not self.identities and not self.holders:
            self.prepare_batch(signature, account)
        return True

    cdef int prepare_batch(self, const Signature& signature, Account account) except -1:
        cdef bytes key = signature.OfAnyBatch()
        cdef MethodCase batch = self.state.batch_of(signature, self.scopes)
        if not key or batch is not None and (batch.variants or batch.is_given_up()):
            return 0
        if batch is None:
            batch = MethodCase(key, self.scopes, account)
            batch.any_batch = True
            self.state.batches.replace((key, self.scopes), batch)
        self.batch = batch
        if batch.first is not None and batch.confirmed_by != self.case.key and batch.holds():
            self.first_batch = batch.first
            self.batch_copies = copies_of(self.first_batch.variables)
        return 0

    cdef bint learn(self, record, bint keeps_arguments, const Signature& signature,
                    result) except -1:
        cdef bint made
        self.check(record, keeps_arguments)
        self.count_names(record.recorder)
        self.case.marks.update(
            (leaf, name)
            for leaf, tensor in enumerate(self.arguments)
            for name, value in vars(tensor).items()
            if name not in self.attributes[leaf] or self.is_cleared(leaf, name, value)
        )
        if self.case.adds_losses:
            result = result, self.added()
        made = self.keep(record, self.left(), signature, result)
        self.case.cost(now() - self.began)
        if self.batch is not None:
            self.keep_batch(record, signature, result)
        return made

    cdef bint is_cleared(self, int leaf, str name, value) except -1:
        """Whether the call has set an attribute of an argument to None."""
        return value is None and self.attributes[leaf].get(name) is not None

    cdef list cleared(self):
        return [
            (tensor, name, self.attributes[leaf][name])
            for leaf, tensor in enumerate(self.arguments)
            for name, value in vars(tensor).items()
            if self.is_cleared(leaf, name, value)
        ]

    cdef int note_losses(self) except -1:
        self.layers = self.source.layers_of(self.root)
        if self.layers is None:
            return 0
        self.losses = [list(layer._losses) for layer in self.layers]
        if any(self.losses):
            self.receiver.adds_losses = True
        return 0

    cdef list added(self):
        cdef list before, losses = []
        for layer, before in zip(self.layers, self.losses):
            after = list(layer._losses)
            if self.context is None:  # the call has cleared them first
                before = []
            if list(map(id, after[: len(before)])) != list(map(id, before)):
                raise NotReplayableError("adds_losses")
            losses.append(after[len(before):])
        return losses

    cdef int check(self, record, bint keeps_arguments) except -1:
        """Check that the call has changed neither its arguments nor its object."""
        if record.witness.objection is not None:
            raise NotReplayableError(*record.witness.objection)
        if not keeps_arguments:
            raise NotReplayableError("arguments_changed")
        changed = self.state.watch.differs()
        if changed is not None:
            self.note_losses()
            raise NotReplayableError(
                "object_changed", record.witness.proof.blamed_for(changed)
            )
        if self.source.reads_losses(record.witness.codes, self.case.adds_losses):
            raise NotReplayableError("adds_losses")
        if not self.source.covers(record.witness.codes):
            raise NotReplayableError("library_in_module")
        return 0

    cdef int count_names(self, recorder) except -1:
        """Note how many names the call has generated, and which warnings it has issued."""
        given = {
            kind: count - self.names.get(kind, 0)
            for kind, count in self.source.names_given().items()
            if count != self.names.get(kind, 0)
        } or None
        if self.confirms or self.case.variants:
            if self.case.names != given:
                raise NotReplayableError("names_differ")
            if self.case.warned != recorder.warned:
                raise NotReplayableError("warnings_differ")
        self.case.names, self.case.warned = given, recorder.warned
        return 0

    cdef dict left(self):
        """Return the attributes that the call has set in the context of an outer call, or None."""
        cdef tuple read
        if self.source.call_context() is not self.context:
            raise NotReplayableError("scope_left_open")
        if self.context is None:
            read = self.source.read(<PyObject*>self.root)
            if read is None or self.scopes[: len(read)] != read:
                raise NotReplayableError("settings_changed")
            return None
        changed = {
            name: value
            for name, value in self.context.__dict__.items()
            if name not in self.around or self.around[name] is not value
        }
        for value in changed.values():
            if value is not None and not isinstance(value, (bool, int, float, str)):
                raise NotReplayableError("call_context")
        return changed or None

    cdef int guard(self, witness) except -1:
        """Guard the code that ran, unless the guards of earlier recordings include it."""
        cdef MethodCase case = self.case
        cdef bint again = self.confirms or len(case.variants) != 0
        cdef list foreign
        if again and not case.holds():
            raise NotReplayableError("read_changed", witness.proof.blamed_for(case.changes()))
        if again and case.codes.keys() >= witness.codes.keys():
            return 0
        codes, functions = witness.codes, witness.proof.functions
        if again:
            codes, functions = {**case.codes, **codes}, {**case.functions, **functions}
        pairs = [(code, namespace) for (code, _), namespace in codes.items()]
        foreign = [
            value
            for value in self.identities
            if <size_t><PyObject*>value not in self.state.seen
        ]
        globals_now, places = guards_of(
            codes, self.state.places, self.unasked, [*foreign, *functions.values()],
            partial(_of_codes, pairs),
        )
        case.functions = functions
        self.confirms = self.confirms and case.codes.keys() >= witness.codes.keys()
        case.codes, case.globals, case.contents = codes, globals_now, Watch(places)
        case.seen, case.variables = places.seen, places.variables
        return 0

    cdef bint keep(self, record, dict left, const Signature& signature, result) except -1:
        """Keep a first recording, or make the replay if a second one has run the same ops."""
        cdef MethodCase case = self.case
        cdef ObjectState state = self.state
        cdef Replay replay
        if _holds_container(result, state.seen):
            raise NotReplayableError("container_returned")
        self.guard(record.witness)
        if _holds_container(result, case.seen):
            raise NotReplayableError("container_returned")
        returned = list(parts_of(result))
        state.watch.require(returned)
        case.contents.require(returned)
        given = {id(argument) for argument in self.arguments if argument.dtype != _tf.resource}
        if self.reaches(given):
            raise NotReplayableError("argument_kept")
        recorded = self.recorded(record, result, False)
        case.identified = bool(self.identities) or recorded.returns_variables
        for step in recorded.steps:
            if step.seed is None and step.lasts and step.outputs and step.accessed is None:
                raise NotReplayableError("no_trial", step.op_name)
        if self.batch is not None and any([step.lasts for step in recorded.steps]):
            self.batch.failures, self.batch = self.batch.most_failures, None
        if not self.confirms or case.left != left:
            case.first, case.left = recorded, left
            return False
        if not alike(self.first, recorded):
            case.first = recorded
            raise NotReplayableError("ops_differ")
        slot = self.receiver.take_slot()
        replay = Replay(recorded, lambda position, name: _op((slot, position, name)), generated, ())
        try_replay(replay, signature, self.copies, result, recorded.drawn.outputs)
        case.variants.append(replay)
        case.first = None
        self.receiver.succeed()
        return True

    cdef object recorded(self, record, result, bint any_batch):
        """Return the `Recording` of the call."""
        cdef MethodCase case = self.case
        cdef ObjectState state = self.state
        held = Held(
            state.seen | case.seen, record.recorder.first_id, taped(), state.tables, self.reaches
        )
        return recording(
            record.recorder, self.arguments, self.holders, result,
            {**state.variables, **case.variables}, held, MAX_OBJECT_OPS, any_batch=any_batch,
        )

    cdef int keep_batch(self, record, const Signature& signature, result) except -1:
        cdef MethodCase batch = self.batch
        cdef Replay replay
        try:
            recorded = self.recorded(record, result, True)
            if (
                self.first_batch is None
                or not batch.covers(self.case, record.witness.codes)
                or not alike(self.first_batch, recorded)
            ):
                if batch.first is not None and batch.confirmed_by != self.case.key:
                    batch.fail()
                batch.take_guards(self.case)
                batch.first, batch.confirmed_by = recorded, self.case.key
                return 0
            slot = self.receiver.take_slot()
            replay = Replay(
                recorded,
                lambda position, name: _op((slot, ("batch", position), name)),
                generated,
                (),
            )
            try_replay(replay, signature, self.batch_copies, result, [])
        except Exception:  # the recording for the batch size of this call is kept all the same
            batch.fail()
            return 0
        batch.take_guards(self.case)
        batch.variants.append(replay)
        batch.first = None
        self.receiver.succeed()
        return 0

    def reaches(self, set identities):
        """Whether the guards compare an object with one of these identities, which is alive."""
        return (
            self.state.watch.has_any(identities)
            or self.case.globals.has_any(identities)
            or self.case.contents.has_any(identities)
        )


cdef bint _holds_container(result, set seen) except -1:
    """Whether a list, dict or dataclass in a result is one of the objects that guards saw."""
    return any([
        id(part) in seen
        for part in parts_of(result)
        if isinstance(part, (list, dict)) or is_dataclass(type(part))
    ])
