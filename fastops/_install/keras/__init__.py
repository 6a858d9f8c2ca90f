"""What replaces what in Keras: the Python above its ops.

Functions of its backend come down to ops, as TensorFlow's public functions do: `functions` says to
which, `backend` chooses. What only asks is answered by a `helper`. Answers and lowerings are there
as soon as anything of this package is imported. Only `fastops._install.targets` knows of it.
"""

# They register themselves.
import fastops._install.keras.backend
import fastops._install.keras.dtypes
import fastops._install.keras.layers
import fastops._install.keras.structures  # noqa: F401
