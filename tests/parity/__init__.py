"""The proof that fastops is the same as TensorFlow, over the whole registry.

``recipes`` say how each op is called, ``draw`` makes the tensors they ask for, ``cases`` multiplies
recipes by the dtypes of the registered kernels, ``checks`` holds one case against TensorFlow,
``malformed`` makes calls that are wrong. ``worker`` does all this for a share of the ops in a
process of its own, ``campaign`` runs workers and survives their crashes, ``coverage`` writes
docs/coverage.md. ``python -m parity`` runs everything.
"""
