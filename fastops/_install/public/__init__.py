"""Public functions that TensorFlow writes in Python, and what they are lowered to.

Which function comes down to which op is data, in `functions` and `methods`. The lowerings that
choose, family by family, are there as soon as anything of this package is imported.
"""

# They register themselves.
import fastops._install.public.arrays
import fastops._install.public.branches
import fastops._install.public.creation
import fastops._install.public.indexing
import fastops._install.public.math  # noqa: F401
