from fastops._cpp.signature cimport Signature
from fastops._specialize.replay cimport Replay


# Makes new variables with the values of `variables`. Tapes do not record the reads.
cdef list copies_of(variables)
# Runs a replay on copies of its variables. Compares the result with the result of the recorded
# call, and the copies with the variables after that call. Raises NotReplayableError if they differ.
cdef int try_replay(Replay replay, const Signature& signature, list copies, result) except -1
