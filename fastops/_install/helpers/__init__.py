"""What replaces the Python by which TensorFlow, and libraries on it, ask about values.

Nested structures, what is in a `tf.Module`, whether something is a tensor: an `answer` is given for
plain arguments, by classes that `classes` remembers. Answers are there as soon as anything of this
package is imported. Only `fastops._install.targets` knows of it.
"""

from fastops._install import upstream

# These register what they have.
upstream.load_all(
    "helpers",
    """
    attributes conversions decorators distribution dtypes modes modules scopes shapes
    signatures structures values
    """,
)
