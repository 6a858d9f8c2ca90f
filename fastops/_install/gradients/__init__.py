"""Stand-ins for the functions of TensorFlow through which a program gets gradients.

`fastops._autodiff` computes the gradients. `gradient_function` stands in for the function that a
tape calls for each recorded op, `tape_methods` and `jacobian_methods` for methods of
``tf.GradientTape``, and `forward_products` for the function that forward accumulators call.
`targets` decides which rules may run. Importing this package imports all families of rules, and so
completes the table of rules.
"""

from fastops._autodiff import FAMILIES
from fastops._install import upstream

# Importing these modules registers their rules.
upstream.load_all("fastops._autodiff", FAMILIES)
