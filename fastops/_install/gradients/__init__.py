"""What a tape asks for: the gradients of recorded ops, by rules, family by family.

Not the methods of tapes: those are in `fastops._install.tapes`. The table of rules is whole as soon
as anything of this package is imported, since the families are.
"""

# They register themselves.
import fastops._install.gradients.arrays
import fastops._install.gradients.elementwise
import fastops._install.gradients.layers
import fastops._install.gradients.reductions  # noqa: F401
