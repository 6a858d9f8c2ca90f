# distutils: language = c++
"""Traces that fastops calls again, with other tensors in the places of the captured ones."""

cimport cython
from libc.stdint cimport int64_t

from fastops._situation cimport is_plain
from fastops._specialize.policy cimport Account, Estimate, now

from fastops._plans.packing import packer
from fastops._plans.planned import Planned as _Planned


# The cost of making a plan.
cdef Estimate _cost = Estimate("plans of repeated traces", 6e6)


@cython.final
cdef class RepeatedTrace:
    """A trace that is called again and again.

    TensorFlow makes the first calls. A plan makes the others once that pays, if nothing records the
    call.

    Parameters
    ----------
    concrete : ConcreteFunction
        The trace. It has no state and no effects, but it may read variables.
    """

    cdef readonly object concrete
    cdef readonly object planned   # runs the plan; None: no plan was made
    cdef object pack               # makes the result of a list of tensors; None: it is one tensor
    cdef Account account           # of calls without a plan
    cdef Py_ssize_t num_arguments

    def __init__(self, concrete):
        self.concrete, self.pack, self.account = concrete, packer(concrete), Account()
        self.num_arguments = len(concrete.inputs) - len(concrete.captured_inputs)

    def run(self, list tensors not None, bint unrecorded=False):
        """Return the result of a call.

        Parameters
        ----------
        tensors : list of EagerTensor
            The arguments, and the tensors in the places of the captured ones.
        unrecorded : bool
            Whether it is known that no tape and no accumulator records the call, and that the
            situation is plain otherwise.
        """
        cdef int64_t begin = now()
        cdef bint plain = unrecorded or is_plain()
        if self.planned is not None and plain:
            results = self.planned.run_unrecorded(tensors)
            return results[0] if self.pack is None else self.pack(results)
        result = self.concrete._call_flat(
            tensors[:self.num_arguments], tensors[self.num_arguments:]
        )
        if plain:
            self.account.charge(now() - begin)
            if self.account.is_due(_cost.of(1.0)):
                begin = now()
                self.planned = _Planned(self.concrete, inputs=tensors, free=True)
                _cost.learn(1.0, now() - begin)
        return result
