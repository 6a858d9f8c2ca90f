"""What fastops knows of the instructions of CPython, by version.

Proofs, guards and stand-ins read code. In a version that is not listed here, they take code as not
understood: proofs fail, and guards with names from code never hold.
"""

import sys

READ = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
"""The versions whose instructions were read, in `opcode`, `dis` and the compiler's output."""

REVIEWED = sys.version_info[:2] in READ
"""Whether the instructions of the running version were read."""

INPLACE = range(13, 26)
"""The arguments of BINARY_OP that are operators such as ``+=``."""

SUBSCRIPT = 26
"""The argument of BINARY_OP that is ``[]``. Before Python 3.14 it was an instruction."""
