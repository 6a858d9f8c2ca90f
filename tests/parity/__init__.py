"""The parity suite: fastops gives the same as TensorFlow, for all ops of the registry.

``recipes`` define how to call each op. ``draw`` makes the tensors for recipes. ``cases`` combines
recipes with the dtypes of the registered kernels. ``checks`` compares one case with TensorFlow.
``malformed`` makes wrong calls. ``worker`` does all this for some ops, in its own process.
``campaign`` runs workers and survives their crashes. ``coverage`` writes docs/coverage.md. ``python
-m parity`` runs everything.
"""
