"""Gradients: the walk of a tape over the ops that it recorded, and the gradient of each op.

=================  =================================================================================
Module             Contents
=================  =================================================================================
`tape`             the gradients of targets with respect to sources, by the walk of TensorFlow's
                   runtime; and which tensors a tape watches
`rules`            the table of rules, and the gradients of one recorded op by its rule
`backward_op`      a recorded op as its rule gets it
`arrays`           rules of ops that change shapes, and that split or join tensors
`elementwise`      rules of elementwise ops
`layers`           rules of the ops of layers and losses
`reductions`       rules of reductions
`shapes`           functions for rules: the shapes of values, and gradients in these shapes
=================  =================================================================================

Callers pass the arguments of TensorFlow's functions, and call these functions themselves if the
result is `DECLINED`. The stand-ins in `fastops._install.gradients` are such callers; they also
import the modules in `FAMILIES`, and decide which rules may run.
"""

FAMILIES = "arrays elementwise layers reductions"
"""The modules with rules. Importing them registers the rules. Each can be missing by itself."""
