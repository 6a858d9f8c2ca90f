"""What a tape asks for: the gradients of recorded ops, by rules, family by family.

Not the methods of tapes: those are in `fastops._install.tapes`. The table of rules is whole as soon
as anything of this package is imported, since the families are.
"""

from fastops._install import upstream

# These register what they have.
upstream.load_all("gradients", "arrays elementwise layers reductions")
