"""What replaces what in Keras: the Python above its ops.

Functions of its backend come down to ops, as TensorFlow's public functions do: `functions` says to
which, `backend` chooses. What only asks is answered by a `helper`. Answers and lowerings are there
as soon as anything of this package is imported. Only `fastops._install.targets` knows of it.
"""

from fastops._install import upstream

# These register what they have.
upstream.load_all("keras", "backend dtypes layers structures")
