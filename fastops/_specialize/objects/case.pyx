# distutils: language = c++
"""The recordings of calls of a method, for one signature and one state of the object."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._specialize.guards.watch cimport Globals, Watch
from fastops._specialize.policy cimport Account, Estimate, MAX_OBJECT_CASE_FAILURES
from fastops._specialize.replay cimport Replay
from fastops._specialize.specialization cimport Specialization

cdef extern from "definitions.h":
    pass

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

from dataclasses import replace as _replace

# A long call spends most of its time in kernels, which a recording does not slow down. So each
# range of times (below 1 ms, 16 ms, 256 ms, and above) has an estimate of its own.
cdef list _costs = [
    Estimate(f"recording of calls of Keras's objects, {range_}", 24.0)
    for range_ in ("below 1 ms", "below 16 ms", "below 256 ms", "longer")
]


cdef int64_t cost_for(Account account):
    return _estimate(account.shortest_ns).of(account.shortest_ns)


cdef Estimate _estimate(int64_t call_ns):
    cdef int64_t bound = 1_000_000
    cdef int i = 0
    while i < 3 and call_ns >= bound:
        bound *= 16
        i += 1
    return <Estimate>_costs[i]


@cython.final
cdef class MethodCase(Specialization):
    """The recordings for one signature, in one state of the object.

    Attributes
    ----------
    scopes : tuple
        Keras's settings and scopes for the thread.
    globals : Globals
        Guard of the module globals that the recorded code reads.
    contents : Watch
        Guard of the contents of containers among these globals, and of variables that the caller
        passes as arguments.
    codes : dict
        The code that ran in recorded calls, with its globals.
    seen : set of int
        The identities of the objects that `contents` compares.
    functions : dict of int to callable
        The functions of libraries that user code may call, by their identity.
    variables : dict of int to tf.Variable
        The variables among them, by the identity of the handle.
    left : dict
        The attributes that a call leaves in the context of the outermost layer call.
    marks : set of tuple
        Pairs of an argument's index and the name of an attribute that a call sets to None on that
        argument (a mask, for example).
    names : dict
        By kind, how many names a call generates.
    identified : bool
        Whether the recordings are for variables of one object.
    any_batch : bool
        Whether the recordings are for all batch sizes: the key has no first sizes of tensors.
    adds_losses : bool
        Whether the result of a replay is a pair: what the call returns, and for each layer in the
        object the losses that the call adds to it.
    warned : list of fastops._specialize.recording.warned.Warned
        The warnings that a call issues.
    """

    def __init__(self, key, scopes, Account account):
        super().__init__(key, MAX_OBJECT_CASE_FAILURES, account)
        self.scopes = scopes
        self.codes, self.functions, self.marks, self.warned = {}, {}, set(), []

    cdef int deoptimize(self) except -1:
        Specialization.deoptimize(self)
        self.codes, self.functions, self.marks = {}, {}, set()
        return 0

    cdef int cost(self, int64_t ns) except -1:
        cdef int64_t call_ns = self.account.shortest_ns
        self.made_ns += ns - call_ns
        if self.first is None:
            _estimate(call_ns).learn(call_ns, self.made_ns)
            self.made_ns = 0
        return 0

    cdef bint holds(self) except -1:
        """Whether the globals that the code reads, and their contents, are unchanged."""
        cdef Globals asked = self.globals  # keeps it alive: another thread may replace it
        cdef Watch contents = self.contents
        # A collection could run code in between that frees the object of a global.
        cdef int collects = PyGC_Disable()
        try:
            return asked.hold() and contents.hold()
        finally:
            if collects:
                PyGC_Enable()

    cdef str changes(self):
        return self.globals.differs() or self.contents.differs()

    cdef str change(self):
        path = self.globals.change()
        return self.contents.change() if path is None else f"{path} has changed"

    cdef dict guards(self):
        """Return the paths that `holds` compares: names of libraries, globals, and their contents.

        The contents include those of variables that the caller passes.
        """
        if self.globals is None:
            return {}
        return {
            "names": self.globals.guard.paths(),
            "globals": self.globals.titles(),
            "contents": self.contents.paths(),
        }

    cdef int take_guards(self, MethodCase other) except -1:
        self.globals, self.contents = other.globals, other.contents
        self.codes, self.functions = other.codes, other.functions
        self.seen, self.variables = other.seen, other.variables
        self.left, self.names, self.marks = other.left, other.names, set(other.marks)
        self.warned = other.warned
        return 0

    cdef bint covers(self, MethodCase other, dict codes) except -1:
        return (
            self.codes.keys() >= codes.keys()
            and self.left == other.left
            and self.names == other.names
            and self.marks == other.marks
            and self.warned == other.warned
        )

    cdef MethodCase unbound(self, dict numbers):
        return self.copied(numbers, NULL)

    cdef MethodCase bound(self, const vector[PyObject*]* parts):
        return self.copied(None, parts)

    cdef MethodCase copied(self, dict numbers, const vector[PyObject*]* parts):
        cdef Replay replay
        cdef MethodCase case = MethodCase(self.key, self.scopes, self.account)
        case.take_guards(self)
        for replay in self.variants:
            under_tape = () if replay.taped is None else replay.taped.variables
            case.variants.append(
                replay.rebound(
                    _others(replay.variables, numbers, parts), _others(under_tape, numbers, parts),
                    parts == NULL,
                )
            )
        if self.first is not None:
            case.first = _with_others(self.first, numbers, parts)
        return case


cdef list _others(variables, dict numbers, const vector[PyObject*]* parts):
    """Return the numbers of variables, or the variables for numbers."""
    if parts == NULL:
        return [numbers.get(<size_t><PyObject*>variable, variable) for variable in variables]
    return [
        <object>parts[0][<int>variable] if type(variable) is int else variable
        for variable in variables
    ]


cdef object _with_others(recording, dict numbers, const vector[PyObject*]* parts):
    """Return a recording with the numbers of its variables, or with variables for numbers."""
    under_tape = recording.taped
    if under_tape is not None:
        under_tape = _with_others(under_tape, numbers, parts)
    variables = _others(recording.variables, numbers, parts)
    return _replace(recording, variables=variables, taped=under_tape)
