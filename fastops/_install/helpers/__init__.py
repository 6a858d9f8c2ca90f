"""What replaces the Python by which TensorFlow, and libraries on it, ask about values.

Nested structures, what is in a `tf.Module`, whether something is a tensor: an `answer` is given for
plain arguments, by classes that `classes` remembers. Answers are there as soon as anything of this
package is imported. Only `fastops._install.targets` knows of it.
"""

# They register themselves.
import fastops._install.helpers.attributes
import fastops._install.helpers.conversions
import fastops._install.helpers.decorators
import fastops._install.helpers.distribution
import fastops._install.helpers.dtypes
import fastops._install.helpers.modes
import fastops._install.helpers.modules
import fastops._install.helpers.scopes
import fastops._install.helpers.shapes
import fastops._install.helpers.signatures
import fastops._install.helpers.structures
import fastops._install.helpers.values  # noqa: F401
