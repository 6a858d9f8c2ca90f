"""Public functions that TensorFlow writes in Python, and the ops that they are lowered to.

The tables in `functions` and `methods` name the ops of each function. If the op depends on the
arguments, a lowering chooses it. Importing this package imports the modules with lowerings.
"""

from fastops._install import upstream

# Importing these modules registers their lowerings.
upstream.load_all("public", "arrays branches creation indexing math")
