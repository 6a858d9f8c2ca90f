# distutils: language = c++
"""What is known about the calls of one signature of a traced function.

The states are those of a specialization:

=========  =========================================================================================
State      Meaning
=========  =========================================================================================
WAITING    TensorFlow makes the calls: binding the arguments once for all calls would not pay yet
RECORDED   the arguments are bound for calls that a tape may record; TensorFlow makes the others
ACTIVE     a plan runs the calls that no tape records
REFUSED    the arguments are bound, but TensorFlow runs the trace; `Runner.reason` says why
=========  =========================================================================================
"""

cimport cython
from cpython.object cimport PyObject

from fastops._cpp.dicts cimport Referent
from fastops._cpp.plan cimport Borrowed
from fastops._cpp.signature cimport Signature
from fastops._plans.plan cimport borrow_anywhere
from fastops._plans.runner cimport Runner
from fastops._situation cimport NO_TAPE, reason_of
from fastops._specialize.policy cimport Account
from fastops._specialize.signatures cimport text_of_values
from fastops._specialize.states cimport State, name_of_state, state_of

cdef extern from "definitions.h":
    pass

from weakref import ref

from fastops._core.reasons import text_of as _text_of

cdef str _EARLY = _text_of("plan_not_due")


@cython.final
cdef class Bound:
    """The arguments of a signature, bound to the tensors that a trace takes.

    Parameters
    ----------
    runner : Runner
        Runs the trace, by its plan or by TensorFlow.
    takes : list of int or EagerTensor
        For each tensor that the trace takes: the number of the signature's leaf, or the constant
        tensor that all calls of the signature pass.
    pack : callable or None
        Makes the function's result of a list of tensors. None: the only tensor is the result.
    """

    def __init__(self, Runner runner not None, takes, pack):
        self.runner = runner
        self.pack = pack
        self.last_leaf = -1
        self.constant_objects = [source for source in takes if not isinstance(source, int)]
        for source in takes:
            if isinstance(source, int):
                self.leaves.push_back(source)
                self.last_leaf = max(self.last_leaf, source)
            else:
                self.constants.push_back(borrow_anywhere(source)[0])
                self.leaves.push_back(-<int>self.constants.size())

    cdef int gather(self, const Signature& signature, Borrowed* given) except -1:
        cdef size_t i
        cdef int leaf
        if self.last_leaf >= <int>signature.num_leaves():
            raise SystemError("a plan reads a leaf that the signature does not have")
        for i in range(self.leaves.size()):
            leaf = self.leaves[i]
            if leaf >= 0:
                given.push_back(signature.leaf(leaf))
            else:
                given.push_back(&self.constants[-leaf - 1])
        return 0

    cdef list inputs(self, const Signature& signature):
        cdef int leaf
        return [
            <object>signature.object(leaf) if leaf >= 0 else self.constant_objects[-leaf - 1]
            for leaf in self.leaves
        ]


@cython.final
cdef class FunctionCase:
    """What is known about the calls of one signature of a traced function.

    Attributes
    ----------
    key : bytes
        The signature.
    bound : Bound or None
        Runs the calls that no tape records. None: TensorFlow makes these calls, and binds the
        arguments of each.
    taped : Bound or None
        The bound arguments of calls that a tape may record. TensorFlow chooses the forward function
        and records the call, but neither binds the arguments nor looks up the trace again.
    """

    def __cinit__(self, bytes key):
        self.key = key
        self.account, self.taped_account = Account(), Account()

    @property
    def runner(self):
        """The `Runner` of calls that no tape records, or None."""
        return None if self.bound is None else self.bound.runner

    cdef State state(self) noexcept:
        cdef bint planned = self.bound is not None and self.bound.runner.plan is not None
        return state_of(planned, self.bound is not None, self.taped is not None)

    cdef int refer(self, const Signature& signature, dropped) except -1:
        cdef size_t i
        self.references = []
        for i in range(signature.num_identities()):
            self.references.append(ref(<object>signature.identity(i), dropped))
        return 0

    cdef bint refers(self, const Signature& signature) except -1:
        cdef size_t i
        for i in range(signature.num_identities()):
            if Referent(<PyObject*>self.references[i]) != signature.identity(i):
                return False
        return True

    def describe(self):
        """Describe the state of the signature, and what runs its calls.

        Returns
        -------
        dict
            What `Planned.describe` returns, and the ``"state"``. As long as the arguments are not
            bound, ``"arguments"`` is the text of the signature.
        """
        state = name_of_state(self.state())
        if self.bound is not None:
            return self.bound.runner.describe() | {"state": state}
        return {
            "arguments": text_of_values(self.key),
            "executor": "tensorflow",
            "reason": reason_of(NO_TAPE) if self.account.calls == 0 else _EARLY,
            "nodes": None,
            "state": state,
        }
