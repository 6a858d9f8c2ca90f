from fastops._cpp.signature cimport Signature
from fastops._specialize.replay cimport Replay


# Makes new variables with the values of `variables`. Tapes do not record the reads.
cdef list copies_of(variables)
# Runs a replay on copies of its variables. Compares the result with the result of the recorded
# call, and the copies with the variables after that call. Random ops do not draw: they make what
# they made in that call (`drawn`). Raises NotReplayableError if anything differs.
cdef int try_replay(Replay replay, const Signature& signature, list copies, result,
                    list drawn) except -1
