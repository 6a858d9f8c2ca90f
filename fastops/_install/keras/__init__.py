"""Stand-ins for Keras's Python code above its ops.

Functions of Keras's backend are lowered to ops, like TensorFlow's public functions: `functions` has
the table, `backend` the lowerings. A `helper` stands in for a function that only inspects values.
Importing this package imports the modules with helpers and lowerings. Only
`fastops._install.targets` uses this package.
"""

from fastops._install import upstream

# Importing these modules registers their helpers and lowerings.
upstream.load_all("keras", "backend dtypes layers structures")
