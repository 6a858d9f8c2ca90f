"""Rules that compute the gradients of recorded ops for a tape, family by family.

The methods of tapes are in `fastops._install.tapes`. Importing this package imports all families,
and so completes the table of rules.
"""

from fastops._install import upstream

# Importing these modules registers their rules.
upstream.load_all("gradients", "arrays elementwise layers reductions")
