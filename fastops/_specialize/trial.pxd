from fastops._cpp.signature cimport Signature
from fastops._specialize.replay cimport Replay


# New variables with the values of some. Tapes do not record the reads.
cdef list copies_of(variables)
# Runs a replay on copies of its variables, and compares with the result of the call that was
# recorded, and with what that left in the variables. Raises NotReplayableError if they differ.
cdef int try_replay(Replay replay, const Signature& signature, list copies, result) except -1
