"""What is learned from TensorFlow about calls of one kind, without recording ops.

Some calls always make the same object, apart from a few parts that are known: a variable from the
same arguments, a dataset of arrays with the same shapes. TensorFlow makes the first calls of such a
kind. If they agree, later calls use what was learned. If they do not, or if it cannot be used,
TensorFlow makes all calls of the kind, and `reason` says why. Datasets that map functions learn
plans in the same way. The states are those of a specialization:

=========  =========================================================================================
State      Meaning
=========  =========================================================================================
WAITING    TensorFlow has made no call of this kind
RECORDED   something was learned from one call, but more calls have to confirm it
ACTIVE     later calls use what was learned
REFUSED    TensorFlow makes all calls of this kind; `reason` says why
=========  =========================================================================================
"""

cimport cython
from cpython.object cimport PyObject

from fastops._specialize.cache cimport Cache
from fastops._specialize.states cimport (
    ACTIVE, RECORDED, REFUSED, State, WAITING, name_of_state, state_of,
)

import weakref

from fastops._core.reasons import REGISTRY, text_of as _text_of

cdef str _NEW = _text_of("kind_new")
_all = weakref.WeakSet()


def call_counts():
    """Return all `CallCounts` that are alive."""
    return list(_all)


@cython.final
cdef class Learned:
    """What was learned about calls of one kind.

    Parameters
    ----------
    kind : hashable
        The key of the kind.
    needed : int, default 1
        The number of calls that must agree before what was learned from them is used.
    """

    def __init__(self, kind, int needed=1):
        self.kind, self.needed = kind, needed

    cdef State state_now(self) noexcept:
        return state_of(self.seen >= self.needed, self.reason is not None, self.seen > 0)

    @property
    def state(self):
        """The name of the state."""
        return name_of_state(self.state_now())

    @property
    def is_active(self):
        """Whether calls use what was learned."""
        return self.state_now() == ACTIVE

    @property
    def is_decided(self):
        """Whether nothing more is learned from further calls."""
        return self.state_now() in (ACTIVE, REFUSED)

    def learn(self, content):
        """Learn from a call that TensorFlow has made. Return whether later calls use it.

        Once it is decided how calls of this kind are made, nothing changes: another thread may have
        learned meanwhile.
        """
        cdef State state = self.state_now()
        if state == WAITING:
            self.content, self.seen = content, 1
        elif state == RECORDED:
            if self.content == content:
                self.seen += 1
            else:
                self.refuse("kind_varies")
        return self.state_now() == ACTIVE

    def refuse(self, name, detail=None):
        """Leave all calls of this kind to TensorFlow, for a reason of the registry."""
        self.leave(REGISTRY[name].sentence, detail)

    def leave(self, str sentence not None, detail=None):
        """Leave all calls of this kind to TensorFlow, for a reason given by its sentence."""
        if not self.is_decided:
            self.content, self.detail, self.reason = None, detail, sentence

    @property
    def text(self):
        """The reason with its particulars; None if calls of this kind are not refused."""
        return self.reason if self.detail is None else f"{self.reason}: {self.detail}"

    def describe(self):
        """Describe what is known: the kind, the state, and the reason with its particulars."""
        return {
            "kind": self.kind, "state": self.state, "reason": self.reason, "detail": self.detail,
        }


cdef class CallCounts:
    """Counts of the calls of one function, by what was learned about them.

    Parameters
    ----------
    title : str
        The function, for reports.
    """

    def __init__(self, str title):
        self.title = title
        self.reset_counters()
        _all.add(self)

    cpdef int count(self, Learned learned) except -1:
        """Count a call that begins, by the state of its kind."""
        if learned.state_now() == ACTIVE:
            self.used += 1
        else:
            why = learned.reason or _NEW
            self.reasons[why] = self.reasons.get(why, 0) + 1
        return 0

    def reset_counters(self):
        """Reset the counts of calls."""
        self.used, self.reasons = 0, {}


@cython.final
cdef class LearnedByKind(CallCounts):
    """What was learned about calls of one function, by their kinds.

    Parameters
    ----------
    title : str
        The function, for reports.
    most : int
        The maximum number of kinds, or the maximum of their sizes in total. Beyond it, the oldest
        kind is dropped.
    needed : int, default 1
        See `Learned`.
    size_of : callable, optional
        Returns the size of what was learned.
    """

    def __init__(self, str title, Py_ssize_t most, int needed=1, size_of=None):
        super().__init__(title)
        self.most, self.needed, self.size_of = most, needed, size_of
        self.known = Cache(most)

    def __len__(self):
        return len(self.known)

    cdef Learned find(self, kind):
        cdef PyObject* stored = self.known.find(kind)
        return None if stored == NULL else <Learned>stored

    cpdef Learned of(self, kind):
        """Return the `Learned` of a kind. A new kind is added."""
        cdef Learned learned = self.find(kind)
        if learned is None:
            learned = self.known.put(kind, Learned(kind, self.needed))
        return learned

    def trim(self):
        """Drop the oldest kinds until the sizes of the others are within the limit."""
        cdef Learned learned
        cdef list known = self.known.values()
        total = sum([self.size_of(learned.content) for learned in known if learned.seen])
        for learned in known[: len(known) - 1]:
            if total <= self.most:
                break
            if learned.seen:
                total -= self.size_of(learned.content)
            self.known.drop(learned.kind)

    def describe(self):
        """Return a list with the description of each kind: see `Learned.describe`."""
        return [learned.describe() for learned in self.known.values()]
