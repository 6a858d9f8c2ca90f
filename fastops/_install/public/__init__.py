"""Public functions that TensorFlow writes in Python, and what they are lowered to.

Which function comes down to which op is data, in `functions` and `methods`. The lowerings that
choose, family by family, are there as soon as anything of this package is imported.
"""

from fastops._install import upstream

# These register what they have.
upstream.load_all("public", "arrays branches creation indexing math")
