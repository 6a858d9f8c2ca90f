"""Stand-ins for Keras's Python code above its ops.

Functions of Keras's backend are lowered to ops, like TensorFlow's public functions: `backend` has
the lowerings. Functions that only inspect values have answers (`fastops._install.answer`):
`structures` tells whether a value is a tensor, symbolic or nested, and `dtypes` returns names of
dtypes. `functions` has the tables of both.
`calls` stands in for the call of a layer, and `batches` for the cutting of arrays into batches.
Importing this package imports the modules with answers and lowerings.
"""

from fastops._install import upstream

# Importing these modules registers their answers and lowerings.
upstream.load_all("keras", "backend dtypes structures")
