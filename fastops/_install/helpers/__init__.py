"""Stand-ins for helper functions of TensorFlow that inspect values.

TensorFlow, and libraries that are built on it, call them for nested structures, the contents of a
`tf.Module`, or tests whether a value is a tensor. Answers (`fastops._install.answer`) handle plain
arguments. `functions` has the tables of these functions, and `classes` caches facts about classes.
Importing this package imports the modules with answers. Only `fastops._install.targets` uses this
package.
"""

from fastops._install import upstream

# Importing these modules registers their answers.
upstream.load_all(
    "helpers",
    """
    arrays attributes conversions custom_gradients decorators distribution dtypes maps modes modules
    python_ops scopes shapes signatures structures tensor_arrays values
    """,
)
